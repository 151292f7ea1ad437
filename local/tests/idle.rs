//! Tests of idle conversations: the tick closes them once, and costs nothing where no assistant asks for it.

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::records::conversation::Conversation;
use shared::records::due::Due;
use shared::values::id::ConversationId;
use uuid::Uuid;

use crate::support::fixture::{ACME, call, data, get, id, kind, stack, valid_call};
use crate::support::records::{detail, issue, items};
use crate::support::sender::event;
use crate::support::sending::{Org, Setup, id_of};
use local::http::Call;
use shared::routes;

const MINUTE: i64 = 60;

/// An organisation with an assistant whose conversations are closed after ten minutes.
struct Idle {
    setup: Setup,
    org: Org,
    assistant: Value,
}

impl Idle {
    async fn new() -> Self {
        let setup = Setup::start().await;
        let (org, assistant) = customer(&setup, &json!(10), "/hook").await;
        Self { setup, org, assistant }
    }

    async fn open(&self) -> String {
        id_of(&self.setup.open(&self.org, &self.assistant).await).to_owned()
    }

    async fn read(&self, conversation: &str) -> Value {
        self.setup.get(&self.org, &format!("/api/v1/conversation/{conversation}")).await
    }

    async fn tick(&self) {
        self.setup.stack.tick("release-deliveries").await.unwrap();
        self.setup.settle().await;
    }

    /// The reasons of the events that came.
    fn reasons(&self) -> Vec<Value> {
        self.setup.receiver.received("/hook").iter().map(|one| event(one)["data"]["reason"].clone()).collect()
    }
}

/// An organisation, and its assistant with a webhook and this setting.
async fn customer(setup: &Setup, minutes: &Value, hook: &str) -> (Org, Value) {
    let org = setup.org().await;
    let webhook = setup.webhook(&org, hook).await;
    let body = json!({"webhook_id": webhook["id"], "conversation": {"idle_close_minutes": minutes}});
    let assistant = setup.post(&org, "/api/v1/assistant", body).await;
    assert_eq!(assistant["conversation"], json!({"idle_close_minutes": minutes}));
    (org, assistant)
}

#[tokio::test]
async fn the_tick_closes_an_idle_conversation_and_its_event_says_so() {
    let idle = Idle::new().await;
    let conversation = idle.open().await;
    idle.setup.pass(10 * MINUTE - 1);
    idle.tick().await;
    assert_eq!(idle.read(&conversation).await["status"], "open");
    idle.setup.pass(1);
    idle.tick().await;
    let closed = idle.read(&conversation).await;
    assert_eq!((&closed["status"], &closed["close_reason"]), (&json!("closed"), &json!("idle")));
    assert_eq!((closed["closed_at"].clone(), idle.reasons()), (json!(idle.setup.clock.now()), vec![json!("idle")]));
    // It has left the index, and stays as it is.
    assert_eq!(idle.setup.due().len(), 0);
    idle.setup.pass(60 * MINUTE);
    idle.tick().await;
    assert_eq!((idle.read(&conversation).await, idle.reasons().len()), (closed, 1));
}

#[tokio::test]
async fn a_message_and_an_update_keep_a_conversation_open() {
    let idle = Idle::new().await;
    let conversation = idle.open().await;
    let path = format!("/api/v1/conversation/{conversation}");
    let said = json!({"sender_type": "user", "text": "Wait"});
    idle.setup.pass(9 * MINUTE);
    idle.setup.post(&idle.org, &format!("{path}/message"), said).await;
    idle.setup.pass(9 * MINUTE);
    idle.tick().await;
    data(&idle.setup.ask(&idle.org, "PUT", &path, &json!({"rating": 3})).await);
    idle.setup.pass(9 * MINUTE);
    idle.tick().await;
    assert_eq!(idle.read(&conversation).await["status"], "open");
    idle.setup.pass(MINUTE);
    idle.tick().await;
    assert_eq!((idle.reasons(), &idle.read(&conversation).await["chat_count"]), (vec![json!("idle")], &json!(1)));
}

#[tokio::test]
async fn several_ticks_at_the_same_time_close_once() {
    let idle = Idle::new().await;
    for _ in 0..20 {
        idle.open().await;
    }
    idle.setup.pass(10 * MINUTE);
    for ticked in join_all((0..4).map(|_| idle.setup.stack.tick("release-deliveries"))).await {
        ticked.unwrap();
    }
    idle.setup.settle().await;
    assert_eq!(idle.reasons(), vec![json!("idle"); 20]);
    let path = "/api/v1/conversation?status=closed";
    assert_eq!(idle.setup.get(&idle.org, path).await["total"], 20);
}

#[tokio::test]
async fn a_message_at_the_moment_of_the_tick_is_stored_or_refused() {
    let idle = Idle::new().await;
    let conversation = idle.open().await;
    idle.setup.pass(10 * MINUTE);
    let path = format!("/api/v1/conversation/{conversation}/message");
    let body = json!({"sender_type": "user", "text": "Wait"});
    let said = idle.setup.ask(&idle.org, "POST", &path, &body);
    let (said, ticked) = tokio::join!(said, idle.setup.stack.tick("release-deliveries"));
    ticked.unwrap();
    idle.setup.settle().await;
    let is = idle.read(&conversation).await;
    match said.status {
        201 => assert_eq!((&is["status"], &is["chat_count"]), (&json!("open"), &json!(1))),
        409 => assert_eq!((&is["status"], &is["chat_count"]), (&json!("closed"), &json!(0))),
        other => panic!("{other}: {}", said.body),
    }
}

