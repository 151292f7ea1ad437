//! Campaigns leave out the contacts whose telephone number or e-mail address is suppressed.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use shared::records::widget::WidgetType;

use crate::support::fixture::data;
use crate::support::sender::{Sender, all, event};
use crate::support::sending::{Setup, id_of};

const PATH: &str = "/api/v1/suppression";

/// An organisation whose widget is of this kind, with suppressions of some of its contacts.
async fn sender(kind: WidgetType, connected: bool) -> Sender {
    let sender = Sender::of(Setup::start().await, kind, connected, 5).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let address = json!({"email": "Fourth@example.com"});
    data(&setup.ask(org, "PUT", &format!("/api/v1/contact/{}", sender.contacts[4].id), &address).await);
    let suppressions = [
        json!({"phone_number": "+31201000001"}),
        json!({"phone_number": "+31201000002", "channel": "message"}),
        json!({"phone_number": "+31201000003", "channel": "call"}),
        json!({"email": "fourth@EXAMPLE.com"}),
    ];
    for suppression in suppressions {
        setup.post(org, PATH, suppression).await;
    }
    sender
}

/// The numbers of the contacts of a campaign that have this status.
fn with_status(contacts: &[Value], status: &str) -> Vec<usize> {
    contacts.iter().enumerate().filter(|(_, contact)| contact["status"] == status).map(|(number, _)| number).collect()
}

#[tokio::test]
async fn a_campaign_leaves_out_the_contacts_that_are_suppressed() {
    let cases = [(WidgetType::Sms, [0, 3], [1, 2, 4]), (WidgetType::Phone, [0, 2], [1, 3, 4])];
    for (kind, sent, suppressed) in cases {
        let sender = sender(kind, true).await;
        let id = sender.run(json!({"message": "Sale!"})).await;
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!(campaign["status"], "completed");
        assert_eq!(with_status(&contacts, "sent"), sent);
        assert_eq!(with_status(&contacts, "suppressed"), suppressed);
        let why = "its telephone number or e-mail address is suppressed";
        for contact in suppressed.iter().map(|number| &contacts[*number]) {
            assert_eq!((&contact["error"], &contact["conversation_id"]), (&json!(why), &Value::Null));
        }
        let received = sender.received();
        let reached: BTreeSet<String> =
            received.iter().map(|request| event(request)["data"]["contact_id"].as_str().unwrap().to_owned()).collect();
        assert_eq!(reached, sent.iter().map(|number| sender.contacts[*number].id.to_string()).collect());
        assert_eq!(sender.conversations().await.len(), 2);
        let deliveries = sender.setup.outbox(&sender.org, &json!({"id": sender.widget.id})).await;
        assert_eq!(deliveries.len(), 2);
        let counted = sender.setup.find(None, "sends_a_day > :none", &json!({":none": {"N": "0"}}));
        let sends: u64 =
            counted.iter().map(|one| one["sends_a_day"]["N"].as_str().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(sends, 2, "a contact that is suppressed counts as no send");
    }
}

#[tokio::test]
async fn a_deleted_suppression_lets_the_next_campaign_pass() {
    let sender = sender(WidgetType::Sms, true).await;
    for suppression in sender.list(PATH).await {
        sender.delete(&format!("suppression/{}", id_of(&suppression))).await;
    }
    let id = sender.run(json!({"message": "Sale!"})).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, all("sent", 5));
}

#[tokio::test]
async fn a_suppression_that_is_answered_before_a_dispatch_holds() {
    let sender = Sender::new(true, 5).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let id = sender.run(json!({"message": "Sale!"})).await;
    setup.pass(60);
    // The dispatch has looked the contacts up when its transaction waits.
    let pause = setup.faults.pause_at(|action, _| action == "TransactWriteItems");
    let meanwhile = async {
        pause.reached().await;
        let all: Vec<Value> = (0..5).map(|number| json!({"phone_number": format!("+3120100000{number}")})).collect();
        setup.post(org, &format!("{PATH}/import"), json!({"suppressions": all})).await;
        pause.end();
    };
    let (sent, ()) = tokio::join!(setup.stack.minute(), meanwhile);
    sent.unwrap();
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, all("suppressed", 5));
    assert_eq!((sender.received().len(), sender.conversations().await.len()), (0, 0));
}

/// The suppressions of a sender: number, address, channel and reason.
async fn suppressions(sender: &Sender) -> Vec<Value> {
    let names = ["phone_number", "email", "channel", "reason"];
    let of_one = |one: Value| Value::from(names.map(|name| one[name].clone()).to_vec());
    sender.list(PATH).await.into_iter().map(of_one).collect()
}

#[tokio::test]
async fn a_contact_of_a_campaign_that_opts_out_is_suppressed() {
    for (kind, channel) in [(WidgetType::Sms, "message"), (WidgetType::Phone, "call")] {
        let sender = Sender::of(Setup::start().await, kind, true, 2).await;
        let (setup, org) = (&sender.setup, &sender.org);
        let address = json!({"email": "zero@example.com"});
        data(&setup.ask(org, "PUT", &format!("/api/v1/contact/{}", sender.contacts[0].id), &address).await);
        let id = sender.run(json!({"message": "Sale!"})).await;
        sender.until_the_end(&id).await;
        let contacts = sender.campaign(&id).await.1;
        let path = format!("/api/v1/campaign_contact/{}/outcome", id_of(&contacts[0]));
        let report = |outcome: &str, at: &str| json!({"outcome": outcome, "at": at});
        // A later outcome is known already; and the report comes twice.
        setup.post(org, &path, report("answered", "2026-02-01T12:05:00Z")).await;
        assert_eq!(suppressions(&sender).await, Vec::<Value>::new());
        for _ in 0..2 {
            setup.post(org, &path, report("opted_out", "2026-02-01T12:04:00Z")).await;
        }
        let wanted =
            json!([["+31201000000", null, channel, "opted_out"], [null, "zero@example.com", channel, "opted_out"],]);
        assert_eq!(json!(suppressions(&sender).await), wanted);
        let next = sender.run(json!({"message": "Sale again!"})).await;
        sender.until_the_end(&next).await;
        let contacts = sender.campaign(&next).await.1;
        assert_eq!((with_status(&contacts, "suppressed"), with_status(&contacts, "sent")), (vec![0], vec![1]));
    }
}

#[tokio::test]
async fn a_number_that_opts_out_of_a_single_message_is_suppressed() {
    let sender = Sender::of(Setup::start().await, WidgetType::Sms, true, 0).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let path = format!("/api/v1/messaging/{}", sender.widget.id);
    let body = json!({"to": "+4915123456789", "message": "Hello"});
    let sent = setup.post(org, &path, body.clone()).await;
    let outcome = format!("/api/v1/conversation/{}/outcome", sent["conversation_id"].as_str().unwrap());
    setup.post(org, &outcome, json!({"outcome": "opted_out", "at": "2026-02-01T12:00:00Z"})).await;
    assert_eq!(json!(suppressions(&sender).await), json!([["+4915123456789", null, "message", "opted_out"]]));
    assert_eq!(setup.ask(org, "POST", &path, &body).await.status, 409);
}
