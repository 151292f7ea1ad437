//! The items of contacts that wait for another attempt: what a pass reads, and what becomes of an item whose contact
//! waits no more.

use embedded_dynamodb::partitions::{Counting, Partitions, Unit};
use local::Settings;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::records::campaign::Campaign;
use shared::records::widget::WidgetType;
use shared::values::id::CampaignId;
use shared::values::time::Timestamp;

use crate::support::calling::{called, policy};
use crate::support::records::item_of;
use crate::support::sender::{Sender, all, created};
use crate::support::sending::{Setup, id_of};

const MINUTE: i64 = 60;
const DAY: i64 = 86_400;

impl Sender {
    /// The items of contacts that wait.
    pub fn items(&self) -> Vec<Value> {
        self.setup.find(None, "contains(pk, :waiting)", &json!({":waiting": {"S": "#CAMPAIGN_WAITING#"}}))
    }

    /// Puts items as they were found.
    async fn put_back(&self, items: &[Value]) {
        for item in items {
            let put = self.setup.stack.client.put_item().table_name(TABLE_NAME);
            put.set_item(Some(item_of(item))).send().await.unwrap();
        }
    }

    /// Stores a campaign as the version before stored it: its contacts wait, and have no items.
    async fn forget_items(&self, id: &str) {
        let client = &self.setup.stack.client;
        for item in self.items() {
            let item = item_of(&item);
            let delete = client.delete_item().table_name(TABLE_NAME);
            delete.key("pk", item["pk"].clone()).key("sk", item["sk"].clone()).send().await.unwrap();
        }
        let key = self.org.table.key::<Campaign>(CampaignId(id.parse().unwrap()));
        let update = client.update_item().table_name(TABLE_NAME);
        update.set_key(Some(key.attributes())).update_expression("REMOVE lists_waiting").send().await.unwrap();
    }
}

/// The read units that a pass takes of a campaign, two of whose contacts wait.
async fn read_units(contacts: usize) -> f64 {
    let partitions = Partitions::default();
    let counted = partitions.clone();
    let setup = Setup::with(|settings| Settings { partitions: counted, ..settings }).await;
    let sender = Sender::of(setup, WidgetType::Phone, true, contacts).await;
    let id = sender.run(json!({"retry_policy": policy(2)})).await;
    sender.until_the_end(&id).await;
    for place in [0, 1] {
        sender.report(&sender.contact(&id, place).await, "no_answer", 0).await;
    }
    sender.setup.settle().await;
    sender.setup.pass(30 * MINUTE);
    partitions.set(Counting::Counted);
    partitions.forget();
    sender.setup.stack.tick("send-campaigns").await.unwrap();
    let heat = partitions.heat();
    sender.setup.settle().await;
    assert_eq!((sender.calls(), sender.items().len()), (contacts + 2, 0));
    let of_campaign = heat.iter().filter(|(of, _)| of.unit == Unit::Read && of.key.contains("#CAMPAIGN_"));
    of_campaign.map(|(_, heat)| heat.units).sum()
}

#[tokio::test]
async fn a_pass_reads_only_the_contacts_whose_time_has_come() {
    let (few, many) = (read_units(20).await, read_units(200).await);
    // Two contacts, the items that are there and those that are left, and the text of the campaign.
    assert!((few - many).abs() < 0.25 && few <= 6.0, "{few} {many}");
}

#[tokio::test]
async fn each_way_that_ends_the_wait_leaves_no_item_and_no_call() {
    let ways = [
        ("a later report", 3),
        ("a person who opts out", 3),
        ("a suppression", 3),
        ("delete-campaign-contact", 3),
        ("delete-contact", 3),
        ("pause and resume", 4),
        ("retry-campaign", 4),
    ];
    for (way, calls) in ways {
        let (sender, id) = called(2, 3).await;
        for contact in sender.campaign(&id).await.1 {
            sender.report(&contact, "no_answer", -20).await;
        }
        let first = sender.contact(&id, 0).await;
        match way {
            "a later report" => drop(sender.report(&first, "answered", -10).await),
            "a person who opts out" => drop(sender.report(&first, "opted_out", -10).await),
            "a suppression" => {
                let number = json!({"phone_number": "+31201000000"});
                sender.setup.post(&sender.org, "/api/v1/suppression", number).await;
            }
            "delete-campaign-contact" => drop(sender.delete(&format!("campaign_contact/{}", id_of(&first))).await),
            "delete-contact" => drop(sender.delete(&format!("contact/{}", sender.contacts[0].id)).await),
            "pause and resume" => {
                assert_eq!(sender.control(&id, "pause").await.0, 200);
                sender.setup.minutes(40).await;
                assert_eq!(sender.control(&id, "resume").await.0, 200);
            }
            _ => assert_eq!(sender.control(&id, "retry").await, (409, json!("campaign_in_progress"))),
        }
        assert_eq!(sender.items().len(), 2, "{way}");
        sender.until_the_end(&id).await;
        let (campaign, contacts) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], sender.calls()), (&json!("completed"), calls), "{way}");
        assert_eq!(contacts.last().unwrap()["attempts"], 2, "{way}");
        assert_eq!(sender.items(), Vec::<Value>::new(), "{way}");
    }
}

