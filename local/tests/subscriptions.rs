//! Tests of what webhooks subscribe to: each change emits one event, in the log and to each of them.

use std::collections::{BTreeMap, BTreeSet};

use repository::{names_in, read};
use serde_json::{Value, json};
use shared::records::conversation::Conversation;
use shared::records::event::kind::RECORDS;
use shared::records::event::{self, Event, EventId, EventKind};
use shared::values::id::ConversationId;
use shared::values::json::JsonObject;
use shared::values::time::Timestamp;

use crate::support::fixture::{NOW, failure};
use crate::support::sending::{Org, Setup, id_of};

/// Listed records whose changes emit events in ways of their own.
const OTHERS: [&str; 2] = ["Conversation", "Delivery"];

/// The names of all records that are declared with a list.
fn listed() -> BTreeSet<String> {
    let (mut folders, mut names) = (vec!["shared/src/records".to_owned()], BTreeSet::new());
    while let Some(folder) = folders.pop() {
        for path in names_in(&folder).into_iter().map(|name| format!("{folder}/{name}")) {
            if path.strip_suffix(".rs").is_none() {
                folders.push(path);
                continue;
            }
            let of_line = |line: &str| Some(line.trim().strip_prefix("pub struct ")?.split_once('(')?.0.to_owned());
            names.extend(read(&path).lines().filter(|line| line.contains("): listed(")).filter_map(of_line));
        }
    }
    names
}

/// The events of a new record follow from its line in the table of events, so no record may be missing there.
#[test]
fn each_listed_record_has_events() {
    let emitting: BTreeSet<String> = RECORDS.iter().map(|kinds| kinds.record.to_owned()).collect();
    let others: BTreeSet<String> = OTHERS.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(listed(), &emitting | &others);
    assert!(emitting.is_disjoint(&others));
}

/// An organisation with a webhook at `/hook`.
struct Subscriber {
    setup: Setup,
    org: Org,
    webhook: Value,
}

impl Subscriber {
    /// A webhook with these fields.
    async fn of(fields: Value) -> Self {
        let setup = Setup::start().await;
        let org = setup.org().await;
        let webhook = webhook(&setup, &org, "/hook", fields).await;
        Self { setup, org, webhook }
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.setup.post(&self.org, path, body).await
    }

    /// The bodies that `path` has got by now, in the order of the log.
    async fn received(&self, path: &str) -> Vec<Value> {
        self.setup.settle().await;
        let received = self.setup.receiver.received(path);
        received.iter().map(|request| serde_json::from_slice(&request.body).unwrap()).collect()
    }

