//! `POST /api/v1/campaign/create`: creates a campaign that is sent once or at an interval, inside its window.

use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::widget::WidgetType;
use shared::values::time::Timestamp;

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::{ACME, call, data, id, json, kind, post, stack};
use crate::support::records::{changes, detail, issue, items, nothing, wrong};
use crate::support::sender::{Sender, all, counts, created, event, no_outcomes};
use crate::support::sending::{Setup, events};

const PATH: &str = "/api/v1/campaign/create";
const HOUR: i64 = 3600;

fn time(text: &str) -> Timestamp {
    serde_json::from_value(json!(text)).unwrap()
}

async fn refusal(body: Value) -> (u16, Value) {
    let stack = stack().await;
    let before = items(&stack).await;
    let answer = stack.answer(&post(PATH, ACME, body.to_string())).await;
    assert_eq!(changes(&stack, &before).await, nothing(), "{body}");
    detail(&answer)
}

/// A body with the required members and the members of `more`.
fn body(more: &Value) -> Value {
    let mut body = json!({"name": "Reminder", "type": "message", "start_time": "2030-01-07T09:00:00Z"});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

#[tokio::test]
async fn answers_and_stores_every_field() {
    let stack = stack().await;
    let said = json!({
        "name": "Reminder", "type": "message", "start_time": "2030-07-08T09:00:00", "interval": 1440, "message": "See you!",
        "widget_id": id('a', kind::WIDGET, 1), "attributes": {"team": 7}, "execution_weekdays": [0, 1, "2", 7], "enabled": true,
        "time_window_start": "08:30", "time_window_end": "17:00", "time_zone": "europe/berlin", "status": "to_be_run",
        "contact_ids": [id('a', kind::CONTACT, 0), id('a', kind::CONTACT, 1), id('a', kind::CONTACT, 0)],
    });
    let answer = stack.answer(&post(PATH, ACME, said.to_string())).await;
    assert_eq!((answer.status, &json(&answer)["message"]), (201, &json!("Data created successfully")));
    let made = data(&answer);
    for (name, wanted) in [
        ("name", json!("Reminder")),
        ("type", json!("message")),
        ("widget_id", json!(id('a', kind::WIDGET, 1))),
        ("assistant_id", json!(id('a', kind::ASSISTANT, 1))),
        ("message", json!("See you!")),
        ("start_new_conversation", json!(false)),
        ("status", json!("to_be_run")),
        ("counts", counts([("queued", 2)])),
        ("outcomes", no_outcomes()),
        ("start_time", json!("2030-07-08T07:00:00.000Z")),
        ("interval", json!(1440)),
        ("execution_weekdays", json!([1, 2, 7])),
        ("time_window_start", json!("08:30")),
        ("time_window_end", json!("17:00")),
        ("time_zone", json!("Europe/Berlin")),
        ("enabled", json!(true)),
        ("attributes", json!({"team": 7})),
        ("next_run_at", json!("2030-07-08T07:00:00.000Z")),
        ("last_run_at", Value::Null),
    ] {
        assert_eq!(made[name], wanted, "{name}");
    }
    let path = format!("/api/v1/campaign/get/{}", made["id"].as_str().unwrap());
    assert_eq!(data(&stack.answer(&call("GET", &path, ACME)).await), made);
}

#[tokio::test]
async fn a_disabled_campaign_without_a_widget_waits() {
    let sender = Sender::new(true, 2).await;
    let body = json!({
        "name": "Calls", "type": "outbound_call", "start_time": "2026-01-01T00:00:00Z", "interval": 60, "status": "not_started",
    });
    let made = sender.setup.post(&sender.org, PATH, body).await;
    assert_eq!(
        (&made["status"], &made["next_run_at"], &made["widget_id"]),
        (&json!("not_started"), &Value::Null, &Value::Null)
    );
    let disabled = created(&sender, json!({"enabled": false, "interval": 60})).await;
    sender.setup.minutes(90).await;
    assert_eq!(sender.received(), Vec::new());
    assert_eq!(sender.outcome(disabled["id"].as_str().unwrap()).await, all("queued", 2));
}

/// The status of a request; that of the campaign, enabled and disabled; and how `resume` refuses the enabled one.
const STATUSES: [(&str, &str, &str, Option<&str>); 7] = [
    ("not_started", "to_be_run", "not_started", None),
    ("to_be_run", "to_be_run", "not_started", None),
    ("queued", "to_be_run", "not_started", None),
    ("in_progress", "to_be_run", "not_started", None),
    ("paused", "paused", "paused", None),
    ("cancelled", "cancelled", "cancelled", Some("campaign_cancelled")),
    ("completed", "completed", "completed", Some("campaign_completed")),
];

#[tokio::test]
async fn each_status_is_taken_and_only_a_waiting_campaign_sends() {
    for (status, enabled, disabled, refusal) in STATUSES {
        let sender = Sender::new(true, 2).await;
        let off = created(&sender, json!({"status": status, "enabled": false})).await;
        assert_eq!((&off["status"], &off["next_run_at"]), (&json!(disabled), &Value::Null), "{status}");
        let made = created(&sender, json!({"status": status})).await;
        let id = made["id"].as_str().unwrap();
        assert_eq!((&made["status"], sender.campaign(id).await.0), (&json!(enabled), made.clone()), "{status}");
        let sends = enabled == "to_be_run";
        assert_eq!(made["next_run_at"].is_null(), !sends, "{status}");
        let counts = |queued, cancelled| counts([("queued", queued), ("cancelled", cancelled)]);
        assert_eq!(made["counts"], if status == "cancelled" { counts(0, 2) } else { counts(2, 0) }, "{status}");
        sender.setup.minutes(90).await;
        assert_eq!(sender.received().len(), if sends { 2 } else { 0 }, "{status}");
        if !sends {
            let (code, answer) = sender.control(id, "resume").await;
            match refusal {
                None => assert_eq!(code, 200, "{answer}"),
                Some(kind) => assert_eq!((code, answer), (409, json!(kind))),
            }
            sender.setup.minutes(3).await;
            assert_eq!(sender.received().len(), if refusal.is_none() { 2 } else { 0 }, "{status}");
        }
    }
}

#[tokio::test]
async fn lists_every_issue_and_creates_nothing() {
    let (status, told) = refusal(json!({
        "type": "letter", "start_time": "tomorrow", "interval": 0, "execution_weekdays": [1, 8],
        "time_window_start": "9:00", "time_window_end": "24:00", "time_zone": "Mars/Olympus", "contact_ids": [], "status": "done",
    }))
    .await;
    let told: Vec<_> = told
        .as_array()
        .unwrap()
        .iter()
        .map(|issue| format!("{} {}", issue["loc"], issue["type"].as_str().unwrap()))
        .collect();
    let wanted = [
        r#"["body","type"] enum"#,
        r#"["body","start_time"] datetime_from_date_parsing"#,
        r#"["body","interval"] greater_than_equal"#,
        r#"["body","execution_weekdays",1] less_than_equal"#,
        r#"["body","time_window_start"] time_parsing"#,
        r#"["body","time_window_end"] time_parsing"#,
        r#"["body","time_zone"] value_error"#,
        r#"["body","contact_ids"] too_short"#,
        r#"["body","status"] enum"#,
        r#"["body","name"] missing"#,
    ];
    assert_eq!((status, told), (422, wanted.map(str::to_owned).to_vec()));
    let (_, told) = refusal(json!({})).await;
    let missing =
        ["name", "type", "start_time"].map(|field| issue(&json!(["body", field]), "missing", "Field required"));
    assert_eq!(told, json!(missing));
}

#[tokio::test]
async fn refuses_an_impossible_schedule_or_an_unfit_widget_with_422() {
    let never = "Value error, no execution is ever inside the window and on the weekdays";
    let empty = "Value error, the window never opens: it ends when it begins";
    let window = |from: &str, to: &str| json!({"time_window_start": from, "time_window_end": to});
    let other = "Value error, the widget is of the other kind";
    let daily = json!({"time_window_start": "12:00", "time_window_end": "17:00", "interval": 1440});
    let widget = |number| json!({"widget_id": id('a', kind::WIDGET, number), "enabled": true});
    for (more, field, kind, message) in [
        (window("09:00", "09:00"), "time_window_end", "value_error", empty),
        (daily, "time_window_end", "value_error", never),
        (json!({"time_window_start": "12:00", "interval": 2880}), "time_window_start", "value_error", never),
        // 2030-01-07 is a Monday.
        (json!({"execution_weekdays": [2, 3], "interval": 10080}), "execution_weekdays", "value_error", never),
        (json!({"widget_id": id('b', kind::WIDGET, 1)}), "widget_id", "not_found", "Not found"),
        (json!({"enabled": true}), "widget_id", "missing", "Field required"),
        (widget(2), "widget_id", "value_error", other),
        // The third one is a chat without an opening message.
        (widget(3), "message", "missing", "Field required"),
    ] {
        assert_eq!(refusal(body(&more)).await, wrong(field, kind, message), "{more}");
    }
    let contacts = json!({"contact_ids": [id('a', kind::CONTACT, 1), id('b', kind::CONTACT, 1)]});
    let unknown = issue(&json!(["body", "contact_ids", 1]), "not_found", "Not found");
    assert_eq!(refusal(body(&contacts)).await, (422, json!([unknown])));
    let stack = stack().await;
    for more in [
        window("12:00", "17:00"),
        window("22:00", "06:00"),
        json!({"execution_weekdays": [2]}),
        json!({"execution_weekdays": [2, 3], "interval": 1440}),
        json!({"execution_weekdays": []}),
        json!({"execution_weekdays": null, "interval": null, "time_zone": null, "attributes": null}),
    ] {
        data(&stack.answer(&post(PATH, ACME, body(&more).to_string())).await);
    }
}

#[tokio::test]
async fn a_campaign_is_sent_once_at_its_start_time() {
    for kind in [WidgetType::Whatsapp, WidgetType::Phone] {
        let sender = Sender::of(Setup::start().await, kind, true, 12).await;
        let made = created(&sender, json!({"type": if kind.calls() { "outbound_call" } else { "message" }})).await;
        let id = made["id"].as_str().unwrap();
        sender.setup.pass(HOUR - 120);
        sender.minute(&[id]).await;
        assert_eq!((sender.received().len(), sender.campaign(id).await.0["status"].clone()), (0, json!("to_be_run")));
        sender.until_the_end(id).await;
        let (campaign, _) = sender.campaign(id).await;
        assert_eq!((&campaign["status"], &campaign["next_run_at"]), (&json!("completed"), &Value::Null));
        assert_eq!((events(&sender.received()).len(), sender.outcome(id).await), (12, all("sent", 12)));
        let sent = event(&sender.received()[0])["data"].clone();
        let message = if kind.calls() { Value::Null } else { json!("See you!") };
        assert_eq!((&sent["campaign_id"], &sent["message"]), (&json!(id), &message));
        sender.setup.pass(HOUR);
        sender.setup.minutes(3).await;
        assert_eq!(sender.received().len(), 12);
    }
}

#[tokio::test]
async fn each_execution_goes_to_the_contacts_added_since_the_last_one() {
    let sender = Sender::new(true, 6).await;
    let contacts = sender.contacts();
    let made = created(&sender, json!({"interval": 60, "contact_ids": contacts[..2]})).await;
    let id = made["id"].as_str().unwrap();
    let start = sender.setup.clock.now().plus_seconds(HOUR);
    for execution in 0..3 {
        let begun = start.plus_seconds(execution * HOUR);
        sender.setup.clock.set(begun.plus_seconds(-60));
        sender.minute(&[id]).await;
        let (campaign, _) = sender.campaign(id).await;
        assert_eq!(
            (&campaign["status"], &campaign["next_run_at"]),
            (&json!("to_be_run"), &json!(begun.plus_seconds(HOUR)))
        );
        let sent = 2 * usize::try_from(execution + 1).unwrap();
        assert_eq!((events(&sender.received()).len(), sender.outcome(id).await), (sent, all("sent", sent)));
        // Two new contacts, beside the earlier ones, who get nothing more.
        let more = json!({"contact_ids": contacts[..(sent + 2).min(6)]});
        let added = sender.setup.post(&sender.org, &format!("/api/v1/campaign/{id}/contact"), more).await;
        assert_eq!((&added["contacts"], &added["next_run_at"]), (&json!((sent + 2).min(6)), &campaign["next_run_at"]));
        sender.minute(&[id]).await;
        assert_eq!(sender.received().len(), sent, "a contact is sent before the next execution");
    }
}

#[tokio::test]
async fn sending_stops_with_the_window_and_resumes_in_the_next_one() {
    let sender = Sender::new(true, 30).await;
    // One second before the window closes in Berlin, on a Friday: at ten a second, a third of the contacts is sent.
    let start = time("2026-11-27T15:59:59Z");
    let window = json!({
        "start_time": start, "time_window_start": "09:00", "time_window_end": "17:00", "time_zone": "Europe/Berlin",
        "execution_weekdays": [1, 2, 3, 4, 5],
    });
    let made = created(&sender, window).await;
    let id = made["id"].as_str().unwrap();
    assert_eq!(made["next_run_at"], json!(start));
    sender.setup.clock.set(start.plus_seconds(-60));
    sender.minute(&[id]).await;
    sender.minute(&[id]).await;
    let (campaign, _) = sender.campaign(id).await;
    let monday = time("2026-11-30T08:00:00Z");
    assert_eq!((&campaign["status"], &campaign["next_run_at"]), (&json!("to_be_run"), &json!(monday)));
    let dispatched = sender.conversations().await.len();
    assert!((5..=11).contains(&dispatched), "{dispatched}");
    sender.setup.clock.set(monday.plus_seconds(-120));
    sender.minute(&[id]).await;
    // A sender reads the clock just before it sends; the clock of the tests jumps to the next waiting sender.
    let closed = start.plus_seconds(3).unix_seconds().to_string();
    let in_time = sender.received().iter().all(|request| request.headers["webhook-timestamp"] < closed);
    assert!(in_time && sender.received().len() <= dispatched && sender.conversations().await.len() == dispatched);
    sender.until_the_end(id).await;
    assert_eq!((events(&sender.received()).len(), sender.outcome(id).await), (30, all("sent", 30)));
    assert_eq!(sender.campaign(id).await.0["status"], "completed");
}

#[tokio::test]
async fn a_delivery_retry_waits_for_the_window() {
    let sender = Sender::new(true, 2).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    let start = time("2026-11-27T16:58:59Z");
    let made =
        created(&sender, json!({"start_time": start, "time_window_start": "09:00", "time_window_end": "17:00"})).await;
    let id = made["id"].as_str().unwrap();
    sender.setup.clock.set(start.plus_seconds(-60));
    sender.minute(&[id]).await;
    assert_eq!(sender.received().len(), 2);
    sender.minute(&[id]).await;
    let tries = sender.received().len();
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.setup.minutes(30).await;
    assert_eq!(
        (sender.received().len(), sender.outcome(id).await),
        (tries, all("queued", 2)),
        "a delivery was tried outside the window"
    );
    sender.setup.clock.set(time("2026-11-28T08:59:00Z"));
    for _ in 0..4 {
        sender.minute(&[id]).await;
    }
    assert_eq!((events(&sender.received()).len(), sender.outcome(id).await), (2, all("sent", 2)));
}

#[tokio::test]
async fn each_contact_is_sent_once_despite_a_crash() {
    let prepare = async || {
        let sender = Sender::new(true, 3).await;
        let made = created(&sender, json!({"interval": 60, "contact_ids": sender.contacts()[..2]})).await;
        sender.setup.pass(HOUR);
        (sender, made["id"].as_str().unwrap().to_owned())
    };
    let work = async |(sender, _): &(Sender, String)| {
        sender.setup.minute().await;
    };
    let once = async |(sender, id): &(Sender, String), case: String| {
        sender.while_due_within(HOUR / 2, id).await;
        let (campaign, _) = sender.campaign(id).await;
        assert_eq!((&campaign["status"], sender.outcome(id).await), (&json!("to_be_run"), all("sent", 2)), "{case}");
        assert_eq!((events(&sender.received()).len(), sender.conversations().await.len()), (2, 2), "{case}");
    };
    crashes_everywhere(prepare, |(sender, _)| &sender.setup, work, once).await;
}

#[tokio::test]
async fn a_retry_sends_failed_contacts_but_none_that_wait() {
    let sender = Sender::new(true, 3).await;
    let contacts = sender.contacts();
    sender.setup.receiver.behave("/connector", Behaviour::Answer(410));
    let made = created(&sender, json!({"interval": 1440, "contact_ids": contacts[..2]})).await;
    let id = made["id"].as_str().unwrap();
    sender.setup.pass(HOUR - 60);
    sender.minute(&[id]).await;
    assert_eq!(sender.outcome(id).await, all("failed", 2));
    let path = format!("/api/v1/campaign/{id}/contact");
    sender.setup.post(&sender.org, &path, json!({"contact_ids": contacts})).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    let next = sender.campaign(id).await.0["next_run_at"].clone();
    let retried = sender.control(id, "retry").await.1;
    assert_eq!((&retried["status"], &retried["counts"]["queued"]), (&json!("queued"), &json!(3)));
    for _ in 0..2 {
        sender.minute(&[id]).await;
    }
    let (campaign, _) = sender.campaign(id).await;
    assert_eq!(campaign["counts"], counts([("queued", 1), ("sent", 2)]));
    assert_eq!((&campaign["status"], &campaign["next_run_at"]), (&json!("to_be_run"), &next));
}
