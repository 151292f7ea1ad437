//! `PUT /api/v1/conversation/{conversation_id}`: changes what is known of a conversation, also after its close.

use local::Stack;
use local::http::Call;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, get, id, kind, stack};
use crate::support::records::{changes, detail, issue, items, nothing};
use crate::support::sender::{Sender, event};
use crate::support::sending::{Setup, id_of};
use shared::records::widget::WidgetType;

/// Conversations of the demo set.
const CLOSED: u32 = 0;
const OPEN: u32 = 1;

fn path(number: u32) -> String {
    format!("/api/v1/conversation/{}", id('a', kind::CONVERSATION, number))
}

async fn update(stack: &Stack, number: u32, body: &Value) -> local::http::Answer {
    stack.answer(&Call { body: body.to_string().into(), ..call("PUT", &path(number), ACME) }).await
}

fn every_field() -> Value {
    json!({
        "attributes": {"": [1, {"deep": null}]},
        "summary": "Asked for the opening hours.",
        "device_type": "tablet",
        "rating": 1,
        "outcome": "answered",
    })
}

#[tokio::test]
async fn changes_an_open_conversation_and_a_closed_one() {
    let stack = stack().await;
    for number in [OPEN, CLOSED] {
        let before = get(&stack, &path(number)).await;
        let is = data(&update(&stack, number, &every_field()).await);
        for (field, value) in every_field().as_object().unwrap() {
            assert_eq!(&is[field], value, "{field}");
        }
        for field in ["status", "closed_at", "chat_count", "assistant_id", "created_at"] {
            assert_eq!(is[field], before[field], "{field}");
        }
        let read = get(&stack, &path(number)).await;
        assert_eq!((&read["summary"], &read["transcript"]), (&is["summary"], &before["transcript"]));
        // An absent field stays, and null is none.
        let is = data(&update(&stack, number, &json!({"rating": null, "outcome": null, "summary": null})).await);
        assert_eq!((&is["rating"], &is["outcome"], &is["summary"]), (&json!(null), &json!(null), &json!(null)));
        assert_eq!((&is["device_type"], &is["attributes"]), (&json!("tablet"), &every_field()["attributes"]));
    }
}

#[tokio::test]
async fn refuses_values_out_of_bounds_and_changes_nothing() {
    let stack = stack().await;
    let before = items(&stack).await;
    let too_long = |most: usize| format!("String should have at most {most} characters");
    for (field, value, kind, msg) in [
        ("rating", json!(0), "greater_than_equal", "Input should be greater than or equal to 1".to_owned()),
        ("rating", json!(6), "less_than_equal", "Input should be less than or equal to 5".to_owned()),
        ("summary", json!("é".repeat(4097)), "string_too_long", too_long(4096)),
        ("outcome", json!("é".repeat(101)), "string_too_long", too_long(100)),
    ] {
        let wanted = (422, json!([issue(&json!(["body", field]), kind, &msg)]));
        assert_eq!(detail(&update(&stack, OPEN, &json!({field: value})).await), wanted, "{field}");
    }
    assert_eq!(update(&stack, OPEN, &json!({"attributes": []})).await.status, 422);
    // The service sets the other fields.
    let own = json!({"status": "closed", "close_reason": "idle", "chat_count": 9, "closed_at": "2026-01-01"});
    let is = data(&update(&stack, OPEN, &own).await);
    assert_eq!((&is["status"], &is["chat_count"], &is["close_reason"]), (&json!("open"), &json!(1), &json!(null)));
    let fits = json!({"summary": "é".repeat(4096), "outcome": "é".repeat(100)});
    assert_eq!(update(&stack, CLOSED, &fits).await.status, 200);
    assert_ne!(changes(&stack, &before).await, nothing());
}

/// The row of a call has the variables of its prompt as well.
#[tokio::test]
async fn the_largest_values_of_all_fields_fit_into_one_row() {
    let caller = Sender::of(Setup::start().await, WidgetType::TelnyxCall, true, 0).await;
    let Sender { setup, org, widget, .. } = &caller;
    let large = json!({"a": "é".repeat(16_000)});
    let start = json!({"to": "+491512345678", "prompt_dynamic_variables": large});
    let started = setup.post(org, &format!("/api/v1/call/{}", widget.id), start).await;
    let path = format!("/api/v1/conversation/{}", started["conversation_id"].as_str().unwrap());
    let most = json!({
        "attributes": large, "summary": "😀".repeat(4096), "device_type": "😀".repeat(1024), "outcome": "😀".repeat(100),
    });
    let is = data(&setup.ask(org, "PUT", &path, &most).await);
    assert_eq!((&is["attributes"], &is["summary"]), (&most["attributes"], &most["summary"]));
}

#[tokio::test]
async fn an_update_after_the_close_makes_no_second_event() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    let assistant = setup.assistant(&org, &webhook).await;
    let opened = setup.open(&org, &assistant).await;
    let path = format!("/api/v1/conversation/{}", id_of(&opened));
    data(&setup.ask(&org, "PUT", &path, &json!({"attributes": {"order": 7}})).await);
    setup.close(&org, &opened).await;
    setup.settle().await;
    let is = data(&setup.ask(&org, "PUT", &path, &json!({"rating": 5, "attributes": {}})).await);
    assert_eq!((&is["status"], &is["rating"]), (&json!("closed"), &json!(5)));
    setup.settle().await;
    let received = setup.receiver.received("/hook");
    assert_eq!(received.len(), 1);
    assert_eq!(event(&received[0])["data"]["attributes"], json!({"order": 7}));
}
