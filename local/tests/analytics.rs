//! Tests of counts over time: each change counts once, and the answer groups them by what is asked.

use std::collections::BTreeMap;
use std::time::Duration;

use futures_util::future::join_all;
use local::Settings;
use local::faults::Fault;
use local::stream::Stream;
use repository::root;
use serde_json::{Value, json};
use shared::records::analytics::counters::{self, CountedChange};
use shared::records::analytics::metrics::{Dimension, Metric, MetricCount};
use shared::records::widget::WidgetType;
use shared::routes;
use shared::table::Table;
use shared::values::time::Timestamp;
use uuid::Uuid;

use crate::support::commands::{blocks, compare, run};
use crate::support::crashes::{crashes_everywhere, unreliable_stream};
use crate::support::fixture::{NOW, empty, failure, handle, tenant, with_faults};
use crate::support::sender::Sender;
use crate::support::sending::{Org, Setup, id_of};
use crate::support::sweep::cases;

const ANALYTICS: &str = routes::READ_ANALYTICS.path;

/// The answer to a query.
async fn ask(setup: &Setup, org: &Org, query: &str) -> Value {
    setup.get(org, &format!("{ANALYTICS}?{query}")).await
}

/// The issues of a refused query: the field and the type of each.
async fn refused(setup: &Setup, org: &Org, query: &str) -> Vec<String> {
    let answer = setup.ask(org, "GET", &format!("{ANALYTICS}?{query}"), &Value::Null).await;
    let (status, _) = failure(&answer);
    assert_eq!(status, 422, "{}", answer.body);
    let body: Value = serde_json::from_str(&answer.body).unwrap();
    let issue = |issue: &Value| format!("{} {}", issue["loc"][1].as_str().unwrap(), issue["type"].as_str().unwrap());
    body["detail"].as_array().unwrap().iter().map(issue).collect()
}

/// The totals of all metrics.
async fn totals(setup: &Setup, org: &Org) -> BTreeMap<&'static str, u64> {
    let mut totals = BTreeMap::new();
    for metric in Metric::WORDS {
        totals.insert(*metric, ask(setup, org, &format!("metric={metric}")).await["total"].as_u64().unwrap());
    }
    totals
}

/// The totals of what [`converse`] does.
fn conversed(times: u64) -> BTreeMap<&'static str, u64> {
    let counts = Metric::WORDS.iter().map(|metric| match *metric {
        "conversations_opened" => (*metric, 3 * times),
        "conversations_closed" | "deliveries" => (*metric, 2 * times),
        "messages" => (*metric, 5 * times),
        _ => (*metric, 0),
    });
    counts.collect()
}

/// Opens three conversations, says five messages in them, and closes two of them, of which the webhook of the assistant hears.
async fn converse(setup: &Setup, org: &Org) -> Value {
    let webhook = setup.webhook(org, "/closed").await;
    let assistant = setup.assistant(org, &webhook).await;
    for (said, is_closed) in [(3, true), (2, true), (0, false)] {
        let conversation = setup.open(org, &assistant).await;
        for number in 0..said {
            let sender = if number % 2 == 0 { "user" } else { "bot" };
            let path = format!("/api/v1/conversation/{}/message", id_of(&conversation));
            setup.post(org, &path, json!({"sender_type": sender, "text": "Hello"})).await;
        }
        if is_closed {
            setup.close(org, &conversation).await;
        }
    }
    assistant
}

/// A change of Acme that counts one message of a user.
fn message(number: u64, at: i64) -> CountedChange {
    let values = vec![(Dimension::Sender, "user".to_owned())];
    let count = MetricCount { at: Timestamp::from_unix_millis(at), values, amount: 1 };
    CountedChange { id: Uuid::from_u64_pair(number, 7), counts: vec![(Metric::Messages, count)] }
}

