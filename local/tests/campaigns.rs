//! Campaigns being sent: every contact gets its conversation and its message once, at the rate of the widget, and its outcome is told.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use local::Settings;
use local::http::Call;
use local::receiver::{Behaviour, Received};
use serde_json::{Value, json};
use shared::records::assistant::Assistant;
use shared::records::contact::Contact;
use shared::records::contact_point::PhoneNumber;
use shared::records::conversation::Message;
use shared::records::widget::{Widget, WidgetType};
use shared::table::rows::INSERT_LIMIT;
use shared::values::id::{AssistantId, ContactId, ConversationId, WidgetId};
use shared::values::json::JsonObject;
use shared::values::time::{Clock, Timestamp};
use uuid::Uuid;

use crate::fixture::{call, data, json};
use crate::sending::{Org, World, events, id_of, is_signed_with};
use crate::sweep::crashes_everywhere;

/// What a stack sends in a second where nothing else is said.
const RATE: usize = 10;
const DAY: i64 = 86_400;

/// An organisation with a widget, its assistant and the assistant's webhook; the widget's connector is at `/connector`.
pub struct Sender {
    pub world: World,
    pub org: Org,
    pub webhook: Value,
    pub assistant: Value,
    pub widget: Widget,
    contacts: Vec<Contact>,
}

impl Sender {
    pub async fn of(world: World, kind: WidgetType, connected: bool, contacts: usize) -> Self {
        let org = world.org().await;
        let webhook = world.webhook(&org, "/webhook").await;
        let assistant = world.assistant(&org, &webhook).await;
        let (now, service) = (world.clock.now(), &world.stack.gateway.service);
        let widget = |id| -> Widget {
            let connector = connected.then(|| format!("{}/connector", world.receiver.url));
            let widget = json!({
                "id": id,
                "assistant_id": assistant["id"],
                "widget_type": kind,
                "opening_message": "Hello",
                "connector_url": connector,
                "org_id": org.id,
                "created_at": now,
                "updated_at": now,
            });
            serde_json::from_value(widget).unwrap()
        };
        let contact = |number: usize, id| Contact {
            id,
            first_name: Some(format!("Contact {number}")),
            last_name: None,
            email: None,
            phone_number: PhoneNumber::new(&format!("+31201{number:06}")),
            attributes: JsonObject::default(),
            org_id: org.id,
            created_at: now,
            updated_at: now,
        };
        let fresh = |count: usize| -> Vec<Uuid> { (0..count).map(|_| service.ids.fresh(now)).collect() };
        let widget = org.table.insert_all((), &fresh(1), |_, id: WidgetId| widget(id)).await.unwrap().remove(0);
        let (ids, mut contacts) = (fresh(contacts), Vec::new());
        for ids in ids.chunks(INSERT_LIMIT) {
            let first = contacts.len();
            contacts.extend(org.table.insert_all((), ids, |index, id| contact(first + index, id)).await.unwrap());
        }
        Self { world, org, webhook, assistant, widget, contacts }
    }

    /// Through a chat.
    pub async fn new(connected: bool, contacts: usize) -> Self {
        Self::of(World::start().await, WidgetType::Whatsapp, connected, contacts).await
    }

    /// The ids of all contacts.
    pub fn contacts(&self) -> Vec<ContactId> {
        self.contacts.iter().map(|contact| contact.id).collect()
    }

    /// Runs a campaign for all contacts; its id.
    pub async fn run(&self, body: Value) -> String {
        self.run_for(&self.contacts(), body).await
    }

    /// The same for some of them.
    pub async fn run_for(&self, contacts: &[ContactId], mut body: Value) -> String {
        body["contact_ids"] = json!(contacts);
        let run = self.world.post(&self.org, &format!("/api/v1/campaign/run/{}", self.widget.id), body).await;
        run["campaign_id"].as_str().unwrap().to_owned()
    }

