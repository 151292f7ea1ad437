//! `PUT /api/v1/campaign/update/{campaign_id}`: changes a campaign, or pauses, resumes or cancels it.

use std::collections::{BTreeMap, BTreeSet};

use local::http::Call;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::assistant::ConversationSettings;
use shared::records::campaign;
use shared::records::campaign::{Campaign, Dispatch, Dispatched, Prepared};
use shared::records::conversation::{Conversation, NewMessage, SenderType};
use shared::records::suppression;
use shared::values::id::{CampaignId, ContactId, MessageId};

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::{ACME, call, data, id, json, kind, stack};
use crate::support::records::NOBODYS;
use crate::support::sender::{Sender, created, empty, event, texts};
use crate::support::sending::events;

const HOUR: i64 = 3600;

/// A campaign for two contacts, whose body also has the members of `more`, and its id.
async fn campaign(more: Value) -> (Sender, String) {
    let sender = Sender::new(true, 2).await;
    let made = created(&sender, more).await;
    let id = made["id"].as_str().unwrap().to_owned();
    (sender, id)
}

#[tokio::test]
async fn an_absent_field_stays_and_null_sets_the_default() {
    let (sender, id) = campaign(json!({"interval": 60, "attributes": {"team": 7}})).await;
    let before = sender.campaign(&id).await.0;
    sender.setup.pass(1);
    let (_, renamed) = sender.update(&id, &json!({"name": "Renamed", "message": "Changed"})).await;
    let mut wanted = before.clone();
    (wanted["name"], wanted["message"]) = (json!("Renamed"), json!("Changed"));
    wanted["updated_at"] = json!(sender.setup.clock.now());
    assert_eq!(renamed, wanted);
    assert_eq!(sender.campaign(&id).await.0, wanted);
    // Without an interval there is one execution; without a message, the widget's message is sent.
    let (_, reset) = sender.update(&id, &json!({"interval": null, "message": null, "attributes": null})).await;
    assert_eq!(
        (&reset["interval"], &reset["message"], &reset["attributes"]),
        (&Value::Null, &json!("Hello"), &json!({}))
    );
    assert_eq!(sender.campaign(&id).await.0, reset);
    // The read campaign, sent back unchanged, changes nothing.
    sender.setup.pass(1);
    assert_eq!(sender.update(&id, &reset).await, (200, reset.clone()));
    assert_eq!(sender.campaign(&id).await.0, reset);
}

#[tokio::test]
async fn the_next_run_follows_the_changed_schedule() {
    let (sender, id) = campaign(json!({"interval": 60})).await;
    let start = sender.setup.clock.now().plus_seconds(2 * HOUR);
    let next = async |body: Value| {
        let (status, answer) = sender.update(&id, &body).await;
        assert_eq!((status, &sender.campaign(&id).await.0), (200, &answer), "{body}");
        (answer["status"].clone(), answer["next_run_at"].clone())
    };
    assert_eq!(next(json!({"start_time": start})).await, (json!("to_be_run"), json!(start)));
    assert_eq!(next(json!({"enabled": false})).await, (json!("not_started"), Value::Null));
    assert_eq!(next(json!({"enabled": true})).await, (json!("to_be_run"), json!(start)));
    // It is 12:00, on a Sunday.
    let sundays = json!({"execution_weekdays": [7], "time_window_start": "20:00", "time_zone": "UTC"});
    assert_eq!(next(sundays).await.1, "2026-02-01T20:00:00.000Z");
    assert_eq!(next(json!({"time_zone": "America/New_York"})).await.1, "2026-02-02T01:00:00.000Z");
    sender.setup.minutes(1).await;
    assert_eq!(sender.received(), Vec::new());
    // After an execution, the next run is one interval later.
    next(json!({"execution_weekdays": [], "time_window_start": null, "start_time": sender.setup.clock.now()})).await;
    sender.minute(&[&id]).await;
    assert_eq!(sender.outcome(&id).await, sender.done(2));
    let (status, at) = next(json!({"name": "Renamed"})).await;
    assert_eq!(status, "to_be_run");
    assert!(*at.as_str().unwrap() > *sender.setup.clock.now().plus_seconds(1800).to_string(), "{at}");
}

