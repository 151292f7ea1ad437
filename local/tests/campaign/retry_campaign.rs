//! `POST /api/v1/campaign/{campaign_id}/retry`: queues each failed contact again, once.

use std::collections::{BTreeMap, BTreeSet};

use local::Settings;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::crashes::crashes_everywhere;
use crate::support::sender::{Sender, all, counts};
use crate::support::sending::{Setup, events, id_of};

/// A campaign of which all contacts have failed.
async fn failed(contacts: usize, body: Value) -> (Sender, String) {
    let sender = Sender::new(true, contacts).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
    let id = sender.run(body).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, all("failed", contacts));
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    (sender, id)
}

#[tokio::test]
async fn queues_failed_contacts_and_sends_each_as_a_new_event() {
    for anew in [false, true] {
        let (sender, id) = failed(3, json!({"message": "Sale!", "start_new_conversation": anew})).await;
        let (_, before) = sender.campaign(&id).await;
        assert!(before.iter().all(|contact| contact["error"] == "the connector answered 410"));
        let first: BTreeSet<String> = events(&sender.received()).into_keys().map(str::to_owned).collect();
        sender.setup.receiver.forget();
        let (status, retried) = sender.control(&id, "retry").await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((status, &retried, &retried["status"]), (200, &campaign, &json!("queued")));
        let blank = |contact: &Value| (contact["error"].clone(), contact["conversation_id"].clone());
        assert!(contacts.iter().all(|contact| blank(contact) == (Value::Null, Value::Null)), "{contacts:?}");
        assert_eq!(sender.outcome(&id).await, all("queued", 3));
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.outcome(&id).await), (&json!("completed"), all("sent", 3)));
        assert!(contacts.iter().all(|contact| contact["error"].is_null()), "{contacts:?}");
        let received = sender.received();
        assert_eq!((received.len(), events(&received).len()), (3, 3));
        assert!(events(&received).keys().all(|event| !first.contains(*event)));
        // As in the first dispatch, the message continues the open conversation or begins a new one.
        for (was, is) in before.iter().zip(&contacts) {
            assert_eq!(was["conversation_id"] == is["conversation_id"], !anew);
            assert_eq!(sender.transcript(&is["conversation_id"]).await.len(), if anew { 1 } else { 2 });
        }
    }
}

#[tokio::test]
async fn only_failed_contacts_are_sent_and_others_take_no_time() {
    let change = |settings| Settings { sends_per_second: 1, ..settings };
    let sender = Sender::of(Setup::with(change).await, WidgetType::Chat, true, 105).await;
    let replies = [(102, 200), (3, 410), (1, 200)].into_iter().flat_map(|(count, status)| vec![status; count]);
    sender.setup.receiver.behave("/connector", Behaviour::Sequence(replies.map(Behaviour::Answer).collect()));
    let id = sender.run(json!({})).await;
    sender.until_the_end(&id).await;
    let outcome = BTreeMap::from([("failed".to_owned(), 3), ("sent".to_owned(), 102)]);
    assert_eq!(sender.outcome(&id).await, outcome);
    sender.setup.receiver.forget();
    let retried = sender.control(&id, "retry").await.1;
    assert_eq!(retried["counts"], counts([("queued", 3), ("sent", 102)]));
    // At this rate, all contacts would take three ticks.
    for _ in 0..2 {
        sender.minute(&[&id]).await;
    }
    assert_eq!((sender.outcome(&id).await, sender.received().len()), (all("sent", 105), 3));
    // Without failed contacts, a retry changes nothing.
    let before = sender.campaign(&id).await.0;
    assert_eq!(sender.control(&id, "retry").await, (200, before.clone()));
    assert_eq!(sender.campaign(&id).await.0, before);
}

#[tokio::test]
async fn each_retry_sends_the_contacts_that_failed_again() {
    let (sender, id) = failed(4, json!({})).await;
    for round in 0..4 {
        let reply = Behaviour::Sequence(vec![Behaviour::Answer(200), Behaviour::Answer(410)]);
        sender.setup.receiver.behave("/connector", reply);
        assert_eq!(sender.control(&id, "retry").await.0, 200);
        // A contact that is deleted while it waits is no longer counted.
        if round == 2 {
            let contacts = sender.campaign(&id).await.1;
            let last = contacts.iter().find(|contact| contact["status"] == "queued").unwrap();
            let deleted = sender.delete(&format!("campaign_contact/{}", id_of(last))).await;
            assert_eq!(deleted["status"], "queued");
        }
        sender.until_the_end(&id).await;
        let (sent, left) = if round < 2 { (round + 1, 3 - round) } else { (3, 0) };
        let wanted = [("failed", left), ("sent", sent)].into_iter().filter(|(_, count)| *count > 0);
        let wanted: BTreeMap<_, _> = wanted.map(|(status, count)| (status.to_owned(), count)).collect();
        assert_eq!(sender.outcome(&id).await, wanted, "round {round}");
    }
}

#[tokio::test]
async fn a_contact_that_fails_before_sending_has_its_reason() {
    let (sender, id) = failed(2, json!({})).await;
    sender.control(&id, "retry").await;
    sender.delete(&format!("widget/{}", sender.widget.id)).await;
    sender.until_the_end(&id).await;
    let (_, contacts) = sender.campaign(&id).await;
    assert_eq!(sender.outcome(&id).await, all("failed", 2));
    assert!(contacts.iter().all(|contact| contact["error"] == "the widget is gone"), "{contacts:?}");
    assert!(contacts.iter().all(|contact| contact["conversation_id"].is_null()), "{contacts:?}");
    assert_eq!(sender.control(&id, "retry").await.1["counts"]["queued"], 2);
}

#[tokio::test]
async fn a_retried_campaign_can_be_paused_and_cancelled() {
    let (sender, id) = failed(3, json!({})).await;
    sender.control(&id, "retry").await;
    sender.setup.receiver.forget();
    assert_eq!(sender.control(&id, "pause").await.1["status"], "paused");
    sender.minute(&[&id]).await;
    assert_eq!(sender.outcome(&id).await, all("queued", 3));
    assert_eq!(sender.control(&id, "cancel").await.1["status"], "cancelled");
    sender.minute(&[&id]).await;
    assert_eq!((sender.outcome(&id).await, sender.received()), (all("cancelled", 3), Vec::new()));
    assert_eq!(sender.control(&id, "retry").await, (409, json!("campaign_cancelled")));
}

#[tokio::test]
async fn each_contact_is_sent_once_more_despite_a_crash() {
    let prepare = async || {
        let (sender, id) = failed(2, json!({"start_new_conversation": true})).await;
        sender.setup.receiver.forget();
        (sender, id)
    };
    let work = async |(sender, id): &(Sender, String)| {
        sender.control(id, "retry").await;
        sender.setup.minute().await;
    };
    let once = async |(sender, id): &(Sender, String), case: String| {
        let outcome = sender.outcome(id).await;
        assert_eq!(outcome.values().sum::<usize>(), 2, "{case}");
        sender.setup.settle().await;
        // If the first request was lost, this one retries.
        if sender.outcome(id).await == all("failed", 2) {
            assert_eq!(sender.control(id, "retry").await.0, 200, "{case}");
        }
        sender.until_the_end(id).await;
        assert_eq!(sender.outcome(id).await, all("sent", 2), "{case}");
        let events = events(&sender.received()).len();
        assert_eq!((events, sender.conversations().await.len()), (2, 4), "{case}");
    };
    crashes_everywhere(prepare, |(sender, _)| &sender.setup, work, once).await;
}