    /// All that the API lists at `path`.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let (path, filters) = path.split_once('?').unwrap_or((path, ""));
        let (mut all, mut page) = (Vec::new(), json!(1));
        while let Some(number) = page.as_u64() {
            let query = format!("api_key={}&size=100&page={number}&{filters}", self.org.key);
            let mut listed = data(&self.world.stack.answer(&Call { query, ..call("GET", path, "") }).await);
            all.append(listed["items"].as_array_mut().unwrap());
            page = listed["next_page"].take();
        }
        all
    }

    /// The campaign, whose counts are those of its contacts.
    pub async fn campaign(&self, id: &str) -> (Value, Vec<Value>) {
        let campaign = self.world.get(&self.org, &format!("/api/v1/campaign/get/{id}")).await;
        let contacts = self.list(&format!("/api/v1/campaign/contact/list/{id}")).await;
        let mut counts = json!({"queued": 0, "sent": 0, "failed": 0, "cancelled": 0});
        for contact in &contacts {
            let status = contact["status"].as_str().unwrap();
            counts[status] = json!(counts[status].as_u64().unwrap() + 1);
        }
        assert_eq!(campaign["counts"], counts);
        (campaign, contacts)
    }

    /// The campaign's contacts by status, after a look at whether they add up.
    pub async fn outcome(&self, id: &str) -> BTreeMap<String, usize> {
        let (_, contacts) = self.campaign(id).await;
        contacts.iter().fold(BTreeMap::new(), |mut outcome, contact| {
            *outcome.entry(contact["status"].as_str().unwrap().to_owned()).or_default() += 1;
            outcome
        })
    }

    /// A minute passes, and its campaigns add up at each step of it.
    pub async fn minute(&self, ids: &[&str]) {
        self.world.pass(60);
        self.world.stack.minute().await.unwrap();
        for id in ids {
            self.campaign(id).await;
        }
        self.world.settle().await;
        // Whoever dies while sending has a lease until it expires: nobody looks before then whether anything is left.
        let leased = self.world.due().into_keys().any(|item| item.contains("#LIST#CAMPAIGN#"));
        for id in ids {
            // A list that is filtered by the campaign's status has it.
            let status = self.campaign(id).await.0["status"].clone();
            let listed = self.list(&format!("/api/v1/campaign/list?status={}", status.as_str().unwrap())).await;
            assert!(leased || listed.iter().any(|campaign| campaign["id"] == *id), "{status} {listed:?}");
        }
    }

    /// Goes from each moment at which something is due to the next, until nothing is.
    pub async fn until_the_end(&self, id: &str) {
        self.while_due_within(100 * DAY, id).await;
    }

    /// Goes from each moment at which something is due to the next, until nothing is within so many seconds.
    pub async fn while_due_within(&self, seconds: i64, id: &str) {
        for _ in 0..100 {
            let due = self.world.due();
            // An endpoint is looked after in every minute for as long as something waits for it.
            let waits = |item: &&String| !item.ends_with("ENDPOINT_HEALTH");
            let next = due.keys().filter(waits).map(|item| &due[item]).min().or(due.values().min());
            let Some(next) = next else { return };
            let next: Timestamp = serde_json::from_value(json!(next)).unwrap();
            if next > self.world.clock.now().plus_seconds(seconds) {
                return;
            }
            self.world.clock.sleep_until(next).await;
            self.minute(&[id]).await;
        }
        panic!("it never ends: {:?}", self.world.due());
    }

    /// What a caller does with a campaign: `pause`, `resume`, `cancel` or `retry`. The answer's status, and the campaign or the kind of the refusal.
    pub async fn control(&self, id: &str, verb: &str) -> (u16, Value) {
        let answer = self.world.ask(&self.org, "POST", &format!("/api/v1/campaign/{id}/{verb}"), &Value::Null).await;
        let body = json(&answer);
        let told = if answer.status == 200 { &body["data"] } else { &body["detail"][0]["type"] };
        (answer.status, told.clone())
    }

    /// Does `act` while a queued campaign is being sent; returns when nothing of it is under way any more.
    pub async fn while_it_is_sent<T>(&self, id: &str, act: impl AsyncFnOnce() -> T) -> T {
        let world = &self.world;
        let sending = async {
            world.stack.minute().await.unwrap();
            world.settle().await;
        };
        let acting = async {
            while world.get(&self.org, &format!("/api/v1/campaign/get/{id}")).await["status"] == "queued" {}
            act().await
        };
        tokio::join!(acting, sending).0
    }

    pub fn received(&self) -> Vec<Received> {
        self.world.receiver.received("/connector")
    }

    pub async fn conversations(&self) -> Vec<Value> {
        self.list("/api/v1/conversation").await
    }

    pub async fn transcript(&self, conversation: &Value) -> Vec<Message> {
        self.org.table.transcript(ConversationId(conversation.as_str().unwrap().parse().unwrap())).await.unwrap()
    }
}