#[tokio::test]
async fn the_items_of_a_deleted_campaign_are_removed() {
    for cancelled in [true, false] {
        let (sender, id) = called(2, 2).await;
        for contact in sender.campaign(&id).await.1 {
            sender.report(&contact, "busy", 0).await;
        }
        if cancelled {
            assert_eq!(sender.control(&id, "cancel").await.0, 200);
            sender.setup.minutes(40).await;
        }
        sender.delete(&format!("campaign/{id}")).await;
        sender.setup.settle().await;
        sender.setup.minutes(40).await;
        assert_eq!((sender.calls(), sender.items()), (2, Vec::new()));
    }
}

#[tokio::test]
async fn an_item_that_a_crash_has_left_changes_nothing() {
    let (sender, id) = called(2, 3).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    let left = sender.items();
    sender.setup.minutes(30).await;
    assert_eq!((sender.calls(), sender.items().len()), (3, 0));
    // The process has dispatched the contact, and has crashed before it removed the item.
    sender.put_back(&left).await;
    sender.setup.minutes(3).await;
    sender.report(&sender.contact(&id, 0).await, "busy", 0).await;
    sender.report(&sender.contact(&id, 1).await, "busy", 10).await;
    assert_eq!(sender.items().len(), 3);
    sender.setup.minutes(30).await;
    assert_eq!((sender.calls(), sender.items().len()), (4, 1));
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), sender.items().len(), sender.outcome(&id).await), (5, 0, all("sent", 2)));
}

#[tokio::test]
async fn contacts_that_waited_before_there_were_items_are_attempted() {
    let (sender, id) = called(3, 3).await;
    sender.report(&sender.contact(&id, 0).await, "no_answer", 0).await;
    sender.forget_items(&id).await;
    sender.report(&sender.contact(&id, 1).await, "no_answer", 10 * MINUTE / 3).await;
    assert_eq!(sender.items().len(), 1);
    sender.setup.minutes(30).await;
    assert_eq!((sender.calls(), &sender.contact(&id, 0).await["attempts"]), (4, &json!(2)));
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), &sender.contact(&id, 1).await["attempts"]), (5, &json!(2)));
    assert_eq!(sender.items().len(), 0);
    // No contact waits without an item any more.
    sender.report(&sender.contact(&id, 2).await, "no_answer", 0).await;
    let lists = sender.setup.find(None, "lists_waiting = :true", &json!({":true": {"BOOL": true}}));
    assert_eq!((lists.len(), sender.items().len()), (1, 1));
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), sender.items().len()), (6, 0));
}

#[tokio::test]
async fn a_pass_goes_on_after_its_window_has_closed_and_changed() {
    let setup = Setup::with(|settings| Settings { sends_per_second: 1, ..settings }).await;
    let sender = Sender::of(setup, WidgetType::Phone, true, 4).await;
    // 2026-02-02 is a Monday.
    let made = created(
        &sender,
        json!({
            "type": "outbound_call", "start_time": "2026-02-02T16:00:00Z", "retry_policy": policy(2),
            "time_window_start": "09:00", "time_window_end": "17:00", "execution_weekdays": [1, 3],
        }),
    );
    let id = id_of(&made.await).to_owned();
    sender.while_due_within(2 * DAY, &id).await;
    assert_eq!(sender.outcome(&id).await, all("sent", 4));
    let at = |time: &str| -> Timestamp { serde_json::from_value(json!(time)).unwrap() };
    sender.setup.clock.set(at("2026-02-02T16:28:58Z"));
    for contact in sender.campaign(&id).await.1 {
        sender.report(&contact, "no_answer", 60).await;
    }
    sender.setup.clock.set(at("2026-02-02T16:59:58Z"));
    sender.setup.minute().await;
    sender.setup.minutes(2).await;
    // A second has room for one contact.
    assert!((5..8).contains(&sender.calls()) && !sender.items().is_empty(), "{}", sender.calls());
    assert_eq!(sender.campaign(&id).await.0["next_run_at"], "2026-02-04T09:00:00.000Z");
    let (_, changed) = sender.update(&id, &json!({"time_window_start": "10:00"})).await;
    assert_eq!(changed["next_run_at"], "2026-02-04T10:00:00.000Z");
    sender.until_the_end(&id).await;
    assert_eq!((sender.calls(), sender.outcome(&id).await), (8, all("sent", 4)));
    assert_eq!((sender.campaign(&id).await.0["status"].clone(), sender.items().len()), (json!("completed"), 0));
}
