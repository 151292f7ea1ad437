//! The checks at the end of a fault run: compares the events that arrived with the expected ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use shared::delivery::signature;
use shared::records::campaign::{Campaign, CampaignContact, CampaignStatus, ContactStatus, Counts};
use shared::records::conversation::Conversation;
use shared::records::delivery::{Delivery, DeliveryState, KEPT};
use shared::records::event::EventId;
use shared::records::outcome::OutcomeCounts;
use shared::routes;
use shared::values::id::{CampaignContactId, ContactId, ConversationId, DeliveryId, WidgetId};
use uuid::Uuid;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::acts::{self, Closed, FinishedCampaign, contacts_of, is_delivery};
use crate::fault_run::plan::{EndpointKind, PlannedCampaign};
use crate::fault_run::world::{Channel, LONG_TICK, World, member, path_of_connector, path_of_webhook};
use crate::fault_run::{FaultRunOptions, event_log};
use crate::receiver::Received;

/// The window in which a connector's requests are counted, in seconds.
const WINDOW: u64 = 60;

/// One check.
#[derive(Debug)]
pub struct Check {
    /// The statement that must be true.
    pub what: &'static str,
    /// The number of cases that were checked.
    pub seen: usize,
    /// The cases in which it is not true.
    pub wrong: Vec<String>,
}

impl Check {
    /// A check without a case so far.
    pub const fn that(what: &'static str) -> Self {
        Self { what, seen: 0, wrong: Vec::new() }
    }

    /// Adds a case.
    pub fn see(&mut self, right: bool, wrong: impl FnOnce() -> String) {
        self.seen += 1;
        if !right {
            self.wrong.push(wrong());
        }
    }
}

/// The requests of one event to an endpoint.
#[derive(Debug)]
pub struct ReceivedEvent {
    /// The first request.
    pub first: Instant,
    /// The last request.
    pub last: Instant,
    /// The number of requests.
    pub requests: usize,
    /// The number of requests that were answered with success.
    pub taken: usize,
    /// The `webhook-id` of each: a contact that is tried again has another one for each attempt.
    pub ids: BTreeSet<String>,
}

/// The requests to every endpoint, by its path and by the subject of the event.
pub type ReceivedEvents = HashMap<String, HashMap<Uuid, ReceivedEvent>>;

/// Reads all requests, and checks that they are valid by Standard Webhooks.
pub fn read(world: &World) -> (ReceivedEvents, Vec<Check>) {
    let mut signed = Check::that("every request is signed with the secret of its endpoint");
    let mut named =
        Check::that("an event has one webhook-id, and a webhook-id one event; a further attempt is an event");
    let mut same = Check::that("each request of one event has the same body, except for the fields of its contact");
    let secrets: HashMap<String, Vec<_>> = {
        let of_webhook = |number: usize| &world.webhooks[number].secret;
        let webhooks = (0..world.webhooks.len()).map(|number| (path_of_webhook(number), vec![of_webhook(number)]));
        // A connector has a secret of its own. The one of the webhook signs beside it until `BOTH_SIGN_UNTIL`.
        let connectors =
            world.plan.campaigns.iter().zip(&world.channels).enumerate().map(|(number, (run, channel))| {
                let both = channel.secret.iter().chain([of_webhook(run.webhook)]);
                (path_of_connector(number), both.collect())
            });
        webhooks.chain(connectors).collect()
    };
    let retried: BTreeSet<String> = (0..)
        .zip(&world.plan.campaigns)
        .filter(|(_, run)| run.retries)
        .map(|(number, _)| path_of_connector(number))
        .collect();
    let (mut received_events, mut events) = (ReceivedEvents::new(), HashMap::new());
    for received in world.receiver.all().into_iter().filter(|received| received.path != event_log::PATH) {
        let Received { path, headers, at, .. } = &received;
        let (body, id) = (String::from_utf8_lossy(&received.body), header(&received, "webhook-id"));
        let seconds = header(&received, "webhook-timestamp").parse().unwrap_or_default();
        let expected = secrets.get(path).and_then(|secrets| signature::headers(secrets, id, seconds, &body).ok());
        let as_expected =
            expected.is_some_and(|expected| expected.iter().all(|(name, value)| headers.get(*name) == Some(value)));
        signed.see(as_expected, || format!("{path} {id}"));
        let mut sent: Value = serde_json::from_str(&body).unwrap_or_default();
        let contact = sent["data"].get_mut("contact").map(Value::take);
        let data = &sent["data"];
        let about = if sent["event"] == "conversation.closed" { "conversation_id" } else { "campaign_contact_id" };
        let subject = data[about].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
        let (first, first_sent) = events.entry(id.to_owned()).or_insert_with(|| (subject, sent.clone()));
        let is_named = id == EventId(subject).to_string() || retried.contains(path);
        named.see(sent["id"] == id && *first == subject && is_named, || format!("{path} {id} {body}"));
        let its_own = contact.is_none_or(|contact| contact["id"] == sent["data"]["contact_id"]);
        same.see(*first_sent == sent && its_own, || format!("{path} {id} {body}"));
        let event = received_events.entry(path.clone()).or_default().entry(subject).or_insert_with(|| ReceivedEvent {
            first: *at,
            last: *at,
            requests: 0,
            taken: 0,
            ids: BTreeSet::new(),
        });
        event.requests += 1;
        event.last = event.last.max(*at);
        if received.succeeded() {
            event.taken += 1;
            event.ids.insert(id.to_owned());
        }
    }
    (received_events, vec![signed, named, same])
}