    /// The types of the events at `/hook`, with how often each came.
    async fn types(&self) -> BTreeMap<String, usize> {
        let mut types = BTreeMap::new();
        for event in self.received("/hook").await {
            *types.entry(event["event"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        types
    }

    /// The whole log, read in pages of `size`.
    async fn log(&self, size: usize) -> Vec<Value> {
        let (mut events, mut after) = (Vec::new(), String::new());
        loop {
            let page = self.setup.get(&self.org, &format!("/api/v1/event?size={size}{after}")).await;
            events.extend(page["items"].as_array().unwrap().iter().cloned());
            let Some(next) = page["next"].as_str() else { return events };
            after = format!("&after={next}");
        }
    }
}

async fn webhook(setup: &Setup, org: &Org, path: &str, mut fields: Value) -> Value {
    fields["endpoint"] = format!("{}{path}", setup.receiver.url).into();
    setup.post(org, "/api/v1/outbound_webhook", fields).await
}

fn of(counts: &[(&str, usize)]) -> BTreeMap<String, usize> {
    counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[tokio::test]
async fn a_record_emits_events_when_made_changed_and_removed() {
    let hook = Subscriber::of(json!({"events": ["tag.*"]})).await;
    let tag = hook.post("/api/v1/tag", json!({"name": "VIP"})).await;
    let path = format!("/api/v1/tag/{}", id_of(&tag));
    let changed = hook.setup.ask(&hook.org, "PUT", &path, &json!({"color_code": "#fff"})).await;
    hook.setup.ask(&hook.org, "DELETE", &path, &Value::Null).await;
    let mut received = hook.received("/hook").await;
    received.sort_by_key(|event| event["sequence"].as_u64());
    let field = |name: &str| received.iter().map(|event| event[name].clone()).collect::<Vec<_>>();
    assert_eq!(field("event"), ["tag.created", "tag.updated", "tag.deleted"]);
    assert_eq!(field("sequence"), [1, 2, 3]);
    let changed: Value = serde_json::from_str(&changed.body).unwrap();
    assert_eq!(field("data"), [tag.clone(), changed["data"].clone(), changed["data"].clone()]);
    let previous = field("previous");
    assert_eq!((&previous[0], &previous[2]), (&Value::Null, &Value::Null));
    assert_eq!(previous[1]["color_code"], tag["color_code"]);
    assert!(previous[1].get("name").is_none(), "only what has changed");
    assert_eq!(hook.log(2).await, received);
    assert!(received.iter().all(|event| event["object"] == "event" && event["truncated"] == false));
}

#[tokio::test]
async fn a_change_that_an_answer_does_not_show_is_no_event() {
    let hook = Subscriber::of(json!({"events": ["webhook.updated", "widget.*"]})).await;
    let made = hook.post("/api/v1/widget", json!({"name": "Shop", "widget_type": "chat"})).await;
    let widget = hook.setup.get(&hook.org, &format!("/api/v1/widget/{}", id_of(&made))).await;
    let tags = hook.post("/api/v1/tag", json!({"name": "VIP"})).await;
    let link = json!({"tag_id": tags["id"], "entity_type": "widget", "entity_id": widget["id"]});
    hook.post("/api/v1/link_tag_entity", link).await;
    assert_eq!(hook.types().await, of(&[("widget.created", 1)]));
    assert_eq!(hook.received("/hook").await[0]["data"], widget);
}

#[tokio::test]
async fn a_conversation_emits_events_from_its_opening_to_its_end() {
    let hook = Subscriber::of(json!({"events": ["conversation.*", "message.created"]})).await;
    let assistant = hook.post("/api/v1/assistant", json!({})).await;
    let opened = hook.setup.open(&hook.org, &assistant).await;
    let said = format!("/api/v1/conversation/{}/message", id_of(&opened));
    for text in ["Hello", "Is anybody there?"] {
        hook.post(&said, json!({"sender_type": "user", "text": text})).await;
    }
    assert_eq!(hook.types().await, of(&[("conversation.opened", 1), ("message.created", 2)]));
    // New messages emit one event a minute, with all that was said.
    hook.setup.minutes(1).await;
    hook.setup.minutes(1).await;
    let events = hook.received("/hook").await;
    let updated: Vec<_> = events.iter().filter(|event| event["event"] == "conversation.updated").collect();
    assert_eq!(updated.len(), 1, "{events:?}");
    assert_eq!(updated[0]["data"]["transcript"].as_array().unwrap().len(), 2);
    assert_eq!(updated[0]["data"]["conversation_id"], opened["id"]);
    hook.setup.close(&hook.org, &opened).await;
    let all = of(&[
        ("conversation.opened", 1),
        ("message.created", 2),
        ("conversation.updated", 1),
        ("conversation.closed", 1),
    ]);
    assert_eq!(hook.types().await, all);
    hook.setup.minutes(3).await;
    assert_eq!(hook.types().await, all);
    hook.setup.ask(&hook.org, "DELETE", &format!("/api/v1/conversation/{}", id_of(&opened)), &Value::Null).await;
    assert_eq!(hook.types().await["conversation.deleted"], 1);
}

#[tokio::test]
async fn a_conversation_that_has_changed_since_emits_no_update() {
    let hook = Subscriber::of(json!({"events": ["conversation.*"]})).await;
    let assistant = hook.post("/api/v1/assistant", json!({})).await;
    let opened = hook.setup.open(&hook.org, &assistant).await;
    hook.setup.settle().await;
    let id: ConversationId = serde_json::from_value(opened["id"].clone()).unwrap();
    let (table, now) = (&hook.org.table, Timestamp::from_unix_millis(NOW));
    let append = async |was: &Conversation| {
        let (kind, sequence) = (EventKind::CONVERSATION_UPDATED, was.version.number() + 1);
        let event = EventId::of_change(kind, id.0, &sequence.to_string());
        let event = Event::new(kind, event, (now, sequence), JsonObject::of(was).unwrap());
        event::append(table, &[event], Some(was), now).await.unwrap()
    };
    let was = table.find::<Conversation>(id).await.unwrap().unwrap();
    hook.setup.close(&hook.org, &opened).await;
    hook.setup.settle().await;
    assert!(!append(&was).await);
    let kinds: Vec<Value> = hook.log(10).await.iter().map(|event| event["event"].clone()).collect();
    assert_eq!(kinds, ["conversation.opened", "conversation.closed"]);
    assert!(append(&table.find::<Conversation>(id).await.unwrap().unwrap()).await);
}

#[tokio::test]
async fn a_webhook_without_events_hears_of_assistants_that_name_none() {
    let hook = Subscriber::of(json!({"name": "Hook", "enabled": true})).await;
    let own = webhook(&hook.setup, &hook.org, "/own", json!({"events": ["tag.created"]})).await;
    let (free, bound) = (
        hook.post("/api/v1/assistant", json!({})).await,
        hook.post("/api/v1/assistant", json!({"webhook_id": own["id"]})).await,
    );
    hook.setup.converse(&hook.org, &free, 1).await;
    hook.setup.converse(&hook.org, &bound, 1).await;
    assert_eq!(hook.types().await, of(&[("conversation.opened", 1), ("conversation.closed", 1)]));
    let closed = hook.received("/own").await;
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0]["event"], "conversation.closed");
}

#[tokio::test]
async fn an_event_comes_once_however_many_rules_match() {
    let hook = Subscriber::of(json!({"events": ["*", "conversation.*", "conversation.closed"]})).await;
    let bound = hook.post("/api/v1/assistant", json!({"webhook_id": hook.webhook["id"]})).await;
    hook.setup.converse(&hook.org, &bound, 2).await;
    let types = hook.types().await;
    assert_eq!((types["conversation.closed"], types["conversation.opened"]), (2, 2));
}

#[tokio::test]
async fn a_subscription_is_narrowed_by_assistants_and_widgets() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let assistants = [
        setup.post(&org, "/api/v1/assistant", json!({})).await,
        setup.post(&org, "/api/v1/assistant", json!({})).await,
    ];
    let narrowed = json!({"events": ["*"], "assistant_ids": [assistants[0]["id"]]});
    setup.settle().await;
    let webhook = webhook(&setup, &org, "/hook", narrowed).await;
    let hook = Subscriber { setup, org, webhook };
    for assistant in &assistants {
        hook.setup.converse(&hook.org, assistant, 1).await;
        let path = format!("/api/v1/assistant/{}", id_of(assistant));
        hook.setup.ask(&hook.org, "PUT", &path, &json!({"name": "Reception"})).await;
    }
    hook.post("/api/v1/tag", json!({"name": "VIP"})).await;
    let wanted = of(&[("assistant.updated", 1), ("conversation.opened", 1), ("conversation.closed", 1)]);
    assert_eq!(hook.types().await, wanted);
}

#[tokio::test]
async fn a_webhook_without_an_endpoint_is_only_read() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.post(&org, "/api/v1/outbound_webhook", json!({"events": ["tag.created"]})).await;
    assert_eq!(webhook["endpoint"], "");
    let hook = Subscriber { setup, org, webhook };
    hook.post("/api/v1/tag", json!({"name": "VIP"})).await;
    hook.setup.settle().await;
    let log = hook.log(10).await;
    assert_eq!(log.len(), 1);
    assert!(hook.setup.outbox(&hook.org, &hook.webhook).await.is_empty());
    let event = hook.setup.get(&hook.org, &format!("/api/v1/event/{}", id_of(&log[0]))).await;
    assert_eq!(event, log[0]);
}

