//! What the functions on the stream give up is kept, and `redrive` does what was left undone.

use std::collections::BTreeSet;
use std::time::Duration;

use local::database::request;
use local::event_source::StreamFaults;
use local::faults::Fault;
use local::template::document;
use serde_json::{Value, json};
use shared::bucket::kept::KEPT_DAYS;
use shared::runtime::lambda::tracing::Level;
use shared::table::keys::TTL;

use crate::canary::Log;
use crate::contract::read;
use crate::fixture::{everything, json as body_of};
use crate::sending::{Org, World, events, id_of};
use crate::sweep::crashes_everywhere;

/// An organisation, with what follows from its changes: an event of a closed conversation, the filters of its conversations, a cascade.
struct Customer {
    org: Org,
    /// Where its receiver hears of closed conversations.
    path: String,
    conversation: Value,
    tag: Value,
}

impl Customer {
    /// An organisation with an open conversation and a tag with a link, of all of which the stream is told.
    async fn of(world: &World, name: &str) -> Self {
        let (org, path) = (world.org().await, format!("/{name}"));
        let webhook = world.webhook(&org, &path).await;
        let assistant = world.assistant(&org, &webhook).await;
        let conversation = world.open(&org, &assistant).await;
        let tag = world.post(&org, "/api/v1/tag", json!({"name": "VIP"})).await;
        let link = json!({"tag_id": tag["id"], "entity_type": "assistant", "entity_id": assistant["id"]});
        world.post(&org, "/api/v1/link_tag_entity", link).await;
        world.settle().await;
        Self { org, path, conversation, tag }
    }

    async fn close(&self, world: &World) {
        world.close(&self.org, &self.conversation).await;
    }

    async fn delete_tag(&self, world: &World) {
        let path = format!("/api/v1/tag/{}", id_of(&self.tag));
        assert_eq!(world.ask(&self.org, "DELETE", &path, &Value::Null).await.status, 200);
    }

    /// How many conversations are listed as open and as closed, how many links there are, and how often the event has come.
    async fn sees(&self, world: &World) -> (Value, Value, Value, usize) {
        let total = async |path: &str| {
            let (path, query) = path.split_once('?').unwrap_or((path, ""));
            let mut call = crate::fixture::call("GET", path, &self.org.key);
            call.query += &format!("&{query}");
            crate::fixture::data(&world.stack.answer(&call).await)["total"].clone()
        };
        (
            total("/api/v1/conversation?status=open").await,
            total("/api/v1/conversation?status=closed").await,
            total("/api/v1/link_tag_entity/list").await,
            world.receiver.count(&self.path),
        )
    }

    async fn sees_nothing_yet(&self, world: &World) {
        // A row whose status is another one is left out of a page, and still counts in its total.
        assert_eq!(self.sees(world).await, (json!(1), json!(0), json!(1), 0), "{}", self.path);
    }

    async fn sees_all(&self, world: &World) {
        assert_eq!(self.sees(world).await, (json!(0), json!(1), json!(0), 1), "{}", self.path);
    }
}

const NAMES: [&str; 3] = ["acme", "globex", "initech"];
/// A closed conversation and a removed tag, of each.
const CHANGES: usize = 2 * NAMES.len();

async fn start() -> (World, Vec<Customer>) {
    let (world, mut customers) = (World::start().await, Vec::new());
    for name in NAMES {
        customers.push(Customer::of(&world, name).await);
    }
    (world, customers)
}

/// Has `function` give up what it is told next, as if its last attempt had failed.
async fn give_up(world: &World, function: &str) {
    world.stack.stream.set_faults(&StreamFaults { given_up: 1.0, ..StreamFaults::default() });
    world.stack.stream.drain_for(function).await.unwrap();
    world.stack.stream.set_faults(&StreamFaults::default());
}

/// Three organisations whose changes were given up, each record in an object of its own.
async fn given_up() -> (World, Vec<Customer>) {
    let (world, customers) = start().await;
    for customer in &customers {
        customer.close(&world).await;
        give_up(&world, "record-changed").await;
        customer.delete_tag(&world).await;
        give_up(&world, "record-changed").await;
    }
    assert_eq!(kept(&world).len(), CHANGES);
    (world, customers)
}