fn header<'a>(received: &'a Received, name: &str) -> &'a str {
    received.headers.get(name).map_or("", String::as_str)
}

/// The deliveries that the owner of each webhook sees.
///
/// # Errors
/// [`Trouble`] where it cannot be read.
pub async fn logs(world: &World) -> Result<Vec<Vec<Delivery>>, Trouble> {
    let mut logs = Vec::new();
    for (number, webhook) in world.plan.webhooks.iter().enumerate() {
        logs.push(world.list(webhook.organisation, list_of_deliveries(world, number)).await?);
    }
    Ok(logs)
}

fn list_of_deliveries(world: &World, webhook: usize) -> ApiRequest {
    ApiRequest::of(&routes::LIST_DELIVERIES).parameter("webhook_id", world.webhooks[webhook].id)
}

/// Checks that every closed conversation arrived, and nothing else.
pub fn closed(world: &World, closed: &Closed, received_events: &ReceivedEvents, logs: &[Vec<Delivery>]) -> Vec<Check> {
    let mut arrived = Check::that("every closed conversation reached its webhook, where that recovers");
    let mut nothing = Check::that("no webhook received any other event");
    let mut logged = Check::that("every closed conversation has one delivery, which came to its end");
    for (number, webhook) in world.plan.webhooks.iter().enumerate() {
        let path = path_of_webhook(number);
        let of_it = closed.keys().filter(|conversation| world.plan.conversations[**conversation].webhook == number);
        let wanted: BTreeSet<Uuid> = of_it.map(|conversation| world.conversations[*conversation].0).collect();
        let event = |id: &Uuid| received_events.get(&path).and_then(|events| events.get(id));
        for id in wanted.iter().filter(|_| webhook.kind.recovers()) {
            arrived.see(event(id).is_some_and(|event| event.taken > 0), || format!("{path} {id}"));
        }
        for id in received_events.get(&path).into_iter().flat_map(HashMap::keys) {
            nothing.see(wanted.contains(id), || format!("{path} {id}"));
        }
        let mut left = wanted.clone();
        for delivery in &logs[number] {
            let ended = match delivery.state {
                DeliveryState::Delivered => true,
                DeliveryState::Dead => !webhook.kind.recovers(),
                DeliveryState::Ready | DeliveryState::Waiting => false,
            };
            let once = delivery.conversation_id.is_some_and(|id| left.remove(&id.0));
            logged.see(ended && once, || format!("{path} {delivery:?}"));
        }
        logged.wrong.extend(left.iter().map(|id| format!("{path} {id} has none")));
    }
    vec![arrived, nothing, logged]
}

/// Lets all deliveries expire, a random half of them first, and checks that the log of each webhook has the others, and
/// that its total matches.
///
/// # Errors
/// [`Trouble`] where they cannot be removed or read.
pub async fn expiry(world: &World, logs: &[Vec<Delivery>]) -> Result<Check, Trouble> {
    let mut exact = Check::that("a log has and counts the deliveries that have not expired");
    let mut random = Rng::with_seed(world.plan.seed);
    let mut left: Vec<BTreeSet<DeliveryId>> = logs.iter().map(|log| log.iter().map(|one| one.id).collect()).collect();
    world.skip(Duration::from_secs(KEPT.unsigned_abs()));
    for part in [0.5, 1.0] {
        let mut removed = HashSet::new();
        let expired = world.stack.expire(|key| {
            let chosen = is_delivery(key) && random.f64() < part;
            if chosen {
                removed.insert(key.clone());
            }
            chosen
        })?;
        exact.see(expired > 0, || "nothing expired".to_owned());
        acts::settle(world).await?;
        for (number, left) in left.iter_mut().enumerate() {
            left.retain(|id| !removed.contains(&world.key_of_delivery(number, *id)));
            let (organisation, list) = (world.plan.webhooks[number].organisation, list_of_deliveries(world, number));
            let page = world.ask(organisation, list.clone()).await?;
            let total = page.body["data"]["total"].as_u64();
            exact.see(total == Some(left.len() as u64), || format!("{list}: {} of {total:?}", left.len()));
            let rows: Vec<Delivery> = world.list(organisation, list.clone()).await?;
            let ids: BTreeSet<DeliveryId> = rows.iter().map(|row| row.id).collect();
            exact.see(rows.len() == ids.len() && ids == *left, || format!("{list}: {} rows", rows.len()));
        }
    }
    exact.see(left.iter().all(BTreeSet::is_empty), || format!("{left:?} did not expire"));
    Ok(exact)
}