/// Counts a message at each of these times, such as `2025-10-26T00:30:00Z`.
async fn count_at(org: &Org, times: &[&str]) {
    let at = |text: &str| serde_json::from_value::<Timestamp>(text.into()).unwrap().unix_millis();
    let changes: Vec<_> = (0..).zip(times).map(|(number, time)| message(number, at(time))).collect();
    counters::count(&org.table, &changes, Timestamp::from_unix_millis(NOW)).await.unwrap();
}

/// The rows of an answer, each as `key count`.
fn rows(answer: &Value, key: &str) -> Vec<String> {
    let row = |row: &Value| format!("{} {}", row[key].as_str().unwrap_or("none"), row["count"]);
    answer["rows"].as_array().unwrap().iter().map(row).collect()
}

#[tokio::test]
async fn changes_count_by_what_they_belong_to() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let assistant = converse(&setup, &org).await;
    setup.settle().await;
    assert_eq!(totals(&setup, &org).await, conversed(1));
    let by_assistant = ask(&setup, &org, "metric=messages&group_by=assistant").await;
    let row =
        |sender: &str, count: u64| json!({"assistant_id": assistant["id"], "sender_type": sender, "count": count});
    assert_eq!(by_assistant["rows"], json!([row("user", 3), row("bot", 2)]));
    let by_day = ask(&setup, &org, "metric=conversations_closed").await;
    assert_eq!(by_day["rows"], json!([{"day": "2026-02-01", "count": 2}]));
    assert_eq!(by_day["date_from"], "2026-01-03T00:00:00.000Z");
    assert_eq!(by_day["date_to"], "2026-02-01T12:15:00.000Z");
    let by_widget = ask(&setup, &org, "metric=deliveries&group_by=widget").await;
    assert_eq!(by_widget["rows"], json!([{"widget_id": null, "outcome": "delivered", "count": 2}]));
}

#[tokio::test]
async fn sends_count_by_their_campaign() {
    let sender = Sender::new(true, 3).await;
    let campaign = sender.run(json!({})).await;
    sender.until_the_end(&campaign).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let by_campaign = ask(setup, org, "metric=sends&group_by=campaign").await;
    assert_eq!(by_campaign["rows"], json!([{"campaign_id": campaign, "count": 3}]));
    let by_widget = ask(setup, org, "metric=deliveries&group_by=widget").await;
    assert_eq!(by_widget["rows"], json!([{"widget_id": sender.widget.id, "outcome": "delivered", "count": 3}]));
    let messages = ask(setup, org, "metric=messages").await;
    assert_eq!(messages["rows"], json!([{"day": "2026-02-01", "sender_type": "bot", "count": 3}]));
}

#[tokio::test]
async fn a_later_outcome_takes_the_place_of_an_earlier_one() {
    let sender = Sender::new(true, 2).await;
    // The id of a second campaign has another ordinal than the ids of its contacts.
    sender.run_for(&sender.contacts()[..1], json!({})).await;
    let campaign = sender.run(json!({})).await;
    sender.until_the_end(&campaign).await;
    let (setup, org) = (&sender.setup, &sender.org);
    let (_, contacts) = sender.campaign(&campaign).await;
    let report = async |contact: &Value, outcome: &str, at: &str, seconds: u32| {
        let path = format!("/api/v1/campaign_contact/{}/outcome", id_of(contact));
        let at = format!("2026-02-01T{at}:00Z");
        setup.post(org, &path, json!({"outcome": outcome, "at": at, "duration_seconds": seconds})).await;
        setup.settle().await;
    };
    let outcomes = async || rows(&ask(setup, org, "metric=outcomes&group_by=outcome").await, "outcome");
    report(&contacts[0], "voicemail", "10:00", 20).await;
    report(&contacts[1], "busy", "10:30", 0).await;
    assert_eq!(outcomes().await, ["busy 1", "voicemail 1"]);
    report(&contacts[0], "answered", "11:00", 60).await;
    report(&contacts[0], "rejected", "10:15", 5).await;
    assert_eq!(outcomes().await, ["answered 1", "busy 1"]);
    let by_campaign = ask(setup, org, "metric=voice_seconds&group_by=campaign").await;
    assert_eq!(by_campaign["rows"], json!([{"campaign_id": campaign, "count": 60}]));
    let hours = ask(setup, org, "metric=outcomes&group_by=hour").await;
    assert_eq!(rows(&hours, "hour"), ["2026-02-01T10:00:00+00:00 1", "2026-02-01T11:00:00+00:00 1"]);
}

