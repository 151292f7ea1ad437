//! `POST /api/v1/campaign/{campaign_id}/contact`: adds contacts to a campaign with a schedule, each once.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::values::id::ContactId;

use crate::campaigns::{Sender, all, created};
use crate::fixture::json;
use crate::records::NOBODYS;
use crate::sending::events;
use crate::sweep::crashes_everywhere;

const HOUR: i64 = 3600;

impl Sender {
    pub async fn add(&self, id: &str, contacts: &[ContactId]) -> (u16, Value) {
        let path = format!("/api/v1/campaign/{id}/contact");
        let answer = self.world.ask(&self.org, "POST", &path, &json!({"contact_ids": contacts})).await;
        (answer.status, json(&answer))
    }

    /// The contacts of a campaign, in their order.
    pub(super) async fn members(&self, id: &str) -> Vec<String> {
        let (_, contacts) = self.campaign(id).await;
        contacts.iter().map(|contact| contact["contact_id"].as_str().unwrap().to_owned()).collect()
    }
}

/// A campaign without contacts in an organisation with so many.
pub(super) async fn empty(contacts: usize, more: Value) -> (Sender, String) {
    let sender = Sender::new(true, contacts).await;
    let mut body = json!({"contact_ids": null});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let made = created(&sender, body).await;
    let id = made["id"].as_str().unwrap().to_owned();
    (sender, id)
}

pub(super) fn texts(contacts: &[ContactId]) -> Vec<String> {
    contacts.iter().map(ToString::to_string).collect()
}

#[tokio::test]
async fn each_is_in_it_once_however_many_are_added_at_a_time() {
    let (sender, id) = empty(60, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    for (from, to) in [(0, 3), (0, 3), (2, 5), (0, 60), (0, 60)] {
        let (status, told) = sender.add(&id, &contacts[from..to]).await;
        let next = sender.campaign(&id).await.0["next_run_at"].clone();
        let wanted = json!({
            "campaign_id": id, "status": "to_be_run", "contacts": to - from, "next_run_at": next,
        });
        assert_eq!((status, &told["data"]), (200, &wanted));
        let members = sender.members(&id).await;
        assert_eq!(members, texts(&contacts[..to.max(members.len())]));
    }
    // One that was taken out can come in again.
    let (_, rows) = sender.campaign(&id).await;
    let path = format!("/api/v1/campaign_contact/{}", rows[7]["id"].as_str().unwrap());
    assert_eq!(sender.world.ask(&sender.org, "DELETE", &path, &Value::Null).await.status, 200);
    assert_eq!(sender.add(&id, &contacts).await.0, 200);
    assert_eq!(sender.members(&id).await.last(), Some(&contacts[7].to_string()));
    sender.world.pass(HOUR);
    sender.world.minutes(2).await;
    assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (60, all("sent", 60)));
}

#[tokio::test]
async fn what_sends_nothing_more_takes_none() {
    let (sender, once) = empty(3, json!({})).await;
    let contacts = sender.contacts();
    sender.add(&once, &contacts[..1]).await;
    let run = sender.run(json!({})).await;
    let kind = |(status, told): (u16, Value)| (status, told["detail"][0]["type"].clone());
    assert_eq!(kind(sender.add(&run, &contacts).await), (409, json!("campaign_without_schedule")));
    sender.world.pass(HOUR);
    sender.minute(&[&once]).await;
    assert_eq!(kind(sender.add(&once, &contacts).await), (409, json!("campaign_completed")));
    let cancelled = created(&sender, json!({"contact_ids": null})).await;
    let cancelled = cancelled["id"].as_str().unwrap();
    sender.control(cancelled, "cancel").await;
    assert_eq!(kind(sender.add(cancelled, &contacts).await), (409, json!("campaign_cancelled")));
    assert_eq!(kind(sender.add(NOBODYS, &contacts).await), (404, json!("not_found")));
    let unknown = [contacts[0], NOBODYS.parse::<uuid::Uuid>().unwrap().into()];
    let waiting = created(&sender, json!({"contact_ids": null})).await;
    let (status, told) = sender.add(waiting["id"].as_str().unwrap(), &unknown).await;
    assert_eq!((status, &told["detail"][0]["loc"]), (422, &json!(["body", "contact_ids", 1])));
}

#[tokio::test]
async fn requests_side_by_side_add_each_once() {
    let (sender, id) = empty(50, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    // Some by one transaction, and some that are staged; every contact by several of them.
    let parts =
        [&contacts[..50], &contacts[..10], &contacts[20..50], &contacts[5..15], &contacts[..30], &contacts[40..50]];
    let answers = join_all(parts.iter().map(|part| sender.add(&id, part))).await;
    assert!(answers.iter().all(|(status, _)| *status == 200), "{answers:?}");
    let members = sender.members(&id).await;
    assert_eq!((members.len(), members.into_iter().collect::<BTreeSet<_>>().len()), (50, 50));
}

#[tokio::test]
async fn what_is_added_to_the_last_execution_while_it_is_sent_is_sent_too() {
    let (sender, id) = empty(60, json!({})).await;
    let contacts = sender.contacts();
    sender.add(&id, &contacts[..20]).await;
    sender.world.pass(HOUR);
    let ((), added) = tokio::join!(
        async {
            sender.world.stack.minute().await.unwrap();
            sender.world.settle().await;
        },
        async {
            while sender.world.get(&sender.org, &format!("/api/v1/campaign/get/{id}")).await["status"] == "to_be_run" {}
            sender.add(&id, &contacts[20..]).await
        }
    );
    for _ in 0..3 {
        sender.minute(&[&id]).await;
    }
    let sent = if added.0 == 200 { 60 } else { 20 };
    assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (sent, all("sent", sent)), "{added:?}");
    assert_eq!(sender.campaign(&id).await.0["status"], "completed");
}

#[tokio::test]
async fn wherever_a_process_dies_a_repeat_adds_the_rest_and_each_is_sent_once() {
    for contacts in [3, 20] {
        let prepare = async || empty(contacts, json!({"interval": 60})).await;
        let work = async |(sender, id): &(Sender, String)| {
            sender.add(id, &sender.contacts()[..1]).await;
            sender.add(id, &sender.contacts()).await;
        };
        let look = async |(sender, id): &(Sender, String), what: String| {
            // What is not committed is not there.
            let members = sender.members(id).await.len();
            assert!([0, 1, contacts].contains(&members), "{members} {what}");
            // Whoever died is waited for no longer than its marker says.
            sender.world.pass(40);
            assert_eq!(sender.add(id, &sender.contacts()).await.0, 200, "{what}");
            assert_eq!(sender.members(id).await, texts(&sender.contacts()), "{what}");
            sender.world.pass(HOUR);
            for _ in 0..2 {
                sender.minute(&[id]).await;
            }
            assert_eq!(sender.outcome(id).await, BTreeMap::from([("sent".to_owned(), contacts)]), "{what}");
            assert_eq!(
                (events(&sender.received()).len(), sender.conversations().await.len()),
                (contacts, contacts),
                "{what}"
            );
        };
        crashes_everywhere(prepare, |(sender, _)| &sender.world, work, look).await;
    }
}