/// A campaign for all contacts of `sender`, enabled, with these members more.
pub async fn created(sender: &Sender, more: Value) -> Value {
    let mut body = json!({
        "name": "Reminder", "type": "message", "start_time": sender.world.clock.now().plus_seconds(3600), "enabled": true,
        "widget_id": sender.widget.id, "contact_ids": sender.contacts(), "message": "See you!",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sender.world.post(&sender.org, "/api/v1/campaign/create", body).await
}

pub fn all(status: &str, count: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(status.to_owned(), count)])
}

pub fn event(request: &Received) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

#[tokio::test]
async fn through_a_widget_alone_each_contact_gets_a_conversation_and_what_is_said_in_it() {
    for kind in [WidgetType::Whatsapp, WidgetType::Phone] {
        let sender = Sender::of(World::start().await, kind, false, 12).await;
        let id = sender.run(json!({"message": "Sale!"})).await;
        assert_eq!(
            (sender.campaign(&id).await.0["status"].clone(), sender.outcome(&id).await),
            (json!("queued"), all("queued", 12))
        );
        sender.minute(&[&id]).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!(campaign["status"], "completed");
        let conversations = sender.conversations().await;
        assert_eq!(conversations.len(), 12);
        for ((contact, conversation), wanted) in contacts.iter().zip(&conversations).zip(&sender.contacts) {
            assert_eq!((&contact["status"], &contact["error"]), (&json!("sent"), &Value::Null));
            assert_eq!((&contact["contact_id"], &contact["conversation_id"]), (&json!(wanted.id), &conversation["id"]));
            let names = ["assistant_id", "widget_id", "contact_id", "status"];
            let fields = [sender.assistant["id"].clone(), json!(sender.widget.id), json!(wanted.id), json!("open")];
            assert_eq!(names.map(|name| conversation[name].clone()), fields);
            let said = sender.transcript(&conversation["id"]).await;
            let said: Vec<_> = said.iter().map(|message| (message.sender_type.as_str(), &message.text[..])).collect();
            let wanted: &[_] = if kind.calls() { &[] } else { &[("bot", "Sale!")] };
            assert_eq!((&said[..], &conversation["chat_count"]), (wanted, &json!(wanted.len())));
        }
        assert_eq!(sender.world.due(), BTreeMap::new());
        assert_eq!(sender.world.receiver.all(), []);
    }
}

#[tokio::test]
async fn a_connector_is_handed_what_each_contact_is_to_get() {
    for (kind, name) in [(WidgetType::Sms, "campaign.message"), (WidgetType::PlivoCall, "campaign.call")] {
        let sender = Sender::of(World::start().await, kind, true, 3).await;
        let id = sender.run(json!({"message": "Sale!"})).await;
        sender.world.pass(60);
        sender.world.stack.minute().await.unwrap();
        assert_eq!(sender.outcome(&id).await, all("queued", 3));
        sender.world.settle().await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.outcome(&id).await), (&json!("completed"), all("sent", 3)));
        let mut received = sender.received();
        received.sort_by_key(|request| request.headers["webhook-id"].clone());
        assert_eq!((received.len(), events(&received).len()), (3, 3));
        for ((request, contact), who) in received.iter().zip(&contacts).zip(&sender.contacts) {
            assert!(is_signed_with(request, &sender.webhook["secret"]));
            let said = sender.transcript(&contact["conversation_id"]).await;
            let wanted = format!(
                r#"{{"id":"{}","object":"event","event":"{name}","created_at":{},"data":{{"campaign_id":"{id}","campaign_contact_id":{},"widget_id":"{}","assistant_id":{},"conversation_id":{},"contact_id":"{}","message_id":{},"message":{},"contact":{}}}}}"#,
                id_of(contact),
                event(request)["created_at"],
                contact["id"],
                sender.widget.id,
                sender.assistant["id"],
                contact["conversation_id"],
                who.id,
                json!(said.first().map(|message| message.id)),
                if kind.calls() { "null" } else { r#""Sale!""# },
                serde_json::to_string(who).unwrap(),
            );
            assert_eq!(String::from_utf8_lossy(&request.body), wanted);
            assert_eq!(said.len(), usize::from(!kind.calls()));
        }
        assert_eq!(sender.world.receiver.received("/webhook"), [], "the webhook is for events");
        assert_eq!(sender.world.due(), BTreeMap::new());
    }
}

