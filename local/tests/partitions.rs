//! Tests of the partitions of the embedded database: which units a call takes, and how a full partition refuses calls.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::Ordering;
use std::time::Duration;

use embedded_dynamodb::Embedded;
use embedded_dynamodb::partitions::{Counting, Partition, Partitions, Unit};
use futures_util::StreamExt as _;
use futures_util::stream;
use local::database::{Data, TABLE_NAME, open};
use local::http::{Answer, Call};
use local::template::Template;
use local::{Settings, Stack};
use repository::root;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;
use shared::table::item::from_item;
use shared::table::keys::RATE;
use shared::values::time::Clock;

use crate::support::fixture::{ACME, failure, few, portable, valid_call};
use crate::support::keyed::{Item, KEY, LEASE, differing, keyed, masked, records};
use crate::support::sweep::cases;

/// How many attempts of the matrix run at once. Each one waits while its request is retried.
const AT_ONCE: usize = 32;

/// An item of about so many bytes.
fn item(pk: &str, sk: &str, bytes: usize) -> Value {
    json!({"pk": {"S": pk}, "sk": {"S": sk}, "x": {"S": "x".repeat(bytes)}})
}

/// An item that is in the index.
fn due(pk: &str, sk: &str, due_pk: &str, due_at: &str) -> Value {
    json!({"pk": {"S": pk}, "sk": {"S": sk}, "due_pk": {"S": due_pk}, "due_at": {"S": due_at}})
}

fn key(pk: &str, sk: &str) -> Value {
    json!({"pk": {"S": pk}, "sk": {"S": sk}})
}

fn query(condition: &str, pk: &str) -> Value {
    json!({"KeyConditionExpression": condition, "ExpressionAttributeValues": {":pk": {"S": pk}}})
}

fn with(body: &Value, members: &Value) -> Value {
    let members = [body, members].map(|members| members.as_object().unwrap().clone());
    members.into_iter().flatten().collect()
}

/// A table with the items 1 and 2 in the partition A, of one and three kilobytes, one of five in C, and one in B that
/// is in the index.
struct CountedTable {
    embedded: Embedded,
    partitions: Partitions,
}

impl CountedTable {
    fn new() -> Self {
        let database = open(&Data::Memory, &Template::read_once(&root().join("template.yaml")).unwrap()).unwrap();
        let partitions = Partitions::default().by_hand();
        let table = Self { embedded: Embedded::new(&database, &partitions), partitions };
        for item in [item("A", "1", 900), item("A", "2", 2500), item("C", "1", 5000), due("B", "1", "DUE#1", "1")] {
            assert_eq!(table.ask("PutItem", &json!({"Item": item})).0, 200);
        }
        let first = json!({"TransactItems": [{"Put": {"Item": item("A", "7", 10)}}], "ClientRequestToken": "first"});
        assert_eq!(table.ask("TransactWriteItems", &first).0, 200);
        assert!(table.partitions.heat().is_empty(), "partitions are not counted at first");
        table
    }

    fn counted(counting: Counting) -> Self {
        let table = Self::new();
        table.partitions.set(counting);
        table
    }

    /// Sends a request to the table. Returns the status and the body of the answer.
    fn ask(&self, action: &str, body: &Value) -> (u16, Value) {
        let mut body = body.clone();
        match body.get_mut("TransactItems") {
            Some(actions) => actions.as_array_mut().unwrap().iter_mut().for_each(|action| {
                let action = action.as_object_mut().unwrap().values_mut().next().unwrap();
                action["TableName"] = TABLE_NAME.into();
            }),
            None if action.starts_with("Batch") => body = json!({"RequestItems": {TABLE_NAME: body["Wanted"]}}),
            None => body["TableName"] = TABLE_NAME.into(),
        }
        body["ReturnConsumedCapacity"] = "TOTAL".into();
        let (status, text) = self.embedded.answer(action, body.to_string().as_bytes());
        (status, serde_json::from_str(&text).unwrap())
    }

