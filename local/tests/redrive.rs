//! Tests of `redrive`, which handles the changes that the functions on the stream gave up.

use std::collections::BTreeSet;
use std::time::Duration;

use local::database::request;
use local::event_source::StreamFaults;
use local::faults::Fault;
use serde_json::{Value, json};
use shared::bucket::kept::KEPT_DAYS;
use shared::runtime::lambda::tracing::Level;
use shared::table::keys::TTL;

use crate::support::crashes::crashes_everywhere;
use crate::support::fixture::{everything, json as body_of};
use crate::support::log::Log;
use crate::support::sending::{Org, Setup, events, id_of};
use crate::support::template::TEMPLATE;

/// An organisation whose changes cause an event, new sets of filters and a cascade.
struct Customer {
    org: Org,
    /// The path at which the receiver gets the events.
    path: String,
    conversation: Value,
    tag: Value,
}

impl Customer {
    /// An organisation with an open conversation and a linked tag. The stream has handled them.
    async fn of(setup: &Setup, name: &str) -> Self {
        let (org, path) = (setup.org().await, format!("/{name}"));
        let webhook = setup.webhook(&org, &path).await;
        let assistant = setup.assistant(&org, &webhook).await;
        let conversation = setup.open(&org, &assistant).await;
        let tag = setup.post(&org, "/api/v1/tag", json!({"name": "VIP"})).await;
        let link = json!({"tag_id": tag["id"], "entity_type": "assistant", "entity_id": assistant["id"]});
        setup.post(&org, "/api/v1/link_tag_entity", link).await;
        setup.settle().await;
        Self { org, path, conversation, tag }
    }

    async fn close(&self, setup: &Setup) {
        setup.close(&self.org, &self.conversation).await;
    }

    async fn delete_tag(&self, setup: &Setup) {
        let path = format!("/api/v1/tag/{}", id_of(&self.tag));
        assert_eq!(setup.ask(&self.org, "DELETE", &path, &Value::Null).await.status, 200);
    }

    /// The numbers of open conversations, of closed ones, of links and of events.
    async fn sees(&self, setup: &Setup) -> (Value, Value, Value, usize) {
        let total = async |path: &str| setup.get(&self.org, path).await["total"].take();
        (
            total("/api/v1/conversation?status=open").await,
            total("/api/v1/conversation?status=closed").await,
            total("/api/v1/link_tag_entity/list").await,
            setup.receiver.count(&self.path),
        )
    }

    async fn sees_nothing_yet(&self, setup: &Setup) {
        // A page leaves out a row with another status, but its total still counts the row.
        assert_eq!(self.sees(setup).await, (json!(1), json!(0), json!(1), 0), "{}", self.path);
    }

    async fn sees_all(&self, setup: &Setup) {
        assert_eq!(self.sees(setup).await, (json!(0), json!(1), json!(0), 1), "{}", self.path);
    }
}

const NAMES: [&str; 3] = ["acme", "globex", "initech"];
/// A closed conversation and a removed tag, of each.
const CHANGES: usize = 2 * NAMES.len();

async fn start() -> (Setup, Vec<Customer>) {
    let (setup, mut customers) = (Setup::start().await, Vec::new());
    for name in NAMES {
        customers.push(Customer::of(&setup, name).await);
    }
    (setup, customers)
}

/// Makes `function` give up its next changes, as if the last attempt had failed.
async fn give_up(setup: &Setup, function: &str) {
    setup.stack.stream.set_faults(&StreamFaults { given_up: 1.0, ..StreamFaults::default() });
    setup.stack.stream.drain_for(function).await.unwrap();
    setup.stack.stream.set_faults(&StreamFaults::default());
}

/// Three organisations whose changes were given up, each record in an object of its own.
async fn given_up() -> (Setup, Vec<Customer>) {
    let (setup, customers) = start().await;
    for customer in &customers {
        customer.close(&setup).await;
        give_up(&setup, "record-changed").await;
        customer.delete_tag(&setup).await;
        give_up(&setup, "record-changed").await;
    }
    assert_eq!(kept(&setup).len(), CHANGES);
    (setup, customers)
}