#[tokio::test]
async fn refuses_each_invalid_field_with_422() {
    let (sender, made) = campaign(json!({"interval": 60})).await;
    let before = sender.campaign(&made).await.0;
    for (body, field, kind) in [
        (json!({"widget_id": NOBODYS}), "widget_id", "not_found"),
        (json!({"widget_id": null}), "widget_id", "missing"),
        (json!({"type": "outbound_call"}), "widget_id", "value_error"),
        (json!({"time_window_start": "10:00", "time_window_end": "10:00"}), "time_window_end", "value_error"),
        (json!({"time_zone": "Nowhere"}), "time_zone", "value_error"),
        (json!({"interval": -5}), "interval", "greater_than_equal"),
        (json!({"status": "completed"}), "status", "value_error"),
        (json!({"status": "done"}), "status", "enum"),
    ] {
        assert_eq!(sender.update(&made, &body).await, (422, json!([field, kind])), "{body}");
        assert_eq!(sender.campaign(&made).await.0, before, "{body}");
    }
    // A campaign without a schedule can get a name.
    let run = call("PUT", &format!("/api/v1/campaign/update/{}", id('a', kind::CAMPAIGN, 0)), ACME);
    let named = data(&stack().await.answer(&Call { body: br#"{"name":"Hours"}"#.to_vec(), ..run }).await);
    assert_eq!((&named["name"], &named["status"]), (&json!("Hours"), &json!("paused")));
}

#[tokio::test]
async fn a_status_pauses_resumes_or_cancels_the_campaign() {
    // Before the first execution, and after it.
    for executions in [0, 1] {
        let (sender, id) = campaign(json!({"interval": 60})).await;
        sender.setup.minutes(61 * executions).await;
        let next = sender.campaign(&id).await.0["next_run_at"].clone();
        let turn = async |status: &str| sender.update(&id, &json!({"status": status})).await;
        let outcome =
            |(status, answer): (u16, Value)| (status, answer["status"].clone(), answer["next_run_at"].clone());
        assert_eq!(outcome(turn("paused").await), (200, json!("paused"), Value::Null));
        assert_eq!(outcome(turn("paused").await), (200, json!("paused"), Value::Null));
        // An execution that falls into the pause is made up for when the pause ends.
        sender.setup.minutes(2).await;
        let resumed = turn("in_progress").await;
        assert_eq!(resumed.0, 200, "{resumed:?}");
        sender.minute(&[&id]).await;
        let (campaign, _) = sender.campaign(&id).await;
        assert_eq!((&campaign["status"], &campaign["next_run_at"]), (&json!("to_be_run"), &next), "{executions}");
        assert_eq!(sender.received().len(), 2 * executions);
        assert_eq!(turn("cancelled").await.1["status"], "cancelled");
        for refused in [json!({"status": "paused"}), json!({"name": "Late"})] {
            assert_eq!(sender.update(&id, &refused).await, (409, json!(["campaign_id", "campaign_cancelled"])));
        }
        sender.setup.pass(7200);
        sender.setup.minutes(2).await;
        assert_eq!((sender.received().len(), sender.setup.due().len()), (2 * executions, 0));
    }
}

#[tokio::test]
async fn only_the_status_can_change_during_sending() {
    let (sender, id) = campaign(json!({})).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    sender.setup.minutes(60).await;
    assert_eq!(sender.campaign(&id).await.0["status"], "in_progress");
    assert_eq!(
        sender.update(&id, &json!({"name": "Late"})).await,
        (409, json!(["campaign_id", "campaign_in_progress"]))
    );
    assert_eq!(sender.update(&id, &json!({"status": "paused"})).await.1["status"], "paused");
    // A paused campaign can be changed.
    assert_eq!(sender.update(&id, &json!({"name": "Later"})).await.1["status"], "paused");
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    assert_eq!(sender.update(&id, &json!({"status": "in_progress"})).await.1["status"], "queued");
    sender.until_the_end(&id).await;
    assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (2, sender.done(2)));
    let (campaign, _) = sender.campaign(&id).await;
    assert_eq!((&campaign["name"], &campaign["status"]), (&json!("Later"), &json!("completed")));
    assert_eq!(
        sender.update(&id, &json!({"status": "paused"})).await,
        (409, json!(["campaign_id", "campaign_completed"]))
    );
    // A new start time schedules a completed campaign again, for contacts that are added later.
    let start = sender.setup.clock.now().plus_seconds(HOUR);
    let again = sender.update(&id, &json!({"start_time": start})).await.1;
    assert_eq!((&again["status"], &again["next_run_at"]), (&json!("to_be_run"), &json!(start)));
}

#[tokio::test]
async fn concurrent_updates_of_different_fields_all_apply() {
    let (sender, id) = campaign(json!({"interval": 60})).await;
    let bodies = [
        json!({"name": "A"}),
        json!({"message": "B"}),
        json!({"interval": 7}),
        json!({"attributes": {"c": 1}}),
        json!({"time_window_end": "23:00"}),
        json!({"start_new_conversation": true}),
    ];
    let all = bodies.iter().map(|body| sender.update(&id, body));
    for (status, answer) in futures_util::future::join_all(all).await {
        assert_eq!(status, 200, "{answer}");
    }
    let (campaign, _) = sender.campaign(&id).await;
    for body in &bodies {
        for (name, value) in body.as_object().unwrap() {
            assert_eq!(&campaign[name], value, "{name}");
        }
    }
}

#[tokio::test]
async fn a_delivery_keeps_its_connector_after_the_widget_changes() {
    let (sender, id) = campaign(json!({"interval": 1440})).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    sender.setup.minutes(60).await;
    let tries = sender.received().len();
    sender.update(&id, &json!({"status": "paused"})).await;
    sender.setup.minutes(10).await;
    let widget = json!({"widget_type": "chat", "assistant_id": sender.assistant["id"], "opening_message": "Hi"});
    let widget = sender.setup.post(&sender.org, "/api/v1/widget", widget).await;
    assert_eq!(sender.update(&id, &json!({"widget_id": widget["id"]})).await.1["widget_id"], widget["id"]);
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.update(&id, &json!({"status": "in_progress"})).await;
    sender.setup.minutes(10).await;
    assert_eq!((sender.received().len() > tries, sender.outcome(&id).await), (true, sender.done(2)));
}

#[tokio::test]
async fn an_update_adds_each_named_contact_once() {
    let (sender, id) = empty(60, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    // Few contacts are added by one transaction; many are staged first.
    for (name, end) in [("A", 3), ("B", 5), ("C", 60), ("D", 2)] {
        let body = json!({"name": name, "contact_ids": contacts[..end]});
        let (status, answer) = sender.update(&id, &body).await;
        let (campaign, _) = sender.campaign(&id).await;
        assert_eq!((status, &answer, &answer["name"]), (200, &campaign, &json!(name)));
        let members = sender.members(&id).await;
        assert_eq!(members, texts(&contacts[..end.max(members.len())]));
        assert_eq!(answer["counts"]["queued"], members.len());
        // A repeat changes nothing.
        sender.setup.pass(1);
        assert_eq!(sender.update(&id, &body).await, (200, campaign));
    }
    sender.setup.pass(HOUR);
    sender.setup.minutes(2).await;
    assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (60, sender.done(60)));
}

#[tokio::test]
async fn concurrent_updates_and_additions_add_each_contact_once() {
    let (sender, id) = empty(50, json!({"interval": 60})).await;
    let contacts = sender.contacts();
    let change = async |name: &str, part: &[ContactId]| {
        let (status, answer) = sender.update(&id, &json!({"name": name, "contact_ids": part})).await;
        (status, answer["name"].clone())
    };
    let (one, other, (first, _), (second, _)) = tokio::join!(
        change("A", &contacts[..30]),
        change("B", &contacts[40..]),
        sender.add(&id, &contacts[20..]),
        sender.add(&id, &contacts[5..15]),
    );
    assert_eq!((one, other, first, second), ((200, json!("A")), (200, json!("B")), 200, 200));
    let members = sender.members(&id).await;
    assert_eq!((members.len(), members.into_iter().collect::<BTreeSet<_>>().len()), (50, 50));
}

#[tokio::test]
async fn a_completed_campaign_with_a_new_time_goes_to_added_contacts() {
    for (first, all_of) in [(1, 3), (1, 40)] {
        let (sender, id) = empty(all_of, json!({})).await;
        let contacts = sender.contacts();
        sender.update(&id, &json!({"contact_ids": contacts[..first]})).await;
        sender.setup.minutes(60).await;
        sender.until_the_end(&id).await;
        let more = json!({"contact_ids": contacts});
        assert_eq!(sender.update(&id, &more).await, (409, json!(["campaign_id", "campaign_completed"])));
        sender.setup.pass(1);
        let again = json!({"contact_ids": contacts, "start_time": sender.setup.clock.now()});
        let (status, answer) = sender.update(&id, &again).await;
        assert_eq!((status, &answer["status"], &answer["counts"]["sent"]), (200, &json!("to_be_run"), &json!(first)));
        sender.minute(&[&id]).await;
        sender.until_the_end(&id).await;
        assert_eq!((events(&sender.received()).len(), sender.outcome(&id).await), (all_of, sender.done(all_of)));
    }
}

#[tokio::test]
async fn an_update_with_invalid_contacts_changes_nothing() {
    let (sender, id) = empty(3, json!({})).await;
    let more = sender.contacts();
    let contacts = &more[..2];
    sender.update(&id, &json!({"contact_ids": contacts})).await;
    let before = sender.campaign(&id).await;
    let unknown = json!({"name": "Renamed", "contact_ids": [contacts[0], NOBODYS]});
    let answer = sender.setup.ask(&sender.org, "PUT", &format!("/api/v1/campaign/update/{id}"), &unknown).await;
    let issue = json(&answer)["detail"][0].clone();
    assert_eq!(
        (answer.status, &issue["loc"], &issue["type"]),
        (422, &json!(["body", "contact_ids", 1]), &json!("not_found"))
    );
    for (wrong, kind) in [(json!([]), "too_short"), (json!("all"), "list_type")] {
        let (status, answer) = sender.update(&id, &json!({"name": "Renamed", "contact_ids": wrong})).await;
        assert_eq!((status, answer), (422, json!(["contact_ids", kind])));
    }
    let cancels = json!({"status": "cancelled", "contact_ids": more});
    assert_eq!(sender.update(&id, &cancels).await, (409, json!(["campaign_id", "campaign_cancelled"])));
    let stops = json!({"start_time": null, "contact_ids": more});
    assert_eq!(sender.update(&id, &stops).await, (409, json!(["campaign_id", "campaign_without_schedule"])));
    assert_eq!(sender.campaign(&id).await, before);
    // During sending, a request may name the contacts that the campaign already has.
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    sender.setup.minutes(60).await;
    assert_eq!(sender.update(&id, &json!({"contact_ids": contacts})).await.1["status"], "in_progress");
    let added = sender.update(&id, &json!({"contact_ids": more})).await;
    assert_eq!(added, (409, json!(["campaign_id", "campaign_in_progress"])));
}

#[tokio::test]
async fn a_repeat_completes_an_update_that_crashed() {
    for contacts in [3, 20] {
        let body = |sender: &Sender| json!({"name": "Renamed", "contact_ids": sender.contacts()});
        let prepare = async || empty(contacts, json!({"interval": 60})).await;
        let work = async |(sender, id): &(Sender, String)| {
            sender.update(id, &body(sender)).await;
        };
        let look = async |(sender, id): &(Sender, String), case: String| {
            let members = sender.members(id).await.len();
            assert!([0, contacts].contains(&members), "{members} {case}");
            sender.setup.pass(40);
            let (status, answer) = sender.update(id, &body(sender)).await;
            assert_eq!((status, &answer["name"]), (200, &json!("Renamed")), "{case}");
            assert_eq!(sender.members(id).await, texts(&sender.contacts()), "{case}");
            sender.setup.pass(HOUR);
            for _ in 0..2 {
                sender.minute(&[id]).await;
            }
            assert_eq!(
                (events(&sender.received()).len(), sender.outcome(id).await),
                (contacts, sender.done(contacts)),
                "{case}"
            );
        };
        crashes_everywhere(prepare, |(sender, _)| &sender.setup, work, look).await;
    }
}

#[tokio::test]
async fn transcripts_keep_each_text_after_later_changes() {
    let (sender, id) = empty(3, json!({"interval": 60, "message": "First"})).await;
    let contacts = sender.contacts();
    let texts = ["First", "The second", "And the third one"];
    let mut costs = BTreeSet::new();
    for (number, text) in texts.iter().enumerate() {
        assert_eq!(sender.add(&id, &contacts[number..=number]).await.0, 200);
        // A text that is never sent only raises the version number.
        sender.update_text(&id, "Nobody gets this").await;
        assert_eq!(sender.update_text(&id, text).await["message"], *text);
        sender.setup.minutes(61).await;
        let path = format!("/api/v1/campaign/get/{id}");
        let read = sender.setup.ask(&sender.org, "GET", &path, &Value::Null).await;
        costs.insert((read.cost.calls, read.cost.depth));
        assert_eq!(data(&read)["message"], *text);
    }
    assert_eq!(costs.len(), 1, "the cost grows with the earlier texts: {costs:?}");
    let bodies = sender.received().iter().map(|request| event(request)["data"]["message"].clone()).collect::<Vec<_>>();
    assert_eq!(bodies, texts);
    let said = sender.transcripts().await;
    let wanted: Vec<_> = texts.iter().map(|text| vec![((*text).to_owned(), text.len() as u64)]).collect();
    assert_eq!(said.values().cloned().collect::<Vec<_>>(), wanted);
    // The current text costs one call less than an earlier text.
    let reads = said.keys().map(|conversation| format!("/api/v1/conversation/{conversation}"));
    let mut calls = Vec::new();
    for path in reads {
        calls.push(sender.setup.ask(&sender.org, "GET", &path, &Value::Null).await.cost.calls);
    }
    assert_eq!(calls, [calls[2] + 1, calls[2] + 1, calls[2]]);
    assert_eq!(sender.texts_when_closed().await, said);
}

#[tokio::test]
async fn an_unsent_text_is_not_stored() {
    let (sender, id) = campaign(json!({"interval": 60})).await;
    sender.update_text(&id, "Better").await;
    sender.update_text(&id, "Best").await;
    let kept =
        async || sender.stored("#CAMPAIGN_RUN#").await.iter().filter(|sk| sk.starts_with("CAMPAIGN_SAID")).count();
    assert_eq!(kept().await, 0);
    sender.setup.minutes(61).await;
    sender.update_text(&id, "Another").await;
    assert_eq!(kept().await, 1);
}

/// The function may have crashed after it sent the text to some contacts.
#[tokio::test]
async fn the_text_of_a_begun_execution_is_kept() {
    let (sender, id) = campaign(json!({"interval": 60})).await;
    sender.setup.pass(61 * 60);
    let (table, now) = (&sender.org.table, sender.setup.clock.now());
    let campaign = table.key::<Campaign>(CampaignId(id.parse().unwrap()));
    assert!(campaign::Lease::take(table, &campaign, now).await.unwrap().is_some());
    assert_eq!(sender.control(&id, "pause").await.0, 200);
    sender.update_text(&id, "Another").await;
    let stored = sender.stored("#CAMPAIGN_RUN#").await;
    assert_eq!(stored.iter().filter(|sk| sk.starts_with("CAMPAIGN_SAID")).count(), 1);
}

#[tokio::test]
async fn transcripts_of_a_completed_run_keep_its_text() {
    for connected in [false, true] {
        let sender = Sender::new(connected, 2).await;
        let id = sender.run(json!({"message": "First"})).await;
        sender.until_the_end(&id).await;
        let said = sender.transcripts().await;
        let changed = sender.update_text(&id, "Second").await;
        assert_eq!((&changed["message"], &changed["status"]), (&json!("Second"), &json!("completed")));
        assert_eq!(sender.transcripts().await, said);
        assert_eq!(sender.texts_when_closed().await, said);
    }
}

#[tokio::test]
async fn a_retried_delivery_has_the_same_body_after_changes() {
    let (sender, id) = campaign(json!({"message": "First"})).await;
    sender.setup.receiver.behave("/connector", Behaviour::Answer(500));
    sender.setup.minutes(60).await;
    let other = sender.setup.assistant(&sender.org, &sender.webhook).await;
    let widget = json!({"widget_type": "chat", "assistant_id": other["id"], "opening_message": "Hi"});
    let widget = sender.setup.post(&sender.org, "/api/v1/widget", widget).await;
    for changes in [json!({"message": "Second"}), json!({"widget_id": widget["id"]})] {
        assert_eq!(sender.update(&id, &json!({"status": "paused"})).await.0, 200);
        assert_eq!(sender.update(&id, &changes).await.0, 200);
        assert_eq!(sender.update(&id, &json!({"status": "in_progress"})).await.0, 200);
        sender.setup.minutes(40).await;
    }
    sender.setup.receiver.behave("/connector", Behaviour::Answer(200));
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, sender.done(2));
    let received = sender.received();
    let mut bodies = BTreeMap::<&str, BTreeSet<&[u8]>>::new();
    for request in &received {
        bodies.entry(&request.headers["webhook-id"]).or_default().insert(&request.body);
    }
    assert!(received.len() > 6 && bodies.len() == 2, "{} {}", received.len(), bodies.len());
    assert!(bodies.values().all(|bodies| bodies.len() == 1), "{bodies:?}");
    assert!(received.iter().all(|request| event(request)["data"]["message"] == "First"));
}

#[tokio::test]
async fn each_transcript_shows_the_sent_text_despite_a_concurrent_change() {
    let sender = Sender::new(true, 100).await;
    let id = sender.run(json!({"message": "First"})).await;
    let change = async || {
        while sender.conversations().await.is_empty() {}
        assert_eq!(sender.control(&id, "pause").await.0, 200);
        assert_eq!(sender.update_text(&id, "Second").await["message"], "Second");
        assert_eq!(sender.control(&id, "resume").await.0, 200);
    };
    sender.while_it_is_sent(&id, change).await;
    sender.until_the_end(&id).await;
    assert_eq!(sender.outcome(&id).await, sender.done(100));
    let mut texts = BTreeMap::<String, usize>::new();
    for request in sender.received() {
        let sent = event(&request)["data"].clone();
        let said = sender.transcript(&sent["conversation_id"]).await;
        assert_eq!((said.len(), json!(said[0].text)), (1, sent["message"].clone()));
        *texts.entry(said[0].text.to_string()).or_default() += 1;
    }
    assert_eq!(texts.len(), 2, "{texts:?}");
}

#[tokio::test]
async fn a_dispatch_with_a_replaced_text_is_stopped() {
    let sender = Sender::new(false, 1).await;
    let id = sender.run(json!({"message": "First"})).await;
    let (table, now) = (&sender.org.table, sender.setup.clock.now());
    let campaign = CampaignId(id.parse().unwrap());
    let lease = campaign::Lease::take(table, &table.key::<Campaign>(campaign), now).await.unwrap().unwrap();
    assert_eq!(sender.control(&id, "pause").await.0, 200);
    sender.update_text(&id, "Second").await;
    assert_eq!(sender.control(&id, "resume").await.0, 200);
    let contact = campaign::contacts_at(table, &lease.campaign, [0]).await.unwrap().remove(0);
    let (ids, assistant) = (&sender.setup.stack.gateway.service.ids, sender.widget.assistant_id.unwrap());
    let first = NewMessage::text(SenderType::Bot, "First".into());
    let settings = ConversationSettings::default();
    let stale = vec![Dispatch {
        opening: Conversation::through(
            sender.widget.id,
            (assistant, settings),
            contact.contact_id,
            ids.fresh(now),
            now,
        ),
        contact,
        thread: None,
        message: Some((MessageId(ids.fresh(now)), first)),
        connector: None,
    }];
    let guard = suppression::read_guard(table, lease.campaign.id.0).await.unwrap();
    let stale = Prepared::new(table, stale, guard).await.unwrap();
    assert_eq!(campaign::dispatch_together(table, &lease.campaign, stale, now).await.unwrap(), Dispatched::Stopped);
    sender.until_the_end(&id).await;
    assert!(sender.transcripts().await.values().eq([&vec![("Second".to_owned(), 6)]]));
}
