//! Webhooks at the payment provider whose agencies are deleted. Each one is removed there; a failed removal is retried.

use futures_util::stream::{self, StreamExt as _};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::payments::provider::PaymentProvider;
use crate::records::agency::{Agency, StoredPaymentWebhook, payment_api_key};
use crate::records::due::Due;
use crate::request::error::Result;
use crate::request::event::EventContext;
use crate::table::item::from_item;
use crate::table::keys::Key;
use crate::table::stored::{Single, Stored};
use crate::table::{Table, TableError};
use crate::values::id::AgencyId;
use crate::values::secret::{FoundSecret, HoldsSecrets as _, StoredSecret};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The most webhooks that are removed in one minute, from each partition of the index, and at the same time: one call
/// takes 24 seconds at most.
const LIMIT: i32 = 4;
const CONCURRENT: usize = 64;
/// Seconds between the first two attempts; the wait then doubles each time.
const PAUSE: i64 = 60;
/// The attempts, over three days, after which it is left at the provider: the key may have been revoked.
const TRIES: u32 = 12;

/// A webhook that must be removed at the payment provider, with the key for it. Both are deleted after that.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetiredWebhook {
    agency_id: AgencyId,
    payment_webhook_id: String,
    /// The key itself; or, if it is sealed, the billing plan in which it is.
    payment_api_key: StoredSecret,
    /// The number of attempts.
    tries: u32,
    /// When the next attempt is due.
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

    const HAS_SECRETS: bool = true;

    fn secrets(&mut self) -> Vec<(&'static str, FoundSecret<'_>)> {
        let mut found = Vec::new();
        self.payment_api_key.secrets(&mut found);
        found.into_iter().map(|found| (PLACE, found)).collect()
    }
}

/// The place of the key: a deleted agency's billing plan comes here as it is sealed, so that its removal needs no KMS.
const PLACE: &str = "Agency.billing_plan";

impl RetiredWebhook {
    /// The key, which is open; `None` if a sealed billing plan has none.
    fn key(&self) -> Option<String> {
        let text = self.payment_api_key.open()?.expose();
        match serde_json::from_str(text) {
            Ok(plan) => payment_api_key(&plan),
            Err(_) => Some(text.to_owned()),
        }
    }
}

impl Single for RetiredWebhook {}

impl Agency {
    /// The agency's webhook, to be removed at the payment provider; `None` if it has none.
    pub fn retired_webhook(&self, now: Timestamp) -> Option<RetiredWebhook> {
        let webhook = self.payment_webhook.as_ref()?;
        Some(RetiredWebhook {
            agency_id: self.id,
            payment_webhook_id: webhook.payment_webhook_id.clone(),
            payment_api_key: self.stored_payment_key()?,
            tries: 0,
            due_at: now,
        })
    }
}

/// Stores the webhook that the payment provider has created for an agency. If the agency was deleted in the meantime,
/// the webhook is removed there.
///
/// # Errors
/// [`TableError::Missing`] where there is no such agency.
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

/// Adds the pointer from a webhook's events to the agency, if the webhook was set up before such pointers existed.
///
/// # Errors
/// [`TableError::Missing`] where there is no such agency.
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

/// Schedules the removal of a webhook at the payment provider; it happens within minutes.
///
/// # Errors
/// [`TableError`].
pub async fn retire(table: &Table, webhook: &RetiredWebhook) -> Result<(), TableError> {
    table.put_single(webhook.agency_id, webhook).await
}

/// Removes the webhooks that are due.
///
/// # Errors
/// An error where the table does not answer. A provider that does not answer is asked again later.
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
    let gone = remove_at_provider(&table, webhook.clone(), &cx.service.config.payment_api_base).await;
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
        // A concurrent tick has removed it too.
        Ok(_) | Err(TableError::Missing) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Removes a webhook at the provider, whose address is `base`. Without a key nobody can remove it.
async fn remove_at_provider(table: &Table, mut webhook: RetiredWebhook, base: &str) -> Result<()> {
    table.open(&mut webhook).await?;
    let Some(key) = webhook.key() else { return Ok(()) };
    PaymentProvider::new(base, &key).remove_webhook(&webhook.payment_webhook_id).await
}
