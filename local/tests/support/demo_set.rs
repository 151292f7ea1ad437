//! Records of the demo set as the API answers them, and its only delivery as it is stored.

use local::Stack;
use serde_json::{Value, json};
use shared::records::delivery::{Attempt, Delivery, DeliveryOutcome, SentBy};
use shared::values::id::{DeliveryId, EndpointId};
use shared::values::time::Timestamp;

use crate::support::fixture::{NOW, acme, id, kind};
use crate::support::records::DEMO_TIME;
use crate::support::sender::{counts, no_outcomes};

/// The demo set's first campaign.
pub fn campaign() -> Value {
    json!({
        "id": id('a', kind::CAMPAIGN, 0),
        "name": null,
        "type": null,
        "widget_id": id('a', kind::WIDGET, 1),
        "assistant_id": id('a', kind::ASSISTANT, 1),
        "message": "We open an hour earlier this week.",
        "start_new_conversation": false,
        "status": "paused",
        "counts": counts([("queued", 3)]),
        "outcomes": no_outcomes(),
        "retry_policy": null,
        "start_time": null,
        "interval": null,
        "execution_weekdays": [],
        "time_window_start": null,
        "time_window_end": null,
        "time_zone": "UTC",
        "enabled": false,
        "attributes": {},
        "next_run_at": null,
        "last_run_at": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
}

/// The demo set's first conversation, which is closed, or its second.
pub fn conversation(number: u32) -> Value {
    let closed = number == 0;
    json!({
        "id": id('a', kind::CONVERSATION, number),
        "status": if closed { "closed" } else { "open" },
        "chat_count": if closed { 2 } else { 1 },
        "closed_at": closed.then_some(DEMO_TIME),
        "close_reason": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
        "assistant_id": id('a', kind::ASSISTANT, 1),
        "widget_id": id('a', kind::WIDGET, 1),
        "contact_id": id('a', kind::CONTACT, number),
        "device_type": if closed { "desktop" } else { "mobile" },
        "attributes": {},
        "summary": null,
        "rating": null,
        "outcome": null,
        "result": null,
        "includes_voice": false,
    })
}

/// A message of the demo set's closed conversation.
pub fn message(number: u32, sender: &str, text: &str) -> Value {
    json!({
        "id": id('a', kind::MESSAGE, number),
        "conversation_id": id('a', kind::CONVERSATION, 0),
        "sender_type": sender,
        "message_type": "text",
        "text": text,
        "char_count": text.chars().count(),
        "in_reply_to": null,
        "data_source_ids": [],
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
}

/// The demo set's first webhook, which is disabled, or its second.
pub fn webhook(number: u32) -> Value {
    let (name, path) = if number == 0 { ("Spare", "spare") } else { ("Events", "assistants") };
    json!({
        "id": id('a', kind::WEBHOOK, number),
        "endpoint": format!("https://93.184.215.14/acme/{path}"),
        "name": name,
        "enabled": number == 1,
        "events": [if number == 0 { "webhook.disabled" } else { "conversation.closed" }],
        "assistant_ids": [],
        "widget_ids": [],
        "context": false,
        "disabled_reason": null,
        "disabled_at": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
}

/// The demo set's only delivery, which is dead.
pub fn delivery() -> Value {
    let conversation = id('a', kind::CONVERSATION, 0);
    json!({
        "id": conversation,
        "event_id": conversation,
        "event": "conversation.closed",
        "state": "dead",
        "attempts": 0,
        "status": null,
        "milliseconds": null,
        "error": "the demo set sends nothing",
        "next_attempt_at": null,
        "log": [],
        "conversation_id": conversation,
        "campaign_contact_id": null,
        "created_at": DEMO_TIME,
        "updated_at": DEMO_TIME,
    })
}

/// The only delivery, as it is stored.
pub async fn stored_delivery(stack: &Stack) -> Delivery {
    let (webhook, delivery) = (id('a', kind::WEBHOOK, 1), id('a', kind::CONVERSATION, 0));
    let key = (EndpointId(webhook.parse().unwrap()), DeliveryId(delivery.parse().unwrap()));
    acme(stack).get(key).await.unwrap()
}

/// Replaces the only delivery.
pub async fn replace_delivery(stack: &Stack, change: impl FnOnce(Delivery) -> Delivery) -> Delivery {
    let was = stored_delivery(stack).await;
    let is = change(was.clone());
    let webhook = EndpointId(id('a', kind::WEBHOOK, 1).parse().unwrap());
    acme(stack).replace((webhook, was.id), &was, is).await.unwrap().unwrap()
}

/// The outcome of an attempt that was answered with this status.
pub fn attempted(status: u64, retried_by: SentBy) -> DeliveryOutcome {
    let at = Timestamp::from_unix_millis(NOW - 60_000);
    let attempt = Attempt { at, status: Some(status), milliseconds: 12, error: None, answer: Some("thanks".into()) };
    DeliveryOutcome::Attempted { attempt, retry_after: None, retried_by, jitter: 0.0 }
}