    /// The units taken since the last call of this method: kind, index, partition key and number.
    fn taken(&self) -> Vec<String> {
        let heat = self.partitions.heat();
        self.partitions.forget();
        heat.iter().filter(|(_, heat)| heat.units > 0.0).map(|(one, heat)| line(one, heat.units)).collect()
    }

    fn items(&self) -> Value {
        self.ask("Scan", &json!({})).1["Items"].clone()
    }
}

fn line(partition: &Partition, units: f64) -> String {
    let index = partition.index.as_ref().map(|index| format!("{index} ")).unwrap_or_default();
    format!("{:?} {index}{} {units}", partition.unit, partition.key)
}

/// The units that an answer reports.
fn units_of(answer: &Value) -> f64 {
    let consumed = &answer["ConsumedCapacity"];
    let each = consumed.as_array().map_or(std::slice::from_ref(consumed), Vec::as_slice);
    each.iter().filter_map(|consumed| consumed["CapacityUnits"].as_f64()).sum()
}

/// Calls of every kind, with the units that they take.
fn calls() -> Vec<(&'static str, Value, Vec<&'static str>)> {
    let put = |item: Value| json!({"Item": item});
    let update = |key: Value, expression: &str| json!({"Key": key, "UpdateExpression": expression});
    let get = |key: Value, consistent: bool| json!({"Key": key, "ConsistentRead": consistent});
    let batch = |wanted: Value| json!({"Wanted": wanted});
    let absent = json!({"ConditionExpression": "attribute_not_exists(pk)"});
    let present = json!({"ConditionExpression": "attribute_exists(pk)"});
    let moved = json!({"ExpressionAttributeValues": {":due": {"S": "DUE#2"}}});
    vec![
        ("PutItem", put(item("A", "9", 900)), vec!["Write A 1"]),
        ("PutItem", put(item("A", "9", 2500)), vec!["Write A 3"]),
        ("PutItem", put(item("A", "2", 10)), vec!["Write A 3"]),
        ("PutItem", with(&put(item("A", "2", 10)), &absent), vec!["Write A 3"]),
        ("PutItem", put(due("B", "1", "DUE#1", "1")), vec!["Write B 1"]),
        ("PutItem", put(due("B", "1", "DUE#1", "2")), vec!["Write B 1", "Write Due DUE#1 2"]),
        ("PutItem", put(due("B", "1", "DUE#2", "1")), vec!["Write B 1", "Write Due DUE#1 1", "Write Due DUE#2 1"]),
        ("PutItem", put(item("B", "1", 10)), vec!["Write B 1", "Write Due DUE#1 1"]),
        (
            "UpdateItem",
            with(&update(key("B", "1"), "SET x = :x"), &json!({"ExpressionAttributeValues": {":x": {"S": "x"}}})),
            vec!["Write B 1"],
        ),
        ("UpdateItem", update(key("B", "1"), "REMOVE due_pk, due_at"), vec!["Write B 1", "Write Due DUE#1 1"]),
        (
            "UpdateItem",
            with(&update(key("B", "1"), "SET due_pk = :due"), &moved),
            vec!["Write B 1", "Write Due DUE#1 1", "Write Due DUE#2 1"],
        ),
        ("UpdateItem", with(&update(key("A", "2"), "REMOVE y"), &absent), vec!["Write A 3"]),
        ("UpdateItem", with(&update(key("A", "8"), "REMOVE y"), &present), vec!["Write A 1"]),
        ("DeleteItem", json!({"Key": key("A", "2")}), vec!["Write A 3"]),
        ("DeleteItem", json!({"Key": key("A", "8")}), vec!["Write A 1"]),
        ("DeleteItem", json!({"Key": key("B", "1")}), vec!["Write B 1", "Write Due DUE#1 1"]),
        ("GetItem", get(key("C", "1"), true), vec!["Read C 2"]),
        ("GetItem", get(key("C", "1"), false), vec!["Read C 1"]),
        ("GetItem", get(key("C", "8"), true), vec!["Read C 1"]),
        ("GetItem", get(key("C", "8"), false), vec!["Read C 0.5"]),
        ("Query", with(&query("pk = :pk", "A"), &json!({"ConsistentRead": true})), vec!["Read A 1"]),
        ("Query", query("pk = :pk", "C"), vec!["Read C 1"]),
        ("Query", with(&query("#p = :pk", "C"), &json!({"ExpressionAttributeNames": {"#p": "pk"}})), vec!["Read C 1"]),
        ("Query", with(&query("due_pk = :pk", "DUE#1"), &json!({"IndexName": "Due"})), vec!["Read Due DUE#1 0.5"]),
        (
            "BatchGetItem",
            batch(json!({"ConsistentRead": true, "Keys": [key("A", "1"), key("A", "2"), key("C", "1")]})),
            vec!["Read A 2", "Read C 2"],
        ),
        ("BatchGetItem", batch(json!({"Keys": [key("A", "1"), key("A", "8")]})), vec!["Read A 1"]),
        (
            "BatchWriteItem",
            batch(json!([
                {"PutRequest": put(item("A", "9", 2500))},
                {"DeleteRequest": {"Key": key("A", "2")}},
                {"PutRequest": put(due("D", "1", "DUE#1", "1"))},
            ])),
            vec!["Write A 6", "Write D 1", "Write Due DUE#1 1"],
        ),
        (
            "TransactWriteItems",
            json!({"TransactItems": [
                {"Put": put(item("A", "9", 10))},
                {"ConditionCheck": with(&json!({"Key": key("A", "2")}), &present)},
                {"Delete": {"Key": key("C", "1")}},
                {"Update": with(&update(key("B", "1"), "SET due_pk = :due"), &moved)},
            ]}),
            vec!["Write A 8", "Write B 2", "Write C 10", "Write Due DUE#1 1", "Write Due DUE#2 1"],
        ),
        (
            "TransactWriteItems",
            json!({"TransactItems": [
                {"Put": put(item("A", "9", 10))},
                {"ConditionCheck": with(&json!({"Key": key("C", "1")}), &absent)},
            ]}),
            vec!["Write A 2", "Write C 10"],
        ),
        (
            "TransactWriteItems",
            json!({"TransactItems": [{"Put": put(item("A", "7", 10))}], "ClientRequestToken": "first"}),
            vec!["Read A 2"],
        ),
    ]
}

