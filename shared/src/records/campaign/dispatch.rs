//! Dispatches campaigns: each contact gets its conversation, its message, and a delivery to the widget's connector,
//! within the widget's rate limit.

use std::collections::HashMap;
use std::ops::Range;

use super::progress;
use super::rate_limit;
use super::reachable::Reachable;
use super::storage;
use super::waiting;
use super::waiting::FirstWaiting;
use crate::records::assistant::{Assistant, ConversationSettings};
use crate::records::campaign::contact_pointers::StagedContacts;
use crate::records::campaign::rate_limit::Limited;
use crate::records::campaign::storage::campaign_of;
use crate::records::campaign::{
    Campaign, CampaignContact, CampaignText, Dispatch, Dispatched, Lease, Prepared, Schedule, Unreached, together,
};
use crate::records::conversation;
use crate::records::conversation::{Conversation, NewMessage, SenderType};
use crate::records::delivery::NewDelivery;
use crate::records::due::Due;
use crate::records::suppression::SuppressedChannel;
use crate::records::widget::Widget;
use crate::request::error::{Error, Result};
use crate::request::event::EventContext;
use crate::table::keys::Key;
use crate::table::sends::next_day;
use crate::table::{Table, TableError};
use crate::values::id::{AssistantId, ContactId, MessageId, WidgetId};
use crate::values::text::MessageText;
use crate::values::time::Timestamp;
use futures_util::future::{join_all, try_join_all};

/// Seconds for which a tick works. The next one begins after sixty.
const BUDGET: i64 = 50;
/// The most due campaigns read at once, from each partition of the index.
const LIMIT: i32 = 100;
/// Contacts between two renewals of the lease: at least so many, and at high rates the contacts of half a second.
const CHUNK: u32 = 25;
/// Contacts that are read together after a group without a contact to dispatch: the number of keys in a batch get.
const SEARCH: u32 = 100;
/// The part of a second's contacts that is dispatched at the same moment: so even the busiest second has hardly more
/// contacts than the rate.
const PART: u32 = 20;
/// The most attempts to add a message to a conversation that others change at the same time.
const ATTEMPTS: usize = 5;

/// Dispatches contacts of all due campaigns, for the time of a tick.
///
/// # Errors
/// The first error of a campaign; the others are dispatched all the same.
pub async fn send_campaigns(cx: &EventContext<'_>) -> Result<()> {
    let now = cx.service.clock.now();
    let due = cx.service.store.due(Due::Campaign, now, LIMIT).await?;
    let sends = due.iter().filter_map(|key| Some((campaign_of(key)?, key))).map(|(tenant, key)| {
        let table = cx.table(tenant);
        async move { Box::pin(send(cx, &table, key, now.plus_seconds(BUDGET))).await }
    });
    // A campaign that fails does not stop the others.
    join_all(sends).await.into_iter().collect()
}

/// Dispatches contacts of one campaign until `deadline`. The next tick continues.
async fn send(cx: &EventContext<'_>, table: &Table, key: &Key, deadline: Timestamp) -> Result<()> {
    let clock = &cx.service.clock;
    let Some(mut lease) = Lease::take(table, key, clock.now()).await? else { return Ok(()) };
    let (run, read_from) = (lease.campaign.id.run(), clock.now());
    let (channel, extras) = futures_util::try_join!(
        CampaignChannel::of(table, lease.campaign.widget_id),
        storage::read_extras(table, run)
    )?;
    let hidden = HiddenPlaces::of(extras.staged, read_from);
    if let Some(CampaignText { version, text, .. }) = extras.text {
        (lease.campaign.text_version, lease.campaign.message) = (version, text);
    }
    let sending = Sending { cx, table, channel, schedule: lease.campaign.schedule(), deadline };
    let ended = match Box::pin(sending.send_places(&mut lease, hidden)).await? {
        Some(ended) => ended,
        None => Box::pin(sending.send_waiting(&mut lease)).await?,
    };
    let now = clock.now();
    match ended {
        Ended::Dispatched { again } => lease.finish(table, again, now).await?,
        Ended::OutOfTime => lease.release(table, now).await?,
        Ended::WindowClosed { opens } => lease.interrupt(table, opens, now).await?,
        // Contacts that were dispatched are left out when the campaign continues.
        Ended::QuotaReached => lease.defer(table, next_day(now), now).await?,
        Ended::LeaseLost => {}
    }
    Ok(())
}