/// A setting counts for the conversations that are opened after it, and a conversation without one is in no index.
#[tokio::test]
async fn a_change_of_the_setting_counts_for_later_conversations() {
    let setup = Setup::start().await;
    let (org, assistant) = customer(&setup, &Value::Null, "/hook").await;
    let before = setup.open(&org, &assistant).await;
    assert_eq!(setup.due().len(), 0);
    let path = format!("/api/v1/assistant/{}", id_of(&assistant));
    let change = async |minutes: Value| {
        data(&setup.ask(&org, "PUT", &path, &json!({"conversation": {"idle_close_minutes": minutes}})).await)
    };
    assert_eq!(change(json!(43_200)).await["conversation"]["idle_close_minutes"], 43_200);
    let after = setup.open(&org, &assistant).await;
    let minutes = json!({"conversation": null});
    let is = data(&setup.ask(&org, "PUT", &path, &minutes).await);
    assert_eq!(is["conversation"], json!({"idle_close_minutes": null}));
    assert_eq!(setup.due().len(), 1);
    setup.pass(43_200 * MINUTE);
    setup.stack.tick("release-deliveries").await.unwrap();
    for (conversation, status) in [(before, "open"), (after, "closed")] {
        let path = format!("/api/v1/conversation/{}", id_of(&conversation));
        assert_eq!(setup.get(&org, &path).await["status"], status);
    }
}

/// What opens a conversation, and the status of its answer.
#[tokio::test]
async fn every_way_to_open_a_conversation_takes_over_the_setting() {
    let stack = stack().await;
    let assistants = (0..2).map(|number| format!("/api/v1/assistant/{}", id('a', kind::ASSISTANT, number)));
    for path in assistants {
        let body = json!({"conversation": {"idle_close_minutes": 30}}).to_string();
        data(&stack.answer(&Call { body: body.into(), ..call("PUT", &path, ACME) }).await);
    }
    let mut known = get(&stack, routes::LIST_CONVERSATIONS.path).await["total"].as_u64().unwrap();
    for route in [&routes::OPEN_CONVERSATION, &routes::SEND_MESSAGE, &routes::START_CALL, &routes::RUN_CAMPAIGN] {
        data(&stack.answer(&valid_call(route, 'a', ACME)).await);
        stack.tick("send-campaigns").await.unwrap();
        let rows = items(&stack).await;
        let rows = rows.iter().filter(|((pk, _), _)| pk.contains("#LIST#CONVERSATION#ROWS"));
        let opened: Vec<_> = rows.filter(|(_, row)| row.get("idle_close_minutes") == Some(&json!(30))).collect();
        assert!(opened.iter().all(|(_, row)| row["due_at"].is_string() && row["due_pk"].is_string()), "{}", route.name);
        let now = get(&stack, routes::LIST_CONVERSATIONS.path).await["total"].as_u64().unwrap();
        assert!(now > known || *route.name == *"send-message", "{}", route.name);
        assert_eq!(opened.len() as u64 + 2, now, "{}", route.name);
        known = now;
    }
}

#[tokio::test]
async fn an_organisation_with_many_idle_ones_does_not_delay_another() {
    let setup = Setup::start().await;
    let (many, assistant) = customer(&setup, &json!(10), "/many").await;
    let opened = setup.open(&many, &assistant).await;
    let row: Conversation = many.table.get(ConversationId(id_of(&opened).parse().unwrap())).await.unwrap();
    for _ in 0..20 {
        let ids: Vec<Uuid> = (0..25).map(|_| Uuid::now_v7()).collect();
        let make = |_, id| Conversation { id, ..row.clone() };
        many.table.insert_all::<Conversation>((), &ids, make).await.unwrap();
    }
    setup.pass(1);
    let (one, assistant) = customer(&setup, &json!(10), "/one").await;
    setup.open(&one, &assistant).await;
    setup.pass(10 * MINUTE);
    let store = &setup.stack.gateway.service.store;
    // Although it became idle after all the others, it comes among the first.
    let first = store.due(Due::Conversation, setup.clock.now(), 100).await.unwrap();
    let place = first.iter().position(|key| key.pk.contains(&one.id.to_string())).unwrap();
    assert!(place < 16, "{place}");
    setup.stack.tick("release-deliveries").await.unwrap();
    assert_eq!(setup.due().len(), 0);
    for (org, total) in [(&many, 501), (&one, 1)] {
        setup.settle().await;
        assert_eq!(setup.get(org, "/api/v1/conversation?status=closed").await["total"], total);
    }
}

#[tokio::test]
async fn refuses_minutes_out_of_bounds_at_their_place() {
    let stack = stack().await;
    let loc = json!(["body", "conversation", "idle_close_minutes"]);
    for (minutes, kind, msg) in [
        (json!(9), "greater_than_equal", "Input should be greater than or equal to 10"),
        (json!(43_201), "less_than_equal", "Input should be less than or equal to 43200"),
        (json!("soon"), "int_parsing", "Input should be a valid integer, unable to parse string as an integer"),
    ] {
        let body = json!({"conversation": {"idle_close_minutes": minutes}}).to_string();
        let answer =
            stack.answer(&Call { body: body.into(), ..valid_call(&routes::CREATE_ASSISTANT, 'a', ACME) }).await;
        assert_eq!(detail(&answer), (422, json!([issue(&loc, kind, msg)])));
    }
}
