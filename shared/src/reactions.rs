//! The reaction table: what the service does after a change of a record, by the table's stream.
//!
//! One function reads the stream and runs the reactions to each change. A change may come more than once, so a reaction must be
//! idempotent. The filters of the stream in the template are written from this table.

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;

use futures_util::future::{BoxFuture, join_all, try_join_all};
use serde_json::{Value, json};

use crate::bucket::Bucket;
use crate::records::assistant::Assistant;
use crate::records::campaign::Campaign;
use crate::records::conversation::Conversation;
use crate::records::datasource::{Datasource, DatasourceFile};
use crate::records::declaration::Declared as _;
use crate::records::delivery::Delivery;
use crate::records::tag::{Link, Tag};
use crate::records::widget::Widget;
use crate::request::error::Result;
use crate::request::tenant::Tenant;
use crate::runtime::schedule::EventContext;
use crate::runtime::stream::{Change, Handled, Unhandled};
use crate::table::Table;
use crate::table::filters::Move;
use crate::table::keys::Key;
use crate::table::stored::Listed;
use crate::values::id::CampaignId;
use crate::values::time::Timestamp;

/// Every reaction.
pub const ALL: &[Reaction] = &[
    Reaction::of::<UnlinkTag>(),
    Reaction::of::<AnnounceClosedConversation>(),
    Reaction::of::<CompleteDispatchedCampaign>(),
    Reaction::of::<CompleteDeliveredCampaign>(),
    Reaction::of::<SelectRows<Assistant>>(),
    Reaction::of::<SelectRows<Campaign>>(),
    Reaction::of::<SelectRows<Conversation>>(),
    Reaction::of::<SelectRows<Datasource>>(),
    Reaction::of::<SelectRows<Link>>(),
    Reaction::of::<SelectRows<Widget>>(),
    Reaction::of::<RemoveObject>(),
];

/// When a record that lists can be filtered by is made, changed or removed, the sets of its list follow.
struct SelectRows<R>(PhantomData<R>);

impl<R: Listed> React for SelectRows<R> {
    const NAME: &'static str = "select-rows";
    const WHEN: When = When::Changed;
    type Record = R;

    async fn react(cx: &Reacting<'_>, rows: &[RowChange<R>]) -> Result<()> {
        let terms = |row: &Option<R>| row.as_ref().map(R::terms);
        let change = |row: &RowChange<R>| {
            let made_at = row.is.as_ref().or(row.was.as_ref()).and_then(R::dated);
            Move { key: row.key.clone(), was: terms(&row.was), is: terms(&row.is), made_at }
        };
        let moves: Vec<Move> = rows.iter().map(change).collect();
        Ok(cx.table.follow(&moves).await?)
    }
}

/// When a tag is removed, its links leave the link list.
struct UnlinkTag;

impl React for UnlinkTag {
    const NAME: &'static str = "unlink-tag";
    const WHEN: When = When::Removed;
    type Record = Tag;

    async fn react(cx: &Reacting<'_>, tags: &[RowChange<Tag>]) -> Result<()> {
        // There may be many links. A repeated change continues with the links that are left.
        for tag in tags.iter().filter_map(|changed| changed.was.as_ref()) {
            cx.table.remove_links_of(tag.id).await?;
        }
        Ok(())
    }
}

/// When a file of a data source is removed, by a request or by another reaction, its bytes go too.
struct RemoveObject;

impl React for RemoveObject {
    const NAME: &'static str = "remove-object";
    const WHEN: When = When::Removed;
    type Record = DatasourceFile;

    async fn react(cx: &Reacting<'_>, files: &[RowChange<DatasourceFile>]) -> Result<()> {
        let removed = files.iter().filter_map(|changed| changed.was.as_ref());
        try_join_all(removed.map(|file| file.remove_object(cx.bucket, &cx.table.tenant, cx.now))).await.map(drop)
    }
}

/// When a conversation is closed, the webhook of its assistant gets a delivery. Nothing is sent from here.
struct AnnounceClosedConversation;

impl React for AnnounceClosedConversation {
    const NAME: &'static str = "announce-closed-conversation";
    const WHEN: When = When::Became { field: "status", from: "open", to: "closed" };
    type Record = Conversation;

    async fn react(cx: &Reacting<'_>, conversations: &[RowChange<Conversation>]) -> Result<()> {
        let closed: Vec<Conversation> = conversations.iter().filter_map(|changed| changed.is.clone()).collect();
        Ok(cx.table.announce_closed(&closed, cx.now).await?)
    }
}

/// When the last contact of a campaign was dispatched, and has no delivery, the campaign is completed.
struct CompleteDispatchedCampaign;

impl React for CompleteDispatchedCampaign {
    const NAME: &'static str = "complete-dispatched-campaign";
    const WHEN: When = When::Changed;
    type Record = Campaign;

    async fn react(cx: &Reacting<'_>, campaigns: &[RowChange<Campaign>]) -> Result<()> {
        let dispatched = campaigns.iter().filter_map(|changed| changed.is.as_ref()).filter(|is| is.is_dispatched());
        complete(&cx.table, dispatched.map(|campaign| campaign.id).collect()).await
    }
}

/// When the last delivery of a campaign ends, the campaign is completed.
struct CompleteDeliveredCampaign;

impl React for CompleteDeliveredCampaign {
    const NAME: &'static str = "complete-delivered-campaign";
    const WHEN: When = When::Ended { field: "state", to: &["delivered", "dead"], of: "campaign_id" };
    type Record = Delivery;