#[test]
fn each_call_takes_units_from_its_partitions() {
    for (action, body, wanted) in calls() {
        let table = CountedTable::counted(Counting::Counted);
        let (status, answer) = table.ask(action, &body);
        let taken: f64 = table.partitions.heat().values().map(|heat| heat.units).sum();
        assert_eq!(table.taken(), wanted, "{action} {body} {answer}");
        // A failed call takes units too, but its answer reports none.
        let wanted = if status == 200 { taken } else { 0.0 };
        assert_eq!((status, units_of(&answer)), (status, wanted), "{action} {body} {answer}");
    }
}

#[tokio::test]
async fn the_partition_units_equal_the_cost_of_an_operation() {
    for route in cases(routes::ALL) {
        let partitions = Partitions::new(Counting::Counted);
        let stack = Stack::start(Settings { partitions: partitions.clone(), ..few() }).await.unwrap();
        let answer = stack.answer(&valid_call(route, 'a', ACME)).await;
        assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
        let heat = partitions.heat();
        let sum = |unit| heat.iter().filter(|(one, _)| one.unit == unit).map(|(_, heat)| heat.units).sum::<f64>();
        let wanted = (answer.cost.read_units, answer.cost.write_units);
        assert_eq!((sum(Unit::Read), sum(Unit::Write)), wanted, "{} {heat:?}", route.name);
    }
}

/// The kind of an error, and the reason of each action of a transaction.
fn kinds(answer: &Value) -> (&str, Vec<&str>) {
    let kind = answer["__type"].as_str().unwrap_or_default().rsplit('#').next().unwrap();
    let reasons = answer["CancellationReasons"].as_array().into_iter().flatten();
    (kind, reasons.map(|reason| reason["Code"].as_str().unwrap()).collect())
}

