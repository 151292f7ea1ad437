//! The reaction table: the service's reactions to changes of records, which the table's stream reports.
//!
//! One function reads the stream and runs the reactions to each change. A change may come more than once, so a reaction
//! must be idempotent. The filters of the stream in the template are generated from this table.

mod count;
pub mod emit;
mod filters;
mod marks;
mod when;

pub use filters::filters;
pub use when::When;

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use futures_util::future::{BoxFuture, join_all, try_join_all};
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::payments::receive;
use crate::payments::retired_webhook;
use crate::records::agency::{Agency, BillingPlan};
use crate::records::assistant::Assistant;
use crate::records::audit::{self, StampedItem};
use crate::records::campaign;
use crate::records::campaign::Campaign;
use crate::records::captured_form::CapturedForm;
use crate::records::captured_intent::CapturedIntent;
use crate::records::contact::Contact;
use crate::records::conversation;
use crate::records::conversation::Conversation;
use crate::records::datasource::{Datasource, DatasourceFile, DatasourceLink};
use crate::records::delivery;
use crate::records::delivery::Delivery;
use crate::records::form::Form;
use crate::records::intent::{Intent, IntentLink};
use crate::records::tag::{Link, Tag};
use crate::records::user::User;
use crate::records::webhook::Webhook;
use crate::records::widget::Widget;
use crate::request::error::{Error, Result};
use crate::request::event::{EventContext, Handled, Unhandled};
use crate::table::Table;
use crate::table::cascade::{self, Owned, Owner, Removal, Step};
use crate::table::change::Change;
use crate::table::declaration::Declared as _;
use crate::table::expiry;
use crate::table::filters::{Move, follow};
use crate::table::keys::{Key, row_of};
use crate::table::stored::Listed;
use crate::values::id::CampaignId;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// Records of one batch whose belongings are removed at the same time.
const CASCADES: usize = 8;

/// Every reaction.
pub const ALL: &[Reaction] = &[
    Reaction::of::<RemoveBelongings<Agency>>(),
    Reaction::of::<RemoveBelongings<Assistant>>(),
    Reaction::of::<RemoveBelongings<Campaign>>(),
    Reaction::of::<RemoveBelongings<Contact>>(),
    Reaction::of::<RemoveBelongings<Conversation>>(),
    Reaction::of::<RemoveBelongings<Datasource>>(),
    Reaction::of::<RemoveBelongings<Form>>(),
    Reaction::of::<RemoveBelongings<Intent>>(),
    Reaction::of::<RemoveBelongings<Tag>>(),
    Reaction::of::<RemoveBelongings<Webhook>>(),
    Reaction::of::<RemoveBelongings<Widget>>(),
    Reaction::of::<RemoveOrphans<BillingPlan>>(),
    Reaction::of::<RemoveOrphans<CapturedForm>>(),
    Reaction::of::<RemoveOrphans<CapturedIntent>>(),
    Reaction::of::<RemoveOrphans<DatasourceFile>>(),
    Reaction::of::<RemoveOrphans<DatasourceLink>>(),
    Reaction::of::<RemoveOrphans<IntentLink>>(),
    Reaction::of::<RemoveOrphans<Link>>(),
    Reaction::of::<ContinueRemoval>(),
    Reaction::of::<AnnounceClosedConversation>(),
    Reaction::of::<ForgetThread>(),
    Reaction::of::<CompleteDispatchedCampaign>(),
    Reaction::of::<CompleteDeliveredCampaign>(),
    Reaction::of::<SelectRows<Assistant>>(),
    Reaction::of::<SelectRows<Campaign>>(),
    Reaction::of::<SelectRows<CapturedForm>>(),
    Reaction::of::<SelectRows<CapturedIntent>>(),
    Reaction::of::<SelectRows<Contact>>(),
    Reaction::of::<SelectRows<Conversation>>(),
    Reaction::of::<SelectRows<Datasource>>(),
    Reaction::of::<SelectRows<Link>>(),
    Reaction::of::<SelectRows<Widget>>(),
    Reaction::of::<marks::SelectMarked<CapturedIntent>>(),
    Reaction::of::<CountExpired>(),
    Reaction::of::<RemoveObject>(),
    Reaction::of::<RetirePaymentWebhook>(),
    Reaction::of::<ForgetPaymentCustomer>(),
    Reaction::of::<NoteChange>(),
    TELL_CHANGES,
    COUNT_CHANGES,
];