#[tokio::test]
async fn a_further_attempt_counts_of_its_own() {
    let sender = Sender::of(Setup::start().await, WidgetType::Phone, true, 1).await;
    let policy = json!({"on": ["no_answer"], "max_attempts": 3, "wait_minutes": 30});
    let campaign = sender.run(json!({"retry_policy": policy})).await;
    let (setup, org) = (&sender.setup, &sender.org);
    for (outcome, seconds) in [("no_answer", 5), ("no_answer", 7), ("answered", 60)] {
        setup.minutes(31).await;
        let contact = sender.campaign(&campaign).await.1.remove(0);
        let path = format!("/api/v1/campaign_contact/{}/outcome", id_of(&contact));
        let at = setup.clock.now();
        setup.post(org, &path, json!({"outcome": outcome, "at": at, "duration_seconds": seconds})).await;
        setup.settle().await;
    }
    let outcomes = ask(setup, org, "metric=outcomes&group_by=outcome").await;
    assert_eq!(rows(&outcomes, "outcome"), ["no_answer 2", "answered 1"]);
    let seconds = ask(setup, org, "metric=voice_seconds&group_by=campaign").await;
    assert_eq!(seconds["rows"], json!([{"campaign_id": campaign, "count": 72}]));
}

#[tokio::test]
async fn captured_forms_and_intents_count() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let assistant = setup.post(&org, "/api/v1/assistant", json!({})).await;
    let conversation = setup.open(&org, &assistant).await;
    let form = json!({"name": "Order", "form_type": "simple", "fields": [{"name": "size"}]});
    let form = setup.post(&org, "/api/v1/form", form).await;
    let intent = setup.post(&org, "/api/v1/intent", json!({"name": "Hours"})).await;
    let path = format!("/api/v1/conversation/{}", id_of(&conversation));
    let filled = json!({"form_id": form["id"], "field_values": {"size": "L"}});
    setup.post(&org, &format!("{path}/captured_form"), filled).await;
    for _ in 0..2 {
        setup.post(&org, &format!("{path}/captured_intent"), json!({"intent_id": intent["id"]})).await;
    }
    setup.settle().await;
    let forms = ask(&setup, &org, "metric=captured_forms&group_by=assistant").await;
    assert_eq!(forms["rows"], json!([{"assistant_id": assistant["id"], "count": 1}]));
    let intents = ask(&setup, &org, "metric=captured_intents&group_by=intent").await;
    assert_eq!(intents["rows"], json!([{"intent_id": intent["id"], "count": 2}]));
}

#[tokio::test]
async fn an_answer_without_counts_has_the_same_members() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let names = |answer: &Value| answer.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let nothing = ask(&setup, &org, "metric=sends&group_by=campaign").await;
    assert_eq!((&nothing["rows"], &nothing["total"]), (&json!([]), &json!(0)));
    assert_eq!(ask(&setup, &org, "metric=sends&date_from=2026-01-05&date_to=2026-01-05").await["rows"], json!([]));
    converse(&setup, &org).await;
    setup.settle().await;
    assert_eq!(names(&ask(&setup, &org, "metric=messages").await), names(&nothing));
}

#[tokio::test]
async fn organisations_are_counted_apart() {
    let setup = Setup::start().await;
    let (one, other) = (setup.org().await, setup.org().await);
    converse(&setup, &one).await;
    setup.settle().await;
    assert_eq!(totals(&setup, &other).await, conversed(0));
    converse(&setup, &other).await;
    setup.settle().await;
    assert_eq!((totals(&setup, &one).await, totals(&setup, &other).await), (conversed(1), conversed(1)));
}