/// Why a tick ends its work on a campaign.
enum Ended {
    /// All contacts of the execution were dispatched.
    Dispatched {
        /// When the first contact that is left waits for its next attempt.
        again: Option<Timestamp>,
    },
    /// The next tick continues.
    OutOfTime,
    /// The rest waits for the window.
    WindowClosed {
        /// When it opens.
        opens: Timestamp,
    },
    /// The organisation may send nothing more today.
    QuotaReached,
    /// Another function has the lease, or the campaign is paused, cancelled or deleted.
    LeaseLost,
}

/// A campaign that a tick sends.
struct Sending<'a> {
    cx: &'a EventContext<'a>,
    table: &'a Table,
    channel: CampaignChannel,
    schedule: Option<Schedule>,
    /// When the tick ends.
    deadline: Timestamp,
}

impl Sending<'_> {
    fn now(&self) -> Timestamp {
        self.cx.service.clock.now()
    }

    /// When the window opens, if it is closed.
    fn closed(&self) -> Option<Timestamp> {
        let now = self.now();
        self.schedule.as_ref().filter(|schedule| !schedule.is_open(now)).and_then(|schedule| schedule.opens(now))
    }

    /// How many contacts are dispatched in one transaction.
    fn together(&self) -> usize {
        let connected = matches!(&self.channel, CampaignChannel::Open(widget, _) if widget.connector_url.is_some());
        let rate = self.cx.service.config.rate();
        usize::try_from((rate / PART).clamp(1, together(connected))).unwrap_or(1)
    }

    /// Dispatches the contacts at the places of the execution; `None` after the last one.
    async fn send_places(&self, lease: &mut Lease, mut hidden: HiddenPlaces) -> Result<Option<Ended>> {
        let (places, together) = (lease.until(), self.together());
        let mut ahead = None;
        while lease.next < places {
            if let Some(opens) = self.closed() {
                return Ok(Some(Ended::WindowClosed { opens }));
            }
            if lease.next >= hidden.under_way {
                let read_from = self.now();
                let extras = storage::read_extras(self.table, lease.campaign.id.run()).await?;
                hidden = HiddenPlaces::of(extras.staged, read_from);
                if lease.next >= hidden.under_way {
                    // The request that is adding them may still commit them.
                    return Ok(Some(Ended::OutOfTime));
                }
            }
            let end = places.min(hidden.under_way);
            let found = match ahead.take() {
                Some(chunk) => chunk,
                None => self.chunk(&lease.campaign, (lease.next..end, &hidden)).await?,
            };
            let Some(Chunk { timed, next, again }) = found else { return Ok(Some(Ended::OutOfTime)) };
            // At high rates the times of the next contacts are reserved before the current ones have passed.
            let further = async {
                if together == 1 || next >= end {
                    return Ok(None);
                }
                self.chunk(&lease.campaign, (next..end, &hidden)).await.map(Some)
            };
            let (dispatched, further) = futures_util::join!(self.dispatch_all(&lease.campaign, &timed), further);
            if let Err(Error::QuotaReached(_)) = dispatched {
                return Ok(Some(Ended::QuotaReached));
            }
            dispatched?;
            ahead = further?;
            if !lease.renew(self.table, (next, again), self.now()).await? {
                return Ok(Some(Ended::LeaseLost));
            }
        }
        Ok(None)
    }

    /// Dispatches the contacts that wait for another attempt and whose time has come.
    async fn send_waiting(&self, lease: &mut Lease) -> Result<Ended> {
        loop {
            let now = self.now();
            if now > self.deadline {
                return Ok(Ended::OutOfTime);
            }
            let FirstWaiting { items, contacts, again } =
                waiting::first(self.table, &lease.campaign, self.count(), now).await?;
            if items.is_empty() {
                return Ok(Ended::Dispatched { again });
            }
            if let Some(opens) = self.closed().filter(|_| !contacts.is_empty()) {
                return Ok(Ended::WindowClosed { opens });
            }
            let Some(timed) = self.at_their_times(&lease.campaign, contacts).await? else {
                return Ok(Ended::OutOfTime);
            };
            match Box::pin(self.dispatch_all(&lease.campaign, &timed)).await {
                Err(Error::QuotaReached(_)) => return Ok(Ended::QuotaReached),
                dispatched => dispatched?,
            }
            // A campaign that was stopped has left contacts out. So the items go only while it has the lease.
            if !lease.renew(self.table, (lease.next, None), self.now()).await? {
                return Ok(Ended::LeaseLost);
            }
            waiting::remove(self.table, items, &timed.left).await?;
        }
    }
}

