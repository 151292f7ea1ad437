//! Tests that no organisation delays the work of another: its share of the attempts, and what starts in the tick.

use std::time::Duration;

use futures_util::future::join_all;
use local::Settings;
use local::receiver::Behaviour;
use local::stream::Stream;
use serde_json::{Value, json};
use shared::delivery::outbox::Outbox;
use shared::records::delivery::{self, Delivery, DeliveryState, EndpointHealth, NewDelivery, Observed};
use shared::records::event::EventId;
use shared::request::event::EventContext;
use shared::runtime::stream::StreamEvent;
use shared::table::quota::{Quota, Quotas};
use shared::values::id::EndpointId;
use uuid::Uuid;

use crate::support::fixture::data;
use crate::support::sending::{Org, Setup, events, id_of, loopback};

/// The time limit of an attempt of the tick. An attempt of the stream has a third of it, and an answer that takes a
/// fifth is slow.
const ATTEMPT: Duration = Duration::from_secs(3);
/// A slow answer that the stream still waits for, and one that only the tick waits for.
const SLOW: Behaviour = Behaviour::Slow(Duration::from_millis(700), 200);
const TOO_SLOW: Behaviour = Behaviour::Slow(Duration::from_millis(1500), 200);
const HOUR: i64 = 3600;

async fn setup() -> Setup {
    // Some tests have more webhooks than an organisation may have by default.
    let quotas = Quotas::default().with(Quota::Webhooks, 200);
    Setup::with(|settings| Settings { network: loopback(ATTEMPT), quotas, ..settings }).await
}

fn endpoint(webhook: &Value) -> EndpointId {
    id_of(webhook).parse::<Uuid>().unwrap().into()
}

/// Stores so many deliveries of a test to a webhook.
async fn enqueue(setup: &Setup, org: &Org, webhook: &Value, count: usize) {
    let now = setup.clock.now();
    let new: Vec<_> = (0..count).map(|_| NewDelivery::test(EventId(Uuid::now_v7()), now)).collect();
    delivery::enqueue(&org.table, endpoint(webhook), &new, now).await.unwrap();
}

/// Passes everything that is ready to the outbox, as one batch.
async fn send_as_one_batch(setup: &Setup) {
    let mut records = Stream::changes(&setup.stack.database).unwrap();
    records.retain(|record| record["dynamodb"]["NewImage"]["state"]["S"] == "ready");
    let event: StreamEvent = serde_json::from_value(json!({"Records": records})).unwrap();
    assert!(event.records.len() <= 100, "more than a batch");
    let cx = EventContext { service: &setup.stack.gateway.service };
    Outbox::new(&cx).unwrap().send(&cx, &event.records).await.unwrap();
}

async fn test_event(setup: &Setup, org: &Org, webhook: &Value) {
    setup.post(org, &format!("/api/v1/outbound_webhook/{}/test", id_of(webhook)), Value::Null).await;
    setup.settle().await;
}

async fn enable(setup: &Setup, org: &Org, webhook: &Value) {
    let path = format!("/api/v1/outbound_webhook/{}", id_of(webhook));
    data(&setup.ask(org, "PUT", &path, &json!({"enabled": true})).await);
}

/// The deliveries that nobody has attempted.
fn unattempted(outbox: &[Delivery]) -> usize {
    outbox.iter().filter(|delivery| delivery.attempts == 0).count()
}

