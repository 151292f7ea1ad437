//! `POST /api/v1/outbound_webhook/{webhook_id}/logs/{delivery_id}/redeliver`: sends a delivery again.

use local::Stack;
use local::http::{Answer, Call};
use serde_json::{Value, json};
use shared::records::delivery::{self, Delivery, DeliveryOutcome, SentBy};
use shared::values::id::EndpointId;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::demo_set::{self, attempted, replace_delivery, stored_delivery};
use crate::support::fixture::{ACME, NOW, acme, call, data, id, kind, post, stack};
use crate::support::records::{NOBODYS, TEST_TIME, changes, conflict, detail, items, not_found, nothing, row};

async fn redeliver_one(stack: &Stack, webhook: &str, delivery: &str) -> Answer {
    let path = format!("/api/v1/outbound_webhook/{webhook}/logs/{delivery}/redeliver");
    stack.answer(&post(&path, ACME, "")).await
}

/// Sends the demo set's one delivery again.
async fn redeliver(stack: &Stack) -> Answer {
    redeliver_one(stack, &id('a', kind::WEBHOOK, 1), &id('a', kind::CONVERSATION, 0)).await
}

#[tokio::test]
async fn makes_a_dead_delivery_ready_again() {
    let stack = stack().await;
    let before = items(&stack).await;
    let answer = redeliver(&stack).await;
    let mut delivery = demo_set::delivery();
    (delivery["state"], delivery["updated_at"]) = ("ready".into(), TEST_TIME.into());
    assert_eq!(data(&answer), delivery);
    let (gone, mut new) = changes(&stack, &before).await;
    let key = row(&format!("DELIVERY#{}", id('a', kind::WEBHOOK, 1)), 0);
    let item = new.remove(&key).unwrap();
    assert_eq!((gone.into_keys().collect::<Vec<_>>(), new.len()), (vec![key], 0));
    assert_eq!(item["due_at"], "2026-02-01T12:05:00.000Z", "the tick does not find the delivery");
    let logs = call("GET", &format!("/api/v1/outbound_webhook/{}/logs", id('a', kind::WEBHOOK, 1)), ACME);
    assert_eq!(data(&stack.answer(&logs).await)["items"], json!([delivery]));
}

#[tokio::test]
async fn restarts_a_delivery_in_any_state_and_keeps_its_log() {
    let earlier = Timestamp::from_unix_millis(NOW - 60_000);
    let ready = || DeliveryOutcome::AskedAgain { by: Uuid::max() };
    let states = [
        ("dead", vec![DeliveryOutcome::GivenUp { reason: "no".into() }]),
        ("waiting", vec![ready(), attempted(500, SentBy::Stream)]),
        ("waiting", vec![ready(), attempted(500, SentBy::Tick), DeliveryOutcome::Deferred]),
        ("delivered", vec![ready(), attempted(204, SentBy::Stream)]),
        ("dead", vec![ready(), attempted(410, SentBy::Stream)]),
    ];
    for (state, outcomes) in states {
        let stack = stack().await;
        let decide = |was| outcomes.into_iter().fold(was, |was: Delivery, outcome| was.decide(outcome, earlier));
        let was = replace_delivery(&stack, decide).await;
        assert_eq!(was.state.as_str(), state);
        let answered = data(&redeliver(&stack).await);
        let is = stored_delivery(&stack).await;
        assert_eq!(answered, serde_json::to_value(&is).unwrap());
        assert_eq!((is.tries, is.sent_by, is.due_at.is_some()), (0, SentBy::Stream, true), "{state}");
        let mut wanted = serde_json::to_value(&was).unwrap();
        wanted["state"] = "ready".into();
        wanted["next_attempt_at"] = Value::Null;
        wanted["updated_at"] = TEST_TIME.into();
        assert_eq!(answered, wanted, "{state}");
    }
}

#[tokio::test]
async fn a_repeated_request_does_not_resend_a_sent_delivery() {
    let stack = stack().await;
    let now = Timestamp::from_unix_millis(NOW);
    let webhook = EndpointId(id('a', kind::WEBHOOK, 1).parse().unwrap());
    let ask = async || {
        let delivery = stored_delivery(&stack).await.id;
        delivery::redeliver(&acme(&stack), webhook, delivery, Uuid::from_u128(1), now).await.unwrap()
    };
    assert_eq!(ask().await.state.as_str(), "ready");
    let sent = replace_delivery(&stack, |was| was.decide(attempted(204, SentBy::Stream), now)).await;
    // The request comes again if its first answer was lost.
    assert_eq!(ask().await, sent);
    assert_eq!(stored_delivery(&stack).await, sent);
}

#[tokio::test]
async fn concurrent_requests_have_one_effect_and_the_same_answer() {
    let stack = stack().await;
    let answers = futures_util::future::join_all((0..8).map(|_| redeliver(&stack))).await;
    assert!(answers.iter().all(|answer| answer.status == 200 && answer.body == answers[0].body));
    // A delivery that is ready stays as it is.
    let before = items(&stack).await;
    assert_eq!(redeliver(&stack).await.body, answers[0].body);
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn refuses_a_disabled_webhook_with_409() {
    let stack = stack().await;
    let path = format!("/api/v1/outbound_webhook/{}", id('a', kind::WEBHOOK, 1));
    stack.answer(&Call { body: br#"{"enabled":false}"#.to_vec(), ..call("PUT", &path, ACME) }).await;
    let before = items(&stack).await;
    let wanted = conflict("webhook_id", "webhook_disabled", "The webhook is disabled");
    assert_eq!(detail(&redeliver(&stack).await), wanted);
    assert_eq!(changes(&stack, &before).await, nothing());
}

#[tokio::test]
async fn refuses_an_unknown_webhook_and_a_delivery_of_another() {
    let (stack, delivery) = (stack().await, id('a', kind::CONVERSATION, 0));
    for other in [NOBODYS, &id('b', kind::WEBHOOK, 1)] {
        assert_eq!(detail(&redeliver_one(&stack, other, &delivery).await), not_found("webhook_id"), "{other}");
    }
    let created = post("/api/v1/outbound_webhook", ACME, r#"{"endpoint":"https://93.184.215.14/"}"#);
    let created = data(&stack.answer(&created).await)["id"].as_str().unwrap().to_owned();
    assert_eq!(detail(&redeliver_one(&stack, &created, &delivery).await), not_found("delivery_id"));
}