/// Checks that some ticks took so long that data which they had read could expire.
pub fn long_ticks(world: &World) -> Check {
    let mut long = Check::that("some ticks took so long that leases and markers could expire beside them");
    let count = world.long_ticks.load(Ordering::Relaxed);
    long.see(count > 0, || "none did".to_owned());
    long
}

/// Checks why a webhook that answers at once got an event more than once: either the stream repeated the event, or a
/// tick failed or was overtaken by the next one.
pub fn repeats(world: &World, received_events: &ReceivedEvents, logs: &[Vec<Delivery>]) -> Check {
    let mut bounded = Check::that("an event comes again at most once for each death or redelivery");
    let failed_ticks = world.failed_ticks.load(Ordering::Relaxed) + world.long_ticks.load(Ordering::Relaxed);
    let repeats = world.stack.stream.repeats();
    let of_webhooks =
        logs.iter().enumerate().filter(|(number, _)| world.plan.webhooks[*number].kind == EndpointKind::Prompt);
    for (number, log) in of_webhooks {
        let events = received_events.get(&path_of_webhook(number));
        for delivery in log {
            let key = world.key_of_delivery(number, delivery.id);
            let taken = delivery.conversation_id.and_then(|id| events?.get(&id.0)).map_or(0, |event| event.taken);
            let text = json!({"pk": {"S": key.pk}, "sk": {"S": key.sk}}).to_string();
            let most = 1 + repeats.get(&text).copied().unwrap_or_default() + failed_ticks;
            bounded.see(taken <= most, || format!("{key:?}: {taken} times, at most {most}"));
        }
    }
    bounded
}

/// Checks that no connector gets more than its rate limit allows, in any window of a minute; `None` if every campaign
/// has too few contacts for this check.
pub fn rates(world: &World, options: &FaultRunOptions) -> Option<Check> {
    // A delayed request, for example after faults of the database, may come together with requests of a later turn.
    let delay = (options.under_way() * options.times).as_secs() + LONG_TICK.unsigned_abs();
    let most = usize::try_from(u64::from(options.sends_per_second) * (WINDOW + delay + 1)).ok()?;
    let mut limited = Check::that("no connector gets more in any window than its rate limit allows");
    for (number, _) in world.plan.campaigns.iter().enumerate().filter(|(_, run)| run.contacts > most) {
        let path = path_of_connector(number);
        let sent = world.receiver.received(&path);
        let at = |received: &Received| header(received, "webhook-timestamp").parse().unwrap_or_default();
        let mut times: Vec<u64> = sent.iter().map(at).collect();
        times.sort_unstable();
        for (index, first) in times.iter().enumerate() {
            let within = times[index..].partition_point(|time| time - first < WINDOW);
            limited.see(within <= most, || format!("{path}: {within} within {WINDOW} s of {first}, at most {most}"));
        }
    }
    (limited.seen > 0).then_some(limited)
}

/// Checks that totals and pages agree, and that the filters select the right records.
///
/// # Errors
/// [`Trouble`] where a list cannot be read.
pub async fn lists(world: &World) -> Result<Check, Trouble> {
    let mut exact = Check::that("lists and their filters are exact, whatever died");
    for organisation in 0..world.organisations.len() {
        let mut of = HashMap::new();
        for query in ["", "status=open", "status=closed"] {
            let list = ApiRequest::of(&routes::LIST_CONVERSATIONS).query(query);
            let rows: Vec<Conversation> = world.list(organisation, list.clone()).await?;
            let page = world.ask(organisation, list).await?;
            let total = page.body["data"]["total"].as_u64();
            exact.see(total == Some(rows.len() as u64), || format!("{query} {} of {total:?}", rows.len()));
            let ids: BTreeSet<ConversationId> = rows.iter().map(|row| row.id).collect();
            exact.see(ids.len() == rows.len(), || format!("{query} has a row twice"));
            of.insert(query, ids);
        }
        let both: BTreeSet<_> = of["status=open"].union(&of["status=closed"]).copied().collect();
        exact.see(both == of[""], || format!("{} rows, {} with a status", of[""].len(), both.len()));
    }
    Ok(exact)
}

