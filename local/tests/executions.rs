//! Changes campaigns with a schedule: no execution is lost, and no execution comes early.

use local::Settings;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;
use shared::values::time::Timestamp;

use crate::support::sender::{Sender, all, created};
use crate::support::sending::{Setup, events, id_of};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;

impl Sender {
    /// The time of the next execution.
    async fn next_run(&self, id: &str) -> Timestamp {
        serde_json::from_value(self.campaign(id).await.0["next_run_at"].clone()).unwrap()
    }

    /// Sets the clock to `seconds` after the next execution, without any work.
    async fn pass_its_time(&self, id: &str, seconds: i64) {
        self.setup.clock.set(self.next_run(id).await.plus_seconds(seconds));
    }

    /// The number of contacts that have got their message.
    async fn sent(&self, id: &str) -> usize {
        let outcome = self.outcome(id).await;
        ["sent", "stored"].iter().filter_map(|status| outcome.get(*status)).sum()
    }
}

/// A campaign that was sent to the first of two contacts. The second contact waits for the next execution.
async fn sent_once(interval: i64) -> (Sender, String) {
    let sender = Sender::new(true, 2).await;
    let contacts = sender.contacts();
    let made = created(&sender, json!({"interval": interval, "contact_ids": contacts[..1]})).await;
    let id = id_of(&made).to_owned();
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.outcome(&id).await, sender.done(1));
    sender.add(&id, &contacts[1..]).await;
    (sender, id)
}

/// A campaign that sends one contact a second, after its first minute.
async fn begun(contacts: usize, more: Value) -> (Sender, String) {
    let slow = |settings| Settings { sends_per_second: 1, ..settings };
    let sender = Sender::of(Setup::with(slow).await, WidgetType::Whatsapp, false, contacts).await;
    let id = id_of(&created(&sender, more).await).to_owned();
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    let sent = sender.sent(&id).await;
    assert!(sent > 0 && sent < contacts, "{sent}");
    (sender, id)
}

#[tokio::test]
async fn an_update_does_not_move_an_execution_that_is_due() {
    let (sender, id) = sent_once(1440).await;
    sender.pass_its_time(&id, 2).await;
    let due = sender.next_run(&id).await;
    let (status, renamed) = sender.update(&id, &json!({"name": "Renamed", "message": "Hi", "attributes": {}})).await;
    assert_eq!((status, &renamed["next_run_at"]), (200, &json!(due)));
    sender.setup.minutes(1).await;
    assert_eq!((sender.outcome(&id).await, sender.next_run(&id).await), (sender.done(2), due.plus_seconds(DAY)));
}

#[tokio::test]
async fn a_pause_delays_an_execution_that_falls_into_it() {
    for (paused, resumed) in [(-3, -3), (-3, 300), (2, 300), (-HOUR, 3 * HOUR)] {
        let (sender, id) = sent_once(7 * 1440).await;
        let due = sender.next_run(&id).await;
        sender.pass_its_time(&id, paused).await;
        assert_eq!(sender.control(&id, "pause").await.0, 200);
        sender.setup.clock.set(due.plus_seconds(resumed));
        assert_eq!(sender.control(&id, "resume").await.0, 200);
        sender.setup.minutes(3).await;
        assert_eq!(sender.outcome(&id).await, sender.done(2), "{paused} {resumed}");
        assert_eq!(events(&sender.received()).len(), 2);
        // The late execution does not move the next one.
        let next = sender.next_run(&id).await;
        assert_eq!(next, due.plus_seconds(7 * DAY), "{paused} {resumed}");
    }
}

#[tokio::test]
async fn contacts_after_the_window_do_not_replace_the_next_execution() {
    // The time is 12:00, and the first execution is at 13:00.
    let window = json!({"interval": 1440, "time_window_start": "13:00", "time_window_end": "13:03"});
    let (sender, id) = begun(100, window).await;
    sender.setup.minutes(10).await;
    let first = sender.sent(&id).await;
    assert!(first < 100, "{first}");
    let late = json!({"email": "late@example.com"});
    let late = sender.setup.post(&sender.org, "/api/v1/contact/upsert", late).await;
    let added = sender.add(&id, &[serde_json::from_value(late["id"].clone()).unwrap()]).await.1;
    let due = sender.next_run(&id).await;
    assert_eq!(added["data"]["next_run_at"], json!(due));
    sender.setup.clock.set(due);
    sender.setup.minutes(5).await;
    assert_eq!(sender.outcome(&id).await, sender.done(101));
    assert_eq!(sender.next_run(&id).await, due.plus_seconds(DAY));
}