#[tokio::test]
async fn from_one_attempt_to_the_next_nothing_of_an_event_changes_but_its_contact() {
    let sender = Sender::new(true, 1).await;
    let (world, org) = (&sender.world, &sender.org);
    world.receiver.behave("/connector", Behaviour::Recovering { failures: 1, then: 200 });
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    let new_fields = json!({
        "first_name": "Another", "last_name": "Name", "email": "other@example.com", "phone_number": "+4915199999999",
        "attributes": {"changed": true},
    });
    let changed =
        data(&world.ask(org, "PUT", &format!("/api/v1/contact/{}", sender.contacts[0].id), &new_fields).await);
    sender.until_the_end(&id).await;
    let [first, second] = &sender.received()[..] else { panic!("not two attempts") };
    let (first, mut second) = (event(first), event(second));
    assert_ne!(first["data"]["contact"], changed);
    assert_eq!(second["data"]["contact"], changed);
    second["data"]["contact"] = first["data"]["contact"].clone();
    assert_eq!(second, first);
}

#[tokio::test]
async fn an_open_conversation_goes_on_unless_a_new_one_is_asked_for() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 2).await;
        let (world, org) = (&sender.world, &sender.org);
        let first = sender.run(json!({})).await;
        sender.minute(&[&first]).await;
        let opened = sender.conversations().await;
        assert_eq!(opened.len(), 2);
        // The second contact's is closed meanwhile.
        world.close(org, &opened[1]).await;
        world.settle().await;
        let goes_on = sender.run(json!({"message": "Still there?"})).await;
        sender.minute(&[&goes_on]).await;
        let of = async |id: &str| {
            let (_, contacts) = sender.campaign(id).await;
            let of: Vec<Value> = contacts.into_iter().map(|contact| contact["conversation_id"].clone()).collect();
            of
        };
        let (earlier, later) = (of(&first).await, of(&goes_on).await);
        assert_eq!(earlier[0], later[0]);
        assert_ne!(earlier[1], later[1]);
        let said = async |conversation: &Value| {
            let messages = sender.transcript(conversation).await;
            let texts: Vec<String> = messages.into_iter().map(|message| message.text).collect();
            texts
        };
        assert_eq!(said(&later[0]).await, ["Hello", "Still there?"]);
        assert_eq!(said(&later[1]).await, ["Still there?"]);
        assert_eq!(sender.conversations().await[0]["chat_count"], 2);
        let anew = sender.run(json!({"message": "Anew", "start_new_conversation": true})).await;
        sender.minute(&[&anew]).await;
        assert_eq!(said(&of(&anew).await[0]).await, ["Anew"]);
        assert_eq!(sender.conversations().await.len(), 5);
    }
}

#[tokio::test]
async fn what_never_arrives_has_failed_and_says_why() {
    for (behaviour, error) in [
        (Behaviour::Answer(500), "the connector answered 500"),
        (Behaviour::Answer(410), "the connector answered 410"),
        (Behaviour::DropConnection, "connection broken"),
    ] {
        let sender = Sender::new(true, 2).await;
        sender.world.receiver.behave("/connector", behaviour.clone());
        let id = sender.run(json!({})).await;
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.outcome(&id).await), (&json!("completed"), all("failed", 2)));
        assert!(contacts.iter().all(|contact| contact["error"] == error), "{contacts:?}");
        let tries = if behaviour == Behaviour::Answer(410) { 1 } else { 10 };
        assert!(events(&sender.received()).values().eq([&tries, &tries]));
        let webhook =
            sender.world.get(&sender.org, &format!("/api/v1/outbound_webhook/{}", id_of(&sender.webhook))).await;
        assert_eq!(webhook["enabled"], true, "it is the connector that fails");
        if behaviour == Behaviour::Answer(500) {
            // Nothing is left to send, and the circuit stays open.
            let health = sender.org.table.endpoint_health(sender.widget.id.into()).await.unwrap();
            assert!(health.connector && health.circuit_is_open(), "what is known of it was forgotten: {health:?}");
        }
    }
}

