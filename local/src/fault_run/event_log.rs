//! The log of events of a fault run: compares that of each organisation with what happened, and with what arrived.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use serde_json::{Value, json};
use shared::records::campaign::ContactStatus;
use shared::records::conversation::Conversation;
use shared::records::event::{EventKind, HAVE_TRANSCRIPTS};
use shared::routes;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::acts::{CHANGED, FinishedCampaign, contacts_of};
use crate::fault_run::captured;
use crate::fault_run::changes::TableChanges;
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, member};

/// The organisation whose events are also sent. Those of the others are only read.
const SENT: usize = 0;
/// The path of the webhook that gets each event of this organisation.
pub const PATH: &str = "/events";
/// Events of a page.
const PAGE: usize = 100;
/// The kinds of which a change emits more or fewer events, depending on when it happens.
const ANY_NUMBER: [&str; 5] =
    ["conversation.updated", "campaign.updated", "campaign.started", "export.updated", "webhook.updated"];
const CONTACT_UPDATED: &str = "contact.updated";
/// The subject of the events of a campaign's contact. They follow changes of two items, the contact and its delivery,
/// so they are in any order: the one with the highest `sequence` counts.
const OF_TWO_ITEMS: &str = "campaign_contact";

impl World {
    /// Subscribes an organisation to every event.
    ///
    /// # Errors
    /// [`Trouble`] with the service.
    pub async fn subscribe(&self, organisation: usize) -> Result<(), Trouble> {
        let mut webhook = json!({"events": ["*"]});
        if organisation == SENT {
            webhook["endpoint"] = format!("{}{PATH}", self.receiver.url).into();
        }
        self.make(organisation, ApiRequest::of(&routes::CREATE_WEBHOOK).body(&webhook)).await.map(drop)
    }
}

/// Checks that each change has emitted one event into the log, and that the events arrived.
///
/// # Errors
/// [`Trouble`] where the log or a record cannot be read.
pub async fn checks(
    world: &World,
    finished: &[FinishedCampaign],
    changes: &TableChanges,
    exports: usize,
) -> Result<Vec<Check>, Trouble> {
    let mut once = Check::that("the log has each event once, and those of a record in their order");
    let mut emitted = Check::that("each change emits one event, of every kind");
    let mut sent = Check::that("each event of the log arrived, and came again only with its id");
    let given_up = given_up(world);
    for organisation in 0..world.organisations.len() {
        let log = Log::read(world, organisation, exports).await?;
        log.see_order(&given_up, &mut once);
        log.see_changes(finished, changes, &mut emitted).await?;
        if organisation == SENT {
            log.see_arrivals(&mut sent);
        }
    }
    Ok(vec![once, emitted, sent])
}

/// The ids of the records of which the stream gave up a change. It was handled later than the ones behind it.
fn given_up(world: &World) -> HashSet<String> {
    let changes = world.stack.stream.given_up();
    let id = |change: &Value, image: &str| Some(change["dynamodb"][image]["id"]["S"].as_str()?.to_owned());
    changes.iter().flat_map(|change| ["OldImage", "NewImage"].map(|image| id(change, image))).flatten().collect()
}

fn word<'a>(event: &'a Value, name: &str) -> &'a str {
    event[name].as_str().unwrap_or_default()
}

/// The log of an organisation.
struct Log<'a> {
    world: &'a World,
    organisation: usize,
    events: Vec<Value>,
    /// The exports of the organisation.
    exports: usize,
}

impl<'a> Log<'a> {
    async fn read(world: &'a World, organisation: usize, exports: usize) -> Result<Self, Trouble> {
        let (mut events, mut after) = (Vec::new(), String::new());
        loop {
            let list = ApiRequest::of(&routes::LIST_EVENTS).query(format!("size={PAGE}{after}"));
            let mut page = world.ask(organisation, list).await?.data()?;
            events.extend(member::<Vec<Value>>(&page, "items")?);
            let Value::String(next) = page["next"].take() else { break };
            after = format!("&after={next}");
        }
        Ok(Self { world, organisation, events, exports })
    }