/// Emits the events of changes. It is not for one record: the events of a batch go into the log together.
const TELL_CHANGES: Reaction = Reaction {
    name: "emit-events",
    record: "",
    when: When::Emitted,
    steps: &[],
    react: |cx, changes| Box::pin(emit::emit(cx, changes)),
};

/// Counts changes. It is not for one record: a transaction counts what a batch has of all records.
const COUNT_CHANGES: Reaction = Reaction {
    name: "count-changes",
    record: "",
    when: When::Counted,
    steps: &[],
    react: |cx, changes| Box::pin(count::count(cx, changes)),
};

/// After a record by which lists can be filtered was created, changed or removed, updates the row sets of its list.
struct SelectRows<R>(PhantomData<R>);

impl<R: Listed> React for SelectRows<R> {
    const NAME: &'static str = "select-rows";
    const WHEN: When = When::Changed;
    const RECORD: &'static str = R::NAME;
    type Record = R;

    async fn react(cx: &Reacting<'_>, rows: &[RowChange<R>]) -> Result<()> {
        let terms = |row: &Option<R>| row.as_ref().map(R::terms);
        let change = |row: &RowChange<R>| {
            let made_at = row.is.as_ref().or(row.was.as_ref()).and_then(R::dated);
            Move { key: row.key.clone(), was: terms(&row.was), is: terms(&row.is), made_at }
        };
        let moves: Vec<Move> = rows.iter().map(change).collect();
        Ok(follow::<R>(&cx.table, &moves, cx.now).await?)
    }
}

/// After a record was removed, removes its belongings too.
struct RemoveBelongings<R>(PhantomData<R>);

impl<R: Owner> React for RemoveBelongings<R> {
    const NAME: &'static str = "remove-belongings";
    const WHEN: When = When::Removed;
    const STEPS: &'static [Step] = R::STEPS;
    const RECORD: &'static str = R::NAME;
    // Only the id is read: a record that can no longer be parsed has belongings too.
    type Record = OnlyId;

    async fn react(cx: &Reacting<'_>, records: &[RowChange<OnlyId>]) -> Result<()> {
        let removed = records.iter().filter_map(|changed| changed.was.as_ref());
        remove_belongings(cx, removed.map(|record| (R::NAME, record.id)).collect()).await
    }
}

/// The id of a record, without its other fields.
#[derive(Deserialize)]
struct OnlyId {
    id: Uuid,
}

/// Removes a new record whose owner is gone: the request that created the record ran while the owner was removed.
struct RemoveOrphans<R>(PhantomData<R>);

impl<R: Owned> React for RemoveOrphans<R> {
    const NAME: &'static str = "remove-orphans";
    const WHEN: When = When::Made;
    const RECORD: &'static str = R::NAME;
    type Record = R;

    async fn react(cx: &Reacting<'_>, records: &[RowChange<R>]) -> Result<()> {
        let made = records.iter().filter_map(|changed| changed.is.as_ref());
        let owners = made.flat_map(|record| record.owners(&cx.table.tenant)).collect();
        let gone = cascade::missing_records(&cx.table, owners).await?;
        remove_belongings(cx, gone.into_iter().filter_map(|owner| Some((owner.record, owner.proof?))).collect()).await
    }
}

/// Continues an unfinished removal step by step, so that other changes are handled in between.
struct ContinueRemoval;

impl React for ContinueRemoval {
    const NAME: &'static str = "continue-removal";
    const WHEN: When = When::Written;
    const RECORD: &'static str = Removal::NAME;
    type Record = Removal;

    async fn react(cx: &Reacting<'_>, removals: &[RowChange<Removal>]) -> Result<()> {
        for removal in removals.iter().filter_map(|changed| changed.is.as_ref()) {
            cascade::resume(&cx.table, removal, steps_of(&removal.removed), cx.now).await?;
        }
        Ok(())
    }
}