/// Checks that every contact got its delivery, and that nothing was sent after a stop.
///
/// # Errors
/// [`Trouble`] where campaigns or conversations cannot be read.
pub async fn campaigns(
    world: &World,
    finished: &[FinishedCampaign],
    received_events: &ReceivedEvents,
    options: &FaultRunOptions,
) -> Result<Vec<Check>, Trouble> {
    let mut arrived = Check::that("every contact that was not stopped reached its connector, where that recovers");
    let mut nothing = Check::that("no connector received any other event");
    let mut stopped = Check::that("nothing was sent that was cancelled, deleted or paused before");
    let mut counts = Check::that("the counts of every campaign add up, and nothing is queued");
    let mut begun = Check::that(
        "every contact that was sent has a conversation, a new one for each call; no other contact has one",
    );
    let mut conversations = conversations_by_widget(world).await?;
    for (number, finished) in finished.iter().enumerate() {
        let campaign = EndedCampaign::of(world, number, finished, received_events).await?;
        campaign.see_who_was_reached(&mut arrived);
        campaign.see_nothing_else(&mut nothing);
        campaign.see_nothing_after_a_stop(options.under_way(), &mut stopped);
        campaign.see_counts(&mut counts);
        let of_widget = conversations.remove(&campaign.channel.widget).unwrap_or_default();
        campaign.see_conversations(&of_widget, &mut begun);
    }
    Ok(vec![arrived, nothing, stopped, counts, begun])
}

async fn conversations_by_widget(world: &World) -> Result<HashMap<WidgetId, Vec<Conversation>>, Trouble> {
    let mut conversations: HashMap<_, Vec<_>> = HashMap::new();
    for organisation in 0..world.organisations.len() {
        let all: Vec<Conversation> = world.list(organisation, &routes::LIST_CONVERSATIONS).await?;
        for conversation in all {
            if let Some(widget) = conversation.widget_id {
                conversations.entry(widget).or_default().push(conversation);
            }
        }
    }
    Ok(conversations)
}

/// A campaign at the end of the run.
struct EndedCampaign<'a> {
    run: &'a PlannedCampaign,
    finished: &'a FinishedCampaign,
    channel: &'a Channel,
    /// The path of its connector, and the requests to it.
    path: String,
    events: Option<&'a HashMap<Uuid, ReceivedEvent>>,
    /// The campaign and its contacts from the API.
    campaign: Campaign,
    places: Vec<CampaignContact>,
}

impl<'a> EndedCampaign<'a> {
    async fn of(
        world: &'a World,
        number: usize,
        finished: &'a FinishedCampaign,
        received_events: &'a ReceivedEvents,
    ) -> Result<Self, Trouble> {
        let (run, path) = (&world.plan.campaigns[number], path_of_connector(number));
        let organisation = world.plan.webhooks[run.webhook].organisation;
        let places = contacts_of(world, number, finished.id).await?;
        let read = ApiRequest::of(&routes::READ_CAMPAIGN).parameter("campaign_id", finished.id);
        let campaign = member(&world.ask(organisation, read).await?.body, "data")?;
        Ok(Self {
            run,
            finished,
            channel: &world.channels[number],
            events: received_events.get(&path),
            path,
            campaign,
            places,
        })
    }

    fn event(&self, id: CampaignContactId) -> Option<&ReceivedEvent> {
        self.events?.get(&id.0)
    }

    fn see_who_was_reached(&self, arrived: &mut Check) {
        let never_recovers = self.run.connector == Some(EndpointKind::Dead);
        for place in &self.places {
            let wanted = match place.status {
                ContactStatus::Sent => self.run.connector.is_some() && !never_recovers,
                ContactStatus::Stored => self.run.connector.is_none(),
                ContactStatus::Failed => never_recovers,
                ContactStatus::Cancelled => self.finished.cancelled.is_some(),
                ContactStatus::Queued | ContactStatus::Suppressed => false,
            };
            let taken = self.event(place.id).is_some_and(|event| event.taken > 0);
            let reached = place.status != ContactStatus::Sent || taken;
            arrived.see(wanted && reached, || format!("{} {place:?}", self.path));
        }
    }