/// Has all that is kept stand in one object, as a batch does that was never split.
async fn put_together(world: &World) {
    let (bucket, objects) = (&world.stack.gateway.service.failed_records, kept(world));
    let first = objects[0].0.clone();
    for (key, _) in &objects[1..] {
        bucket.remove(key).await.unwrap();
    }
    let records: Vec<Value> = objects.into_iter().flat_map(|(_, records)| records).collect();
    let invocation = json!({"version": "1.0", "payload": json!({"Records": records}).to_string()});
    bucket.replace(&first, invocation.to_string().into_bytes()).await.unwrap();
}

/// The records that are kept, by the objects that they are in.
fn kept(world: &World) -> Vec<(String, Vec<Value>)> {
    let records = |bytes: Vec<u8>| {
        let invocation: Value = serde_json::from_slice(&bytes).unwrap();
        let payload: Value = serde_json::from_str(invocation["payload"].as_str().unwrap()).unwrap();
        payload["Records"].as_array().unwrap().clone()
    };
    let objects = world.stack.objects.failed_records().unwrap();
    objects.into_iter().map(|(key, bytes)| (key, records(bytes))).collect()
}

fn count(kept: &[(String, Vec<Value>)]) -> usize {
    kept.iter().map(|(_, records)| records.len()).sum()
}

/// What an operator is answered who invokes `redrive`.
async fn invoke(world: &World, input: Value) -> Value {
    let answer = world.stack.gateway.invoke_by_name("RedriveFunction", input.to_string().as_bytes()).await;
    assert!(!answer.headers.contains_key("x-amz-function-error"), "{}", answer.body);
    body_of(&answer)
}

/// A tag without an id, which was removed: no reaction can read it.
fn poison(world: &World, org: &Org, text: &str) {
    let key = json!({"pk": {"S": format!("ORG#{}#LIST#TAG#ROWS", org.id)}, "sk": {"S": "0000000099"}});
    let mut item = key.clone();
    (item["record"], item["name"]) = (json!({"S": "Tag"}), json!({"S": text}));
    world.stack.database.put_item(request(json!({"Item": item})).unwrap()).unwrap();
    world.stack.database.delete_item(request(json!({"Key": key})).unwrap()).unwrap();
}

/// The events that have come, of each one how often.
async fn delivered(world: &World) -> BTreeSet<usize> {
    world.settle().await;
    events(&world.receiver.all()).into_values().collect()
}

/// Nothing is kept any more, each event has come once, and each customer sees what its changes have led to.
async fn all_is_done(world: &World, customers: &[Customer], when: &str) {
    assert_eq!((kept(world), delivered(world).await), (vec![], [1].into()), "{when}");
    for customer in customers {
        customer.sees_all(world).await;
    }
}

#[tokio::test]
async fn what_ten_attempts_could_not_do_is_done_when_the_cause_is_mended() {
    let (world, customers) = start().await;
    for customer in &customers {
        customer.close(&world).await;
        customer.delete_tag(&world).await;
    }
    world.faults.plan(|_, _| Fault::Throttle);
    world.settle().await;
    world.faults.end();
    assert_eq!(world.stack.stream.given_up().len(), CHANGES);
    assert_eq!(count(&kept(&world)), CHANGES);
    for customer in &customers {
        customer.sees_nothing_yet(&world).await;
    }
    world.stack.tick("redrive").await.unwrap();
    all_is_done(&world, &customers, "").await;
    // What is handled is over.
    assert_eq!(invoke(&world, json!({"all": true})).await, json!({"handled": 0, "failed": 0, "left": 0}));
}

#[tokio::test]
async fn while_the_table_is_unavailable_everything_stays() {
    let (world, customers) = given_up().await;
    let before = kept(&world);
    world.faults.plan(|action, _| if action.contains("Object") { Fault::None } else { Fault::Throttle });
    assert_eq!(invoke(&world, json!({})).await, json!({"handled": 0, "failed": CHANGES, "left": 0}));
    world.faults.end();
    assert_eq!(kept(&world), before);
    world.stack.tick("redrive").await.unwrap();
    delivered(&world).await;
    for customer in &customers {
        customer.sees_all(&world).await;
    }
}