/// Begins to remove the belongings of these records.
async fn remove_belongings(cx: &Reacting<'_>, records: Vec<(&'static str, Uuid)>) -> Result<()> {
    let begin = |(name, id)| cascade::begin(&cx.table, name, steps_of(name), id, cx.now);
    let cascades: Vec<_> = records.into_iter().map(begin).collect();
    Ok(stream::iter(cascades).buffer_unordered(CASCADES).try_collect().await?)
}

/// The steps that remove the belongings of a record with this name.
fn steps_of(record: &str) -> &'static [Step] {
    ALL.iter().find(|reaction| reaction.record == record && !reaction.steps.is_empty()).map_or(&[], |found| found.steps)
}

/// After DynamoDB has removed a delivery by its TTL, subtracts it from the count of its list.
struct CountExpired;

impl React for CountExpired {
    const NAME: &'static str = "count-expired";
    const WHEN: When = When::Expired;
    const RECORD: &'static str = Delivery::NAME;
    // The key contains everything that is needed.
    type Record = OnlyId;

    async fn react(cx: &Reacting<'_>, deliveries: &[RowChange<OnlyId>]) -> Result<()> {
        let mut lists: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
        for (_, list, ordinal) in deliveries.iter().filter_map(|changed| row_of(&changed.key)) {
            lists.entry(list).or_default().insert(ordinal);
        }
        for (list, expired) in lists {
            expiry::expire(&cx.table, list, expired).await?;
        }
        Ok(())
    }
}

/// After a file of a data source was removed, by a request or by another reaction, removes its bytes.
struct RemoveObject;

impl React for RemoveObject {
    const NAME: &'static str = "remove-object";
    const WHEN: When = When::Removed;
    const RECORD: &'static str = DatasourceFile::NAME;
    type Record = DatasourceFile;

    async fn react(cx: &Reacting<'_>, files: &[RowChange<DatasourceFile>]) -> Result<()> {
        let removed = files.iter().filter_map(|changed| changed.was.as_ref());
        Ok(try_join_all(removed.map(|file| file.remove_object(cx.bucket, &cx.table.tenant, cx.now))).await.map(drop)?)
    }
}

/// After an agency was removed, schedules the removal of its webhook at the payment provider. This reaction does not
/// call the provider, which may be slow.
struct RetirePaymentWebhook;

impl React for RetirePaymentWebhook {
    const NAME: &'static str = "retire-payment-webhook";
    const WHEN: When = When::Removed;
    const RECORD: &'static str = Agency::NAME;
    type Record = Agency;

    async fn react(cx: &Reacting<'_>, agencies: &[RowChange<Agency>]) -> Result<()> {
        let removed = agencies.iter().filter_map(|changed| changed.was.as_ref());
        for webhook in removed.filter_map(|agency| agency.retired_webhook(cx.now)) {
            retired_webhook::retire(&cx.table, &webhook).await?;
        }
        Ok(())
    }
}

/// After a user was removed, deletes the payment provider's customer of the user.
struct ForgetPaymentCustomer;

impl React for ForgetPaymentCustomer {
    const NAME: &'static str = "forget-payment-customer";
    const WHEN: When = When::Removed;
    const RECORD: &'static str = User::NAME;
    type Record = User;

    async fn react(cx: &Reacting<'_>, users: &[RowChange<User>]) -> Result<()> {
        let removed = users.iter().filter_map(|changed| changed.was.as_ref());
        Ok(try_join_all(removed.map(|user| receive::forget_customer(&cx.table, user))).await.map(drop)?)
    }
}

/// A conversation was closed.
const CLOSED: When = When::Became { field: "status", from: "open", to: "closed" };

/// After a conversation was closed, adds a delivery for the webhook of its assistant. Nothing is sent here.
struct AnnounceClosedConversation;

impl React for AnnounceClosedConversation {
    const NAME: &'static str = "announce-closed-conversation";
    const WHEN: When = CLOSED;
    const RECORD: &'static str = Conversation::NAME;
    type Record = Conversation;

