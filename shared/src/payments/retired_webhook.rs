//! Webhooks at the payment provider whose agencies are deleted: each is removed there, and tried again until it is.

use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::payments::provider::PaymentProvider;
use crate::records::agency::{Agency, StoredPaymentWebhook};
use crate::records::due::Due;
use crate::request::error::Result;
use crate::request::event::EventContext;
use crate::table::item::from_item;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::table::{Table, TableError};
use crate::values::id::AgencyId;
use crate::values::secret::Secret;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The most webhooks removed in one minute, from each partition of the index, and at the same time: one call takes 24 seconds at most.
const LIMIT: i32 = 4;
const CONCURRENT: usize = 64;
/// Seconds between two tries: at first this long, then twice as long each time.
const PAUSE: i64 = 60;
/// Tries, over three days, after which it is left where it is: the key may have been revoked.
const TRIES: u32 = 12;

/// A webhook at the payment provider that is to be removed, with the key that can do it. Both go when it is done.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetiredWebhook {
    agency_id: AgencyId,
    payment_webhook_id: String,
    payment_api_key: Secret,
    /// How often it was tried.
    tries: u32,
    /// When it is tried next.
    due_at: Timestamp,
}

impl Stored for RetiredWebhook {
    type Id = AgencyId;

    fn key(tenant: &Tenant, agency: AgencyId) -> Key {
        Key::of(tenant, format_args!("RETIRED_WEBHOOK#{agency}"), "RETIRED_WEBHOOK")
    }

    fn due_partition(&self, agency: AgencyId) -> Option<String> {
        Some(Due::RetiredWebhook.partition(agency.0))
    }
}

impl Single for RetiredWebhook {}

impl Agency {
    /// Its webhook at the payment provider, which is to be removed there; none where it has none.
    pub fn retired_webhook(&self, now: Timestamp) -> Option<RetiredWebhook> {
        let webhook = self.payment_webhook.as_ref()?;
        Some(RetiredWebhook {
            agency_id: self.id,
            payment_webhook_id: webhook.payment_webhook_id.clone(),
            payment_api_key: self.payment_api_key()?.into(),
            tries: 0,
            due_at: now,
        })
    }
}

/// Notes the webhook that the payment provider has made for an agency. Where the agency was deleted meanwhile, it is removed there.
///
/// # Errors
/// [`TableError::Missing`] where the agency is not there.
pub async fn keep_webhook(
    table: &Table,
    (agency, by): (&Agency, Uuid),
    webhook: &StoredPaymentWebhook,
    now: Timestamp,
) -> Result<(), TableError> {
    let keep = |agency: &mut Agency| agency.payment_webhook = Some(webhook.clone());
    let kept = table.change(agency.id, by, keep).await;
    let orphan = Agency { payment_webhook: Some(webhook.clone()), ..agency.clone() };
    if let (Err(TableError::Missing), Some(orphan)) = (&kept, orphan.retired_webhook(now)) {
        retire(table, &orphan).await?;
    }
    kept.map(drop)
}

/// Has the events of a webhook find the agency, where it was set up before they were received.
///
/// # Errors
/// [`TableError::Missing`] where the agency is not there.
pub async fn point_to_webhook(table: &Table, agency: &Agency, by: Uuid) -> Result<(), TableError> {
    if agency.payment_webhook.as_ref().is_none_or(|webhook| webhook.has_pointer) {
        return Ok(());
    }
    let point = |agency: &mut Agency| {
        if let Some(webhook) = &mut agency.payment_webhook {
            webhook.has_pointer = true;
        }
    };
    table.change(agency.id, by, point).await.map(drop)
}

/// Has a webhook removed at the payment provider, within minutes.
///
/// # Errors
/// [`TableError`].
pub async fn retire(table: &Table, webhook: &RetiredWebhook) -> Result<(), TableError> {
    table.put_single(webhook.agency_id, webhook).await
}

/// Removes the webhooks that are due.
///
/// # Errors
/// Where the table does not answer. A provider that does not is asked again later.
pub async fn remove_retired_webhooks(cx: &EventContext<'_>) -> Result<()> {
    let due = cx.service.store.due(Due::RetiredWebhook, cx.service.clock.now(), LIMIT).await?;
    let removals: Vec<_> = due.iter().map(|key| remove(cx, key)).collect();
    let removed: Vec<Result<()>> = stream::iter(removals).buffer_unordered(CONCURRENT).collect().await;
    removed.into_iter().collect()
}

async fn remove(cx: &EventContext<'_>, key: &Key) -> Result<()> {
    let Some(tenant) = Tenant::of_partition_key(&key.pk) else { return Ok(()) };
    let (table, now) = (cx.table(tenant), cx.service.clock.now());
    let Some(item) = cx.service.store.get(key).await? else { return Ok(()) };
    let mut webhook: RetiredWebhook = from_item(item)?;
    let provider = PaymentProvider::new(&cx.service.config.payment_api_base, webhook.payment_api_key.expose());
    let gone = provider.remove_webhook(&webhook.payment_webhook_id).await;
    webhook.tries += 1;
    let (agency, tries) = (webhook.agency_id, webhook.tries);
    match gone {
        Err(cause) if tries < TRIES => {
            tracing::warn!(%agency, tries, %cause, "a webhook at the payment provider is not removed yet");
            webhook.due_at = now.plus_seconds(PAUSE << tries);
            return Ok(table.put_single(agency, &webhook).await?);
        }
        Err(cause) => tracing::error!(%agency, tries, %cause, "a webhook at the payment provider is never removed"),
        Ok(()) => {}
    }
    match table.remove_single::<RetiredWebhook>(agency).await {
        // Another tick has removed it too.
        Ok(_) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
