//! Campaigns and their contacts.
//!
//! A contact's key follows from its campaign and its place, so a page of them is read without an index; only the places that were
//! deleted are noted, with the campaign. How many contacts are in each state is counted by the transactions that change one.

use std::collections::{BTreeSet, HashSet};

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use uuid::Uuid;

use crate::records::campaign::{Campaign, CampaignContact, CampaignStatus, ContactStatus, RunMarker};
use crate::records::contact::Contact;
use crate::records::conversation::{Conversation, NewMessage};
use crate::records::delivery::{NewDelivery, StoredDelivery};
use crate::records::widget::Widget;
use crate::request::page::{Page, PageQuery};
use crate::table::keys::{Due, Fingerprint, Key, Paced, deleted_contacts, slot};
use crate::table::list::Plan;
use crate::table::store::{
    BATCH_GET_LIMIT, BATCH_WRITE_LIMIT, Cancelled, Item, Write, from_item, null, number, text, values,
};
use crate::table::{ATTEMPTS, Table, TableError};
use crate::values::id::{CampaignContactId, CampaignId, ContactId, EndpointId, MessageId, WidgetId};
use crate::values::time::Timestamp;

/// Batches under way at once: enough to hide their latency, few enough for a small function's memory.
const CONCURRENT_BATCHES: usize = 8;
/// Seconds after which a campaign is taken over from a function that has not been heard of.
const LEASE: i64 = 90;

/// What must be known before a campaign runs.
#[derive(Debug)]
pub struct CampaignPreconditions {
    /// The widget it runs through.
    pub widget: Widget,
    /// What the same request has made already.
    pub earlier: Option<RunMarker>,
    /// The contacts that are not there.
    pub missing: HashSet<ContactId>,
}

/// A campaign that one function has taken upon itself to send.
#[derive(Debug)]
pub struct Turn {
    /// The campaign.
    pub campaign: Campaign,
    /// The place of the contact whose turn it is.
    pub next: u32,
    /// Until when nobody else takes it.
    lease: Timestamp,
}

/// What a contact of a campaign gets.
#[derive(Debug)]
pub struct Dispatch {
    /// The open conversation that goes on; none where a new one begins.
    pub thread: Option<Conversation>,
    /// What the new one is, but for its place.
    pub opening: Conversation,
    /// What is said in it.
    pub message: Option<(MessageId, NewMessage)>,
    /// The connector it is handed over to, where the widget has one.
    pub connector: Option<(EndpointId, NewDelivery)>,
}

/// How the dispatch of a contact ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatched {
    /// It has its conversation.
    Done,
    /// It was deleted or cancelled, or has one already.
    Stopped,
    /// The conversation that was to go on has changed meanwhile.
    ThreadMoved,
}

impl Table {
    /// All that must be known before a campaign runs, in one round trip.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such widget.
    pub async fn campaign_preconditions(
        &self,
        widget: WidgetId,
        fingerprint: Fingerprint,
        contacts: &[ContactId],
        now: Timestamp,
    ) -> Result<CampaignPreconditions, TableError> {
        // Not `try_join!`: what a request costs must not depend on which of them fails first.
        let (widget, marker, missing) = futures_util::join!(
            self.get::<Widget>(widget),
            self.find::<RunMarker>(fingerprint),
            self.missing_contacts(contacts),
        );
        let widget = widget?;
        let earlier = marker?.filter(|marker| now.unix_seconds() < marker.ttl);
        Ok(CampaignPreconditions { widget, earlier, missing: missing? })
    }

    /// The contacts of `wanted` that are not there.
    async fn missing_contacts(&self, wanted: &[ContactId]) -> Result<HashSet<ContactId>, TableError> {
        let missing = self.absent(wanted, false).await?;
        // A read at half the price may miss what was written a moment ago. Only what it missed is asked for again.
        self.absent(&missing, true).await.map(HashSet::from_iter)
    }