    async fn react(cx: &Reacting<'_>, deliveries: &[RowChange<Delivery>]) -> Result<()> {
        let ended = deliveries.iter().filter_map(|changed| changed.is.as_ref());
        complete(&cx.table, ended.filter_map(|delivery| delivery.campaign_id).collect()).await
    }
}

async fn complete(table: &Table, campaigns: BTreeSet<CampaignId>) -> Result<()> {
    for campaign in campaigns {
        table.complete_campaign(campaign).await?;
    }
    Ok(())
}

/// A reaction to a change of a record.
trait React {
    /// Kebab-case name, for the log.
    const NAME: &'static str;
    /// The change.
    const WHEN: When;
    /// The record.
    type Record: Listed;

    /// Reacts to changed records of one organisation, in the order of their changes.
    fn react(cx: &Reacting<'_>, records: &[RowChange<Self::Record>]) -> impl Future<Output = Result<()>> + Send;
}

/// What a reaction may touch.
struct Reacting<'a> {
    /// The table of the organisation whose records changed.
    table: Table,
    /// The bucket.
    bucket: &'a Bucket,
    /// The time.
    now: Timestamp,
}

/// A record before and after a change.
struct RowChange<R> {
    /// Its key.
    key: Key,
    /// As it was; none where it is new.
    was: Option<R>,
    /// As it is; none where it was removed.
    is: Option<R>,
}

/// A change of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    /// It was made, changed or removed.
    Changed,
    /// It was removed.
    Removed,
    /// A field of it has changed its value.
    Became {
        /// The field.
        field: &'static str,
        /// Its value before.
        from: &'static str,
        /// Its value after.
        to: &'static str,
    },
    /// A field of it has got one of the values with which it ends.
    Ended {
        /// The field.
        field: &'static str,
        /// Its last values.
        to: &'static [&'static str],
        /// An attribute that the record must have.
        of: &'static str,
    },
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
    react: for<'a> fn(&'a Reacting<'a>, &'a [&'a Change]) -> BoxFuture<'a, Result<()>>,
}

impl Reaction {
    const fn of<R: React>() -> Self {
        Self {
            name: R::NAME,
            record: R::Record::NAME,
            when: R::WHEN,
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

    /// Whether this reaction is for `change`.
    fn is_for(&self, change: &Change) -> bool {
        change.record_name() == Some(self.record)
            && match self.when {
                When::Changed => true,
                When::Removed => change.is_removal(),
                When::Became { field, from, to } => {
                    change.text_before(field) == Some(from) && change.text(field) == Some(to)
                }
                When::Ended { field, to, of } => {
                    let ends = |value: Option<&str>| value.is_some_and(|value| to.contains(&value));
                    ends(change.text(field)) && !ends(change.text_before(field)) && change.text(of).is_some()
                }
            }
    }

    /// Reacts to the changes of one organisation, all at once. If this fails, it reacts to each change alone, so that one failing record
    /// does not stop the others.
    async fn react_to(&self, cx: &EventContext<'_>, tenant: Tenant, changes: &[(usize, &Change)]) -> Handled {
        let service = cx.service;
        let cx = &Reacting { table: cx.table(tenant), bucket: &service.bucket, now: service.clock.now() };
        let all: Vec<&Change> = changes.iter().map(|(_, change)| *change).collect();
        let Err(cause) = (self.react)(cx, &all).await else { return Ok(()) };
        if let [(at, _)] = changes {
            return Err(Unhandled::at(*at, cause));
        }
        tracing::warn!(reaction = self.name, changes = changes.len(), %cause, "a reaction to several changes failed");
        let mut unhandled = Vec::new();
        for (at, change) in changes {
            let result = (self.react)(cx, &[*change]).await;
            unhandled.extend(result.err().map(|cause| Unhandled::at(*at, cause)));
        }
        Unhandled::first(unhandled)
    }
}

/// Runs every reaction for its changes in `batch`, all at the same time, separately for each organisation.
///
/// # Errors
/// The first change for which a reaction failed. The stream repeats this change and all after it.
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

/// The filters of the stream: exactly the changes that have a reaction. Reactions to the same kind of change share a filter, since an event
/// source may have five at most.
pub fn filters() -> Vec<Value> {
    let of = |kinds: &[When]| {
        let records = ALL.iter().filter(|reaction| kinds.contains(&reaction.when)).map(|reaction| reaction.record);
        records.collect::<BTreeSet<_>>()
    };
    let (removed, changed) = (of(&[When::Removed, When::Changed]), of(&[When::Changed]));
    let became =
        ALL.iter().filter(|reaction| !changed.contains(reaction.record)).filter_map(|reaction| match reaction.when {
            When::Changed | When::Removed => None,
            When::Became { field, from, to } => Some(json!({
                "eventName": ["MODIFY"],
                "dynamodb": {
                    "OldImage": {"record": {"S": [reaction.record]}, field: {"S": [from]}},
                    "NewImage": {field: {"S": [to]}},
                },
            })),
            When::Ended { field, to, of } => Some(json!({
                "eventName": ["MODIFY"],
                "dynamodb": {
                    "NewImage": {"record": {"S": [reaction.record]}, field: {"S": to}, of: {"S": [{"exists": true}]}},
                },
            })),
        });
    let removals = json!({"eventName": ["REMOVE"], "dynamodb": {"OldImage": {"record": {"S": removed}}}});
    let others = json!({"eventName": ["INSERT", "MODIFY"], "dynamodb": {"NewImage": {"record": {"S": changed}}}});
    [removals, others].into_iter().chain(became).collect()
}