#[tokio::test]
async fn an_organisation_has_half_of_the_attempts_of_a_batch() {
    const SHARE: usize = 50;
    // The stream waits two seconds for a share and four for an answer.
    let setup = Setup::with(|settings| Settings { network: loopback(ATTEMPT * 4), ..settings }).await;
    let (org, neighbour) = (setup.org().await, setup.org().await);
    let hooks = [setup.webhook(&org, "/first").await, setup.webhook(&org, "/second").await];
    let healthy = setup.webhook(&neighbour, "/neighbour").await;
    for (hook, path) in hooks.iter().zip(["/first", "/second"]) {
        setup.receiver.behave(path, Behaviour::Never);
        enqueue(&setup, &org, hook, 40).await;
    }
    enqueue(&setup, &neighbour, &healthy, 10).await;
    send_as_one_batch(&setup).await;
    assert_eq!(setup.receiver.count("/first") + setup.receiver.count("/second"), SHARE);
    let mut outbox = setup.outbox(&org, &hooks[0]).await;
    outbox.extend(setup.outbox(&org, &hooks[1]).await);
    assert!(outbox.iter().all(Delivery::is_held), "the tick sends the rest");
    assert_eq!(unattempted(&outbox), 2 * 40 - SHARE);
    let others = setup.outbox(&neighbour, &healthy).await;
    assert!(others.iter().all(|delivery| (delivery.state, delivery.attempts) == (DeliveryState::Delivered, 1)));
}

#[tokio::test]
async fn an_organisation_has_a_quarter_of_the_attempts_of_a_tick() {
    const SHARE: usize = 100;
    const MORE: usize = 10;
    let setup = setup().await;
    let (org, neighbour, now) = (setup.org().await, setup.org().await, setup.clock.now());
    // Its first answer waits until one more than the share has come. This one comes when another has run out of time.
    setup.receiver.behave("/hook", Behaviour::Together(SHARE + 1));
    let deferred = async |org: &Org, path: &str| {
        let webhook = setup.webhook(org, path).await;
        let failed = Observed { failures: 3, failing_since: Some(now), ..Observed::default() };
        let healthy = EndpointHealth::healthy(endpoint(&webhook));
        delivery::health::keep(&org.table, &healthy, &failed, now, now).await.unwrap();
        enqueue(&setup, org, &webhook, 1).await;
        webhook
    };
    let hooks = join_all((0..SHARE + MORE).map(|_| deferred(&org, "/hook"))).await;
    let healthy = deferred(&neighbour, "/neighbour").await;
    setup.settle().await;
    assert_eq!(setup.receiver.count("/hook"), 0, "all are deferred");
    setup.stack.tick("send-delivery").await.unwrap();
    let outbox = join_all(hooks.iter().map(|hook| setup.outbox(&org, hook))).await.concat();
    assert!(outbox.iter().any(|delivery| delivery.error.as_deref() == Some("timeout")), "all came at once");
    assert_eq!((unattempted(&outbox), outbox.len()), (0, SHARE + MORE));
    assert_eq!(setup.outbox(&neighbour, &healthy).await[0].state, DeliveryState::Delivered);
}

#[tokio::test]
async fn the_owner_cannot_reset_that_an_endpoint_was_slow() {
    let setup = setup().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    setup.receiver.behave("/hook", SLOW);
    test_event(&setup, &org, &webhook).await;
    assert_eq!(setup.receiver.count("/hook"), 1);
    setup.receiver.behave("/hook", Behaviour::Answer(200));
    for minutes in 1..=3 {
        enable(&setup, &org, &webhook).await;
        test_event(&setup, &org, &webhook).await;
        assert_eq!(setup.receiver.count("/hook"), minutes, "the stream sends nothing");
        // The tick sends it. One quick answer does not end this.
        setup.minutes(1).await;
        assert_eq!(setup.receiver.count("/hook"), minutes + 1);
    }
    setup.pass(HOUR + 300);
    test_event(&setup, &org, &webhook).await;
    assert_eq!(setup.receiver.count("/hook"), 5, "an hour later the stream sends again");
}

#[tokio::test]
async fn a_reset_during_a_slow_attempt_keeps_the_slow_answer() {
    let setup = setup().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    setup.receiver.behave("/hook", SLOW);
    let reset = async {
        setup.receiver.wait_for("/hook", 1, ATTEMPT * 10).await.unwrap();
        setup.pass(1);
        enable(&setup, &org, &webhook).await;
    };
    tokio::join!(test_event(&setup, &org, &webhook), reset);
    test_event(&setup, &org, &webhook).await;
    assert_eq!(setup.receiver.count("/hook"), 1, "the stream sends nothing");
}