/// Moves all kept records into one object, like a batch that was never split.
async fn put_together(setup: &Setup) {
    let (bucket, objects) = (&setup.stack.gateway.service.failed_records, kept(setup));
    let first = objects[0].0.clone();
    for (key, _) in &objects[1..] {
        bucket.remove(key).await.unwrap();
    }
    let records: Vec<Value> = objects.into_iter().flat_map(|(_, records)| records).collect();
    let invocation = json!({"version": "1.0", "payload": json!({"Records": records}).to_string()});
    bucket.replace(&first, invocation.to_string().into_bytes()).await.unwrap();
}

/// The records that are kept, by the objects that they are in.
fn kept(setup: &Setup) -> Vec<(String, Vec<Value>)> {
    let records = |bytes: Vec<u8>| {
        let invocation: Value = serde_json::from_slice(&bytes).unwrap();
        let payload: Value = serde_json::from_str(invocation["payload"].as_str().unwrap()).unwrap();
        payload["Records"].as_array().unwrap().clone()
    };
    let objects = setup.stack.objects.failed_records().unwrap();
    objects.into_iter().map(|(key, bytes)| (key, records(bytes))).collect()
}

fn count(kept: &[(String, Vec<Value>)]) -> usize {
    kept.iter().map(|(_, records)| records.len()).sum()
}

/// The answer of `redrive` to an operator.
async fn invoke(setup: &Setup, input: Value) -> Value {
    let answer = setup.stack.gateway.invoke_by_name("RedriveFunction", input.to_string().as_bytes()).await;
    assert!(!answer.headers.contains_key("x-amz-function-error"), "{}", answer.body);
    body_of(&answer)
}

/// Creates and removes a tag without an id, which no reaction can read.
fn poison(setup: &Setup, org: &Org, text: &str) {
    let key = json!({"pk": {"S": format!("ORG#{}#LIST#TAG#ROWS", org.id)}, "sk": {"S": "0000000099"}});
    let mut item = key.clone();
    (item["record"], item["name"]) = (json!({"S": "Tag"}), json!({"S": text}));
    setup.stack.database.put_item(request(json!({"Item": item})).unwrap()).unwrap();
    setup.stack.database.delete_item(request(json!({"Key": key})).unwrap()).unwrap();
}

/// How often the events have come: one count for each.
async fn delivered(setup: &Setup) -> BTreeSet<usize> {
    setup.settle().await;
    events(&setup.receiver.all()).into_values().collect()
}

/// No record is kept, each event has come once, and each customer sees the results of its changes.
async fn all_is_done(setup: &Setup, customers: &[Customer], when: &str) {
    assert_eq!((kept(setup), delivered(setup).await), (vec![], [1].into()), "{when}");
    for customer in customers {
        customer.sees_all(setup).await;
    }
}

#[tokio::test]
async fn redrive_handles_given_up_changes_after_an_outage() {
    let (setup, customers) = start().await;
    for customer in &customers {
        customer.close(&setup).await;
        customer.delete_tag(&setup).await;
    }
    setup.faults.plan(|_, _| Fault::Throttle);
    setup.settle().await;
    setup.faults.end();
    assert_eq!(setup.stack.stream.given_up().len(), CHANGES);
    assert_eq!(count(&kept(&setup)), CHANGES);
    for customer in &customers {
        customer.sees_nothing_yet(&setup).await;
    }
    setup.stack.tick("redrive").await.unwrap();
    all_is_done(&setup, &customers, "").await;
    // A second run has nothing to handle.
    assert_eq!(invoke(&setup, json!({"all": true})).await, json!({"handled": 0, "failed": 0, "left": 0}));
}

#[tokio::test]
async fn redrive_keeps_every_record_during_an_outage() {
    let (setup, customers) = given_up().await;
    let before = kept(&setup);
    setup.faults.plan(|action, _| if action.contains("Object") { Fault::None } else { Fault::Throttle });
    assert_eq!(invoke(&setup, json!({})).await, json!({"handled": 0, "failed": CHANGES, "left": 0}));
    setup.faults.end();
    assert_eq!(kept(&setup), before);
    setup.stack.tick("redrive").await.unwrap();
    all_is_done(&setup, &customers, "").await;
}