/// The places of a campaign that are not dispatched now, according to its markers.
struct HiddenPlaces {
    /// Contacts of requests that crashed; they are never dispatched.
    dead: Vec<StagedContacts>,
    /// The first place of a request that may still commit: the dispatch stops there.
    under_way: u32,
}

impl HiddenPlaces {
    /// From markers that were read at `read_from` or later. A marker that still existed after it had expired belongs to
    /// a crashed request.
    fn of(staged: Vec<StagedContacts>, read_from: Timestamp) -> Self {
        let (dead, under_way): (Vec<_>, Vec<_>) = staged.into_iter().partition(|staged| staged.expires_at <= read_from);
        Self { dead, under_way: under_way.iter().map(|staged| staged.first).min().unwrap_or(u32::MAX) }
    }
}

/// Contacts, with the times at which they are dispatched.
struct Timed {
    contacts: Vec<CampaignContact>,
    /// A time for each of them.
    slots: Vec<Timestamp>,
    /// Contacts that wait for the window.
    left: Vec<CampaignContact>,
}

/// Contacts that are dispatched before the lease is renewed.
struct Chunk {
    timed: Timed,
    /// The place after the last of them.
    next: u32,
    /// The first time at which a contact that was passed over may be dispatched again.
    again: Option<Timestamp>,
}

