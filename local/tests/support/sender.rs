//! An organisation that sends campaigns, and its requests.

use std::collections::BTreeMap;

use local::database::TABLE_NAME;
use local::http::Call;
use local::receiver::Received;
use serde_json::{Value, json};
use shared::records::campaign::{CampaignContact, ContactStatus};
use shared::records::contact::Contact;
use shared::records::contact::custom::CustomTerms;
use shared::records::contact_point::PhoneNumber;
use shared::records::conversation;
use shared::records::conversation::Message;
use shared::records::outcome::ReportedOutcome;
use shared::records::widget::{Widget, WidgetType};
use shared::table::rows::INSERT_LIMIT;
use shared::table::version::Version;
use shared::values::id::{CampaignContactId, ContactId, ConversationId, WidgetId};
use shared::values::json::JsonObject;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::fixture::{call, data, json};
use crate::support::sending::{Org, Setup, id_of};

const DAY: i64 = 86_400;

/// The texts of each conversation, each with its length.
pub type Transcripts = BTreeMap<String, Vec<(String, u64)>>;

/// An organisation with a widget, its assistant and the assistant's webhook; the widget's connector is at `/connector`.
pub struct Sender {
    pub setup: Setup,
    pub org: Org,
    pub webhook: Value,
    pub assistant: Value,
    pub widget: Widget,
    pub contacts: Vec<Contact>,
}

impl Sender {
    pub async fn of(setup: Setup, kind: WidgetType, connected: bool, contacts: usize) -> Self {
        let org = setup.org().await;
        let webhook = setup.webhook(&org, "/webhook").await;
        let assistant = setup.assistant(&org, &webhook).await;
        let (now, service) = (setup.clock.now(), &setup.stack.gateway.service);
        let widget = |id| -> Widget {
            let connector = connected.then(|| format!("{}/connector", setup.receiver.url));
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
            custom_fields: JsonObject::default(),
            custom_terms: CustomTerms::default(),
            org_id: org.id,
            created_at: now,
            updated_at: now,
            version: Version::default(),
        };
        let fresh = |count: usize| -> Vec<Uuid> { (0..count).map(|_| service.ids.fresh(now)).collect() };
        let widget = org.table.insert_all((), &fresh(1), |_, id: WidgetId| widget(id)).await.unwrap().remove(0);
        let (ids, mut contacts) = (fresh(contacts), Vec::new());
        for ids in ids.chunks(INSERT_LIMIT) {
            let first = contacts.len();
            contacts.extend(org.table.insert_all((), ids, |index, id| contact(first + index, id)).await.unwrap());
        }
        Self { setup, org, webhook, assistant, widget, contacts }
    }

    /// A sender whose widget is a chat.
    pub async fn new(connected: bool, contacts: usize) -> Self {
        Self::of(Setup::start().await, WidgetType::Whatsapp, connected, contacts).await
    }

    /// The ids of all contacts.
    pub fn contacts(&self) -> Vec<ContactId> {
        self.contacts.iter().map(|contact| contact.id).collect()
    }

    /// Runs a campaign for all contacts and returns its id.
    pub async fn run(&self, body: Value) -> String {
        self.run_for(&self.contacts(), body).await
    }

    /// Runs a campaign for these contacts and returns its id.
    pub async fn run_for(&self, contacts: &[ContactId], mut body: Value) -> String {
        body["contact_ids"] = json!(contacts);
        let run = self.setup.post(&self.org, &format!("/api/v1/campaign/run/{}", self.widget.id), body).await;
        run["campaign_id"].as_str().unwrap().to_owned()
    }

    /// Every row of the list at `path`.
    pub async fn list(&self, path: &str) -> Vec<Value> {
        let (path, filters) = path.split_once('?').unwrap_or((path, ""));
        let (mut all, mut page) = (Vec::new(), json!(1));
        while let Some(number) = page.as_u64() {
            let query = format!("api_key={}&size=100&page={number}&{filters}", self.org.key);
            let mut listed = data(&self.setup.stack.answer(&Call { query, ..call("GET", path, "") }).await);
            all.append(listed["items"].as_array_mut().unwrap());
            page = listed["next_page"].take();
        }
        all
    }

    /// The campaign and its contacts. Asserts that the counts agree with the contacts.
    pub async fn campaign(&self, id: &str) -> (Value, Vec<Value>) {
        let campaign = self.setup.get(&self.org, &format!("/api/v1/campaign/get/{id}")).await;
        let contacts = self.list(&format!("/api/v1/campaign/contact/list/{id}")).await;
        let number = |field: &dyn Fn(&Value) -> Value, words: &[&'static str]| {
            let with = |word: &str| contacts.iter().filter(|contact| field(contact) == word).count();
            words.iter().map(|word| ((*word).to_owned(), json!(with(word)))).collect::<Value>()
        };
        assert_eq!(campaign["counts"], number(&|contact| contact["status"].clone(), ContactStatus::WORDS));
        let outcome = |contact: &Value| contact["result"]["outcome"].clone();
        assert_eq!(campaign["outcomes"], number(&outcome, ReportedOutcome::WORDS));
        (campaign, contacts)
    }