#[tokio::test]
async fn a_poison_record_stays_alone_and_out_of_the_log() {
    const MARK: &str = "CANARYOFATAG";
    let log = Log::default();
    let _guard = log.listen(Level::TRACE);
    let (setup, customers) = given_up().await;
    poison(&setup, &customers[0].org, MARK);
    give_up(&setup, "record-changed").await;
    put_together(&setup).await;
    // The creation of the same record was in its batch.
    assert_eq!(count(&kept(&setup)), CHANGES + 2);
    let (mut answers, mut left) = (String::new(), Vec::new());
    for handled in [CHANGES + 1, 0, 0] {
        let answer = invoke(&setup, json!({})).await;
        assert_eq!(answer, json!({"handled": handled, "failed": 1, "left": 0}));
        answers += &answer.to_string();
        left = kept(&setup);
        assert_eq!((left.len(), count(&left)), (1, 1));
    }
    assert_eq!(left[0].1[0]["dynamodb"]["OldImage"]["name"]["S"], MARK);
    assert_eq!(delivered(&setup).await, [1].into());
    for customer in &customers {
        customer.sees_all(&setup).await;
    }
    let log = log.text();
    let lines: Vec<_> = log.lines().filter(|line| line.contains("shared::")).collect();
    assert!(lines.iter().any(|line| line.contains("sequence_number")), "the log is not listened to");
    assert!(
        !lines.iter().any(|line| line.contains(MARK)) && !answers.contains(MARK),
        "the content of a record is shown"
    );
}

#[tokio::test]
async fn a_record_older_than_twelve_hours_waits_for_an_operator() {
    let (setup, customers) = given_up().await;
    setup.pass(12 * 3600);
    let objects = kept(&setup).len();
    assert_eq!(invoke(&setup, json!({"source": "aws.scheduler"})).await["left"], objects);
    assert_eq!(kept(&setup).len(), objects);
    for customer in &customers {
        customer.sees_nothing_yet(&setup).await;
    }
    let answer = invoke(&setup, json!({"all": true})).await;
    assert_eq!(answer, json!({"handled": CHANGES, "failed": 0, "left": 0}));
    all_is_done(&setup, &customers, "").await;
}

#[tokio::test]
async fn a_record_older_than_its_markers_is_not_retried() {
    let (setup, customers) = given_up().await;
    let objects = kept(&setup).len();
    setup.pass(30 * 86_400);
    let answer = invoke(&setup, json!({"all": true})).await;
    assert_eq!(answer, json!({"handled": 0, "failed": 0, "left": objects}));
    for customer in &customers {
        customer.sees_nothing_yet(&setup).await;
    }
}

#[tokio::test]
async fn a_foreign_object_in_the_bucket_stays() {
    let (setup, _) = given_up().await;
    let kept = &setup.stack.gateway.service.failed_records;
    kept.replace("notes.txt", b"to do".to_vec()).await.unwrap();
    for (input, handled) in [(json!({}), CHANGES), (json!({"all": true}), 0)] {
        assert_eq!(invoke(&setup, input).await, json!({"handled": handled, "failed": 0, "left": 1}));
        assert_eq!(setup.stack.objects.failed_records().unwrap(), [("notes.txt".to_owned(), b"to do".to_vec())]);
    }
}

#[tokio::test]
async fn two_simultaneous_runs_have_each_effect_once() {
    let (setup, customers) = given_up().await;
    let (one, other) = tokio::join!(setup.stack.tick("redrive"), setup.stack.tick("redrive"));
    one.and(other).unwrap();
    // One run may have written an object again that the other one had removed.
    setup.stack.tick("redrive").await.unwrap();
    all_is_done(&setup, &customers, "").await;
}

#[tokio::test]
async fn a_run_after_a_crash_handles_the_rest() {
    crashes_everywhere(
        async || {
            let (setup, customers) = given_up().await;
            put_together(&setup).await;
            (setup, customers)
        },
        |(setup, _)| setup,
        async |(setup, _)| setup.stack.tick("redrive").await.unwrap(),
        async |(setup, customers), when| {
            setup.stack.tick("redrive").await.unwrap();
            all_is_done(setup, customers, &when).await;
        },
    )
    .await;
}