#[tokio::test]
async fn what_recovers_gets_everything_and_nothing_twice() {
    let sender = Sender::new(true, 60).await;
    sender.world.receiver.behave("/connector", Behaviour::Recovering { failures: 15, then: 200 });
    let id = sender.run(json!({})).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, all("sent", 60));
    let received = sender.received();
    assert_eq!((events(&received).len(), received.len()), (60, 75));
}

#[tokio::test]
async fn whatever_is_missing_is_told_of_each_contact() {
    type Take = for<'a> fn(&'a Sender) -> futures_util::future::BoxFuture<'a, ()>;
    let cases: [(bool, &str, Take); 6] = [
        (false, "the widget is gone", |sender| {
            Box::pin(async { drop(sender.org.table.remove::<Widget>(sender.widget.id).await.unwrap()) })
        }),
        (false, "the widget has no assistant", |sender| {
            let alone = |widget: &mut Widget| widget.assistant_id = None;
            Box::pin(async move { drop(sender.org.table.change(sender.widget.id, Uuid::max(), alone).await.unwrap()) })
        }),
        (false, "the widget's assistant is gone", |sender| {
            let assistant = sender.widget.assistant_id.unwrap();
            Box::pin(async move { drop(sender.org.table.remove::<Assistant>(assistant).await.unwrap()) })
        }),
        (true, "the widget's assistant has no webhook, whose secret would sign", |sender| {
            let id = AssistantId(id_of(&sender.assistant).parse().unwrap());
            let silent = |assistant: &mut Assistant| assistant.webhook_id = None;
            Box::pin(async move { drop(sender.org.table.change(id, Uuid::max(), silent).await.unwrap()) })
        }),
        (true, "the widget's assistant has no webhook, whose secret would sign", |sender| {
            let path = format!("/api/v1/outbound_webhook/{}", id_of(&sender.webhook));
            Box::pin(async move { drop(data(&sender.world.ask(&sender.org, "DELETE", &path, &Value::Null).await)) })
        }),
        (true, "the contact is gone", |sender| {
            Box::pin(async {
                for contact in &sender.contacts {
                    sender.org.table.remove::<Contact>(contact.id).await.unwrap();
                }
            })
        }),
    ];
    for (connected, reason, take) in cases {
        let sender = Sender::new(connected, 2).await;
        let id = sender.run(json!({})).await;
        take(&sender).await;
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!(
            (&campaign["status"], sender.outcome(&id).await),
            (&json!("completed"), all("failed", 2)),
            "{reason}"
        );
        assert!(contacts.iter().all(|contact| contact["error"] == reason), "{reason}: {contacts:?}");
        assert_eq!(sender.world.receiver.all(), [], "{reason}");
    }
}

/// Whether of these moments, in milliseconds, no more have come at any of them than the rate allows since `start`.
pub fn within_the_rate(start: i64, moments: impl Iterator<Item = i64>, rate: usize) {
    let mut moments: Vec<i64> = moments.collect();
    moments.sort_unstable();
    for (number, moment) in moments.iter().enumerate() {
        let earliest = start + i64::try_from(number * 1000 / rate).unwrap();
        assert!(*moment >= earliest, "number {number} came {} ms early", earliest - moment);
    }
}