#[tokio::test]
async fn a_reset_after_failures_lets_the_stream_send_again() {
    let setup = setup().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    setup.receiver.behave("/hook", Behaviour::Answer(500));
    for _ in 0..4 {
        test_event(&setup, &org, &webhook).await;
    }
    assert_eq!(setup.receiver.count("/hook"), 3, "the circuit is open");
    setup.receiver.behave("/hook", Behaviour::Answer(200));
    enable(&setup, &org, &webhook).await;
    test_event(&setup, &org, &webhook).await;
    assert_eq!(setup.receiver.count("/hook"), 4);
}

#[tokio::test]
async fn many_quick_answers_at_once_give_an_endpoint_back_to_the_stream() {
    // The tick sends 1, 2, 4, 8, 16, 32.
    const ENOUGH: usize = 63;
    for (count, by_stream) in [(ENOUGH - 1, 0), (ENOUGH, 1)] {
        let setup = Setup::start().await;
        let (org, now) = (setup.org().await, setup.clock.now());
        let webhook = setup.webhook(&org, "/hook").await;
        let healthy = EndpointHealth::healthy(endpoint(&webhook));
        delivery::health::keep(&org.table, &healthy, &Observed::cut_short(now), now, now).await.unwrap();
        enqueue(&setup, &org, &webhook, count).await;
        setup.settle().await;
        assert_eq!(setup.receiver.count("/hook"), 0, "all are deferred");
        setup.minutes(1).await;
        assert_eq!(setup.receiver.count("/hook"), count, "the tick sends all");
        test_event(&setup, &org, &webhook).await;
        assert_eq!(setup.receiver.count("/hook"), count + by_stream, "{count}");
    }
}

#[tokio::test]
async fn the_tick_waits_longer_for_an_answer_than_the_stream() {
    let setup = setup().await;
    let org = setup.org().await;
    let webhook = setup.webhook(&org, "/hook").await;
    setup.receiver.behave("/hook", TOO_SLOW);
    test_event(&setup, &org, &webhook).await;
    let cut_short = setup.outbox(&org, &webhook).await.remove(0);
    assert!(cut_short.is_held() && cut_short.is_due(setup.clock.now()), "{cut_short:?}");
    assert_eq!((cut_short.attempts, cut_short.tries, cut_short.error.as_deref()), (1, 0, Some("timeout")));
    let health = delivery::health::of(&org.table, endpoint(&webhook)).await.unwrap();
    assert_eq!((health.failures, health.failing_since, health.slow), (0, None, true));
    setup.minutes(1).await;
    let delivered = setup.outbox(&org, &webhook).await.remove(0);
    assert_eq!((delivered.state, delivered.attempts, delivered.log.len()), (DeliveryState::Delivered, 2, 2));
    let received = setup.receiver.received("/hook");
    assert_eq!((received.len(), events(&received).len()), (2, 1), "the receiver knows it by its id");
}

#[tokio::test]
async fn new_endpoints_of_a_slow_organisation_start_in_the_tick() {
    let setup = setup().await;
    let (org, neighbour) = (setup.org().await, setup.org().await);
    setup.receiver.behave("/slow", TOO_SLOW);
    // Each of these batches takes a third of the time that an organisation may occupy a lane in a minute.
    for _ in 0..3 {
        let webhook = setup.webhook(&org, "/slow").await;
        test_event(&setup, &org, &webhook).await;
    }
    assert_eq!(setup.receiver.count("/slow"), 3);
    let fresh = setup.webhook(&org, "/fresh").await;
    test_event(&setup, &org, &fresh).await;
    assert_eq!(setup.receiver.count("/fresh"), 0, "it starts in the tick");
    let healthy = setup.webhook(&neighbour, "/neighbour").await;
    test_event(&setup, &neighbour, &healthy).await;
    assert_eq!(setup.receiver.count("/neighbour"), 1, "another organisation does not wait");
    setup.minutes(1).await;
    assert_eq!(setup.receiver.count("/fresh"), 1);
    test_event(&setup, &org, &fresh).await;
    assert_eq!(setup.receiver.count("/fresh"), 2, "a minute later the stream sends again");
}
