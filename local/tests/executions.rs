//! The executions of campaigns with a schedule: whatever is done to a campaign, none of them is lost, and none comes before its time.

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
    /// The time at which a campaign is sent next.
    async fn next_run(&self, id: &str) -> Timestamp {
        serde_json::from_value(self.campaign(id).await.0["next_run_at"].clone()).unwrap()
    }

    /// It is so many seconds after the time at which the campaign is sent next, and nothing has been done yet.
    async fn pass_its_time(&self, id: &str, seconds: i64) {
        self.setup.clock.set(self.next_run(id).await.plus_seconds(seconds));
    }

    /// How many were sent.
    async fn sent(&self, id: &str) -> usize {
        self.outcome(id).await.get("sent").copied().unwrap_or_default()
    }
}

/// A campaign to the first of two contacts, which was sent once; the second one waits for the next execution.
async fn sent_once(interval: i64) -> (Sender, String) {
    let sender = Sender::new(true, 2).await;
    let contacts = sender.contacts();
    let made = created(&sender, json!({"interval": interval, "contact_ids": contacts[..1]})).await;
    let id = id_of(&made).to_owned();
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.outcome(&id).await, all("sent", 1));
    sender.add(&id, &contacts[1..]).await;
    (sender, id)
}

/// One of so many contacts at a contact a second, of which the first minute has sent some.
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
    assert_eq!((sender.outcome(&id).await, sender.next_run(&id).await), (all("sent", 2), due.plus_seconds(DAY)));
}

#[tokio::test]
async fn a_pause_over_the_time_of_an_execution_delays_it() {
    for (paused, resumed) in [(-3, -3), (-3, 300), (2, 300), (-HOUR, 3 * HOUR)] {
        let (sender, id) = sent_once(7 * 1440).await;
        let due = sender.next_run(&id).await;
        sender.pass_its_time(&id, paused).await;
        assert_eq!(sender.control(&id, "pause").await.0, 200);
        sender.setup.clock.set(due.plus_seconds(resumed));
        assert_eq!(sender.control(&id, "resume").await.0, 200);
        sender.setup.minutes(3).await;
        assert_eq!(sender.outcome(&id).await, all("sent", 2), "{paused} {resumed}");
        assert_eq!(events(&sender.received()).len(), 2);
        // The weeks are counted as before, where no execution was made up for late.
        let next = sender.next_run(&id).await;
        assert_eq!(next, due.plus_seconds(7 * DAY), "{paused} {resumed}");
    }
}

#[tokio::test]
async fn what_a_window_cuts_off_does_not_take_the_place_of_the_next_execution() {
    // It is 12:00, and begins at 13:00.
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
    assert_eq!(sender.outcome(&id).await, all("sent", 101));
    assert_eq!(sender.next_run(&id).await, due.plus_seconds(DAY));
}

#[tokio::test]
async fn nothing_goes_on_while_it_is_disabled_or_before_its_time() {
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
        assert_eq!(sender.outcome(&id).await, all("sent", 65));
        assert_eq!(sender.conversations().await.len(), 65);
    }
}

#[tokio::test]
async fn a_finished_campaign_that_gets_a_schedule_waits_for_its_time() {
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
        assert_eq!((sender.outcome(id).await, events(&sender.received()).len()), (all("sent", 2), 2));
    }
}

#[tokio::test]
async fn what_is_dispatched_and_still_tried_is_no_reason_for_a_retry() {
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
    assert_eq!(sender.outcome(&id).await, all("sent", 2));
}

#[tokio::test]
async fn what_a_pause_held_back_is_sent_after_its_schedule_was_taken_away_and_given_back() {
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
    assert_eq!(sender.outcome(&id).await, all("sent", 1));
}

#[tokio::test]
async fn whoever_waits_for_an_execution_that_there_is_no_more_gets_a_last_one() {
    let (sender, id) = sent_once(1440).await;
    let due = sender.next_run(&id).await;
    let last = sender.update(&id, &json!({"interval": null})).await.1;
    assert_eq!((&last["status"], &last["next_run_at"]), (&json!("to_be_run"), &json!(due)));
    sender.setup.minutes(2).await;
    assert_eq!(sender.sent(&id).await, 1);
    sender.until_the_end(&id).await;
    assert_eq!(
        (sender.outcome(&id).await, &sender.campaign(&id).await.0["status"]),
        (all("sent", 2), &json!("completed"))
    );
    // Nobody waits.
    let (sender, id) = sent_once(1440).await;
    sender.pass_its_time(&id, 0).await;
    sender.setup.minutes(1).await;
    assert_eq!(sender.update(&id, &json!({"interval": null})).await.1["status"], "completed");
}

#[tokio::test]
async fn a_widget_that_is_gone_stands_in_the_way_of_nothing_but_itself() {
    let (sender, id) = sent_once(1440).await;
    let path = format!("/api/v1/widget/{}", sender.widget.id);
    assert_eq!(sender.setup.ask(&sender.org, "DELETE", &path, &Value::Null).await.status, 200);
    assert_eq!(sender.update(&id, &json!({"name": "Renamed"})).await.1["name"], "Renamed");
    assert_eq!(sender.update(&id, &json!({"enabled": false})).await.1["status"], "not_started");
    assert_eq!(sender.update(&id, &json!({"enabled": true})).await, (422, json!(["widget_id", "not_found"])));
}
