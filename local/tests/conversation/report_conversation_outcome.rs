//! `POST /api/v1/conversation/{conversation_id}/outcome`: a call or message has the result that its connector reports.

use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::fixture::json as body_of;
use crate::support::sender::Sender;
use crate::support::sending::{Setup, id_of};

#[tokio::test]
async fn a_single_call_or_message_has_its_latest_result() {
    for (kind, path, asked) in [
        (WidgetType::TelnyxCall, "call", json!({"to": "+49 151 2345678"})),
        (WidgetType::Sms, "messaging", json!({"to": "+49 151 2345678", "message": "Your table is ready."})),
    ] {
        let sender = Sender::of(Setup::start().await, kind, true, 0).await;
        let (setup, org) = (&sender.setup, &sender.org);
        let requested = setup.post(org, &format!("/api/v1/{path}/{}", sender.widget.id), asked).await;
        let read = format!("/api/v1/conversation/{}", requested["conversation_id"].as_str().unwrap());
        let own = json!({"outcome": "wants a call back"});
        setup.ask(org, "PUT", &read, &own).await;
        assert_eq!(setup.get(org, &read).await["result"], Value::Null);
        for (outcome, at, counting) in [
            ("delivered", "2026-02-01T11:59:00Z", "delivered"),
            ("failed", "2026-02-01T11:58:00Z", "delivered"),
            ("failed", "2026-02-01T11:59:00Z", "delivered"),
            ("read", "2026-02-01T11:59:30Z", "read"),
        ] {
            let before = setup.get(org, &read).await;
            let report = json!({"outcome": outcome, "at": at});
            let answer = setup.post(org, &format!("{read}/outcome"), report).await;
            assert_eq!((&answer["result"]["outcome"], &answer["outcome"]), (&json!(counting), &own["outcome"]));
            let after = setup.get(org, &read).await;
            assert_eq!((&after["result"], &after["updated_at"]), (&answer["result"], &answer["updated_at"]));
            assert_eq!(before == after, outcome != counting);
        }
    }
}

#[tokio::test]
async fn a_conversation_without_a_widget_has_no_result() {
    let sender = Sender::new(true, 0).await;
    let conversation = sender.setup.open(&sender.org, &sender.assistant).await;
    let path = format!("/api/v1/conversation/{}/outcome", id_of(&conversation));
    let report = json!({"outcome": "read", "at": "2026-02-01T11:59:00Z"});
    let answer = sender.setup.ask(&sender.org, "POST", &path, &report).await;
    assert_eq!((answer.status, &body_of(&answer)["detail"][0]["type"]), (409, &json!("not_sent")));
}
