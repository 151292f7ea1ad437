//! The retry policy of a campaign: which outcomes are followed by another attempt, and when.

use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;
use shared::values::time::Timestamp;

use crate::support::calling::{called, policy};
use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::{PATIENT, http_client};
use crate::support::sender::{Sender, all, counts, created};
use crate::support::sending::{Setup, id_of};

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

impl Sender {
    fn in_seconds(&self, seconds: i64) -> Value {
        json!(self.setup.clock.now().plus_seconds(seconds))
    }
}

#[tokio::test]
async fn an_outcome_of_the_policy_is_followed_by_another_attempt() {
    let (sender, id) = called(1, 3).await;
    let mut conversations = vec![sender.contact(&id, 0).await["conversation_id"].clone()];
    assert_eq!(sender.campaign(&id).await.0["status"], "completed");
    for (attempts, outcome) in [(1, "no_answer"), (2, "busy")] {
        let (status, waiting) = sender.report(&sender.contact(&id, 0).await, outcome, 0).await;
        assert_eq!((status, &waiting["status"], &waiting["attempts"]), (200, &json!("queued"), &json!(attempts)));
        assert_eq!(waiting["next_attempt_at"], sender.in_seconds(30 * MINUTE));
        let campaign = sender.campaign(&id).await.0;
        assert_eq!((&campaign["status"], &campaign["counts"]), (&json!("to_be_run"), &counts([("queued", 1)])));
        assert_eq!(campaign["next_run_at"], waiting["next_attempt_at"]);
        sender.setup.minutes(29).await;
        assert_eq!(sender.calls(), attempts);
        sender.setup.minutes(1).await;
        let contact = sender.contact(&id, 0).await;
        assert_eq!((sender.calls(), &contact["status"]), (attempts + 1, &json!("sent")));
        assert_eq!((&contact["attempts"], &contact["next_attempt_at"]), (&json!(attempts + 1), &Value::Null));
        assert_eq!(contact["result"]["outcome"], outcome);
        conversations.push(contact["conversation_id"].clone());
    }
    let (_, last) = sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    assert_eq!((&last["status"], &last["next_attempt_at"]), (&json!("sent"), &Value::Null));
    assert_eq!(sender.campaign(&id).await.0["status"], "completed");
    sender.until_the_end(&id).await;
    assert_eq!(sender.calls(), 3);
    conversations.dedup();
    assert_eq!((conversations.len(), sender.conversations().await.len()), (3, 3));
}

#[tokio::test]
async fn other_outcomes_and_a_campaign_without_policy_end() {
    let (sender, id) = called(1, 5).await;
    sender.report(&sender.contact(&id, 0).await, "voicemail", 0).await;
    let other = sender.run(json!({"start_new_conversation": true})).await;
    sender.minute(&[&other]).await;
    sender.report(&sender.contact(&other, 0).await, "no_answer", 0).await;
    for id in [&id, &other] {
        sender.until_the_end(id).await;
        assert_eq!((&sender.campaign(id).await.0["status"], sender.calls()), (&json!("completed"), 2));
    }
}

#[tokio::test]
async fn a_later_report_ends_the_wait() {
    let (sender, id) = called(2, 2).await;
    for contact in sender.campaign(&id).await.1 {
        sender.report(&contact, "no_answer", -20).await;
    }
    let (_, corrected) = sender.report(&sender.contact(&id, 1).await, "answered", -10).await;
    assert_eq!((&corrected["status"], &corrected["next_attempt_at"]), (&json!("sent"), &Value::Null));
    sender.until_the_end(&id).await;
    let (campaign, contacts) = sender.campaign(&id).await;
    assert_eq!((&campaign["status"], sender.calls()), (&json!("completed"), 3));
    assert_eq!([&contacts[0]["attempts"], &contacts[1]["attempts"]], [&json!(2), &json!(1)]);
}

#[tokio::test]
async fn a_report_of_an_earlier_attempt_changes_nothing() {
    let (sender, id) = called(1, 3).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", -20).await;
    sender.setup.minutes(30).await;
    let sent = sender.contact(&id, 0).await;
    assert_eq!(sent["attempts"], 2);
    // It is later than the first report, and from before the second attempt.
    assert_eq!(sender.report(&sent, "busy", -10 * MINUTE).await, (200, sent));
}

