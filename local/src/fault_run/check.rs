//! The checks at the end of a fault run: compares the events that arrived with the expected ones.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use fastrand::Rng;
use serde_json::{Value, json};
use shared::delivery::signature;
use shared::records::campaign::{Campaign, CampaignContact, CampaignStatus, ContactStatus, Counts};
use shared::records::conversation::Conversation;
use shared::records::delivery::{Delivery, DeliveryState, EventId, KEPT};
use shared::values::id::{CampaignContactId, ContactId, ConversationId, DeliveryId, WidgetId};
use uuid::Uuid;

use crate::Trouble;
use crate::fault_run::FaultRunOptions;
use crate::fault_run::acts::{self, Closed, Ran, contacts_of, is_delivery};
use crate::fault_run::plan::{Manner, Run};
use crate::fault_run::world::{Channel, LONG_TICK, World, member, path_of_connector, path_of_webhook};
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
    const fn that(what: &'static str) -> Self {
        Self { what, seen: 0, wrong: Vec::new() }
    }

    fn see(&mut self, right: bool, wrong: impl FnOnce() -> String) {
        self.seen += 1;
        if !right {
            self.wrong.push(wrong());
        }
    }
}

/// The requests of one event to an endpoint.
#[derive(Debug)]
pub struct Heard {
    /// The first request.
    pub first: Instant,
    /// The last request.
    pub last: Instant,
    /// The number of requests.
    pub requests: usize,
    /// The number of requests that were answered with success.
    pub taken: usize,
    /// The body of the first request, without the parts that may change.
    told: Value,
}

/// The requests to every endpoint, by its path and by the subject of the event.
pub type Evidence = HashMap<String, HashMap<Uuid, Heard>>;

/// Reads all requests, and checks that they are valid by Standard Webhooks.
pub fn read(world: &World) -> (Evidence, Vec<Check>) {
    let mut signed = Check::that("every request is signed with the secret of its webhook");
    let mut named = Check::that("an event has one webhook-id, and a webhook-id one event");
    let mut same = Check::that("of an event the same is told every time, but for what its contact has become");
    let secrets: HashMap<String, _> = {
        let webhooks = (0..world.webhooks.len()).map(|number| (path_of_webhook(number), number));
        let runs = world.plan.runs.iter().enumerate();
        let connectors = runs.map(|(number, run)| (path_of_connector(number), run.webhook));
        webhooks.chain(connectors).map(|(path, webhook)| (path, &world.webhooks[webhook].secret)).collect()
    };
    let (mut evidence, mut events) = (Evidence::new(), HashMap::new());
    for received in world.receiver.all() {
        let Received { path, headers, at, .. } = &received;
        let (body, id) = (String::from_utf8_lossy(&received.body), header(&received, "webhook-id"));
        let seconds = header(&received, "webhook-timestamp").parse().unwrap_or_default();
        let expected = secrets.get(path).and_then(|secret| signature::headers(&[secret], id, seconds, &body).ok());
        let as_expected =
            expected.is_some_and(|expected| expected.iter().all(|(name, value)| headers.get(*name) == Some(value)));
        signed.see(as_expected, || format!("{path} {id}"));
        let mut told: Value = serde_json::from_str(&body).unwrap_or_default();
        let contact = told["data"].get_mut("contact").map(Value::take);
        let data = &told["data"];
        let about = if told["event"] == "conversation.closed" { "conversation_id" } else { "campaign_contact_id" };
        let subject = data[about].as_str().and_then(|id| id.parse().ok()).unwrap_or_default();
        let first = events.entry(id.to_owned()).or_insert(subject);
        let right = told["id"] == id && *first == subject && id == EventId(subject).to_string();
        named.see(right, || format!("{path} {id} {body}"));
        let heard = evidence.entry(path.clone()).or_default().entry(subject).or_insert_with(|| Heard {
            first: *at,
            last: *at,
            requests: 0,
            taken: 0,
            told: told.clone(),
        });
        heard.requests += 1;
        heard.taken += usize::from(received.succeeded());
        heard.last = heard.last.max(*at);
        let its_own = contact.is_none_or(|contact| contact["id"] == told["data"]["contact_id"]);
        same.see(heard.told == told && its_own, || format!("{path} {id} {body}"));
    }
    (evidence, vec![signed, named, same])
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
        logs.push(world.list(webhook.organisation, &path_of_log(world, number), "").await?);
    }
    Ok(logs)
}

fn path_of_log(world: &World, webhook: usize) -> String {
    format!("/api/v1/outbound_webhook/{}/logs", world.webhooks[webhook].id)
}