#[tokio::test]
async fn a_record_that_cannot_be_handled_stays_alone_and_is_told_nowhere() {
    const SONG: &str = "CANARYOFATAG";
    let log = Log::default();
    let _guard = log.listen(Level::TRACE);
    let (world, customers) = given_up().await;
    poison(&world, &customers[0].org, SONG);
    give_up(&world, "record-changed").await;
    put_together(&world).await;
    assert_eq!(count(&kept(&world)), CHANGES + 1);
    let (mut answers, mut left) = (String::new(), Vec::new());
    for handled in [CHANGES, 0, 0] {
        let answer = invoke(&world, json!({})).await;
        assert_eq!(answer, json!({"handled": handled, "failed": 1, "left": 0}));
        answers += &answer.to_string();
        left = kept(&world);
        assert_eq!((left.len(), count(&left)), (1, 1));
    }
    assert_eq!(left[0].1[0]["dynamodb"]["OldImage"]["name"]["S"], SONG);
    assert_eq!(delivered(&world).await, [1].into());
    for customer in &customers {
        customer.sees_all(&world).await;
    }
    let log = log.text();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("shared::")).collect();
    assert!(lines.iter().any(|line| line.contains("sequence_number")), "the log is not listened to");
    assert!(!lines.iter().any(|line| line.contains(SONG)) && !answers.contains(SONG), "what a record holds is told");
}

#[tokio::test]
async fn what_is_older_than_twelve_hours_waits_for_an_operator() {
    let (world, customers) = given_up().await;
    world.pass(12 * 3600);
    let objects = kept(&world).len();
    assert_eq!(invoke(&world, json!({"source": "aws.scheduler"})).await["left"], objects);
    assert_eq!(kept(&world).len(), objects);
    for customer in &customers {
        customer.sees_nothing_yet(&world).await;
    }
    let answer = invoke(&world, json!({"all": true})).await;
    assert_eq!(answer, json!({"handled": CHANGES, "failed": 0, "left": 0}));
    all_is_done(&world, &customers, "").await;
}

#[tokio::test]
async fn what_is_older_than_the_markers_of_its_events_is_not_tried_again() {
    let (world, customers) = given_up().await;
    let objects = kept(&world).len();
    world.pass(30 * 86_400);
    let answer = invoke(&world, json!({"all": true})).await;
    assert_eq!(answer, json!({"handled": 0, "failed": 0, "left": objects}));
    for customer in &customers {
        customer.sees_nothing_yet(&world).await;
    }
}

#[tokio::test]
async fn an_object_that_lambda_has_not_put_there_stays() {
    let (world, _) = given_up().await;
    let kept = &world.stack.gateway.service.failed_records;
    kept.replace("notes.txt", b"to do".to_vec()).await.unwrap();
    for (input, handled) in [(json!({}), CHANGES), (json!({"all": true}), 0)] {
        assert_eq!(invoke(&world, input).await, json!({"handled": handled, "failed": 0, "left": 1}));
        assert_eq!(world.stack.objects.failed_records().unwrap(), [("notes.txt".to_owned(), b"to do".to_vec())]);
    }
}

#[tokio::test]
async fn two_runs_at_once_do_nothing_twice() {
    let (world, customers) = given_up().await;
    let (one, other) = tokio::join!(world.stack.tick("redrive"), world.stack.tick("redrive"));
    one.and(other).unwrap();
    // One run may have put again what the other one had removed.
    world.stack.tick("redrive").await.unwrap();
    all_is_done(&world, &customers, "").await;
}

#[tokio::test]
async fn wherever_a_run_ends_the_next_one_does_the_rest() {
    crashes_everywhere(
        async || {
            let (world, customers) = given_up().await;
            put_together(&world).await;
            (world, customers)
        },
        |(world, _)| world,
        async |(world, _)| world.stack.tick("redrive").await.unwrap(),
        async |(world, customers), when| {
            world.stack.tick("redrive").await.unwrap();
            all_is_done(world, customers, &when).await;
        },
    )
    .await;
}