    async fn absent(&self, wanted: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        // Collected first: a stream over a lazy iterator of borrowing futures is not `Send` in the compiler's eyes.
        let batches: Vec<_> =
            wanted.chunks(BATCH_GET_LIMIT).map(|batch| self.absent_in_batch(batch, consistent)).collect();
        let absent: Vec<Vec<_>> = stream::iter(batches).buffered(CONCURRENT_BATCHES).try_collect().await?;
        Ok(absent.concat())
    }

    async fn absent_in_batch(&self, batch: &[ContactId], consistent: bool) -> Result<Vec<ContactId>, TableError> {
        let keys: Vec<Key> = batch.iter().map(|id| self.key::<Contact>(*id)).collect();
        let found: HashSet<Key> = self.store.existing(&keys, consistent).await?.into_iter().collect();
        let absent = batch.iter().zip(&keys).filter(|(_, key)| !found.contains(*key)).map(|(id, _)| *id);
        Ok(absent.collect())
    }

    /// Writes the contacts of a campaign that nothing refers to yet.
    ///
    /// # Errors
    /// [`TableError`]: some may have been written. Without [`Table::commit_campaign`] they are never sent.
    pub async fn stage_contacts(&self, contacts: &[CampaignContact]) -> Result<(), TableError> {
        let batches: Vec<_> = contacts.chunks(BATCH_WRITE_LIMIT).map(|batch| self.stage_batch(batch)).collect();
        stream::iter(batches).buffer_unordered(CONCURRENT_BATCHES).try_collect().await
    }

    async fn stage_batch(&self, batch: &[CampaignContact]) -> Result<(), TableError> {
        let items = batch.iter().map(|contact| self.item(contact.id, contact)).collect::<Result<Vec<_>, _>>()?;
        self.store.put_batch(items).await
    }