/// Checks that every closed conversation arrived, and nothing else.
pub fn closed(world: &World, closed: &Closed, evidence: &Evidence, logs: &[Vec<Delivery>]) -> Vec<Check> {
    let mut arrived = Check::that("every closed conversation reached its webhook, where that recovers");
    let mut nothing = Check::that("no webhook heard of anything else");
    let mut logged = Check::that("every closed conversation has one delivery, which came to its end");
    for (number, webhook) in world.plan.webhooks.iter().enumerate() {
        let path = path_of_webhook(number);
        let of_it = closed.keys().filter(|talk| world.plan.talks[**talk].webhook == number);
        let wanted: BTreeSet<Uuid> = of_it.map(|talk| world.conversations[*talk].0).collect();
        let heard = |id: &Uuid| evidence.get(&path).and_then(|heard| heard.get(id));
        for id in wanted.iter().filter(|_| webhook.manner.recovers()) {
            arrived.see(heard(id).is_some_and(|heard| heard.taken > 0), || format!("{path} {id}"));
        }
        for id in evidence.get(&path).into_iter().flat_map(HashMap::keys) {
            nothing.see(wanted.contains(id), || format!("{path} {id}"));
        }
        let mut left = wanted.clone();
        for delivery in &logs[number] {
            let ended = match delivery.state {
                DeliveryState::Delivered => true,
                DeliveryState::Dead => !webhook.manner.recovers(),
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
            let (organisation, path) = (world.plan.webhooks[number].organisation, path_of_log(world, number));
            let page = world.ask(organisation, "GET", &path, "", &Value::Null).await?;
            let total = page.body["data"]["total"].as_u64();
            exact.see(total == Some(left.len() as u64), || format!("{path}: {} of {total:?}", left.len()));
            let rows: Vec<Delivery> = world.list(organisation, &path, "").await?;
            let ids: BTreeSet<DeliveryId> = rows.iter().map(|row| row.id).collect();
            exact.see(rows.len() == ids.len() && ids == *left, || format!("{path}: {} rows", rows.len()));
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
pub fn repeats(world: &World, evidence: &Evidence, logs: &[Vec<Delivery>]) -> Check {
    let mut bounded = Check::that("an event comes again at most once for each death or redelivery");
    let failed_ticks = world.failed_ticks.load(Ordering::Relaxed) + world.long_ticks.load(Ordering::Relaxed);
    let repeats = world.stack.stream.repeats();
    let of_webhooks =
        logs.iter().enumerate().filter(|(number, _)| world.plan.webhooks[*number].manner == Manner::Prompt);
    for (number, log) in of_webhooks {
        let heard = evidence.get(&path_of_webhook(number));
        for delivery in log {
            let key = world.key_of_delivery(number, delivery.id);
            let taken = delivery.conversation_id.and_then(|id| heard?.get(&id.0)).map_or(0, |heard| heard.taken);
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
    for (number, _) in world.plan.runs.iter().enumerate().filter(|(_, run)| run.contacts > most) {
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
            let path = "/api/v1/conversation";
            let rows: Vec<Conversation> = world.list(organisation, path, query).await?;
            let page = world.ask(organisation, "GET", path, query, &Value::Null).await?;
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
    ran: &[Ran],
    evidence: &Evidence,
    options: &FaultRunOptions,
) -> Result<Vec<Check>, Trouble> {
    let mut arrived = Check::that("every contact that was not stopped reached its connector, where that recovers");
    let mut nothing = Check::that("no connector heard of anything else");
    let mut stopped = Check::that("nothing was sent that was cancelled, deleted or paused before");
    let mut counts = Check::that("the counts of every campaign add up, and nothing is queued");
    let mut begun = Check::that("every contact that was sent has one conversation, and no other contact has one");
    let mut conversations = conversations_by_widget(world).await?;
    for (number, ran) in ran.iter().enumerate() {
        let campaign = EndedCampaign::of(world, number, ran, evidence).await?;
        campaign.see_who_was_reached(&mut arrived);
        campaign.see_nothing_else(&mut nothing);
        campaign.see_nothing_after_a_stop(options.under_way(), &mut stopped);
        campaign.see_counts(&mut counts);
        let talks = conversations.remove(&campaign.channel.widget).unwrap_or_default();
        campaign.see_conversations(&talks, &mut begun);
    }
    Ok(vec![arrived, nothing, stopped, counts, begun])
}

async fn conversations_by_widget(world: &World) -> Result<HashMap<WidgetId, Vec<Conversation>>, Trouble> {
    let mut conversations: HashMap<_, Vec<_>> = HashMap::new();
    for organisation in 0..world.organisations.len() {
        let all: Vec<Conversation> = world.list(organisation, "/api/v1/conversation", "").await?;
        for talk in all {
            if let Some(widget) = talk.widget_id {
                conversations.entry(widget).or_default().push(talk);
            }
        }
    }
    Ok(conversations)
}

/// A campaign at the end of the run.
struct EndedCampaign<'a> {
    run: &'a Run,
    ran: &'a Ran,
    channel: &'a Channel,
    /// The path of its connector, and the requests to it.
    path: String,
    heard: Option<&'a HashMap<Uuid, Heard>>,
    /// The campaign and its contacts from the API.
    campaign: Campaign,
    places: Vec<CampaignContact>,
}

impl<'a> EndedCampaign<'a> {
    async fn of(world: &'a World, number: usize, ran: &'a Ran, evidence: &'a Evidence) -> Result<Self, Trouble> {
        let (run, path) = (&world.plan.runs[number], path_of_connector(number));
        let organisation = world.plan.webhooks[run.webhook].organisation;
        let places = contacts_of(world, number, ran.id).await?;
        let of_it = format!("/api/v1/campaign/get/{}", ran.id);
        let answered = world.ask(organisation, "GET", &of_it, "", &Value::Null).await?;
        let campaign = member(&answered.body, "data")?;
        Ok(Self { run, ran, channel: &world.channels[number], heard: evidence.get(&path), path, campaign, places })
    }

    fn heard(&self, id: CampaignContactId) -> Option<&Heard> {
        self.heard?.get(&id.0)
    }

    fn see_who_was_reached(&self, arrived: &mut Check) {
        let never_recovers = self.run.connector == Some(Manner::Dead);
        for place in &self.places {
            let wanted = match place.status {
                ContactStatus::Sent => !never_recovers,
                ContactStatus::Failed => never_recovers,
                ContactStatus::Cancelled => self.ran.cancelled.is_some(),
                ContactStatus::Queued => false,
            };
            let taken = self.heard(place.id).is_some_and(|heard| heard.taken > 0);
            let reached = place.status != ContactStatus::Sent || self.run.connector.is_none() || taken;
            arrived.see(wanted && reached, || format!("{} {place:?}", self.path));
        }
    }

    fn see_nothing_else(&self, nothing: &mut Check) {
        let ids: BTreeSet<Uuid> = self.ran.contacts.iter().map(|id| id.0).collect();
        for id in self.heard.into_iter().flat_map(HashMap::keys) {
            nothing.see(ids.contains(id), || format!("{} {id}", self.path));
        }
    }

    /// After a stop, only an attempt that had begun before it may arrive.
    fn see_nothing_after_a_stop(&self, under_way: Duration, stopped: &mut Check) {
        let Self { ran, path, .. } = self;
        for id in &ran.contacts {
            if let Some(at) = ran.deleted.get(id).copied().or(ran.cancelled) {
                let late = self.heard(*id).is_some_and(|heard| heard.last > at + under_way);
                stopped.see(!late, || format!("{path} {id}"));
            }
        }
        stopped.see(ran.while_paused == 0, || format!("{path}: {} while it was paused", ran.while_paused));
    }

    fn see_counts(&self, counts: &mut Check) {
        let with = |status| self.places.iter().filter(|place| place.status == status).count() as u64;
        let wanted = Counts {
            queued: 0,
            sent: with(ContactStatus::Sent),
            failed: with(ContactStatus::Failed),
            cancelled: with(ContactStatus::Cancelled),
        };
        let status = if self.ran.cancelled.is_some() { CampaignStatus::Cancelled } else { CampaignStatus::Completed };
        let all = self.places.len() + self.ran.deleted.len() == self.run.contacts;
        let right = all && self.campaign.counts == wanted && self.campaign.status == status;
        counts.see(right, || format!("{} {:?}, not {wanted:?}", self.path, self.campaign));
    }

    fn see_conversations(&self, talks: &[Conversation], begun: &mut Check) {
        let mut of_contact: BTreeMap<Option<ContactId>, ConversationId> = BTreeMap::new();
        for talk in talks {
            let first = of_contact.insert(talk.contact_id, talk.id).is_none();
            let invited = talk.contact_id.is_some_and(|contact| self.channel.contacts.contains(&contact));
            begun.see(first && invited, || format!("{} {talk:?}", self.path));
        }
        for place in &self.places {
            let has = of_contact.get(&Some(place.contact_id)).copied();
            let right = has == place.conversation_id && (has.is_some() || place.status != ContactStatus::Sent);
            begun.see(right, || format!("{} {place:?}, {has:?}", self.path));
        }
    }
}

/// Checks that `redrive` handled all batches that the stream gave up, and that nothing is left to do.
///
/// # Errors
/// [`Trouble`] with the database or the bucket.
pub async fn ends(world: &World) -> Result<Vec<Check>, Trouble> {
    let mut kept = Check::that("nothing that the stream gave up is left");
    kept.seen = world.stack.stream.given_up().len();
    kept.wrong = world.stack.objects.failed_records()?.into_iter().map(|(key, _)| key).collect();
    let mut left = Check::that("nothing is left to do");
    let due = world.due().await?;
    left.see(due.is_empty(), || format!("{due:?}"));
    Ok(vec![kept, left])
}

/// The durations from close to receipt at webhooks of this manner, the shortest first.
pub fn times(world: &World, closed: &Closed, evidence: &Evidence, manner: Manner) -> Vec<Duration> {
    let time = |(talk, closed): (&usize, &Instant)| {
        let webhook = world.plan.talks[*talk].webhook;
        let heard = evidence.get(&path_of_webhook(webhook))?.get(&world.conversations[*talk].0)?;
        (world.plan.webhooks[webhook].manner == manner).then(|| heard.first.saturating_duration_since(*closed))
    };
    let mut times: Vec<_> = closed.iter().filter_map(time).collect();
    times.sort();
    times
}
