//! `GET /api/v1/outbound_webhook/{webhook_id}/stats`: counts the deliveries to a webhook by the hour.

use local::Stack;
use local::receiver::Behaviour;
use serde_json::{Value, json};
use shared::records::delivery::DeliveryState;
use shared::records::event::EventKind;
use shared::values::time::Timestamp;

use crate::support::deliveries::{Made, path, write};
use crate::support::fixture::{ACME, NOW, call, failure, get, stack, stack_with_clock};
use crate::support::sending::{Setup, id_of};

const HOUR: i64 = 3_600_000;
const DAY: i64 = 24 * HOUR;
/// The most deliveries that are counted.
const COUNTED: usize = 10_000;

fn made(at: i64, state: DeliveryState, took: &[u64]) -> Made {
    Made { at, late: 2_000, event: EventKind::WEBHOOK_TEST, state, took: took.to_vec() }
}

fn time(millis: i64) -> Value {
    json!(Timestamp::from_unix_millis(millis))
}

fn hour(at: i64, [arrived, failed, waiting]: [u64; 3], took: Option<[u64; 2]>) -> Value {
    let [median, p99] = took.map_or([None, None], |took| took.map(Some));
    json!({"hour": time(at), "arrived": arrived, "failed": failed, "waiting": waiting,
        "median_milliseconds": median, "p99_milliseconds": p99})
}

async fn stats(stack: &Stack, query: &str) -> Value {
    get(stack, &path(&format!("/stats{query}"))).await
}

#[tokio::test]
async fn each_hour_has_its_deliveries_and_the_times_of_their_attempts() {
    use DeliveryState::{Dead, Delivered, Ready, Waiting};
    let (stack, set_clock) = stack_with_clock().await;
    let one_to = |count: u64| (1..=count).rev().collect::<Vec<_>>();
    let first = NOW - 23 * HOUR;
    write(
        &stack,
        &[
            // A moment before the first hour.
            made(first - 1, Delivered, &[9]),
            made(first, Delivered, &one_to(200)),
            made(first + 1, Delivered, &[]),
            made(first + HOUR - 1, Dead, &[]),
            made(first + HOUR, Waiting, &[7]),
            made(first + HOUR, Ready, &[]),
            made(NOW - 1, Dead, &[30, 10, 20, 40]),
            made(NOW, Delivered, &[3, 8]),
            // A moment after the present time.
            made(NOW + HOUR / 2, Waiting, &[]),
        ],
        |_| false,
    )
    .await;
    set_clock(HOUR / 2);
    let mut hours: Vec<Value> = (0..24).map(|number| hour(first + number * HOUR, [0; 3], None)).collect();
    hours[0] = hour(first, [2, 1, 0], Some([100, 198]));
    hours[1] = hour(first + HOUR, [0, 0, 2], Some([7, 7]));
    hours[22] = hour(NOW - HOUR, [0, 1, 0], Some([20, 40]));
    hours[23] = hour(NOW, [1, 0, 0], Some([3, 8]));
    assert_eq!(stats(&stack, "").await, json!({"hours": hours, "deliveries": 7, "truncated": false}));
}

#[tokio::test]
async fn dates_choose_the_deliveries_to_the_millisecond() {
    let stack = stack().await;
    let all: Vec<Made> = (0..40).map(|number| made(NOW + number * HOUR / 4, DeliveryState::Delivered, &[1])).collect();
    write(&stack, &all, |_| false).await;
    let between = |from: i64, to: i64| {
        let [from, to] = [from, to].map(|millis| Timestamp::from_unix_millis(NOW + millis));
        format!("?date_from={from}&date_to={to}")
    };
    let counted = async |query: String| {
        let stats = stats(&stack, &query).await;
        let hours = stats["hours"].as_array().unwrap();
        let arrived: Vec<u64> = hours.iter().map(|hour| hour["arrived"].as_u64().unwrap()).collect();
        assert_eq!(stats["deliveries"], arrived.iter().sum::<u64>());
        (hours.first().map(|hour| hour["hour"].clone()), arrived)
    };
    assert_eq!(counted(between(0, 2 * HOUR)).await, (Some(time(NOW)), vec![4, 4]));
    assert_eq!(counted(between(HOUR / 4, HOUR + 1)).await, (Some(time(NOW)), vec![3, 1]));
    assert_eq!(counted(between(HOUR / 4 + 1, HOUR)).await, (Some(time(NOW)), vec![2]));
    assert_eq!(counted(between(-1, 1)).await, (Some(time(NOW - HOUR)), vec![0, 1]));
    assert_eq!(counted(between(HOUR, HOUR)).await, (None, vec![]));
    assert_eq!(counted(between(HOUR / 4, HOUR / 4)).await, (None, vec![]));
    assert_eq!(counted(between(HOUR, 0)).await, (None, vec![]));
    // Seven days are the most, in 169 hours if they do not begin with an hour.
    assert_eq!(counted(between(1, 7 * DAY + 1)).await.1.len(), 169);
    // Without the first date it is a day.
    let (first, arrived) = counted(format!("?date_to={}", Timestamp::from_unix_millis(NOW + HOUR))).await;
    assert_eq!((first, arrived.len(), arrived[23]), (Some(time(NOW - 23 * HOUR)), 24, 4));
    // A first date in the future, and the ends of time.
    assert_eq!(counted("?date_from=2027-01-01".into()).await, (None, vec![]));
    assert_eq!(counted("?date_to=0000-01-01T00:00:00.001Z".into()).await.1, [0]);
    assert_eq!(counted("?date_from=9999-12-31&date_to=9999-12-31T23:59:59.999Z".into()).await.1.len(), 24);
}