#[tokio::test]
async fn a_resumed_campaign_waits_until_it_is_enabled_and_due() {
    for later in [false, true] {
        let (sender, id) = begun(65, json!({"interval": 1440})).await;
        assert_eq!(sender.control(&id, "pause").await.0, 200);
        sender.setup.minutes(1).await;
        let sent = sender.sent(&id).await;
        let start = sender.setup.clock.now().plus_seconds(3 * DAY);
        let change = if later { json!({"start_time": start}) } else { json!({"enabled": false}) };
        assert_eq!(sender.update(&id, &change).await.1["status"], "paused");
        let resumed = sender.control(&id, "resume").await.1;
        let wanted = if later { (json!("to_be_run"), json!(start)) } else { (json!("not_started"), Value::Null) };
        assert_eq!((resumed["status"].clone(), resumed["next_run_at"].clone()), wanted);
        sender.setup.minutes(3).await;
        assert_eq!(sender.sent(&id).await, sent);
        if later {
            sender.setup.clock.set(start);
        } else {
            assert_eq!(sender.update(&id, &json!({"enabled": true})).await.1["status"], "queued");
        }
        sender.setup.minutes(5).await;
        assert_eq!(sender.outcome(&id).await, sender.done(65));
        assert_eq!(sender.conversations().await.len(), 65);
    }
}

#[tokio::test]
async fn a_completed_campaign_with_a_new_schedule_waits_for_its_time() {
    for interval in [Value::Null, json!(1440)] {
        let sender = Sender::new(true, 2).await;
        let contacts = sender.contacts();
        let id = &sender.run_for(&contacts[..1], json!({"message": "Now"})).await;
        sender.until_the_end(id).await;
        let start = sender.setup.clock.now().plus_seconds(30 * DAY);
        let later = json!({"start_time": start, "interval": interval, "enabled": true, "contact_ids": contacts[1..]});
        let planned = sender.update(id, &later).await.1;
        assert_eq!((&planned["status"], &planned["next_run_at"]), (&json!("to_be_run"), &json!(start)));
        sender.setup.minutes(3).await;
        assert_eq!((sender.sent(id).await, sender.next_run(id).await), (1, start));
        sender.setup.clock.set(start);
        sender.setup.minutes(1).await;
        assert_eq!((sender.outcome(id).await, events(&sender.received()).len()), (sender.done(2), 2));
    }
}

#[tokio::test]
async fn a_retry_is_refused_while_a_delivery_is_attempted() {
    let sender = Sender::new(true, 2).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
    let made = created(&sender, json!({"interval": 1440, "contact_ids": sender.contacts()[..1]})).await;
    let id = id_of(&made).to_owned();
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    sender.add(&id, &sender.contacts()[1..]).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.control(&id, "retry").await, (409, json!("campaign_in_progress")));
    sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
    sender.setup.minutes(10).await;
    assert_eq!(sender.outcome(&id).await, all("failed", 2));
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    assert_eq!(sender.control(&id, "retry").await.1["status"], "queued");
    sender.setup.minutes(2).await;
    assert_eq!(sender.outcome(&id).await, sender.done(2));
}

#[tokio::test]
async fn a_paused_delivery_is_sent_after_its_schedule_returns() {
    let sender = Sender::new(true, 1).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    let id = id_of(&created(&sender, json!({"interval": 1440})).await).to_owned();
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.control(&id, "pause").await.0, 200);
    sender.setup.minutes(10).await;
    assert_eq!(sender.update(&id, &json!({"start_time": null})).await.1["status"], "not_started");
    let start = sender.setup.clock.now().plus_seconds(HOUR);
    let planned = sender.update(&id, &json!({"start_time": start})).await.1;
    assert_eq!((&planned["status"], &planned["next_run_at"]), (&json!("to_be_run"), &json!(start)));
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.setup.minutes(1).await;
    assert_eq!(sender.outcome(&id).await, all("queued", 1));
    sender.setup.clock.set(start);
    sender.setup.minutes(2).await;
    assert_eq!(sender.outcome(&id).await, sender.done(1));
}

#[tokio::test]
async fn waiting_contacts_get_one_last_execution() {
    let (sender, id) = sent_once(1440).await;
    let due = sender.next_run(&id).await;
    let last = sender.update(&id, &json!({"interval": null})).await.1;
    assert_eq!((&last["status"], &last["next_run_at"]), (&json!("to_be_run"), &json!(due)));
    sender.setup.minutes(2).await;
    assert_eq!(sender.sent(&id).await, 1);
    sender.until_the_end(&id).await;
    assert_eq!(
        (sender.outcome(&id).await, &sender.campaign(&id).await.0["status"]),
        (sender.done(2), &json!("completed"))
    );
    // Without a waiting contact, the campaign is completed.
    let (sender, id) = sent_once(1440).await;
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.update(&id, &json!({"interval": null})).await.1["status"], "completed");
}

#[tokio::test]
async fn a_deleted_widget_prevents_only_the_enabling() {
    let (sender, id) = sent_once(1440).await;
    sender.delete(&format!("widget/{}", sender.widget.id)).await;
    assert_eq!(sender.update(&id, &json!({"name": "Renamed"})).await.1["name"], "Renamed");
    assert_eq!(sender.update(&id, &json!({"enabled": false})).await.1["status"], "not_started");
    assert_eq!(sender.update(&id, &json!({"enabled": true})).await, (422, json!(["widget_id", "not_found"])));
}