#[tokio::test]
async fn events_that_nobody_wants_are_in_no_log() {
    let hook = Subscriber::of(json!({"events": ["tag.deleted"]})).await;
    hook.post("/api/v1/tag", json!({"name": "VIP"})).await;
    let assistant = hook.post("/api/v1/assistant", json!({})).await;
    hook.setup.converse(&hook.org, &assistant, 1).await;
    hook.setup.settle().await;
    assert!(hook.log(10).await.is_empty());
    assert!(
        hook.setup
            .find(None, "begins_with(pk, :pk)", &json!({":pk": {"S": format!("ORG#{}#EVENT", hook.org.id)}}))
            .is_empty()
    );
}

#[tokio::test]
async fn an_unknown_type_of_event_is_refused_where_it_stands() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let answer = setup.ask(&org, "POST", "/api/v1/outbound_webhook", &json!({"events": ["tag.*", "tags.*"]})).await;
    assert_eq!(failure(&answer), (422, vec![r#"["body","events",1] value_error"#.to_owned()]));
}

#[tokio::test]
async fn every_type_can_be_subscribed_to() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let types = setup.get(&org, "/api/v1/event_type").await;
    assert_eq!(types["total"], EventKind::emitted().count());
    setup.post(&org, "/api/v1/outbound_webhook", json!({"events": types["items"]})).await;
}