    /// The outcome of a campaign whose contacts have all got it: a widget without a connector stores its messages.
    pub fn done(&self, count: usize) -> BTreeMap<String, usize> {
        all(if self.widget.connector_url.is_some() { "sent" } else { "stored" }, count)
    }

    /// The number of the campaign's contacts by status. Asserts that the counts add up.
    pub async fn outcome(&self, id: &str) -> BTreeMap<String, usize> {
        let (_, contacts) = self.campaign(id).await;
        contacts.iter().fold(BTreeMap::new(), |mut outcome, contact| {
            *outcome.entry(contact["status"].as_str().unwrap().to_owned()).or_default() += 1;
            outcome
        })
    }

    /// Lets a minute pass, and asserts that the campaigns' counts add up at each step.
    pub async fn minute(&self, ids: &[&str]) {
        self.setup.pass(60);
        self.setup.ticks().await;
        for id in ids {
            self.campaign(id).await;
        }
        self.setup.settle().await;
        // A crashed sender keeps its lease until the lease expires, and the lists may be late until then.
        let leased = self.setup.due().into_keys().any(|item| item.contains("#LIST#CAMPAIGN#"));
        for id in ids {
            // The list of the campaign's status has the campaign.
            let status = self.campaign(id).await.0["status"].clone();
            let listed = self.list(&format!("/api/v1/campaign/list?status={}", status.as_str().unwrap())).await;
            assert!(leased || listed.iter().any(|campaign| campaign["id"] == *id), "{status} {listed:?}");
        }
    }

    /// Lets time pass from due item to due item, until none is left.
    pub async fn until_the_end(&self, id: &str) {
        self.while_due_within(100 * DAY, id).await;
    }

    /// Lets time pass from due item to due item, until none is due within `seconds`.
    pub async fn while_due_within(&self, seconds: i64, id: &str) {
        for _ in 0..100 {
            let due = self.setup.due();
            // The health of an endpoint is due in every minute in which a delivery waits for the endpoint.
            let waits = |item: &&String| !item.ends_with("ENDPOINT_HEALTH");
            let next = due.keys().filter(waits).map(|item| &due[item]).min().or(due.values().min());
            let Some(next) = next else { return };
            let next: Timestamp = serde_json::from_value(json!(next)).unwrap();
            if next > self.setup.clock.now().plus_seconds(seconds) {
                return;
            }
            self.setup.clock.sleep_until(next).await;
            self.minute(&[id]).await;
        }
        panic!("items are still due: {:?}", self.setup.due());
    }

    /// Sends a `pause`, `resume`, `cancel` or `retry`. Returns the status, and the campaign or the type of the refusal.
    pub async fn control(&self, id: &str, verb: &str) -> (u16, Value) {
        let answer = self.setup.ask(&self.org, "POST", &format!("/api/v1/campaign/{id}/{verb}"), &Value::Null).await;
        let body = json(&answer);
        let outcome = if answer.status == 200 { &body["data"] } else { &body["detail"][0]["type"] };
        (answer.status, outcome.clone())
    }

    /// Does `act` while a queued campaign is being sent, and returns after both.
    pub async fn while_it_is_sent<T>(&self, id: &str, act: impl AsyncFnOnce() -> T) -> T {
        let setup = &self.setup;
        let sending = async {
            setup.minute().await;
        };
        let acting = async {
            while setup.get(&self.org, &format!("/api/v1/campaign/get/{id}")).await["status"] == "queued" {}
            act().await
        };
        tokio::join!(acting, sending).0
    }

    /// Reports the outcome of a campaign's contact at `seconds` from now. Returns the status, and the contact or the type
    /// of the refusal.
    pub async fn report(&self, contact: &Value, outcome: &str, seconds: i64) -> (u16, Value) {
        let path = format!("/api/v1/campaign_contact/{}/outcome", id_of(contact));
        let report = json!({"outcome": outcome, "at": self.setup.clock.now().plus_seconds(seconds)});
        let answer = self.setup.ask(&self.org, "POST", &path, &report).await;
        let body = json(&answer);
        let result = if answer.status == 200 { &body["data"] } else { &body["detail"][0]["type"] };
        (answer.status, result.clone())
    }

    pub fn received(&self) -> Vec<Received> {
        self.setup.receiver.received("/connector")
    }

    pub async fn conversations(&self) -> Vec<Value> {
        self.list("/api/v1/conversation").await
    }

    pub async fn transcript(&self, conversation: &Value) -> Vec<Message> {
        conversation::transcript(&self.org.table, ConversationId(conversation.as_str().unwrap().parse().unwrap()))
            .await
            .unwrap()
    }

    pub async fn add(&self, id: &str, contacts: &[ContactId]) -> (u16, Value) {
        let path = format!("/api/v1/campaign/{id}/contact");
        let answer = self.setup.ask(&self.org, "POST", &path, &json!({"contact_ids": contacts})).await;
        (answer.status, json(&answer))
    }