#[tokio::test]
async fn a_change_in_another_batch_counts_once() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    converse(&setup, &org).await;
    setup.settle().await;
    let mut changes = Stream::changes(&setup.stack.database).unwrap();
    let mut random = fastrand::Rng::with_seed(3);
    for size in [1, 7, 100] {
        random.shuffle(&mut changes);
        for batch in changes.chunks(size) {
            let twice: Vec<Value> = batch.iter().chain(batch).cloned().collect();
            handle(&setup.stack, &twice).await;
        }
        assert_eq!(totals(&setup, &org).await, conversed(1), "batches of {size}");
    }
}

#[tokio::test]
async fn counts_are_exact_under_stream_faults() {
    for seed in cases(0..10) {
        let setup = Setup::start().await;
        setup.stack.stream.set_faults(&unreliable_stream(seed, 0.5, 0.3));
        let org = setup.org().await;
        converse(&setup, &org).await;
        setup.settle().await;
        converse(&setup, &org).await;
        setup.settle().await;
        assert_eq!(totals(&setup, &org).await, conversed(2), "seed {seed}");
        assert_eq!(setup.stack.stream.given_up(), Vec::<Value>::new(), "seed {seed}");
    }
}

#[tokio::test]
async fn a_crash_at_any_write_loses_and_doubles_no_count() {
    crashes_everywhere(
        async || {
            let setup = Setup::start().await;
            let org = setup.org().await;
            converse(&setup, &org).await;
            (setup, org)
        },
        |(setup, _)| setup,
        async |(setup, _)| {
            let _ = setup.stack.settle().await;
        },
        async |(setup, org), what| {
            setup.settle().await;
            let mut totals = totals(setup, org).await;
            // A delivery whose result was lost is sent again after some minutes.
            totals.insert("deliveries", 2);
            assert_eq!(totals, conversed(1), "{what}");
        },
    )
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn processes_that_count_the_same_changes_count_each_once() {
    // The SDK waits this long for each lost answer.
    let attempt = Duration::from_millis(500);
    let (stack, faults) = with_faults(Settings { attempt, ..empty() }).await;
    faults.plan(|action, _| match (action, fastrand::u8(..)) {
        ("TransactWriteItems", 0..12) => Fault::LoseAnswer,
        ("TransactWriteItems", 12..24) => Fault::Conflict,
        ("TransactWriteItems", 24..36) => Fault::BreakAnswer,
        _ => Fault::None,
    });
    let changes: Vec<CountedChange> = (0..200).map(|number| message(number, NOW)).collect();
    let (changes, now) = (&changes, Timestamp::from_unix_millis(NOW));
    let work = async |process: usize| {
        let table = Table::new(stack.gateway.service.store.in_another_process(), tenant());
        for begin in (0..200).step_by(20) {
            let batch = &changes[(begin + process * 13) % 181..][..20];
            // Some processes die while they write, and what they have written stays.
            let patience = Duration::from_millis(if fastrand::u8(..) < 40 { 15 } else { 20_000 });
            let _ = tokio::time::timeout(patience, counters::count(&table, batch, now)).await;
        }
    };
    join_all((0..16).map(work)).await;
    faults.end();
    let table = Table::new(stack.gateway.service.store.in_another_process(), tenant());
    counters::count(&table, changes, now).await.unwrap();
    let day = now.day();
    let found = counters::between(&table, Metric::Messages, [day, day], 1000).await.unwrap().unwrap();
    let count: i64 = found.iter().flat_map(|day| day.quarters().collect::<Vec<_>>()).map(|(_, count)| count).sum();
    assert_eq!(count, 200);
}

#[tokio::test]
async fn counters_are_split_after_a_conflict() {
    let (stack, faults) = with_faults(empty()).await;
    let table = Table::new(stack.gateway.service.store.in_another_process(), tenant());
    let now = Timestamp::from_unix_millis(NOW);
    let counters = async || {
        let day = now.day();
        counters::between(&table, Metric::Messages, [day, day], 1000).await.unwrap().unwrap().len()
    };
    for number in 0..10 {
        counters::count(&table, &[message(number, NOW)], now).await.unwrap();
    }
    assert_eq!(counters().await, 1);
    faults.plan(|_, number| if number == 0 { Fault::Conflict } else { Fault::None });
    // Each of them takes one of sixteen partitions.
    for number in 10..30 {
        counters::count(&table, &[message(number, NOW)], now).await.unwrap();
    }
    faults.end();
    assert!(counters().await > 1);
}

#[tokio::test]
async fn counts_stay_when_records_are_deleted() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let assistant = converse(&setup, &org).await;
    setup.settle().await;
    setup.ask(&org, "DELETE", &format!("/api/v1/assistant/{}", id_of(&assistant)), &Value::Null).await;
    let list = setup.get(&org, "/api/v1/conversation").await;
    for conversation in list["items"].as_array().unwrap() {
        setup.ask(&org, "DELETE", &format!("/api/v1/conversation/{}", id_of(conversation)), &Value::Null).await;
    }
    setup.settle().await;
    assert_eq!(totals(&setup, &org).await, conversed(1));
}