impl Sending<'_> {
    /// How many contacts are dispatched before the lease is renewed.
    fn count(&self) -> u32 {
        let rate = self.cx.service.config.rate();
        CHUNK.max(rate / 2).min(rate)
    }

    /// The next contacts to dispatch; `None` if the first one would be later than the tick works. Contacts that were
    /// dispatched before get their parked deliveries made ready.
    async fn chunk(&self, campaign: &Campaign, (places, hidden): (Range<u32>, &HiddenPlaces)) -> Result<Option<Chunk>> {
        let (table, count) = (self.table, self.count());
        let (mut next, mut window) = (places.start, count);
        let (mut contacts, mut again) = (Vec::new(), None);
        while contacts.is_empty() && next < places.end {
            if self.now() > self.deadline {
                return Ok(None);
            }
            let end = places.end.min(next + window);
            let found = storage::contacts_at(table, campaign, next..end).await?;
            let dispatched = found.iter().filter(|contact| contact.is_dispatched_in(campaign));
            try_join_all(dispatched.map(|contact| progress::unpark_delivery(table, campaign, contact, self.now())))
                .await?;
            contacts = found;
            let is_dead = |contact: &CampaignContact| hidden.dead.iter().any(|staged| staged.has(contact.id));
            contacts.retain(|contact| contact.is_waiting_in(campaign) && !is_dead(contact));
            let now = self.now();
            let later = contacts.iter().filter_map(|contact| contact.next_attempt_at.filter(|at| *at > now));
            again = later.chain(again).min();
            contacts.retain(|contact| contact.next_attempt_at.is_none_or(|at| at <= now));
            next = end;
            window = SEARCH.max(count);
            // Contacts after the last one wait for the next chunk.
            if let Some(first_left) = contacts.get(count as usize).and_then(|contact| contact.id.place()) {
                next = first_left;
                contacts.truncate(count as usize);
            }
        }
        let Some(timed) = self.at_their_times(campaign, contacts).await? else { return Ok(None) };
        next = timed.left.first().and_then(|contact| contact.id.place()).unwrap_or(next);
        Ok(Some(Chunk { timed, next, again }))
    }

    /// Reserves the times of `contacts`; `None` if the first one would be later than the tick works, or than the window
    /// closes.
    async fn at_their_times(&self, campaign: &Campaign, mut contacts: Vec<CampaignContact>) -> Result<Option<Timed>> {
        let (now, rate) = (self.now(), self.cx.service.config.rate());
        let wanted = u32::try_from(contacts.len()).unwrap_or(u32::MAX);
        let slots = match campaign.widget_id.filter(|_| wanted > 0) {
            None => contacts.iter().map(|_| now).collect(),
            Some(widget) => {
                let limited = (widget, Limited::Dispatch);
                rate_limit::reserve(self.table, limited, wanted, rate, now, self.deadline).await?
            }
        };
        let closes = self.schedule.as_ref().and_then(|schedule| schedule.closes(now));
        let open = slots.iter().take_while(|slot| closes.is_none_or(|closes| **slot < closes)).count();
        if open == 0 && wanted > 0 {
            return Ok(None);
        }
        let left = contacts.split_off(open.min(contacts.len()));
        Ok(Some(Timed { contacts, slots, left }))
    }

    /// Dispatches contacts in groups, each contact at its time or later.
    async fn dispatch_all(&self, campaign: &Campaign, Timed { contacts, slots, .. }: &Timed) -> Result<()> {
        let Self { cx, table, channel, .. } = self;
        let together = self.together();
        let groups: Vec<&[CampaignContact]> = contacts.chunks(together).collect();
        let mut prepared = None;
        for (index, group) in groups.iter().enumerate() {
            if let Some(last) = slots.get(index * together + group.len() - 1) {
                cx.service.clock.sleep_until(*last).await;
            }
            // The next group is prepared at the same time.
            let next = async {
                match (groups.get(index + 1), channel) {
                    (Some(next), CampaignChannel::Open(widget, assistant)) if together > 1 => {
                        prepare(cx, table, campaign, next, (widget, *assistant)).await.map(Some)
                    }
                    _ => Ok(None),
                }
            };
            let this = dispatch(cx, table, campaign, (group, prepared.take()), channel);
            match futures_util::join!(this, next) {
                (Ok(()), next) => prepared = next?,
                (Err(error), next) => {
                    if let Ok(Some(prepared)) = next {
                        prepared.give_back(table).await;
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }
}

/// An assistant, with what it says about the conversations that a campaign opens.
type AssistantOfWidget = (AssistantId, ConversationSettings);

/// The channel of a campaign.
enum CampaignChannel {
    /// A widget and its assistant.
    Open(Box<Widget>, AssistantOfWidget),
    /// Why it cannot be sent.
    Closed(&'static str),
}

impl CampaignChannel {
    async fn of(table: &Table, widget: Option<WidgetId>) -> Result<Self, TableError> {
        let Some(id) = widget else { return Ok(Self::Closed("the campaign has no widget")) };
        let Some(widget) = table.find::<Widget>(id).await? else { return Ok(Self::Closed("the widget is gone")) };
        if widget.makes_calls_without_connector() {
            return Ok(Self::Closed("the widget has no connector"));
        }
        let Some(assistant) = widget.assistant_id else { return Ok(Self::Closed("the widget has no assistant")) };
        Ok(match table.find::<Assistant>(assistant).await? {
            Some(found) => Self::Open(Box::new(widget), (assistant, found.conversation)),
            None => Self::Closed("the widget's assistant is gone"),
        })
    }
}

/// Dispatches `prepared` contacts together, or one by one if one of them prevents that, or stores why they fail.
async fn dispatch(
    cx: &EventContext<'_>,
    table: &Table,
    campaign: &Campaign,
    (contacts, mut prepared): (&[CampaignContact], Option<Prepared>),
    channel: &CampaignChannel,
) -> Result<()> {
    let now = cx.service.clock.now();
    let channel = match channel {
        CampaignChannel::Open(widget, assistant) => (&**widget, *assistant),
        CampaignChannel::Closed(reason) => {
            for contact in contacts {
                progress::end_contact(table, campaign, contact, Unreached::Failed(reason), now).await?;
            }
            return Ok(());
        }
    };
    if contacts.len() > 1 {
        let all = match prepared.take() {
            Some(prepared) => prepared,
            None => prepare(cx, table, campaign, contacts, channel).await?,
        };
        match progress::dispatch_together(table, campaign, all, now).await {
            Ok(Dispatched::Done) => return Ok(()),
            // The quota may leave room for some of them.
            Ok(_) | Err(TableError::QuotaReached(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    for contact in contacts.chunks(1) {
        let mut attempts = ATTEMPTS;
        loop {
            let one = match prepared.take() {
                Some(prepared) => prepared,
                None => prepare(cx, table, campaign, contact, channel).await?,
            };
            match progress::dispatch_together(table, campaign, one, now).await? {
                Dispatched::Done | Dispatched::Stopped => break,
                Dispatched::SuppressionsChanged => continue,
                Dispatched::ConversationChanged => attempts -= 1,
            }
            if attempts == 0 {
                let reason = Unreached::Failed("the conversation kept changing");
                progress::end_contact(table, campaign, &contact[0], reason, now).await?;
                break;
            }
        }
    }
    Ok(())
}

/// Prepares the dispatch of contacts. Those that are gone, or that must not be contacted, get their status and are left
/// out.
async fn prepare(
    cx: &EventContext<'_>,
    table: &Table,
    campaign: &Campaign,
    contacts: &[CampaignContact],
    channel: (&Widget, AssistantOfWidget),
) -> Result<Prepared> {
    let invited: Vec<ContactId> = contacts.iter().map(|contact| contact.contact_id).collect();
    let threads = async {
        if campaign.start_new_conversation {
            return Ok(HashMap::new());
        }
        let message = campaign.message.as_deref().unwrap_or_default();
        conversation::open_threads(table, channel.0.id, &invited, message).await
    };
    let send = SuppressedChannel::of_send(channel.0.widget_type.calls());
    let (mut threads, reached) = futures_util::try_join!(threads, Reachable::read(table, campaign.id, &invited, send))?;
    let mut dispatches = Vec::with_capacity(contacts.len());
    for contact in contacts {
        if let Some(reason) = reached.refused.get(&contact.contact_id) {
            progress::end_contact(table, campaign, contact, *reason, cx.service.clock.now()).await?;
        } else {
            let thread = threads.remove(&contact.contact_id);
            dispatches.push(prepare_one(cx, campaign, contact, thread, channel));
        }
    }
    Ok(Prepared::new(table, dispatches, reached.guard).await?)
}

/// Prepares the dispatch of one contact.
fn prepare_one(
    cx: &EventContext<'_>,
    campaign: &Campaign,
    contact: &CampaignContact,
    thread: Option<Conversation>,
    (widget, assistant): (&Widget, AssistantOfWidget),
) -> Dispatch {
    let (ids, now) = (&cx.service.ids, cx.service.clock.now());
    let says = |text: &MessageText| NewMessage::text(SenderType::Bot, text.clone());
    let calls = widget.widget_type.calls();
    let delivery = || NewDelivery::of_campaign(campaign, contact, ids.fresh(now), calls, now);
    Dispatch {
        contact: contact.clone(),
        thread,
        opening: Conversation {
            includes_voice: calls,
            ..Conversation::through(widget.id, assistant, contact.contact_id, ids.fresh(now), now)
        },
        message: campaign.message.as_ref().map(|text| (MessageId(ids.fresh(now)), says(text))),
        connector: widget.connector_url.is_some().then(|| (widget.id.into(), delivery())),
    }
}