    async fn react(cx: &Reacting<'_>, conversations: &[RowChange<Conversation>]) -> Result<()> {
        let closed: Vec<Conversation> = conversations.iter().filter_map(|changed| changed.is.clone()).collect();
        Ok(delivery::announce_closed(&cx.table, &closed, cx.now).await?)
    }
}

/// After a conversation was closed, removes the pointer from its contact and widget to it.
struct ForgetThread;

impl React for ForgetThread {
    const NAME: &'static str = "forget-thread";
    const WHEN: When = CLOSED;
    const RECORD: &'static str = Conversation::NAME;
    type Record = Conversation;

    async fn react(cx: &Reacting<'_>, conversations: &[RowChange<Conversation>]) -> Result<()> {
        Ok(conversation::forget_threads(&cx.table, conversations.iter().filter_map(|changed| changed.is.as_ref()))
            .await?)
    }
}

/// Completes a campaign whose last contact was dispatched without a delivery.
struct CompleteDispatchedCampaign;

impl React for CompleteDispatchedCampaign {
    const NAME: &'static str = "complete-dispatched-campaign";
    const WHEN: When = When::Changed;
    const RECORD: &'static str = Campaign::NAME;
    type Record = Campaign;

    async fn react(cx: &Reacting<'_>, campaigns: &[RowChange<Campaign>]) -> Result<()> {
        let dispatched = campaigns.iter().filter_map(|changed| changed.is.as_ref()).filter(|is| is.is_dispatched());
        complete(cx, dispatched.map(|campaign| campaign.id).collect()).await
    }
}

/// The delivery to a contact of a campaign has ended.
const CAMPAIGN_DELIVERY_ENDED: When = When::Ended { field: "state", to: &["delivered", "dead"], of: "campaign_id" };

/// Completes a campaign whose last delivery has ended.
struct CompleteDeliveredCampaign;

impl React for CompleteDeliveredCampaign {
    const NAME: &'static str = "complete-delivered-campaign";
    const WHEN: When = CAMPAIGN_DELIVERY_ENDED;
    const RECORD: &'static str = Delivery::NAME;
    type Record = Delivery;

    async fn react(cx: &Reacting<'_>, deliveries: &[RowChange<Delivery>]) -> Result<()> {
        let ended = deliveries.iter().filter_map(|changed| changed.is.as_ref());
        complete(cx, ended.filter_map(|delivery| delivery.campaign_id).collect()).await
    }
}

/// After a request with a key has changed a record, adds the change to the audit list.
struct NoteChange;

impl React for NoteChange {
    const NAME: &'static str = "note-change";
    const WHEN: When = When::Stamped;
    const RECORD: &'static str = "";
    type Record = StampedItem;

    async fn react(cx: &Reacting<'_>, items: &[RowChange<StampedItem>]) -> Result<()> {
        let stamped = items.iter().filter_map(|item| Some((item.was.is_none(), item.is.as_ref()?)));
        let made = stamped.flat_map(|(is_new, is)| audit::entries(is_new, is));
        Ok(audit::store(&cx.table, made, cx.audit_days).await?)
    }
}

async fn complete(cx: &Reacting<'_>, campaigns: BTreeSet<CampaignId>) -> Result<()> {
    for campaign in campaigns {
        campaign::complete(&cx.table, campaign, cx.now).await?;
    }
    Ok(())
}

/// A reaction to a change of a record.
trait React {
    /// Kebab-case name, for the log.
    const NAME: &'static str;
    /// The change.
    const WHEN: When;
    /// The steps that remove the belongings of a removed record.
    const STEPS: &'static [Step] = &[];
    /// The name of the record.
    const RECORD: &'static str;
    /// The part of the record that is read.
    type Record: DeserializeOwned + Send + Sync;

    /// Reacts to changed records of one organisation, in the order of their changes.
    fn react(cx: &Reacting<'_>, records: &[RowChange<Self::Record>]) -> impl Future<Output = Result<()>> + Send;
}

/// The resources of a reaction.
struct Reacting<'a> {
    /// The table of the organisation whose records changed.
    table: Table,
    /// The bucket.
    bucket: &'a Bucket,
    /// The time.
    now: Timestamp,
    /// For how many days an entry of the audit list is kept.
    audit_days: u32,
}