    fn see_nothing_else(&self, nothing: &mut Check) {
        let ids: BTreeSet<Uuid> = self.finished.contacts.iter().map(|id| id.0).collect();
        for id in self.events.into_iter().flat_map(HashMap::keys) {
            nothing.see(ids.contains(id), || format!("{} {id}", self.path));
        }
    }

    /// After a stop, only an attempt that had begun before it may arrive.
    fn see_nothing_after_a_stop(&self, under_way: Duration, stopped: &mut Check) {
        let Self { finished, path, .. } = self;
        for id in &finished.contacts {
            if let Some(at) = finished.deleted.get(id).copied().or(finished.cancelled) {
                let late = self.event(*id).is_some_and(|event| event.last > at + under_way);
                stopped.see(!late, || format!("{path} {id}"));
            }
        }
        stopped.see(finished.while_paused == 0, || format!("{path}: {} while it was paused", finished.while_paused));
    }

    fn see_counts(&self, counts: &mut Check) {
        let with = |status| self.places.iter().filter(|place| place.status == status).count() as u64;
        let wanted = Counts {
            queued: 0,
            sent: with(ContactStatus::Sent),
            stored: with(ContactStatus::Stored),
            failed: with(ContactStatus::Failed),
            suppressed: with(ContactStatus::Suppressed),
            cancelled: with(ContactStatus::Cancelled),
        };
        let status =
            if self.finished.cancelled.is_some() { CampaignStatus::Cancelled } else { CampaignStatus::Completed };
        let all = self.places.len() + self.finished.deleted.len() == self.run.contacts;
        let outcomes = OutcomeCounts::of(|outcome| {
            let has = |place: &&CampaignContact| place.result.as_ref().is_some_and(|result| result.outcome == outcome);
            self.places.iter().filter(has).count() as u64
        });
        let right = all
            && self.campaign.counts == wanted
            && self.campaign.outcomes == outcomes
            && self.campaign.status == status;
        counts.see(right, || format!("{} {:?}, not {wanted:?}", self.path, self.campaign));
    }

    fn see_conversations(&self, conversations: &[Conversation], begun: &mut Check) {
        let mut of_contact: BTreeMap<ContactId, BTreeSet<ConversationId>> = BTreeMap::new();
        for conversation in conversations {
            let invited = conversation.contact_id.filter(|contact| self.channel.contacts.contains(contact));
            begun.see(invited.is_some(), || format!("{} {conversation:?}", self.path));
            if let Some(contact) = invited {
                of_contact.entry(contact).or_default().insert(conversation.id);
            }
        }
        for place in &self.places {
            let has = of_contact.remove(&place.contact_id).unwrap_or_default();
            let has_ended = matches!(place.status, ContactStatus::Sent | ContactStatus::Stored);
            // Each attempt begins a conversation, or continues the open one.
            let attempts = if self.campaign.start_new_conversation { place.attempts as usize } else { 1 };
            let its_own = place.conversation_id.map_or(has.is_empty(), |id| has.contains(&id) && has.len() == attempts);
            begun.see(its_own && (!has.is_empty() || !has_ended), || format!("{} {place:?}, {has:?}", self.path));
        }
        for (contact, has) in of_contact {
            // The contact was deleted from the campaign.
            begun.see(has.len() == 1, || format!("{} {contact}, {has:?}", self.path));
        }
    }
}

/// Checks that `redrive` handled all batches that the stream gave up, and that nothing is left to do.
///
/// # Errors
/// [`Trouble`] with the database or the bucket.
pub fn ends(world: &World) -> Result<Vec<Check>, Trouble> {
    let mut kept = Check::that("nothing that the stream gave up is left");
    kept.seen = world.stack.stream.given_up().len();
    kept.wrong = world.stack.objects.failed_records()?.into_iter().map(|(key, _)| key).collect();
    let mut left = Check::that("nothing is left to do");
    let due = world.due()?;
    left.see(due.is_empty(), || format!("{due:?}"));
    Ok(vec![kept, left])
}

/// The durations from close to receipt at webhooks of this kind, the shortest first.
pub fn times(world: &World, closed: &Closed, received_events: &ReceivedEvents, kind: EndpointKind) -> Vec<Duration> {
    let time = |(conversation, closed): (&usize, &Instant)| {
        let webhook = world.plan.conversations[*conversation].webhook;
        let event = received_events.get(&path_of_webhook(webhook))?.get(&world.conversations[*conversation].0)?;
        (world.plan.webhooks[webhook].kind == kind).then(|| event.first.saturating_duration_since(*closed))
    };
    let mut times: Vec<_> = closed.iter().filter_map(time).collect();
    times.sort();
    times
}