    fn see_order(&self, given_up: &HashSet<String>, once: &mut Check) {
        let (mut ids, mut last) = (HashSet::new(), HashMap::new());
        for event in &self.events {
            once.see(ids.insert(word(event, "id")), || format!("again {event}"));
            let subject = word(event, "event").split('.').next().unwrap_or_default();
            let (record, sequence) = (word(&event["data"], "id"), event["sequence"].as_u64());
            let before = last.insert((subject, record), sequence).flatten();
            let is_later = before < sequence || given_up.contains(record) || subject == OF_TWO_ITEMS;
            once.see(is_later, || format!("behind {before:?}: {event}"));
        }
    }

    /// The records that events of each kind are about, with the number of the events.
    fn kinds(&self) -> BTreeMap<&str, (usize, BTreeSet<&str>)> {
        let mut kinds: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
        for event in &self.events {
            let (count, records) = kinds.entry(word(event, "event")).or_default();
            *count += 1;
            records.insert(word(&event["data"], "id"));
        }
        kinds
    }

    async fn see_changes(
        &self,
        finished: &[FinishedCampaign],
        changes: &TableChanges,
        emitted: &mut Check,
    ) -> Result<(), Trouble> {
        let conversations: Vec<Conversation> = self.world.list(self.organisation, &routes::LIST_CONVERSATIONS).await?;
        let mut kinds = self.kinds();
        for (kind, wanted) in self.wanted(&conversations, finished).await? {
            let (count, records) = kinds.remove(kind).unwrap_or_default();
            // A caller repeats a change whose answer was lost: then there may be two changes.
            let is_right = records.len() == wanted && (count == wanted || kind == CONTACT_UPDATED);
            emitted.see(is_right, || format!("{kind}: {count} of {} records, not {wanted}", records.len()));
        }
        let (completed, _) = kinds.remove("campaign.completed").unwrap_or_default();
        let own = self.campaigns(finished).filter_map(|(_, run)| changes.completed.get(&run.id.to_string()));
        let wanted: usize = own.sum();
        emitted.see(completed == wanted, || format!("campaign.completed: {completed}, not {wanted}"));
        kinds.remove(EventKind::CAMPAIGN_CONTACT_UPDATED.as_str());
        self.see_contacts(finished, changes, emitted).await?;
        let others: Vec<_> = kinds.keys().filter(|kind| !ANY_NUMBER.contains(kind)).collect();
        emitted.see(others.is_empty(), || format!("also {others:?}"));
        self.see_conversations(&conversations, emitted);
        Ok(())
    }

    /// Each end of a delivery to a contact of a campaign and each change of its result emits one event, and the last
    /// event shows the contact as it is.
    async fn see_contacts(
        &self,
        finished: &[FinishedCampaign],
        changes: &TableChanges,
        emitted: &mut Check,
    ) -> Result<(), Trouble> {
        let mut of_contact: HashMap<&str, Vec<&Value>> = HashMap::new();
        let kind = EventKind::CAMPAIGN_CONTACT_UPDATED.as_str();
        for event in self.events.iter().filter(|event| word(event, "event") == kind) {
            of_contact.entry(word(&event["data"], "id")).or_default().push(event);
        }
        for (number, run) in self.campaigns(finished) {
            for place in contacts_of(self.world, number, run.id).await? {
                let id = place.id.to_string();
                let events = of_contact.remove(&*id).unwrap_or_default();
                let wanted = changes.contacts.get(&id).copied().unwrap_or_default();
                emitted.see(events.len() == wanted, || format!("{place:?} has {} events, not {wanted}", events.len()));
                // A cancellation emits an event of the campaign alone.
                let last = events.iter().max_by_key(|event| event["sequence"].as_u64());
                if let Some(last) = last.filter(|_| place.status != ContactStatus::Cancelled) {
                    let shown = ["status", "result", "attempts"].map(|name| &last["data"][name]);
                    let is = [json!(place.status), json!(place.result), json!(place.attempts)];
                    emitted.see(shown == is.each_ref(), || format!("{place:?} is not as in {last}"));
                }
            }
        }
        for (id, events) in of_contact {
            // The contact was deleted: what happened to it may have emitted an event or not.
            let most = changes.contacts.get(id).copied().unwrap_or_default();
            emitted.see(events.len() <= most, || format!("{id} has {} events, {most} at most", events.len()));
        }
        Ok(())
    }