/// The next run handles an object that crashed the process after all others.
#[tokio::test]
async fn an_object_that_crashed_a_run_is_listed_last() {
    let (setup, _) = given_up().await;
    let objects = async || {
        let kept = setup.stack.gateway.service.failed_records.list().await.unwrap();
        kept.into_iter().map(|object| object.key).collect::<Vec<_>>()
    };
    let before = objects().await;
    // The list is sorted by milliseconds.
    tokio::time::sleep(Duration::from_millis(5)).await;
    setup.faults.plan(|action, _| if action.contains("Object") { Fault::None } else { Fault::LoseRequest });
    assert!(setup.faults.kill(setup.stack.tick("redrive")).await);
    setup.faults.end();
    let after = objects().await;
    assert!(before[..4].contains(after.last().unwrap()), "{before:#?} {after:#?}");
    assert_eq!(after.iter().collect::<BTreeSet<_>>(), before.iter().collect());
}

#[tokio::test]
async fn a_run_out_of_time_starts_no_further_object() {
    let (setup, customers) = given_up().await;
    let clock = setup.clock.clone();
    setup.faults.plan(move |action, _| {
        if !action.contains("Object") {
            clock.skip(Duration::from_secs(200));
        }
        Fault::None
    });
    // `redrive` handles four objects at once.
    assert_eq!(invoke(&setup, json!({})).await["left"], CHANGES - 4);
    setup.faults.end();
    setup.stack.tick("redrive").await.unwrap();
    all_is_done(&setup, &customers, "").await;
}

#[tokio::test]
async fn a_bucket_list_of_several_pages_is_read_whole() {
    const OBJECTS: usize = 1001;
    let setup = Setup::start().await;
    let bucket = &setup.stack.gateway.service.failed_records;
    for number in 0..OBJECTS {
        bucket.replace(&format!("{number:04}"), b"{}".to_vec()).await.unwrap();
    }
    let keys: Vec<_> = bucket.list().await.unwrap().into_iter().map(|object| object.key).collect();
    assert_eq!(keys.iter().collect::<BTreeSet<_>>().len(), OBJECTS);
    assert_eq!((keys.len(), keys.first().unwrap().as_str(), keys.last().unwrap().as_str()), (OBJECTS, "0000", "1000"));
}

/// `release-deliveries` sends these deliveries again, so `redrive` only counts them.
#[tokio::test]
async fn redrive_only_counts_records_of_send_delivery() {
    let setup = Setup::start().await;
    let customer = Customer::of(&setup, "acme").await;
    customer.close(&setup).await;
    customer.delete_tag(&setup).await;
    setup.stack.stream.drain_for("record-changed").await.unwrap();
    give_up(&setup, "send-delivery").await;
    assert_eq!(count(&kept(&setup)), 1);
    let before = everything(&setup.stack).await;
    assert_eq!(invoke(&setup, json!({})).await, json!({"handled": 1, "failed": 0, "left": 0}));
    assert_eq!((everything(&setup.stack).await, kept(&setup)), (before, vec![]));
    setup.minutes(6).await;
    customer.sees_all(&setup).await;
}

/// Otherwise an operator who redrives an old change would send its event twice.
#[tokio::test]
async fn an_event_marker_outlives_its_kept_change() {
    let bucket = &TEMPLATE["Resources"]["FailedRecordsBucket"]["Properties"];
    let rules = bucket["LifecycleConfiguration"]["Rules"].as_array().unwrap();
    let days: Vec<_> = rules.iter().filter_map(|rule| rule["ExpirationInDays"].as_i64()).collect();
    assert_eq!(days, [KEPT_DAYS]);
    let setup = Setup::start().await;
    let customer = Customer::of(&setup, "acme").await;
    customer.close(&setup).await;
    setup.settle().await;
    let until = setup.clock.now().plus_seconds((KEPT_DAYS + 3) * 86_400).unix_seconds();
    let of_event = format!("MADE_BY#{}", id_of(&customer.conversation));
    let items = everything(&setup.stack).await;
    let marker = items.iter().find(|item| item["pk"].as_s().unwrap().ends_with(&of_event)).unwrap();
    assert!(marker[TTL].as_n().unwrap().parse::<i64>().unwrap() > until);
}