#[test]
fn a_partition_without_units_refuses_until_the_next_second() {
    for (action, body, taken) in calls() {
        let undisturbed = CountedTable::counted(Counting::Counted);
        let (status, _) = undisturbed.ask(action, &body);
        let wanted = undisturbed.items();
        for full in undisturbed.partitions.heat().into_keys() {
            // A repeated transaction is answered by its token, without a read of its items.
            if (action, full.unit) == ("TransactWriteItems", Unit::Read) {
                continue;
            }
            let what = format!("{action} {body} {full:?}");
            let table = CountedTable::counted(Counting::Throttled(1.0));
            let before = table.items();
            table.partitions.take(&full, full.unit.limit() - 0.5);
            table.partitions.take(&full, 0.5);
            let (refused, answer) = table.ask(action, &body);
            let held = ["UnprocessedItems", "UnprocessedKeys"].map(|name| answer[name][TABLE_NAME].to_string());
            if refused == 200 {
                // The rest of the batch is processed.
                assert!(held.iter().any(|held| held != "null") && taken.len() > 1, "{what} {answer}");
            } else {
                let (kind, reasons) = kinds(&answer);
                if action == "TransactWriteItems" {
                    assert_eq!(kind, "TransactionCanceledException", "{what}");
                    assert_eq!(reasons.len(), body["TransactItems"].as_array().unwrap().len(), "{what}");
                    assert_eq!(BTreeSet::from_iter(reasons), ["None", "ThrottlingError"].into(), "{what}");
                } else {
                    let of = if full.index.is_some() { "Index" } else { "Table" };
                    let reason = format!("{of}{:?}KeyRangeThroughputExceeded", full.unit);
                    assert_eq!(
                        (kind, &answer["throttlingReasons"][0]["reason"]),
                        ("ThrottlingException", &json!(reason))
                    );
                }
                assert_eq!((refused, table.items()), (400, before), "{what}");
            }
            assert!(table.partitions.heat()[&full].refused > 0, "{what}");
            table.partitions.next_second();
            let (again, answer) = table.ask(action, &body);
            assert_eq!((again, table.items()), (status, wanted.clone()), "{what} {answer}");
        }
    }
}

#[test]
fn a_batch_is_processed_as_far_as_its_units_last() {
    let table = CountedTable::counted(Counting::Throttled(0.01));
    let put = |place: usize| json!({"PutRequest": {"Item": item("E", &place.to_string(), 10)}});
    let other = json!({"PutRequest": {"Item": item("F", "1", 10)}});
    let wanted: Vec<Value> = (0..24).map(put).chain([other]).collect();
    let mut left = json!(wanted);
    for rest in [14, 4, 0] {
        let (status, answer) = table.ask("BatchWriteItem", &json!({"Wanted": left}));
        left = answer["UnprocessedItems"][TABLE_NAME].clone();
        assert_eq!((status, left.as_array().map_or(0, Vec::len)), (200, rest), "{answer}");
        table.partitions.next_second();
    }
    assert_eq!(table.items().as_array().unwrap().len(), 5 + 25);
    let keys: Vec<Value> = (0..24).map(|place| key("E", &place.to_string())).collect();
    // Each item takes one of 30 units.
    let twice = json!({"Wanted": {"ConsistentRead": true, "Keys": keys}});
    assert_eq!(table.ask("BatchGetItem", &twice).1["UnprocessedKeys"], json!({}));
    let (_, answer) = table.ask("BatchGetItem", &twice);
    let left = &answer["UnprocessedKeys"][TABLE_NAME];
    assert_eq!((left["Keys"].as_array().unwrap().len(), &left["ConsistentRead"]), (18, &json!(true)));
    assert_eq!(answer["Responses"][TABLE_NAME].as_array().unwrap().len(), 6);
}