#[tokio::test]
async fn each_contact_waits_for_its_own_time() {
    let (sender, id) = called(3, 2).await;
    for (place, minutes) in [(2, 10), (0, 10), (1, 10)] {
        sender.report(&sender.contact(&id, place).await, "busy", 0).await;
        sender.setup.minutes(minutes).await;
    }
    for (calls, place) in [(4, 2), (5, 0), (6, 1)] {
        sender.setup.minutes(1).await;
        assert_eq!((sender.calls(), &sender.contact(&id, place).await["attempts"]), (calls, &json!(2)));
        sender.setup.minutes(9).await;
    }
    assert_eq!(sender.campaign(&id).await.0["status"], "completed");
}

#[tokio::test]
async fn another_attempt_keeps_the_window_and_the_weekdays() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    // 2026-02-01 is a Sunday. The campaign is sent on Mondays and Wednesdays.
    let made = created(
        &sender,
        json!({
            "type": "outbound_call", "start_time": "2026-02-02T16:40:00Z", "retry_policy": policy(2),
            "time_window_start": "09:00", "time_window_end": "17:00", "execution_weekdays": [1, 3],
        }),
    );
    let id = id_of(&made.await).to_owned();
    sender.while_due_within(2 * DAY, &id).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    assert_eq!(sender.campaign(&id).await.0["next_run_at"], "2026-02-04T09:00:00.000Z");
    sender.until_the_end(&id).await;
    let (campaign, contacts) = sender.campaign(&id).await;
    assert_eq!((&campaign["status"], sender.calls(), &contacts[0]["attempts"]), (&json!("completed"), 2, &json!(2)));
    let wednesday: Timestamp = serde_json::from_value(json!("2026-02-04T09:00:00Z")).unwrap();
    assert!(sender.setup.clock.now() >= wednesday);
}

#[tokio::test]
async fn another_attempt_does_not_begin_the_next_execution() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 2).await;
    let contacts = sender.contacts();
    let more = json!({
        "type": "outbound_call", "interval": 1440, "contact_ids": contacts[..1], "retry_policy": policy(2),
    });
    let id = id_of(&created(&sender, more).await).to_owned();
    sender.while_due_within(7200, &id).await;
    let next = sender.campaign(&id).await.0["next_run_at"].clone();
    sender.add(&id, &contacts[1..]).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    assert_eq!(sender.campaign(&id).await.0["next_run_at"], sender.in_seconds(30 * MINUTE));
    sender.setup.minutes(31).await;
    let campaign = sender.campaign(&id).await.0;
    assert_eq!((sender.calls(), &campaign["next_run_at"]), (2, &next));
    assert_eq!(campaign["counts"], counts([("sent", 1), ("queued", 1)]));
    sender.setup.clock.set(serde_json::from_value(next).unwrap());
    sender.minute(&[&id]).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (3, all("sent", 2)));
}

#[tokio::test]
async fn the_delivery_of_an_earlier_attempt_is_not_sent_again() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    let id = sender.run(json!({"retry_policy": policy(2)})).await;
    sender.minute(&[&id]).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.setup.receiver.forget();
    sender.setup.minutes(29).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (0, all("queued", 1)));
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (1, all("sent", 1)));
}

/// The connector may report before it answers the delivery itself.
#[tokio::test]
async fn an_answer_after_the_report_does_not_end_the_next_attempt() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    let receiver = &sender.setup.receiver;
    receiver.behave("/connector", Behaviour::Together(2));
    let id = sender.run(json!({"retry_policy": policy(2)})).await;
    let reporting = async {
        receiver.wait_for("/connector", 1, PATIENT).await.unwrap();
        sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
        // The second request lets the connector answer the first one.
        http_client().post(format!("{}/connector", receiver.url)).send().await.unwrap();
    };
    tokio::join!(sender.setup.minute(), reporting);
    let contact = sender.contact(&id, 0).await;
    assert_eq!((&contact["status"], &contact["next_attempt_at"]), (&json!("queued"), &sender.in_seconds(30 * MINUTE)));
    receiver.behave("/connector", Behaviour::Answer(200));
    receiver.forget();
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (1, all("sent", 1)));
}

