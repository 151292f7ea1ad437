//! Dispatches campaigns: each contact gets its conversation, its message, and a delivery to the widget's connector,
//! within the widget's rate limit.

use std::collections::HashMap;
use std::ops::Range;

use super::progress;
use super::rate_limit;
use super::reachable::Reachable;
use super::storage;
use crate::records::assistant::{Assistant, ConversationSettings};
use crate::records::campaign::contact_pointers::StagedContacts;
use crate::records::campaign::rate_limit::Limited;
use crate::records::campaign::storage::campaign_of;
use crate::records::campaign::{
    Campaign, CampaignContact, CampaignText, Dispatch, Dispatched, Lease, Prepared, Unreached, together,
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
    let (clock, rate) = (&cx.service.clock, cx.service.config.rate());
    let Some(mut lease) = Lease::take(table, key, clock.now()).await? else { return Ok(()) };
    let schedule = lease.campaign.schedule();
    let (run, read_from) = (lease.campaign.id.run(), clock.now());
    let (channel, extras) = futures_util::try_join!(
        CampaignChannel::of(table, lease.campaign.widget_id),
        storage::read_extras(table, run)
    )?;
    let mut hidden = HiddenPlaces::of(extras.staged, read_from);
    if let Some(CampaignText { version, text, .. }) = extras.text {
        (lease.campaign.text_version, lease.campaign.message) = (version, text);
    }
    let places = lease.until();
    let connected = matches!(&channel, CampaignChannel::Open(widget, _) if widget.connector_url.is_some());
    let together = usize::try_from((rate / PART).clamp(1, together(connected))).unwrap_or(1);
    let mut ahead = None;
    while lease.next < places {
        let closed = schedule.as_ref().filter(|schedule| !schedule.is_open(clock.now()));
        if let Some(opens) = closed.and_then(|schedule| schedule.opens(clock.now())) {
            return Ok(lease.interrupt(table, opens, clock.now()).await?);
        }
        if lease.next >= hidden.under_way {
            let read_from = clock.now();
            hidden = HiddenPlaces::of(storage::read_extras(table, run).await?.staged, read_from);
            if lease.next >= hidden.under_way {
                // The request that is adding them may still commit them.
                return Ok(lease.release(table, clock.now()).await?);
            }
        }
        let end = places.min(hidden.under_way);
        let until = Until { deadline, closes: schedule.as_ref().and_then(|schedule| schedule.closes(clock.now())) };
        let found = match ahead.take() {
            Some(chunk) => chunk,
            None => chunk(cx, table, &lease.campaign, (lease.next..end, &hidden), until).await?,
        };
        let Some(Chunk { contacts, slots, next, again }) = found else {
            return Ok(lease.release(table, clock.now()).await?);
        };
        // At high rates the times of the next contacts are reserved before the current ones have passed.
        let further = async {
            if together == 1 || next >= end {
                return Ok(None);
            }
            chunk(cx, table, &lease.campaign, (next..end, &hidden), until).await.map(Some)
        };
        let this = dispatch_all(cx, table, &lease.campaign, (&contacts, &slots, together), &channel);
        let (dispatched, further) = futures_util::join!(this, further);
        if let Err(Error::QuotaReached(_)) = dispatched {
            // Contacts that were dispatched are left out when the campaign continues.
            return Ok(lease.defer(table, next_day(clock.now()), clock.now()).await?);
        }
        dispatched?;
        ahead = further?;
        if !lease.renew(table, (next, again), clock.now()).await? {
            return Ok(());
        }
    }
    Ok(lease.finish(table, clock.now()).await?)
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

/// The time after which no more contacts are dispatched.
#[derive(Debug, Clone, Copy)]
struct Until {
    /// When the tick ends.
    deadline: Timestamp,
    /// When the window closes, if it closes.
    closes: Option<Timestamp>,
}

impl Until {
    /// Whether a contact may be dispatched at `at`.
    fn allows(self, at: Timestamp) -> bool {
        self.closes.is_none_or(|closes| at < closes)
    }
}

/// Contacts that are dispatched before the lease is renewed.
struct Chunk {
    /// The contacts.
    contacts: Vec<CampaignContact>,
    /// The times at which they are dispatched, one for each contact.
    slots: Vec<Timestamp>,
    /// The place after the last of them.
    next: u32,
    /// The first time at which a contact that was passed over may be dispatched again.
    again: Option<Timestamp>,
}

/// The next contacts to dispatch; `None` if the first one would be later than `deadline`. Contacts that were dispatched
/// before get their parked deliveries made ready.
async fn chunk(
    cx: &EventContext<'_>,
    table: &Table,
    campaign: &Campaign,
    (places, hidden): (Range<u32>, &HiddenPlaces),
    until: Until,
) -> Result<Option<Chunk>> {
    let (clock, rate) = (&cx.service.clock, cx.service.config.rate());
    let count = CHUNK.max(rate / 2).min(rate);
    let (mut next, mut window) = (places.start, count);
    let (mut contacts, mut again) = (Vec::new(), None);
    while contacts.is_empty() && next < places.end {
        if clock.now() > until.deadline {
            return Ok(None);
        }
        let end = places.end.min(next + window);
        let found = storage::contacts_at(table, campaign, next..end).await?;
        let dispatched = found.iter().filter(|contact| contact.is_dispatched_in(campaign));
        try_join_all(dispatched.map(|contact| progress::unpark_delivery(table, campaign, contact, clock.now())))
            .await?;
        contacts = found;
        let is_dead = |contact: &CampaignContact| hidden.dead.iter().any(|staged| staged.has(contact.id));
        contacts.retain(|contact| contact.is_waiting_in(campaign) && !is_dead(contact));
        let now = clock.now();
        again = contacts.iter().filter_map(|contact| contact.next_attempt_at.filter(|at| *at > now)).chain(again).min();
        contacts.retain(|contact| contact.next_attempt_at.is_none_or(|at| at <= now));
        next = end;
        window = SEARCH.max(count);
        // Contacts after the last one wait for the next chunk.
        if let Some(first_left) = contacts.get(count as usize).and_then(|contact| contact.id.place()) {
            next = first_left;
            contacts.truncate(count as usize);
        }
    }
    let wanted = u32::try_from(contacts.len()).unwrap_or(u32::MAX);
    let slots = match campaign.widget_id.filter(|_| wanted > 0) {
        None => contacts.iter().map(|_| clock.now()).collect(),
        Some(widget) => {
            let limited = (widget, Limited::Dispatch);
            rate_limit::reserve(table, limited, wanted, rate, clock.now(), until.deadline).await?
        }
    };
    let open = slots.iter().take_while(|slot| until.allows(**slot)).count();
    if open == 0 && wanted > 0 {
        return Ok(None);
    }
    // The rest of them wait for the window.
    if let Some(place) = contacts.get(open).and_then(|contact| contact.id.place()) {
        next = place;
        contacts.truncate(open);
    }
    Ok(Some(Chunk { contacts, slots, next, again }))
}

/// Dispatches contacts in groups of `together`, each contact at its time or later.
async fn dispatch_all(
    cx: &EventContext<'_>,
    table: &Table,
    campaign: &Campaign,
    (contacts, slots, together): (&[CampaignContact], &[Timestamp], usize),
    channel: &CampaignChannel,
) -> Result<()> {
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
