//! `DELETE /api/v1/campaign_contact/{campaign_contact_id}`: removes a contact from a campaign.

use local::receiver::Behaviour;
use serde_json::{Value, json};

use crate::support::fixture::{ACME, call, data, get, id, kind, post, stack};
use crate::support::records::{DEMO_TIME, FRESH, Items, Key, changes, deletes_with, detail, items, key, not_found};
use crate::support::sender::{Sender, counts};
use crate::support::sending::id_of;

/// The item that lists the places of deleted contacts among a campaign's first thousand.
fn places(campaign: &str, places: &[u32]) -> (Key, Value) {
    let key = key(&format!("CAMPAIGN_RUN#{campaign}"), "OUTCOMES_DELETED#00");
    (key.clone(), json!({"pk": key.0, "sk": key.1, "places": places}))
}

#[tokio::test]
async fn answers_the_deleted_contact_and_records_its_place() {
    let campaign = id('a', kind::CAMPAIGN, 0);
    for number in 1..=3 {
        let contact = id('a', kind::CAMPAIGN, number);
        let record = json!({
            "id": contact,
            "campaign_id": campaign,
            "contact_id": id('a', kind::CONTACT, number - 1),
            "status": "queued",
            "conversation_id": null,
            "error": null,
            "result": null,
            "attempts": 0,
            "next_attempt_at": null,
            "created_at": DEMO_TIME,
            "updated_at": DEMO_TIME,
        });
        let gone = [key(&format!("CAMPAIGN_CONTACT#{campaign}#00"), &contact)];
        let new = Items::from([places(&campaign, &[number - 1])]);
        deletes_with(&format!("/api/v1/campaign_contact/{contact}"), record, &gone, new, "campaign_contact_id").await;
    }
}

#[tokio::test]
async fn deletes_a_contact_of_a_run_by_its_own_id() {
    let stack = stack().await;
    let run = format!("/api/v1/campaign/run/{}", id('a', kind::WIDGET, 1));
    let contacts = [0, 1].map(|number| id('a', kind::CONTACT, number));
    data(&stack.answer(&post(&run, ACME, json!({"contact_ids": contacts}).to_string())).await);
    let before = items(&stack).await;
    let second = format!("{}00000002", &FRESH[0][..28]);
    let answered = data(&stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{second}"), ACME)).await);
    assert_eq!((&answered["id"], &answered["contact_id"]), (&json!(second), &json!(contacts[1])));
    let (gone, new) = changes(&stack, &before).await;
    assert_eq!(gone.keys().collect::<Vec<_>>(), [&key(&format!("CAMPAIGN_CONTACT#{}#00", FRESH[0]), &second)]);
    assert_eq!(new, Items::from([places(FRESH[0], &[1])]));
}

#[tokio::test]
async fn answers_a_contact_of_a_cancelled_campaign_as_cancelled() {
    let stack = stack().await;
    let campaign = id('a', kind::CAMPAIGN, 0);
    stack.answer(&post(&format!("/api/v1/campaign/{campaign}/cancel"), ACME, "")).await;
    let contact = id('a', kind::CAMPAIGN, 2);
    let gone = data(&stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{contact}"), ACME)).await);
    assert_eq!(gone["status"], "cancelled");
    let left = get(&stack, &format!("/api/v1/campaign/get/{campaign}")).await;
    assert_eq!(left["counts"], counts([("cancelled", 2)]));
}

#[tokio::test]
async fn refuses_the_ids_of_campaigns_and_contacts_with_404() {
    let stack = stack().await;
    for other in [id('a', kind::CAMPAIGN, 0), id('a', kind::CONTACT, 0), id('a', kind::CAMPAIGN, 4)] {
        let answer = stack.answer(&call("DELETE", &format!("/api/v1/campaign_contact/{other}"), ACME)).await;
        assert_eq!(detail(&answer), not_found("campaign_contact_id"), "{other}");
    }
}

#[tokio::test]
async fn the_transcript_keeps_the_texts_of_a_deleted_contact() {
    for (anew, remembers) in [(false, true), (true, true), (false, false)] {
        let sender = Sender::new(true, 2).await;
        sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
        let id = sender.run(json!({"message": "First", "start_new_conversation": anew})).await;
        sender.until_the_end(&id).await;
        sender.update_text(&id, "Second").await;
        sender.control(&id, "retry").await;
        sender.until_the_end(&id).await;
        // After this change, the messages have two earlier texts.
        sender.update_text(&id, "Third").await;
        let said = sender.transcripts().await;
        assert_eq!(said.values().flatten().count(), 4);
        for contact in sender.campaign(&id).await.1 {
            if !remembers {
                sender.forget_messages(&contact).await;
            }
            let path = format!("/api/v1/campaign_contact/{}", id_of(&contact));
            let answer = sender.setup.ask(&sender.org, "DELETE", &path, &Value::Null).await;
            // Reads: the key, the contact, campaign with texts, and the messages. Then one transaction.
            assert!(answer.status == 200 && (!remembers || answer.cost.depth <= 4), "{:?}", answer.cost);
            assert_eq!(sender.transcripts().await, said);
        }
        assert_eq!(sender.campaign(&id).await.0["message"], "Third");
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.settle().await;
        assert_eq!(sender.texts_when_closed().await, said);
    }
}