    /// The contacts of a campaign, in their order.
    pub async fn members(&self, id: &str) -> Vec<String> {
        let (_, contacts) = self.campaign(id).await;
        contacts.iter().map(|contact| contact["contact_id"].as_str().unwrap().to_owned()).collect()
    }

    /// Updates the campaign. Returns the status, and the campaign or the field and type of the refusal.
    pub async fn update(&self, id: &str, body: &Value) -> (u16, Value) {
        let answer = self.setup.ask(&self.org, "PUT", &format!("/api/v1/campaign/update/{id}"), body).await;
        let body = json(&answer);
        let outcome = if answer.status == 200 {
            body["data"].clone()
        } else {
            json!([body["detail"][0]["loc"][1], body["detail"][0]["type"]])
        };
        (answer.status, outcome)
    }

    pub async fn update_text(&self, id: &str, text: &str) -> Value {
        let path = format!("/api/v1/campaign/update/{id}");
        data(&self.setup.ask(&self.org, "PUT", &path, &json!({"message": text})).await)
    }

    pub async fn transcripts(&self) -> Transcripts {
        let mut all = Transcripts::new();
        for conversation in self.conversations().await {
            let said = self.transcript(&conversation["id"]).await.into_iter();
            let texts = said.map(|message| (message.text.into_string(), message.char_count)).collect();
            all.insert(id_of(&conversation).to_owned(), texts);
        }
        all
    }

    pub async fn delete(&self, path: &str) -> Value {
        data(&self.setup.ask(&self.org, "DELETE", &format!("/api/v1/{path}"), &Value::Null).await)
    }

    /// Closes all conversations and returns the texts of their events.
    pub async fn texts_when_closed(&self) -> Transcripts {
        for conversation in self.conversations().await {
            self.setup.close(&self.org, &conversation).await;
        }
        self.setup.settle().await;
        self.setup.minutes(1).await;
        let texts = |event: Value| {
            let said = event["data"]["transcript"].as_array().unwrap().iter();
            let said = said.map(|one| (one["text"].as_str().unwrap().to_owned(), one["char_count"].as_u64().unwrap()));
            (event["data"]["conversation_id"].as_str().unwrap().to_owned(), said.collect())
        };
        self.setup.receiver.received("/webhook").iter().map(event).map(texts).collect()
    }

    /// Stores a contact of a campaign in the old form, which has its conversation but no ids of messages.
    pub async fn forget_messages(&self, contact: &Value) {
        let id = CampaignContactId(id_of(contact).parse().unwrap());
        let key = self.org.table.key::<CampaignContact>(id);
        let update = self.setup.stack.client.update_item().table_name(TABLE_NAME);
        let update = update.set_key(Some(key.attributes())).update_expression("REMOVE said");
        update.send().await.unwrap();
    }
}

/// The counts of a campaign with so many contacts in these statuses, and none in any other.
pub fn counts<const N: usize>(of: [(&str, usize); N]) -> Value {
    let mut counts: Value = ContactStatus::WORDS.iter().map(|word| ((*word).to_owned(), json!(0))).collect();
    for (status, count) in of {
        counts[status] = json!(count);
    }
    counts
}

/// The outcomes of a campaign for which no connector has reported one.
pub fn no_outcomes() -> Value {
    ReportedOutcome::WORDS.iter().map(|word| ((*word).to_owned(), json!(0))).collect()
}

/// An enabled campaign for all contacts of `sender`, whose body also has the members of `more`.
pub async fn created(sender: &Sender, more: Value) -> Value {
    let mut body = json!({
        "name": "Reminder", "type": "message", "start_time": sender.setup.clock.now().plus_seconds(3600), "enabled": true,
        "widget_id": sender.widget.id, "contact_ids": sender.contacts(), "message": "See you!",
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    sender.setup.post(&sender.org, "/api/v1/campaign/create", body).await
}

pub fn all(status: &str, count: usize) -> BTreeMap<String, usize> {
    BTreeMap::from([(status.to_owned(), count)])
}

pub fn event(request: &Received) -> Value {
    serde_json::from_slice(&request.body).unwrap()
}

/// A campaign without contacts, in an organisation with this number of contacts.
pub async fn empty(contacts: usize, more: Value) -> (Sender, String) {
    let sender = Sender::new(true, contacts).await;
    let mut body = json!({"contact_ids": null});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = created(&sender, body).await;
    let id = made["id"].as_str().unwrap().to_owned();
    (sender, id)
}

pub fn texts(contacts: &[ContactId]) -> Vec<String> {
    contacts.iter().map(ToString::to_string).collect()
}

/// Asserts that these moments, in milliseconds, keep the rate since `start`.
pub fn within_the_rate(start: i64, moments: impl Iterator<Item = i64>, rate: usize) {
    let mut moments: Vec<i64> = moments.collect();
    moments.sort_unstable();
    for (number, moment) in moments.iter().enumerate() {
        let earliest = start + i64::try_from(number * 1000 / rate).unwrap();
        assert!(*moment >= earliest, "number {number} came {} ms early", earliest - moment);
    }
}