#[tokio::test]
async fn a_waiting_contact_can_be_paused_cancelled_and_deleted() {
    let (sender, id) = called(3, 2).await;
    for contact in sender.campaign(&id).await.1 {
        sender.report(&contact, "busy", 0).await;
    }
    assert_eq!(sender.control(&id, "pause").await.1["status"], "paused");
    sender.setup.minutes(40).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (3, all("queued", 3)));
    sender.delete(&format!("campaign_contact/{}", id_of(&sender.contact(&id, 0).await))).await;
    assert_eq!(sender.control(&id, "resume").await.0, 200);
    sender.minute(&[&id]).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (5, all("sent", 2)));

    let (sender, id) = called(2, 2).await;
    sender.report(&sender.contact(&id, 0).await, "busy", 0).await;
    let cancelled = sender.control(&id, "cancel").await.1;
    assert_eq!(cancelled["counts"], counts([("sent", 1), ("cancelled", 1)]));
    // After the cancellation no report is followed by another attempt.
    let (_, other) = sender.report(&sender.contact(&id, 1).await, "busy", 0).await;
    assert_eq!((&other["status"], &other["next_attempt_at"]), (&json!("sent"), &Value::Null));
    sender.until_the_end(&id).await;
    assert_eq!(sender.calls(), 2);
}

#[tokio::test]
async fn a_policy_can_be_added_to_a_campaign_and_removed() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    assert_eq!(sender.update(&id, &json!({"retry_policy": policy(5)})).await.1["retry_policy"], policy(5));
    sender.report(&sender.contact(&id, 0).await, "busy", 0).await;
    sender.setup.minutes(30).await;
    assert_eq!(sender.calls(), 2);
    assert_eq!(sender.update(&id, &json!({"retry_policy": null})).await.1["retry_policy"], Value::Null);
    sender.report(&sender.contact(&id, 0).await, "busy", 0).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.calls(), 2);
}

#[tokio::test]
async fn a_policy_has_bounds() {
    let sender = Sender::new(true, 1).await;
    let path = format!("/api/v1/campaign/run/{}", sender.widget.id);
    for (field, value) in [
        ("on", json!([])),
        ("on", json!(["lost"])),
        ("max_attempts", json!(0)),
        ("max_attempts", json!(6)),
        ("wait_minutes", json!(0)),
        ("wait_minutes", Value::Null),
    ] {
        let mut policy = policy(2);
        policy[field] = value;
        let body = json!({"contact_ids": sender.contacts(), "retry_policy": policy});
        let answer = sender.setup.ask(&sender.org, "POST", &path, &body).await;
        assert_eq!(answer.status, 422, "{policy} {}", answer.body);
        assert!(answer.body.contains(&format!(r#"["body","retry_policy","{field}""#)), "{}", answer.body);
    }
}

#[tokio::test]
async fn a_crash_neither_loses_nor_doubles_another_attempt() {
    let work = async |(sender, id): &(Sender, String)| {
        for contact in sender.campaign(id).await.1 {
            sender.report(&contact, "no_answer", 0).await;
        }
        sender.setup.pass(30 * MINUTE);
        sender.setup.minute().await;
    };
    let once = async |(sender, id): &(Sender, String), case: String| {
        let (_, contacts) = sender.campaign(id).await;
        sender.setup.settle().await;
        // A request that was lost is sent again. A report from before the second attempt is one of the first.
        for contact in contacts.iter().filter(|contact| contact["result"].is_null()) {
            sender.report(contact, "no_answer", 0).await;
        }
        sender.until_the_end(id).await;
        let (campaign, contacts) = sender.campaign(id).await;
        assert!(contacts.iter().all(|contact| contact["attempts"] == 2), "{case} {contacts:?}");
        assert_eq!((&campaign["status"], sender.calls()), (&json!("completed"), 4), "{case}");
        assert_eq!(sender.conversations().await.len(), 4, "{case}");
        assert_eq!(sender.items(), Vec::<Value>::new(), "{case}");
    };
    crashes_everywhere(async || called(2, 2).await, |(sender, _)| &sender.setup, work, once).await;
}