    /// Makes a staged campaign exist, unless the same request has made one in the meantime: then that one is the answer. Requests of
    /// this `fingerprint` are the same request for `seconds`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn commit_campaign(
        &self,
        campaign: &Campaign,
        fingerprint: Fingerprint,
        seconds: i64,
        now: Timestamp,
    ) -> Result<RunMarker, TableError> {
        let ttl = now.plus_seconds(seconds).unix_seconds();
        let marker = RunMarker { campaign_id: campaign.id, contacts: campaign.counts.queued, ttl };
        let writes = [
            Write::Update {
                key: self.key::<RunMarker>(fingerprint),
                expression: "SET campaign_id = :campaign_id, contacts = :contacts, #ttl = :ttl".into(),
                condition: Some("attribute_not_exists(pk) OR #ttl <= :now"),
                values: values([
                    (":campaign_id", text(marker.campaign_id)),
                    (":contacts", number(marker.contacts)),
                    (":ttl", number(marker.ttl)),
                    (":now", number(now.unix_seconds())),
                ]),
            },
            Write::put(self.active_campaign(campaign)?),
        ];
        match self.store.transact(&writes).await {
            Ok(()) => Ok(marker),
            Err(Cancelled::Condition(0, Some(earlier))) => from_item(earlier),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// A campaign's item while it is to be sent: it stands in the index of what becomes due.
    ///
    /// # Errors
    /// [`TableError::Broken`] where it cannot be one.
    pub fn active_campaign(&self, campaign: &Campaign) -> Result<Item, TableError> {
        let mut item = self.item(campaign.id, campaign)?;
        item.extend(values([
            ("next_place", number(0)),
            ("due_pk", text(Due::Campaign.partition(campaign.id.0))),
            ("due_at", text(campaign.created_at)),
        ]));
        Ok(item)
    }

    /// A page of a campaign's contacts.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign.
    pub async fn campaign_contacts(
        &self,
        id: CampaignId,
        query: &PageQuery,
    ) -> Result<Page<CampaignContact>, TableError> {
        let (campaign, deleted) = self.with_deleted(id).await?;
        let total = campaign.counts.total();
        let places = places_of(&campaign, &deleted);
        let left = (0..places).filter(|place| !deleted.contains(place));
        let skip = usize::try_from(query.offset()).unwrap_or(usize::MAX);
        let page = left.skip(skip).take(usize::try_from(query.size()).unwrap_or(usize::MAX));
        let contacts = self.contacts_at(id, page).await?;
        Ok(query.of(contacts.into_iter().map(|contact| contact.seen_in(&campaign)).collect(), total))
    }

    /// Removes a contact from its campaign, which is one contact smaller then; what is not sent never is.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is none.
    pub async fn remove_campaign_contact(&self, id: CampaignContactId) -> Result<CampaignContact, TableError> {
        for _ in 0..ATTEMPTS {
            // Both at once, so that an unknown contact of a known campaign takes as long as any other.
            let (contact, campaign) =
                futures_util::join!(self.find::<CampaignContact>(id), self.find::<Campaign>(id.campaign()));
            let (contact, campaign) = contact?.zip(campaign?).ok_or(TableError::Missing)?;
            let stored = contact.status;
            let seen = contact.seen_in(&campaign);
            let place = id.place().unwrap_or_default();
            let writes = [
                Write::Delete {
                    key: self.key::<CampaignContact>(id),
                    condition: Some("#status = :status"),
                    values: values([(":status", text(stored.as_str()))]),
                },
                self.count(&campaign, seen.status, None),
                Write::Update {
                    key: deleted_contacts(&self.tenant, id),
                    expression: "ADD places :places".into(),
                    condition: None,
                    values: values([(":places", numbers([place]))]),
                },
            ];
            match self.store.transact(&writes).await {
                Ok(()) => return Ok(seen),
                Err(Cancelled::Condition(..)) => {}
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept changing the campaign".into()))
    }

    /// Stops what has not been sent of a campaign, in one write: its contacts that are still queued are cancelled with it.
    ///
    /// # Errors
    /// [`TableError::Missing`] where there is no such campaign; inside, the campaign as it is, where there is nothing to stop.
    pub async fn cancel_campaign(
        &self,
        id: CampaignId,
        by: Uuid,
        now: Timestamp,
    ) -> Result<Result<Campaign, Campaign>, TableError> {
        let values = values([
            (":cancelled", text(CampaignStatus::Cancelled.as_str())),
            (":zero", number(0)),
            (":now", text(now)),
            (":by", text(by)),
        ]);
        let expression = "SET #status = :cancelled, counts.#cancelled = counts.#cancelled + counts.#queued, \
                          counts.#queued = :zero, updated_at = :now, cancelled_by = :by REMOVE due_pk, due_at";
        let condition = "attribute_exists(pk) AND #status <> :cancelled AND counts.#queued > :zero";
        match self.store.update(&self.key::<Campaign>(id), expression, condition, &values).await {
            Ok(item) => Ok(Ok(from_item(item)?)),
            Err(Cancelled::Condition(_, stands)) => {
                let item = stands.ok_or(TableError::Missing)?;
                let by_this = item.get("cancelled_by") == Some(&text(by));
                let campaign = from_item(item)?;
                Ok(if by_this { Ok(campaign) } else { Err(campaign) })
            }
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// The part of a transaction that moves a contact, seen as `from`, to another state in its campaign's counts, or out of them.
    fn count(&self, campaign: &Campaign, from: ContactStatus, to: Option<ContactStatus>) -> Write {
        let from_name = from.as_str();
        let add = to.map(|to| format!(", counts.#{to} = counts.#{to} + :one", to = to.as_str())).unwrap_or_default();
        Write::Update {
            key: self.key::<Campaign>(campaign.id),
            expression: format!("SET counts.#{from_name} = counts.#{from_name} - :one{add}").into(),
            // Those that are queued become cancelled all at once.
            condition: match from {
                ContactStatus::Queued => Some("#status <> :cancelled"),
                ContactStatus::Cancelled => Some("#status = :cancelled"),
                ContactStatus::Sent | ContactStatus::Failed => None,
            },
            values: match from {
                ContactStatus::Queued | ContactStatus::Cancelled => {
                    values([(":one", number(1)), (":cancelled", text(CampaignStatus::Cancelled.as_str()))])
                }
                ContactStatus::Sent | ContactStatus::Failed => values([(":one", number(1))]),
            },
        }
    }

    /// Takes a campaign that has become due, for a while; `None` where somebody else has it, or nothing is left to do.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn take_turn(&self, id: CampaignId, now: Timestamp) -> Result<Option<Turn>, TableError> {
        let lease = now.plus_seconds(LEASE);
        let values = values([
            (":lease", text(lease)),
            (":now", text(now)),
            (":queued", text(CampaignStatus::Queued.as_str())),
            (":in_progress", text(CampaignStatus::InProgress.as_str())),
        ]);
        let expression = "SET due_at = :lease, #status = :in_progress, updated_at = :now";
        let condition = "due_at <= :now AND #status IN (:queued, :in_progress)";
        match self.store.update(&self.key::<Campaign>(id), expression, condition, &values).await {
            Ok(item) => {
                let next = item.get("next_place").and_then(|place| place.as_n().ok()?.parse().ok());
                Ok(Some(Turn { next: next.unwrap_or_default(), campaign: from_item(item)?, lease }))
            }
            Err(Cancelled::Condition(..)) => Ok(None),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Notes how far a campaign has come, and keeps it for a further while; false where it is no longer this function's.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn go_on(&self, turn: &mut Turn, next: u32, now: Timestamp) -> Result<bool, TableError> {
        let lease = now.plus_seconds(LEASE);
        let expression = "SET next_place = :next, due_at = :lease";
        let done = self.end(turn, expression, &[(":next", number(next)), (":lease", text(lease))]).await?;
        (turn.next, turn.lease) = (next, lease);
        Ok(done)
    }

    /// Leaves a campaign to whoever takes it next.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn pass_on(&self, turn: &Turn, now: Timestamp) -> Result<bool, TableError> {
        self.end(turn, "SET due_at = :now", &[(":now", text(now))]).await
    }

    /// Takes a campaign, all of whose contacts have had their turn, out of what becomes due.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn finish(&self, turn: &Turn) -> Result<bool, TableError> {
        self.end(turn, "REMOVE due_pk, due_at", &[]).await
    }

    async fn end(
        &self,
        turn: &Turn,
        expression: &str,
        also: &[(&'static str, aws_sdk_dynamodb::types::AttributeValue)],
    ) -> Result<bool, TableError> {
        let mut values = values([(":mine", text(turn.lease))]);
        values.extend(also.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        match self.store.update(&self.key::<Campaign>(turn.campaign.id), expression, "due_at = :mine", &values).await {
            Ok(_) => Ok(true),
            Err(Cancelled::Condition(..)) => Ok(false),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// The contacts of a campaign at these places, those that are still there.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn contacts_at(
        &self,
        campaign: CampaignId,
        places: impl IntoIterator<Item = u32>,
    ) -> Result<Vec<CampaignContact>, TableError> {
        let keys: Vec<Key> =
            places.into_iter().map(|place| self.key::<CampaignContact>(campaign.contact(place))).collect();
        let items = self.store.get_all(&keys).await?;
        let mut contacts = items.into_iter().map(from_item).collect::<Result<Vec<CampaignContact>, _>>()?;
        contacts.sort_by_key(|contact| contact.id);
        Ok(contacts)
    }

    /// A campaign, and the places that were deleted from it.
    async fn with_deleted(&self, id: CampaignId) -> Result<(Campaign, BTreeSet<u32>), TableError> {
        let key = self.key::<Campaign>(id);
        let mut items = self.store.query(&key.pk, &key.sk, None).await?.into_iter();
        let campaign = from_item(items.next().ok_or(TableError::Missing)?)?;
        Ok((campaign, items.flat_map(|item| places(&item)).collect()))
    }

    /// How many places a campaign has, of which some contacts may be deleted.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn places(&self, id: CampaignId) -> Result<u32, TableError> {
        let (campaign, deleted) = self.with_deleted(id).await?;
        Ok(places_of(&campaign, &deleted))
    }

    /// Gives a queued contact its conversation, its message and its delivery, in one transaction: all of it, or nothing.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn dispatch(
        &self,
        campaign: &Campaign,
        contact: &CampaignContact,
        dispatch: &Dispatch,
        now: Timestamp,
    ) -> Result<Dispatched, TableError> {
        let sent = dispatch.connector.is_none();
        let plan = |plan: &mut Plan<'_>| {
            let (conversation, before, opening) = if let Some(thread) = &dispatch.thread {
                (thread.id, thread.chat_count, None)
            } else {
                let opening = dispatch.opening.at(plan.next::<Conversation>(()));
                (opening.id, 0, Some(opening))
            };
            let status = if sent { ContactStatus::Sent } else { ContactStatus::Queued };
            plan.write(Write::Update {
                key: self.key::<CampaignContact>(contact.id),
                expression: "SET conversation_id = :conversation, #status = :status, updated_at = :now".into(),
                condition: Some("#status = :queued AND conversation_id = :none"),
                values: values([
                    (":conversation", text(conversation)),
                    (":status", text(status.as_str())),
                    (":queued", text(ContactStatus::Queued.as_str())),
                    (":none", null()),
                    (":now", text(now)),
                ]),
            });
            plan.write(if sent {
                self.count(campaign, ContactStatus::Queued, Some(ContactStatus::Sent))
            } else {
                Write::Check {
                    key: self.key::<Campaign>(campaign.id),
                    condition: "#status <> :cancelled",
                    values: values([(":cancelled", text(CampaignStatus::Cancelled.as_str()))]),
                }
            });
            let message = dispatch
                .message
                .as_ref()
                .map(|(id, new)| new.message(*id, conversation, u32::try_from(before).unwrap_or(u32::MAX), now));
            match (&opening, &message) {
                (Some(opening), message) => plan.begin(opening, message.as_ref())?,
                (None, Some(message)) => drop(plan.say(conversation, before, message)?),
                (None, None) => {}
            }
            if let Some((endpoint, new)) = dispatch.connector {
                let message_id = message.map(|message| message.id);
                plan.deliver(endpoint, NewDelivery { conversation_id: Some(conversation), message_id, ..new }, now)?;
            }
            Ok(())
        };
        match self.carry_out(plan).await {
            Ok(()) => Ok(Dispatched::Done),
            Err(Cancelled::Condition(0 | 1, _)) => Ok(Dispatched::Stopped),
            Err(Cancelled::Condition(..)) => Ok(Dispatched::ThreadMoved),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Notes what became of a queued contact without a delivery.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn fail_contact(
        &self,
        campaign: &Campaign,
        contact: CampaignContactId,
        error: &str,
        now: Timestamp,
    ) -> Result<(), TableError> {
        let writes = [
            self.outcome(contact, ContactStatus::Failed, Some(error), now),
            self.count(campaign, ContactStatus::Queued, Some(ContactStatus::Failed)),
        ];
        match self.store.transact(&writes).await {
            // Deleted or cancelled meanwhile.
            Ok(()) | Err(Cancelled::Condition(..)) => Ok(()),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    fn outcome(&self, id: CampaignContactId, to: ContactStatus, error: Option<&str>, now: Timestamp) -> Write {
        Write::Update {
            key: self.key::<CampaignContact>(id),
            expression: "SET #status = :status, #error = :error, updated_at = :now".into(),
            condition: Some("#status = :queued"),
            values: values([
                (":status", text(to.as_str())),
                (":queued", text(ContactStatus::Queued.as_str())),
                (":error", error.map_or_else(null, text)),
                (":now", text(now)),
            ]),
        }
    }

    /// Replaces a campaign's delivery, unless it has changed since it was read, and notes with its contact and its campaign what came
    /// of it; whether it was replaced.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn settle_delivery(
        &self,
        endpoint: EndpointId,
        was: &StoredDelivery,
        is: &StoredDelivery,
        contact: CampaignContactId,
        to: ContactStatus,
        now: Timestamp,
    ) -> Result<bool, TableError> {
        for _ in 0..ATTEMPTS {
            let campaign: Option<Campaign> = self.find(contact.campaign()).await?;
            let Some(campaign) = campaign else { return self.replace_delivery(endpoint, was, is).await };
            let cancelled = campaign.status == CampaignStatus::Cancelled;
            let from = if cancelled { ContactStatus::Cancelled } else { ContactStatus::Queued };
            let writes = [
                self.replacing(endpoint, was, is)?,
                self.outcome(contact, to, is.delivery.failure().as_deref(), now),
                self.count(&campaign, from, Some(to)),
            ];
            match self.store.transact(&writes).await {
                Ok(()) => return Ok(true),
                Err(Cancelled::Condition(0, _)) => return Ok(false),
                // Deleted, or told already.
                Err(Cancelled::Condition(1, _)) => return self.replace_delivery(endpoint, was, is).await,
                // Cancelled since it was read: what was sent was sent all the same.
                Err(Cancelled::Condition(..)) => {}
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept changing the campaign".into()))
    }

    /// When `widget` may do each of `count` more of what is `paced`, at `per_second`: nobody else gets these times. None where the first
    /// would be after `latest`.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn reserve(
        &self,
        (widget, paced): (WidgetId, Paced),
        count: u32,
        per_second: u32,
        now: Timestamp,
        latest: Timestamp,
    ) -> Result<Vec<Timestamp>, TableError> {
        let key = slot(&self.tenant, widget, paced);
        let mut next: i64 = next_slot(self.store.get(&key).await?.as_ref());
        for _ in 0..ATTEMPTS {
            let from = next.max(now.unix_millis());
            if from > latest.unix_millis() {
                return Ok(Vec::new());
            }
            // A part of a millisecond is a whole one: the rate is not exceeded, whatever it is.
            let rate = i64::from(per_second);
            let at = |turn: u32| from + (i64::from(turn) * 1000 + rate - 1) / rate;
            let to = at(count);
            let values = values([(":to", number(to)), (":seen", number(next))]);
            let condition = "attribute_not_exists(next_millis) OR next_millis = :seen";
            match self.store.update(&key, "SET next_millis = :to", condition, &values).await {
                Ok(_) => return Ok((0..count).map(|turn| Timestamp::from_unix_millis(at(turn))).collect()),
                Err(Cancelled::Condition(_, stands)) => next = next_slot(stands.as_ref()),
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
        Err(TableError::Unavailable("others kept reserving".into()))
    }
}

fn next_slot(item: Option<&Item>) -> i64 {
    item.and_then(|item| item.get("next_millis")?.as_n().ok()?.parse().ok()).unwrap_or_default()
}

/// How many places a campaign has, those that were deleted included.
fn places_of(campaign: &Campaign, deleted: &BTreeSet<u32>) -> u32 {
    let left = u32::try_from(campaign.counts.total()).unwrap_or(u32::MAX);
    left.saturating_add(u32::try_from(deleted.len()).unwrap_or(u32::MAX))
}

/// The places in an item of deleted contacts.
fn places(item: &Item) -> Vec<u32> {
    let set = item.get("places").and_then(|value| value.as_ns().ok()).map(Vec::as_slice).unwrap_or_default();
    set.iter().filter_map(|place| place.parse().ok()).collect()
}

fn numbers<const N: usize>(of: [u32; N]) -> aws_sdk_dynamodb::types::AttributeValue {
    aws_sdk_dynamodb::types::AttributeValue::Ns(of.iter().map(ToString::to_string).collect())
}