#[tokio::test]
async fn however_many_are_at_work_a_widget_s_rate_is_kept() {
    const EACH: usize = 25;
    for connected in [false, true] {
        let sender = Sender::new(connected, EACH).await;
        let (world, start) = (&sender.world, sender.world.clock.now());
        let (one, other) = (sender.run(json!({"message": "One"})).await, sender.run(json!({"message": "Other"})).await);
        for _ in 0..6 {
            // Two ticks of each function, and the stream, side by side.
            let (first, second, ()) = tokio::join!(world.stack.minute(), world.stack.minute(), world.settle());
            first.and(second).unwrap();
            world.settle().await;
            for id in [&one, &other] {
                sender.campaign(id).await;
            }
            world.pass(1);
        }
        world.minutes(2).await;
        assert_eq!([sender.outcome(&one).await, sender.outcome(&other).await], [all("sent", EACH), all("sent", EACH)]);
        let (_, mut contacts) = sender.campaign(&one).await;
        contacts.extend(sender.campaign(&other).await.1);
        let mut begun = Vec::new();
        for contact in &contacts {
            begun.push(sender.transcript(&contact["conversation_id"]).await.last().unwrap().created_at.unix_millis());
        }
        within_the_rate(start.unix_millis(), begun.into_iter(), RATE);
        let received = sender.received();
        assert_eq!(events(&received).len(), if connected { 2 * EACH } else { 0 });
        let seconds = received.iter().map(|request| request.headers["webhook-timestamp"].parse::<i64>().unwrap());
        // A timestamp has whole seconds: what is sent within one is told as at its beginning.
        within_the_rate(start.unix_millis(), seconds.map(|second| second * 1000 + 999), RATE);
    }
}

/// With the machine's clock, by which time goes on while others wait.
#[tokio::test]
async fn the_rate_is_kept_as_time_goes_by() {
    const CONTACTS: usize = 40;
    const FAST: u32 = 20;
    let change = |settings| Settings { clock: Clock::System, sends_per_second: FAST, ..settings };
    let sender = Sender::of(World::with(change).await, WidgetType::Chat, true, CONTACTS).await;
    let start = Instant::now();
    let id = sender.run(json!({})).await;
    let background = sender.world.stack.background();
    let received = sender.world.receiver.wait_for("/connector", CONTACTS, Duration::from_mins(5)).await.unwrap();
    // What was received last is noted a moment later, and must not be stopped before.
    let path = format!("/api/v1/campaign/get/{id}");
    while sender.world.get(&sender.org, &path).await["status"] != "completed" {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    background.stop().await;
    sender.world.settle().await;
    assert_eq!(sender.outcome(&id).await, all("sent", CONTACTS));
    let moments = received.iter().map(|request| i64::try_from((request.at - start).as_millis()).unwrap());
    within_the_rate(0, moments, FAST as usize);
}

#[tokio::test]
async fn what_one_tick_does_not_get_to_the_next_one_does() {
    let change = |settings| Settings { sends_per_second: 1, ..settings };
    for connected in [false, true] {
        let sender = Sender::of(World::with(change).await, WidgetType::Chat, connected, 60).await;
        let id = sender.run(json!({})).await;
        sender.minute(&[&id]).await;
        let under_way = sender.campaign(&id).await.0;
        assert_eq!(under_way["status"], "in_progress");
        let begun = sender.conversations().await.len();
        assert!((45..=52).contains(&begun), "{begun} in the fifty seconds of a tick");
        sender.until_the_end(&id).await;
        assert_eq!(sender.outcome(&id).await, all("sent", 60));
        assert_eq!(sender.conversations().await.len(), 60);
    }
}

#[tokio::test]
async fn what_is_cancelled_or_deleted_is_not_sent_any_more() {
    // How far it is: not dispatched, dispatched and about to be handed over, or tried in vain.
    for moment in ["queued", "ready", "waiting"] {
        for cancels in [true, false] {
            let sender = Sender::new(true, 5).await;
            sender.world.receiver.behave("/connector", Behaviour::Answer(500));
            let id = sender.run(json!({})).await;
            if moment != "queued" {
                sender.world.stack.minute().await.unwrap();
            }
            if moment == "waiting" {
                sender.world.settle().await;
            }
            sender.world.receiver.behave("/connector", Behaviour::Answer(200));
            sender.world.receiver.forget();
            if cancels {
                assert_eq!(sender.control(&id, "cancel").await.1["status"], "cancelled");
            } else {
                let (_, contacts) = sender.campaign(&id).await;
                for contact in &contacts[1..] {
                    let path = format!("/api/v1/campaign_contact/{}", id_of(contact));
                    data(&sender.world.ask(&sender.org, "DELETE", &path, &Value::Null).await);
                }
            }
            sender.until_the_end(&id).await;
            let what = format!("{moment}, cancels: {cancels}");
            let wanted = if cancels { all("cancelled", 5) } else { all("sent", 1) };
            assert_eq!(sender.outcome(&id).await, wanted, "{what}");
            assert_eq!(sender.received().len(), usize::from(!cancels), "{what}");
            let campaign = sender.campaign(&id).await.0;
            assert_eq!(campaign["status"], if cancels { "cancelled" } else { "completed" }, "{what}");
            assert_eq!(sender.world.due(), BTreeMap::new(), "{what}");
        }
    }
}

#[tokio::test]
async fn at_a_high_rate_a_campaign_with_gaps_is_sent_too() {
    let change = |settings| Settings { sends_per_second: 1000, ..settings };
    for connected in [false, true] {
        let sender = Sender::of(World::with(change).await, WidgetType::Chat, connected, 80).await;
        let id = sender.run(json!({})).await;
        for contact in sender.campaign(&id).await.1.iter().filter(|contact| id_of(contact).ends_with(['2', '4', '8'])) {
            let path = format!("/api/v1/campaign_contact/{}", id_of(contact));
            data(&sender.world.ask(&sender.org, "DELETE", &path, &Value::Null).await);
        }
        sender.until_the_end(&id).await;
        assert_eq!(sender.outcome(&id).await, all("sent", 65));
    }
}

#[tokio::test]
async fn what_is_cancelled_while_it_is_sent_stops_there() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 40).await;
        let (world, id) = (&sender.world, sender.run(json!({})).await);
        let cancel = async || {
            assert_eq!(sender.control(&id, "cancel").await.0, 200);
            sender.outcome(&id).await
        };
        let at_once = sender.while_it_is_sent(&id, cancel).await;
        let received = sender.received().len();
        world.pass(DAY);
        world.minutes(3).await;
        let outcome = sender.outcome(&id).await;
        let sent = |outcome: &BTreeMap<String, usize>| outcome.get("sent").copied().unwrap_or_default();
        assert_eq!(outcome.values().sum::<usize>(), 40);
        assert!(outcome["cancelled"] > 0 && sent(&outcome) >= sent(&at_once), "{at_once:?} {outcome:?}");
        assert_eq!(sender.received().len(), received, "something was sent afterwards");
        assert_eq!(received, if connected { sent(&outcome) } else { 0 });
        assert_eq!(world.due(), BTreeMap::new());
    }
}