/// What ends the process is tried after all others the next time.
#[tokio::test]
async fn what_was_tried_last_comes_last() {
    let (world, _) = given_up().await;
    let objects = async || {
        let kept = world.stack.gateway.service.failed_records.list().await.unwrap();
        kept.into_iter().map(|object| object.key).collect::<Vec<_>>()
    };
    let before = objects().await;
    // The list knows milliseconds.
    tokio::time::sleep(Duration::from_millis(5)).await;
    world.faults.plan(|action, _| if action.contains("Object") { Fault::None } else { Fault::LoseRequest });
    assert!(world.faults.kill(world.stack.tick("redrive")).await);
    world.faults.end();
    let after = objects().await;
    assert!(before[..4].contains(after.last().unwrap()), "{before:#?} {after:#?}");
    assert_eq!(after.iter().collect::<BTreeSet<_>>(), before.iter().collect());
}

#[tokio::test]
async fn a_run_begins_with_nothing_more_when_its_time_is_over() {
    let (world, customers) = given_up().await;
    let clock = world.clock.clone();
    world.faults.plan(move |action, _| {
        if !action.contains("Object") {
            clock.skip(Duration::from_secs(200));
        }
        Fault::None
    });
    // Four objects are tried at the same time.
    assert_eq!(invoke(&world, json!({})).await["left"], CHANGES - 4);
    world.faults.end();
    world.stack.tick("redrive").await.unwrap();
    all_is_done(&world, &customers, "").await;
}

#[tokio::test]
async fn a_list_of_more_than_a_page_is_read_to_its_end() {
    const OBJECTS: usize = 1001;
    let world = World::start().await;
    let bucket = &world.stack.gateway.service.failed_records;
    for number in 0..OBJECTS {
        bucket.replace(&format!("{number:04}"), b"{}".to_vec()).await.unwrap();
    }
    let keys: Vec<_> = bucket.list().await.unwrap().into_iter().map(|object| object.key).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), OBJECTS);
    assert_eq!((keys.len(), keys.first().unwrap().as_str(), keys.last().unwrap().as_str()), (OBJECTS, "0000", "1000"));
}

/// `release-deliveries` has sent what `send-delivery` gave up: it is counted, and nothing else is done.
#[tokio::test]
async fn what_send_delivery_gave_up_is_kept_until_it_is_counted() {
    let world = World::start().await;
    let customer = Customer::of(&world, "acme").await;
    customer.close(&world).await;
    customer.delete_tag(&world).await;
    world.stack.stream.drain_for("record-changed").await.unwrap();
    give_up(&world, "send-delivery").await;
    assert_eq!(count(&kept(&world)), 1);
    let before = everything(&world.stack).await;
    assert_eq!(invoke(&world, json!({})).await, json!({"handled": 1, "failed": 0, "left": 0}));
    assert_eq!((everything(&world.stack).await, kept(&world)), (before, vec![]));
    world.minutes(6).await;
    customer.sees_all(&world).await;
}

/// Else an operator who has an old change handled again would have its event sent again.
#[tokio::test]
async fn an_event_is_remembered_for_longer_than_its_change_is_kept() {
    let template = document(&read("template.yaml")).unwrap();
    let bucket = &template["Resources"]["FailedRecordsBucket"]["Properties"];
    let rules = bucket["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    let days: Vec<_> = rules.iter().filter_map(|rule| rule["ExpirationInDays"].as_i64()).collect();
    assert_eq!(days, [KEPT_DAYS]);
    let world = World::start().await;
    let customer = Customer::of(&world, "acme").await;
    customer.close(&world).await;
    world.settle().await;
    let until = world.clock.now().plus_seconds((KEPT_DAYS + 3) * 86_400).unix_seconds();
    let of_event = format!("MADE_BY#{}", id_of(&customer.conversation));
    let items = everything(&world.stack).await;
    let marker = items.iter().find(|item| item["pk"].as_s().unwrap().ends_with(&of_event)).unwrap();
    assert!(marker[TTL].as_n().unwrap().parse::<i64>().unwrap() > until);
}