    /// How many events there must be of each kind, each about another record.
    async fn wanted(
        &self,
        conversations: &[Conversation],
        finished: &[FinishedCampaign],
    ) -> Result<Vec<(&'static str, usize)>, Trouble> {
        let (world, own) = (self.world, self.organisation);
        let webhooks: Vec<Value> = world.list(own, &routes::LIST_WEBHOOKS).await?;
        let (mut campaigns, mut contacts, mut changed) = (0, 0, 0);
        for (number, _) in self.campaigns(finished) {
            let invited = world.channels[number].contacts.len();
            (campaigns, contacts, changed) = (campaigns + 1, contacts + invited, changed + invited.div_ceil(CHANGED));
        }
        let said: u64 = conversations.iter().map(|conversation| conversation.chat_count).sum();
        let assistants = world.plan.webhooks.iter().filter(|webhook| webhook.organisation == own).count();
        let captured = captured::of_organisation(world, own).len();
        Ok(vec![
            ("assistant.created", assistants),
            ("campaign.created", campaigns),
            ("captured_form.created", captured),
            ("captured_intent.created", captured),
            ("contact.created", contacts),
            (CONTACT_UPDATED, changed),
            ("conversation.closed", conversations.iter().filter(|conversation| !conversation.is_open()).count()),
            ("conversation.opened", conversations.len()),
            ("export.completed", self.exports),
            ("export.created", self.exports),
            ("export.deleted", self.exports),
            ("form.created", 1),
            ("intent.created", 1),
            ("message.created", usize::try_from(said).unwrap_or(usize::MAX)),
            ("webhook.created", webhooks.len()),
            ("webhook.disabled", webhooks.iter().filter(|webhook| !webhook["disabled_reason"].is_null()).count()),
            // Each assistant has one for calls.
            ("widget.created", campaigns + assistants),
        ])
    }

    /// The campaigns of the organisation, with their numbers.
    fn campaigns<'f>(
        &self,
        finished: &'f [FinishedCampaign],
    ) -> impl Iterator<Item = (usize, &'f FinishedCampaign)> + use<'a, 'f> {
        let (plan, own) = (&self.world.plan, self.organisation);
        let is_own = move |number: usize| plan.webhooks[plan.campaigns[number].webhook].organisation == own;
        finished.iter().enumerate().filter(move |(number, _)| is_own(*number))
    }

    /// Each message has emitted an event, and the last event of an open conversation has the last of them.
    fn see_conversations(&self, conversations: &[Conversation], emitted: &mut Check) {
        let (mut messages, mut last) = (HashMap::<&str, u64>::new(), HashMap::new());
        for event in &self.events {
            match word(event, "event") {
                "message.created" => *messages.entry(word(&event["data"], "conversation_id")).or_default() += 1,
                kind if kind.starts_with("conversation.") => {
                    last.insert(word(&event["data"], "id"), event["data"]["chat_count"].as_u64());
                }
                _ => {}
            }
        }
        for conversation in conversations {
            let id = conversation.id.to_string();
            let said = messages.get(&*id).copied().unwrap_or_default();
            emitted.see(said == conversation.chat_count, || format!("{said} messages of {conversation:?}"));
            let known = last.get(&*id).copied().flatten();
            let is_known = !conversation.is_open() || known == Some(conversation.chat_count);
            emitted.see(is_known, || format!("{known:?} messages are known of {conversation:?}"));
        }
    }

    fn see_arrivals(&self, sent: &mut Check) {
        let events: HashMap<&str, &Value> = self.events.iter().map(|event| (word(event, "id"), event)).collect();
        let mut taken = HashSet::new();
        for received in self.world.receiver.received(PATH) {
            let body: Value = serde_json::from_slice(&received.body).unwrap_or_default();
            let event = events.get(word(&body, "id")).copied();
            let is_it = event.is_some_and(|event| is_same(event, &body));
            sent.see(is_it && received.headers.get("webhook-id").map(String::as_str) == body["id"].as_str(), || {
                format!("not in the log: {body}")
            });
            taken.extend(event.filter(|_| received.succeeded()).map(|event| word(event, "id")));
        }
        for (id, event) in &events {
            sent.see(taken.contains(id), || format!("did not arrive: {event}"));
        }
    }
}

/// Whether `body` is the event of the log: one of a conversation also has what was said.
fn is_same(event: &Value, body: &Value) -> bool {
    let has_transcript = HAVE_TRANSCRIPTS.iter().any(|kind| event["event"] == kind.as_str());
    let same = ["id", "event", "sequence", "created_at"].iter().all(|name| event[*name] == body[*name]);
    same && (has_transcript || event == body)
}
