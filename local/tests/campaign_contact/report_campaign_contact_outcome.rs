//! `POST /api/v1/campaign_contact/{campaign_contact_id}/outcome`: the latest report counts, and all counts stay exact.

use futures_util::future::join_all;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::crashes::crashes_everywhere;
use crate::support::sender::{Sender, all, counts, event};
use crate::support::sending::{Setup, events, id_of};

/// A campaign of calls to so many contacts, all of which the connector has got.
async fn called(contacts: usize) -> (Sender, String) {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, contacts).await;
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    assert_eq!(sender.outcome(&id).await, all("sent", contacts));
    (sender, id)
}

#[tokio::test]
async fn the_latest_report_counts_in_any_order() {
    let (sender, id) = called(2).await;
    let first = sender.campaign(&id).await.1.remove(0);
    assert_eq!(
        (&first["result"], &first["attempts"], &first["next_attempt_at"]),
        (&Value::Null, &json!(1), &Value::Null)
    );
    for (outcome, seconds, counting) in [
        ("no_answer", -30, "no_answer"),
        ("no_answer", -30, "no_answer"),
        ("busy", -31, "no_answer"),
        ("busy", -30, "no_answer"),
        ("answered", -10, "answered"),
        ("no_answer", -30, "answered"),
    ] {
        let (status, answer) = sender.report(&first, outcome, seconds).await;
        assert_eq!((status, &answer["result"]["outcome"], &answer["status"]), (200, &json!(counting), &json!("sent")));
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&contacts[0], &campaign["outcomes"][counting]), (&answer, &json!(1)));
        assert_eq!(campaign["counts"], counts([("sent", 2)]));
    }
}

#[tokio::test]
async fn a_report_is_answered_with_all_that_it_has() {
    let (sender, id) = called(1).await;
    let contact = sender.campaign(&id).await.1.remove(0);
    let report = json!({
        "outcome": "voicemail", "at": "2026-02-01T13:00:30+01:00", "duration_seconds": 12,
        "recording_url": "https://calls.example.com/1.wav?signature=x", "cost": 0.0125,
    });
    let path = format!("/api/v1/campaign_contact/{}/outcome", id_of(&contact));
    let answer = sender.setup.post(&sender.org, &path, report.clone()).await;
    let mut wanted = report;
    wanted["at"] = json!("2026-02-01T12:00:30.000Z");
    assert_eq!(answer["result"], wanted);
    assert_eq!(sender.campaign(&id).await.1[0], answer);
}

#[tokio::test]
async fn concurrent_reports_leave_the_latest_and_exact_counts() {
    let (sender, id) = called(3).await;
    let contacts = sender.campaign(&id).await.1;
    let outcomes = ["answered", "voicemail", "busy", "rejected", "failed"];
    let reports = (0..15).map(|number| {
        let (contact, outcome) = (&contacts[number % 3], outcomes[number / 3]);
        sender.report(contact, outcome, i64::try_from(number).unwrap() - 60)
    });
    assert!(join_all(reports).await.iter().all(|(status, _)| *status == 200));
    let (campaign, contacts) = sender.campaign(&id).await;
    assert!(contacts.iter().all(|contact| contact["result"]["outcome"] == "failed"), "{contacts:?}");
    assert_eq!((&campaign["outcomes"]["failed"], &campaign["counts"]), (&json!(3), &counts([("sent", 3)])));
}

#[tokio::test]
async fn a_crash_neither_loses_nor_doubles_a_report() {
    let work = async |(sender, id): &(Sender, String)| {
        for contact in sender.campaign(id).await.1 {
            sender.report(&contact, "busy", -20).await;
            sender.report(&contact, "answered", -10).await;
        }
    };
    let once = async |run: &(Sender, String), case: String| {
        // The counts agree with the contacts after the crash, and after the repeat.
        run.0.campaign(&run.1).await;
        work(run).await;
        let campaign = run.0.campaign(&run.1).await.0;
        assert_eq!(
            (&campaign["outcomes"]["answered"], &campaign["outcomes"]["busy"]),
            (&json!(2), &json!(0)),
            "{case}"
        );
    };
    crashes_everywhere(async || called(2).await, |(sender, _)| &sender.setup, work, once).await;
}

#[tokio::test]
async fn a_report_before_the_end_of_the_delivery_ends_it() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    let id = sender.run(json!({})).await;
    sender.minute(&[&id]).await;
    let contact = sender.campaign(&id).await.1.remove(0);
    assert_eq!((&contact["status"], !sender.received().is_empty()), (&json!("queued"), true));
    let (_, answer) = sender.report(&contact, "answered", 0).await;
    assert_eq!(answer["status"], "sent");
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.setup.receiver.forget();
    sender.until_the_end(&id).await;
    let campaign = sender.campaign(&id).await.0;
    assert_eq!((&campaign["status"], sender.received().len()), (&json!("completed"), 0));
}

#[tokio::test]
async fn nothing_was_sent_to_a_queued_or_a_gone_contact() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 2).await;
    let id = sender.run(json!({})).await;
    let queued = sender.campaign(&id).await.1;
    assert_eq!(sender.report(&queued[0], "answered", 0).await, (409, json!("not_sent")));
    sender.delete(&format!("contact/{}", queued[1]["contact_id"].as_str().unwrap())).await;
    sender.minute(&[&id]).await;
    assert_eq!(sender.report(&queued[1], "answered", 0).await, (409, json!("not_sent")));
    sender.delete(&format!("campaign_contact/{}", id_of(&queued[0]))).await;
    assert_eq!(sender.report(&queued[0], "answered", 0).await, (404, json!("not_found")));
    assert_eq!(sender.report(&queued[1], "answered", 301).await, (422, json!("value_error")));
}

#[tokio::test]
async fn a_deleted_contact_is_no_longer_counted_by_its_outcome() {
    let (sender, id) = called(2).await;
    for contact in sender.campaign(&id).await.1 {
        sender.report(&contact, "rejected", 0).await;
        sender.campaign(&id).await;
        sender.delete(&format!("campaign_contact/{}", id_of(&contact))).await;
        sender.campaign(&id).await;
    }
}

#[tokio::test]
async fn each_report_that_counts_emits_an_event() {
    let (sender, id) = called(1).await;
    let fields =
        json!({"endpoint": format!("{}/hook", sender.setup.receiver.url), "events": ["campaign_contact.updated"]});
    sender.setup.post(&sender.org, "/api/v1/outbound_webhook", fields).await;
    let contact = sender.campaign(&id).await.1.remove(0);
    for (outcome, seconds) in [("busy", -10), ("busy", -10), ("no_answer", -20), ("answered", -5)] {
        sender.report(&contact, outcome, seconds).await;
        sender.setup.settle().await;
    }
    sender.setup.minutes(2).await;
    let emitted: Vec<Value> = sender.setup.receiver.received("/hook").iter().map(event).collect();
    assert_eq!((emitted.len(), events(&sender.setup.receiver.received("/hook")).len()), (2, 2));
    let outcomes: Vec<_> = emitted.iter().map(|event| event["data"]["result"]["outcome"].clone()).collect();
    assert_eq!(outcomes, ["busy", "answered"]);
    assert_eq!(emitted[1]["data"], sender.campaign(&id).await.1[0]);
    assert!(emitted[0]["sequence"].as_u64() < emitted[1]["sequence"].as_u64());
}