#[tokio::test]
async fn days_follow_the_time_zone_and_its_changes_of_the_clocks() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    // In Berlin the 26th of October 2025 has 25 hours.
    let times = ["2025-10-25T21:59:59Z", "2025-10-25T22:00:00Z", "2025-10-26T22:59:59Z", "2025-10-26T23:00:00Z"];
    count_at(&org, &times).await;
    let days = async |zone: &str| {
        let query = format!("metric=messages&date_from=2025-10-25&date_to=2025-10-28&time_zone={zone}");
        rows(&ask(&setup, &org, &query).await, "day")
    };
    assert_eq!(days("Europe/Berlin").await, ["2025-10-25 1", "2025-10-26 2", "2025-10-27 1"]);
    assert_eq!(days("UTC").await, ["2025-10-25 2", "2025-10-26 2"]);
    let day = "metric=messages&date_from=2025-10-26&date_to=2025-10-27&time_zone=Europe/Berlin";
    assert_eq!(ask(&setup, &org, day).await["total"], 2);
}

#[tokio::test]
async fn an_hour_that_clocks_show_twice_has_two_rows() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    count_at(&org, &["2025-10-26T00:30:00Z", "2025-10-26T01:30:00Z", "2025-03-30T00:59:59Z", "2025-03-30T01:00:00Z"])
        .await;
    let hours = async |day: &str, next: &str| {
        let zone = "Europe/Berlin";
        let query = format!("metric=messages&group_by=hour&date_from={day}&date_to={next}&time_zone={zone}");
        rows(&ask(&setup, &org, &query).await, "hour")
    };
    let twice = ["2025-10-26T02:00:00+01:00 1", "2025-10-26T02:00:00+02:00 1"];
    let mut found = hours("2025-10-26", "2025-10-27").await;
    assert_eq!(found, [twice[1], twice[0]], "in the order of time");
    found = hours("2025-03-30", "2025-03-31").await;
    assert_eq!(found, ["2025-03-30T01:00:00+01:00 1", "2025-03-30T03:00:00+02:00 1"]);
}

#[tokio::test]
async fn a_zone_with_an_offset_of_quarters_has_exact_days() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    // Kathmandu is 5:45 ahead, and St John's 3:30 behind.
    count_at(&org, &["2026-01-09T18:14:59Z", "2026-01-09T18:15:00Z", "2026-01-10T03:29:59Z", "2026-01-10T03:30:00Z"])
        .await;
    let days = async |zone: &str| rows(&ask(&setup, &org, &format!("metric=messages&time_zone={zone}")).await, "day");
    assert_eq!(days("Asia/Kathmandu").await, ["2026-01-09 1", "2026-01-10 3"]);
    assert_eq!(days("America/St_Johns").await, ["2026-01-09 3", "2026-01-10 1"]);
    let hours = ask(&setup, &org, "metric=messages&group_by=hour&time_zone=Asia/Kathmandu").await;
    assert_eq!(rows(&hours, "hour")[..2], ["2026-01-09T23:00:00+05:45 1", "2026-01-10T00:00:00+05:45 1"]);
}