#[test]
fn a_full_index_partition_refuses_only_writes_to_it() {
    let full = Partition { unit: Unit::Write, index: Some("Due".into()), key: "DUE#1".into() };
    for (action, body, taken) in calls() {
        let table = CountedTable::counted(Counting::Throttled(1.0));
        table.partitions.take(&full, full.unit.limit());
        let (_, answer) = table.ask(action, &body);
        let refused = table.partitions.heat()[&full].refused > 0;
        assert_eq!(
            refused,
            taken.iter().any(|taken| taken.starts_with("Write Due DUE#1 ")),
            "{action} {body} {answer}"
        );
    }
}

#[test]
fn the_heat_report_masks_customer_data() {
    let partitions = Partitions::new(Counting::Counted).by_hand();
    let write = |key: &str, index: Option<&str>| Partition {
        unit: Unit::Write,
        index: index.map(str::to_owned),
        key: key.to_owned(),
    };
    let org = "ORG#01900000-0000-7000-8000-a00000000001";
    let hash = "0123456789abcdef".repeat(4);
    for (second, (key, index, units)) in [
        (format!("{org}#LIST#CONTACT#ROWS"), None, 900.0),
        (format!("{org}#UNIQUE#CONTACT#email#{hash}"), None, 800.0),
        (format!("{org}#SET#CONTACT#email=a@b.example&status=open"), None, 700.0),
        (format!("KEY#{hash}"), None, 600.0),
        ("DELIVERY#7".to_owned(), Some("Due"), 500.0),
    ]
    .into_iter()
    .enumerate()
    {
        let partition = write(&key, index);
        partitions.take(&partition, units - 1.0);
        partitions.take(&partition, 1.0);
        partitions.next_second();
        partitions.take(&partition, f64::from(u32::try_from(second).unwrap()));
    }
    partitions.take(&Partition { unit: Unit::Read, ..write("R", None) }, 3000.0);
    let lines: Vec<String> = partitions.to_string().lines().skip(1).map(str::to_owned).collect();
    let words: Vec<Vec<&str>> = lines.iter().map(|line| line.split_whitespace().collect()).collect();
    let rows = format!("{org}#LIST#CONTACT#ROWS");
    let (unique, set) = (format!("{org}#UNIQUE#CONTACT#email#…"), format!("{org}#SET#CONTACT#email=…&status=open"));
    assert_eq!(
        words,
        [
            vec!["3000.0", "3000.0", "0", "read", "table", "R"],
            vec!["900.0", "900.0", "0", "write", "table", &rows],
            vec!["800.0", "801.0", "0", "write", "table", &unique],
            vec!["700.0", "702.0", "0", "write", "table", &set],
            vec!["600.0", "603.0", "0", "write", "table", "KEY#…"],
            vec!["500.0", "504.0", "0", "write", "index", "Due", "DELIVERY#7"],
        ]
    );
    assert_eq!(write(&rows, None).name(true), "ORG#…#LIST#CONTACT#ROWS");
}

/// A call of `route` that succeeds. A POST has an idempotency key, so that a repeat has no second effect.
fn call_of(route: &Route) -> Call {
    let call = valid_call(route, 'a', ACME);
    if route.method == "POST" { keyed(call, KEY) } else { call }
}

/// A stack and its clock, which the test sets.
async fn stack(partitions: &Partitions) -> (Stack, Clock) {
    // The clock stands still, so a full partition stays full.
    let settings = Settings { partitions: partitions.clone(), patience: Duration::from_secs(1), ..few() };
    let clock = settings.clock.clone();
    (Stack::start(settings).await.unwrap(), clock)
}

/// An answer and the changes of records, without ids. Places in lists and their counters are left out, because a
/// refused attempt may leave a hole. Versions are left out, because a change may be made twice.
#[derive(Debug, PartialEq)]
struct Effect {
    status: u16,
    body: String,
    gone: Vec<String>,
    new: Vec<String>,
}