/// A record before and after a change.
struct RowChange<R> {
    /// Its key.
    key: Key,
    /// The record before; `None` if it is new.
    was: Option<R>,
    /// The record after; `None` if it was removed.
    is: Option<R>,
}

/// A reaction without its type.
#[derive(Debug, Clone, Copy)]
pub struct Reaction {
    /// Kebab-case name.
    pub name: &'static str,
    /// The record that changes.
    pub record: &'static str,
    /// The change.
    pub when: When,
    steps: &'static [Step],
    react: for<'a> fn(&'a Reacting<'a>, &'a [&'a Change]) -> BoxFuture<'a, Result<()>>,
}

impl Reaction {
    const fn of<R: React>() -> Self {
        Self {
            name: R::NAME,
            record: R::RECORD,
            when: R::WHEN,
            steps: R::STEPS,
            react: |cx, changes| {
                Box::pin(async move {
                    let record = |change: &&Change| {
                        Ok(RowChange { key: change.key(), was: change.record_before()?, is: change.record()? })
                    };
                    let records: Vec<RowChange<R::Record>> = changes.iter().map(record).collect::<Result<_>>()?;
                    R::react(cx, &records).await
                })
            },
        }
    }

    /// Whether this reaction handles `change`.
    pub fn is_for(&self, change: &Change) -> bool {
        self.when.includes(self.record, change)
    }

    /// Reacts to the changes of one organisation, all at once. If this fails, it reacts to each change separately, so
    /// that one failing record does not stop the others. Later changes of that record wait until the stream repeats them.
    async fn react_to(&self, cx: &EventContext<'_>, tenant: Tenant, changes: &[(usize, &Change)]) -> Handled {
        let service = cx.service;
        let (now, audit_days) = (service.clock.now(), service.config.audit_days);
        let cx = &Reacting { table: cx.table(tenant), bucket: &service.bucket, now, audit_days };
        let all: Vec<&Change> = changes.iter().map(|(_, change)| *change).collect();
        let Err(cause) = (self.react)(cx, &all).await else { return Ok(()) };
        let first = changes.first().map_or(0, |(at, _)| *at);
        // While the database is unavailable, each separate change would wait as long as all of them did together.
        if changes.len() == 1 || matches!(cause, Error::Unavailable(_)) {
            return Err(Unhandled::at(first, cause));
        }
        tracing::warn!(reaction = self.name, changes = changes.len(), %cause, "a reaction to several changes failed");
        let (mut unhandled, mut failed) = (Vec::new(), Vec::new());
        for (at, change) in changes {
            if failed.contains(&change.key()) {
                continue;
            }
            if let Err(cause) = (self.react)(cx, &[*change]).await {
                failed.push(change.key());
                unhandled.push(Unhandled::at(*at, cause));
            }
        }
        Unhandled::first(unhandled)
    }
}

/// Runs every reaction for its changes in `batch`, all at the same time, separately for each organisation.
///
/// # Errors
/// The first change for which a reaction failed. The stream repeats this change and all later ones.
pub async fn react(cx: &EventContext<'_>, batch: &[Change]) -> Handled {
    let mut groups: BTreeMap<_, (Tenant, Vec<(usize, &Change)>)> = BTreeMap::new();
    for (number, reaction) in ALL.iter().enumerate() {
        for (at, change) in batch.iter().enumerate().filter(|(_, change)| reaction.is_for(change)) {
            let Some(tenant) = Tenant::of_partition_key(&change.key().pk) else { continue };
            groups.entry((number, tenant.org())).or_insert((tenant, Vec::new())).1.push((at, change));
        }
    }
    let reactions = groups.iter().map(|((number, _), (tenant, changes))| ALL[*number].react_to(cx, *tenant, changes));
    Unhandled::first(join_all(reactions).await.into_iter().filter_map(Result::err))
}