#[tokio::test]
async fn refuses_what_cannot_be_counted() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    for (query, wanted) in [
        ("", &["metric missing"][..]),
        (
            "metric=x&group_by=y&time_zone=Mars&date_from=z",
            &["metric enum", "group_by enum", "date_from datetime_from_date_parsing", "time_zone value_error"],
        ),
        ("metric=sends&group_by=assistant", &["group_by not_counted"]),
        ("metric=conversations_opened&group_by=outcome", &["group_by not_counted"]),
        (
            "metric=sends&date_from=2026-01-05T12:01&date_to=2026-01-06T00:00:01Z",
            &["date_from not_a_quarter", "date_to not_a_quarter"],
        ),
        ("metric=sends&date_from=2026-01-05&date_to=2026-01-04", &["date_from dates_out_of_order"]),
        ("metric=sends&date_from=2025-01-20&date_to=2026-01-22", &["date_from dates_too_far_apart"]),
        ("metric=sends&date_to=2024-12-01", &["date_from no_longer_counted"]),
        ("metric=sends&date_to=0000-01-01", &["date_from no_longer_counted"]),
    ] {
        assert_eq!(refused(&setup, &org, query).await, wanted, "{query}");
    }
    let last = ask(&setup, &org, "metric=sends&date_to=9999-12-31T23:45Z&time_zone=Asia/Tokyo").await;
    assert_eq!(last["total"], 0);
}

#[tokio::test]
async fn an_answer_has_at_most_a_thousand_rows() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let hour = |number: u64| message(number, NOW - i64::try_from(number).unwrap() * 3_600_000);
    let changes: Vec<CountedChange> = (0..1001).map(hour).collect();
    let now = Timestamp::from_unix_millis(NOW);
    counters::count(&org.table, &changes[..1000], now).await.unwrap();
    let query = "metric=messages&group_by=hour&date_from=2025-12-01";
    assert_eq!(ask(&setup, &org, query).await["rows"].as_array().unwrap().len(), 1000);
    counters::count(&org.table, &changes, now).await.unwrap();
    assert_eq!(refused(&setup, &org, query).await, ["date_from too_many_rows"]);
    assert_eq!(ask(&setup, &org, "metric=messages&group_by=day&date_from=2025-12-01").await["total"], 1001);
}

#[tokio::test]
async fn counters_and_markers_expire() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    count_at(&org, &["2026-01-31T23:59:59Z"]).await;
    let items = setup.find(None, "begins_with(pk, :org)", &json!({":org": {"S": format!("ORG#{}#", org.id)}}));
    let days = |part: &str| {
        let item = items.iter().find(|item| item["pk"]["S"].as_str().unwrap().contains(part)).unwrap();
        (item["ttl"]["N"].as_str().unwrap().parse::<i64>().unwrap() - NOW / 1000) / 86_400
    };
    assert_eq!((days("#COUNTS#"), days("#MADE_BY#")), (399, 35));
}

#[tokio::test]
async fn the_commands_of_the_page_have_the_answers_of_the_page() {
    let sender = Sender::new(true, 3).await;
    converse(&sender.setup, &sender.org).await;
    let campaign = sender.run(json!({})).await;
    sender.until_the_end(&campaign).await;
    sender.setup.clock.set(Timestamp::from_unix_millis(NOW));
    let page = std::fs::read_to_string(root().join("docs/ANALYTICS.md")).unwrap();
    let variables = [("API", sender.setup.stack.url.as_str()), ("KEY", sender.org.key.as_str())];
    compare(&page, &run(&blocks(&page, "sh"), &variables).await);
}