#[tokio::test]
async fn more_than_seven_days_are_refused() {
    let stack = stack().await;
    for query in ["?date_from=2026-01-25", "?date_from=0000-01-01&date_to=9999-12-31"] {
        let answer = stack.answer(&call("GET", &path(&format!("/stats{query}")), ACME)).await;
        assert_eq!(failure(&answer), (422, vec![r#"["query","date_from"] dates_too_far_apart"#.to_owned()]), "{query}");
    }
}

#[tokio::test]
async fn of_too_many_deliveries_the_latest_are_counted_and_it_is_said() {
    let stack = stack().await;
    let count = i64::try_from(COUNTED).unwrap() + 1;
    let at = |place: i64| NOW - HOUR + (place - count) * 2_000;
    let all: Vec<Made> = (0..count).map(|place| made(at(place), DeliveryState::Delivered, &[1])).collect();
    write(&stack, &all, |_| false).await;
    // All but the oldest one.
    let most = stats(&stack, &format!("?date_from={}", Timestamp::from_unix_millis(at(1)))).await;
    assert_eq!(most["deliveries"], COUNTED);
    let more = stats(&stack, "").await;
    assert_eq!((&more["deliveries"], &more["truncated"]), (&json!(COUNTED), &json!(true)));
    let hours = more["hours"].as_array().unwrap();
    // Six hours have deliveries, and the hour of the clock has none.
    assert_eq!((hours.len(), &hours[0]["hour"]), (7, &time(NOW - 7 * HOUR)));
    assert_eq!(hours[6]["arrived"], 0);
    let narrower = format!("?date_from={}", Timestamp::from_unix_millis(NOW - 3 * HOUR));
    let fewer = stats(&stack, &narrower).await;
    assert_eq!((&fewer["deliveries"], &fewer["truncated"]), (&json!(3_600), &json!(false)));
}

#[tokio::test]
async fn an_event_moves_from_waiting_to_arrived_in_its_own_hour() {
    let setup = Setup::start().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    let assistant = setup.assistant(&org, &webhook).await;
    setup.converse(&org, &assistant, 3).await;
    setup.settle().await;
    setup.receiver.behave("/hook", Behaviour::Answer(500));
    setup.converse(&org, &assistant, 1).await;
    setup.settle().await;
    let counted = async || {
        let stats = setup.get(&org, &format!("/api/v1/outbound_webhook/{}/stats", id_of(&webhook))).await;
        assert_eq!(stats["deliveries"], 4);
        let hours = stats["hours"].as_array().unwrap();
        let hour = hours.iter().find(|hour| hour["hour"] == time(NOW)).unwrap();
        assert!(hour["median_milliseconds"].as_u64() <= hour["p99_milliseconds"].as_u64(), "{hour}");
        ["arrived", "failed", "waiting"].map(|member| hour[member].as_u64().unwrap())
    };
    setup.pass(1);
    assert_eq!(counted().await, [3, 0, 1]);
    // The retry is two hours later.
    setup.receiver.behave("/hook", Behaviour::Answer(200));
    setup.pass(7_200);
    setup.minute().await;
    assert_eq!(counted().await, [4, 0, 0]);
}