impl Effect {
    async fn of(stack: &Stack, before: &[Item], answer: &Answer) -> Self {
        let known = format!("{before:?}");
        let is_aside = |item: &&Item| {
            let (pk, sk) = (item["pk"].as_s().unwrap(), item["sk"].as_s().unwrap());
            sk == "HEAD" || sk.starts_with("SECTION#") || pk.ends_with("#HOLES")
        };
        let without_place = |item: &Item| {
            let aside = ["pk", "sk", "due_pk", "version", "changed_by", "added_by"];
            let rest = item.clone().into_iter().filter(|(name, _)| !aside.contains(&name.as_str()));
            masked(&from_item::<Value>(rest.collect()).unwrap().to_string(), &known)
        };
        let texts = |items: &[Item], other: &[Item]| {
            let mut texts: BTreeMap<String, i64> = BTreeMap::new();
            differing(items, other)
                .filter(|item| !is_aside(item))
                .for_each(|item| *texts.entry(without_place(item)).or_default() += 1);
            texts
        };
        let after = records(stack).await;
        let (was, is) = (texts(before, &after), texts(&after, before));
        let more = |some: &BTreeMap<String, i64>, others: &BTreeMap<String, i64>| {
            let more = some.iter().map(|(text, count)| (text, count - others.get(text).copied().unwrap_or_default()));
            more.filter(|(_, count)| *count > 0).map(|(text, count)| format!("{count} times {text}")).collect()
        };
        let body = masked(&portable(stack, &answer.body), &known);
        Self { status: answer.status, body, gone: more(&was, &is), new: more(&is, &was) }
    }
}

/// Sends `call` while `full` has no units left, and again in the next second.
async fn throttled(call: &Call, full: &Partition, before: &[Item]) -> Effect {
    let partitions = Partitions::new(Counting::Throttled(1.0)).by_hand();
    let (stack, clock) = stack(&partitions).await;
    partitions.take(full, full.unit.limit());
    let mut answer = stack.answer(call).await;
    assert!(partitions.heat()[full].refused > 0, "{} {full:?}: nothing was refused", call.path);
    if answer.status >= 300 {
        assert_eq!(failure(&answer), (503, vec!["[] unavailable".into()]), "{} {full:?}", call.path);
        assert_eq!(answer.headers["retry-after"], "1");
        partitions.next_second();
        answer = stack.answer(call).await;
    }
    if answer.status == 409 {
        // A claim that could not be updated is held until its lease ends.
        assert_eq!(answer.headers["retry-after"], "1");
        let Clock::Manual(clock) = clock else { panic!("the tests' clock is set by hand") };
        clock.fetch_add(LEASE, Ordering::SeqCst);
        answer = stack.answer(call).await;
    }
    Effect::of(&stack, before, &answer).await
}

/// For each operation, each partition that it uses is full once. The caller gets 503 with `Retry-After`, and a second
/// later the same request has its one effect.
#[tokio::test]
async fn a_full_partition_answers_503_and_a_repeat_has_one_effect() {
    let before = &records(&stack(&Partitions::default()).await.0).await;
    let mut attempts = Vec::new();
    for route in cases(routes::ALL) {
        let partitions = Partitions::new(Counting::Counted);
        let (stack, _) = stack(&partitions).await;
        let call = call_of(route);
        let answer = stack.answer(&call).await;
        assert_eq!(answer.status, route.success, "{} {}", route.name, answer.body);
        let wanted = std::rc::Rc::new(Effect::of(&stack, before, &answer).await);
        // The list of keys shows whether the use of a key was noted, which is no reason to refuse a request.
        let is_shown = |full: &Partition| route.name == routes::LIST_KEYS.name && full.to_string().contains(RATE);
        let full = partitions.heat().into_keys().filter(|full| !is_shown(full));
        attempts.extend(full.map(|full| (call.clone(), full, wanted.clone())));
    }
    assert!(attempts.len() > 10, "{}", attempts.len());
    let attempts = attempts.into_iter().map(|(call, full, wanted)| async move {
        // Boxed, because so many futures would overflow the stack.
        let effect = Box::pin(throttled(&call, &full, before)).await;
        (effect != *wanted).then(|| format!("{} {} {full}: {effect:#?}, not {wanted:#?}", call.method, call.path))
    });
    let wrong: Vec<_> = stream::iter(attempts).buffer_unordered(AT_ONCE).collect().await;
    let wrong: Vec<String> = wrong.into_iter().flatten().collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