#[tokio::test]
async fn wherever_a_process_dies_each_contact_is_written_to_once() {
    for connected in [false, true] {
        let queued = async || {
            let sender = Sender::new(connected, 2).await;
            let id = sender.run(json!({})).await;
            (sender, id)
        };
        let minute = async |(sender, _): &(Sender, String)| {
            sender.world.stack.minute().await.unwrap();
            sender.world.settle().await;
        };
        let once = async |(sender, id): &(Sender, String), what: String| {
            sender.world.settle().await;
            sender.until_the_end(id).await;
            assert_eq!(sender.outcome(id).await, all("sent", 2), "{what}");
            let conversations = sender.conversations().await;
            assert!(conversations.len() == 2 && conversations.iter().all(|one| one["chat_count"] == 1), "{what}");
            for conversation in &conversations {
                assert_eq!(sender.transcript(&conversation["id"]).await.len(), 1, "{what}");
            }
            let with: BTreeSet<_> = conversations.iter().map(|one| one["contact_id"].as_str().unwrap()).collect();
            assert_eq!(with.len(), 2, "{what}");
            assert_eq!(events(&sender.received()).len(), if connected { 2 } else { 0 }, "{what}");
            assert_eq!(sender.world.due(), BTreeMap::new(), "{what}");
        };
        crashes_everywhere(queued, |(sender, _)| &sender.world, minute, once).await;
    }
}

#[tokio::test]
async fn ticks_side_by_side_are_one() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 25).await;
        let id = sender.run(json!({})).await;
        let tick = async || {
            sender.world.stack.minute().await.unwrap();
            sender.world.settle().await;
        };
        for _ in 0..3 {
            tokio::join!(tick(), tick(), tick());
            sender.campaign(&id).await;
            sender.world.pass(60);
        }
        assert_eq!((sender.outcome(&id).await, sender.conversations().await.len()), (all("sent", 25), 25));
        assert_eq!(events(&sender.received()).len(), if connected { 25 } else { 0 });
    }
}
