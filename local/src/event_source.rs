//! Lambda's event source mapping: passes the records of a stream to a function, by the rules of the template.
//!
//! Filters, batches, parallel lanes, retries, bisection, partial failures and age work as they do in Lambda. AWS's
//! guide does not say whether the repeat of the rest of a batch after a partial failure counts as a retry. Here, only a
//! repeat of the same batch counts; a rest or a half does not.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use embedded_dynamodb::stream;
use futures_util::future::join_all;
use serde_json::Value;
use shared::values::time::Clock;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use crate::destination::{Destination, GivenUpFor};
use crate::event_filter;
use crate::lambda::{self, Failed, Fate, Freeze, Function};
use crate::template::EventSource;

/// Lambda's backoff before it repeats a batch: the first wait and the longest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// A mapping from a stream to a function.
pub struct Mapping {
    source: EventSource,
    function: Function,
    lanes: Vec<Lane>,
    faults: Mutex<StreamFaults>,
    destination: Option<Destination>,
    given_up: Mutex<Vec<Value>>,
    /// For the key of each item, how many times each of its changes was passed on.
    passed_on: Mutex<BTreeMap<String, BTreeMap<String, usize>>>,
}

/// A lane: its batches come one after another, and all changes of an item are in the same lane.
#[derive(Default)]
struct Lane {
    work: Mutex<Work>,
    /// Locked while the function runs: one invocation at a time.
    turn: tokio::sync::Mutex<()>,
    news: Notify,
}

/// The work of a lane. It is stored here until it is done, since its task may be stopped at any time.
#[derive(Default)]
struct Work {
    /// Records that are not in a batch yet.
    waiting: VecDeque<Value>,
    /// The remaining parts of the current batch, the next one last.
    parts: Vec<Part>,
}

/// A batch, or the rest of one.
#[derive(Clone)]
struct Part {
    records: Vec<Value>,
    /// The number of its retries.
    retries: u64,
}

/// The faults between a stream and a function, each with a probability from 0 to 1. By default there are none.
#[derive(Debug, Clone, Default)]
pub struct StreamFaults {
    /// A handled batch is repeated.
    pub redelivered: f64,
    /// A batch is split.
    pub split: f64,
    /// A batch is delayed.
    pub delayed: f64,
    /// The longest delay.
    pub delay: Duration,
    /// The function's process crashes in the middle.
    pub killed: f64,
    /// The process is frozen in the middle.
    pub frozen: f64,
    /// The freeze.
    pub freeze: Option<Freeze>,
    /// A batch is given up, as if its last attempt had failed.
    pub given_up: f64,
    /// The source of randomness.
    pub random: fastrand::Rng,
}

impl Mapping {
    /// A mapping to `function`, by the rules of `source`.
    pub fn new(source: EventSource, function: Function) -> Self {
        let lanes = (0..source.lanes.max(1)).map(|_| Lane::default()).collect();
        Self {
            source,
            function,
            lanes,
            faults: Mutex::default(),
            destination: None,
            given_up: Mutex::default(),
            passed_on: Mutex::default(),
        }
    }

    /// The same, with `destination` for the batches that are given up.
    #[must_use]
    pub fn with_destination(self, destination: Option<Destination>) -> Self {
        Self { destination, ..self }
    }

    /// Kebab-case name of the function.
    pub fn name(&self) -> &str {
        &self.source.function
    }

    /// The number of batches that the function may process at the same time.
    pub fn lanes(&self) -> usize {
        self.lanes.len()
    }

    /// Sets the faults.
    pub fn set_faults(&self, faults: StreamFaults) {
        *lock(&self.faults) = faults;
    }

    /// Sets the freeze alone.
    pub fn set_freeze(&self, freeze: Freeze) {
        lock(&self.faults).freeze = Some(freeze);
    }

    /// The records that were given up, after too many attempts or too much time.
    pub fn given_up(&self) -> Vec<Value> {
        lock(&self.given_up).clone()
    }

    /// For the key of each item, how many times a change of it was passed on again.
    pub fn repeats(&self) -> BTreeMap<String, usize> {
        let repeats = |times: &BTreeMap<String, usize>| times.values().map(|times| times - 1).sum();
        lock(&self.passed_on).iter().map(|(key, times)| (key.clone(), repeats(times))).collect()
    }

    /// Adds the next records of the stream: the ones that match the filters wait in their lanes.
    pub fn take(&self, records: impl IntoIterator<Item = Value>) {
        for record in records.into_iter().filter(|record| self.source.lets_through(record)) {
            let lane = &self.lanes[self.lane_of(&record)];
            lock(&lane.work).waiting.push_back(record);
            lane.news.notify_one();
        }
    }

    /// Handles all waiting records or gives them up. Failures are retried at once.
    pub async fn work_off(&self) {
        join_all(self.lanes.iter().map(async |lane| while self.step(lane, Duration::ZERO).await {})).await;
    }

    /// Works on a lane until the task is stopped. Failures are retried after a backoff.
    pub async fn attend(self: Arc<Self>, lane: usize) {
        let lane = &self.lanes[lane];
        loop {
            if lock(&lane.work).parts.is_empty() {
                lane.gather(&self.source).await;
            }
            self.step(lane, PAUSES.0).await;
        }
    }

    /// The lane of a record. It depends on the whole key, since Lambda keeps the order of the changes of one item only.
    fn lane_of(&self, record: &Value) -> usize {
        let keys = record["dynamodb"]["Keys"].as_object();
        let keys: BTreeMap<_, _> = keys.into_iter().flatten().map(|(name, key)| (name, key.to_string())).collect();
        let mut hasher = DefaultHasher::new();
        keys.hash(&mut hasher);
        // Less than the number of lanes, so the conversion never fails.
        usize::try_from(hasher.finish() % self.lanes.len() as u64).unwrap_or_default()
    }

    /// Invokes the function with the next part of a batch. Returns false if the lane has nothing to do.
    async fn step(&self, lane: &Lane, pause: Duration) -> bool {
        let _turn = lane.turn.lock().await;
        let Some(part) = lane.next(self.source.batch_size) else { return false };
        let (fresh, expired) = part.divide(|record| age(record) <= self.source.max_age_seconds);
        if !expired.is_empty() {
            self.send_given_up(&expired, GivenUpFor::Age).await;
            lane.replace(fresh);
            return true;
        }
        let Some(part) = fresh else { return true };
        let chance = lock(&self.faults).roll(part.records.len());
        wait(chance.delay).await;
        if chance.given_up {
            self.send_given_up(&part.records, GivenUpFor::Attempts(part.retries)).await;
            lane.replace(None);
            return true;
        }
        if let Some(cut) = chance.cut {
            lane.replace(part.split(cut));
            return true;
        }
        for record in &part.records {
            let (key, number) = (record["dynamodb"]["Keys"].to_string(), &record["dynamodb"]["SequenceNumber"]);
            *lock(&self.passed_on).entry(key).or_default().entry(number.to_string()).or_default() += 1;
        }
        let answer = lambda::invoke(&self.function, stream::event(&part.records), chance.fate).await;
        let stopped_at = self.stopped_at(&part.records, answer);
        let retries = part.retries;
        if stopped_at == Some(0) && self.is_exhausted(&part) {
            self.send_given_up(&part.records, GivenUpFor::Attempts(retries)).await;
        }
        // No `await` may come before the rest is saved, so that a stopped task keeps its work.
        match stopped_at {
            None => lane.replace(chance.again.then_some(part)),
            Some(0) if self.is_exhausted(&part) => lane.replace(None),
            Some(0) => lane.replace(self.again(part)),
            // The batch is split at this record; its first part is done.
            Some(at) => lane.replace(part.split(at).into_iter().take(1)),
        }
        if stopped_at.is_some() {
            let doublings = u32::try_from(retries).unwrap_or(u32::MAX);
            wait(pause.saturating_mul(2_u32.saturating_pow(doublings)).min(PAUSES.1)).await;
        }
        true
    }

    /// The parts to repeat of a batch that failed as a whole.
    fn again(&self, mut part: Part) -> Vec<Part> {
        if self.splits(&part) {
            // A split does not count as a retry: in the end a bad record is alone and has all its attempts.
            let middle = part.records.len().div_ceil(2);
            return part.split(middle).into();
        }
        part.retries += 1;
        vec![part]
    }

    /// Whether a batch that failed completely is repeated in halves.
    const fn splits(&self, part: &Part) -> bool {
        self.source.bisects && part.records.len() > 1
    }

    /// Whether a batch that failed completely is not repeated any more.
    const fn is_exhausted(&self, part: &Part) -> bool {
        !self.splits(part) && part.retries >= self.source.max_retries
    }

    /// Gives these records up before they leave their lane: a task that was stopped does so again, and no record is
    /// lost.
    async fn send_given_up(&self, records: &[Value], why: GivenUpFor) {
        if let Some(destination) = &self.destination
            && let Err(trouble) = destination.send(self.name(), records, why).await
        {
            eprintln!("{trouble}");
        }
        lock(&self.given_up).extend_from_slice(records);
    }

    /// The index of the first record to repeat: 0 if the invocation failed, `None` if all records were handled.
    fn stopped_at(&self, records: &[Value], answer: Result<String, Failed>) -> Option<usize> {
        let Some(answer) = answer.ok().and_then(|answer| serde_json::from_str::<Value>(&answer).ok()) else {
            return Some(0);
        };
        let failures = answer["batchItemFailures"].as_array().filter(|_| self.source.reports_failures);
        // An answer that names a record outside the batch is a failure of the whole batch.
        let place = |failure: &Value| {
            let named = |record: &Value| {
                let number = &record["dynamodb"]["SequenceNumber"];
                number.is_string() && *number == failure["itemIdentifier"]
            };
            records.iter().position(named).unwrap_or_default()
        };
        failures.into_iter().flatten().map(place).min()
    }
}

impl Lane {
    /// The next part, from a new batch if there is no current one.
    fn next(&self, batch_size: usize) -> Option<Part> {
        let mut work = lock(&self.work);
        if work.parts.is_empty() && !work.waiting.is_empty() {
            let size = work.waiting.len().min(batch_size);
            let records = work.waiting.drain(..size).collect();
            work.parts.push(Part { records, retries: 0 });
        }
        work.parts.last().cloned()
    }

    /// Replaces the next part with `left`.
    fn replace(&self, left: impl IntoIterator<Item = Part>) {
        let mut work = lock(&self.work);
        work.parts.pop();
        work.parts.extend(left);
    }

    /// Waits for a first record, and then for a full batch or the end of the source's window.
    async fn gather(&self, source: &EventSource) {
        let at_least = async |count| {
            while lock(&self.work).waiting.len() < count {
                self.news.notified().await;
            }
        };
        at_least(1).await;
        // When the window ends, the batch is passed on as it is.
        let _ = timeout(Duration::from_secs(source.window_seconds), at_least(source.batch_size)).await;
    }
}

impl Part {
    /// Two parts, the second one first, in the order of [`Work::parts`].
    fn split(mut self, at: usize) -> [Self; 2] {
        let second = Self { records: self.records.split_off(at), retries: self.retries };
        [second, self]
    }

    /// The part with the records for which `keep` is true, if any, and the others.
    fn divide(self, keep: impl Fn(&Value) -> bool) -> (Option<Self>, Vec<Value>) {
        let (kept, others): (Vec<_>, Vec<_>) = self.records.into_iter().partition(keep);
        let part = Self { records: kept, retries: self.retries };
        (Some(part).filter(|part| !part.records.is_empty()), others)
    }
}

impl EventSource {
    /// Whether `record` matches one of the filters; without filters every record matches.
    pub fn lets_through(&self, record: &Value) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| event_filter::fits(filter, Some(record)))
    }
}

/// The faults of one invocation.
#[derive(Default)]
struct Chance {
    cut: Option<usize>,
    delay: Duration,
    fate: Fate,
    again: bool,
    given_up: bool,
}

impl StreamFaults {
    /// The fate of the process of the next invocation.
    pub fn fate(&mut self) -> Fate {
        // Only drawn if it may happen: the seeds of other runs then keep their meaning.
        let dies = self.random.f64() < self.killed;
        let dies = dies.then(|| self.moment());
        let freezes = self.frozen > 0.0 && self.random.f64() < self.frozen;
        let polls = freezes.then(|| self.moment());
        Fate { dies, freezes: polls.zip(self.freeze.clone()) }
    }

    /// An invocation that is frozen at once, if freezes are enabled.
    pub fn frozen(&self) -> Fate {
        Fate { dies: None, freezes: self.freeze.clone().map(|freeze| (1, freeze)) }
    }

    /// A number of polls. A function is polled a few times per call, so a fault is as likely in its first calls as
    /// later.
    fn moment(&mut self) -> u32 {
        let magnitude = 1 << self.random.u32(1..10);
        self.random.u32(1..=magnitude)
    }

    fn roll(&mut self, records: usize) -> Chance {
        let mut happens = |probability: f64| self.random.f64() < probability;
        let (again, cut, late) = (happens(self.redelivered), happens(self.split), happens(self.delayed));
        Chance {
            again,
            cut: (cut && records > 1).then(|| self.random.usize(1..records)),
            delay: if late { self.delay.mul_f64(self.random.f64()) } else { Duration::ZERO },
            fate: self.fate(),
            given_up: self.given_up > 0.0 && self.random.f64() < self.given_up,
        }
    }
}

/// Sleeps. The shortest sleep of the timer is a millisecond, so a wait of zero is skipped.
async fn wait(duration: Duration) {
    if !duration.is_zero() {
        sleep(duration).await;
    }
}

/// Seconds since the change.
fn age(record: &Value) -> i64 {
    let created = record["dynamodb"]["ApproximateCreationDateTime"].as_f64().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit")]
    let created = created as i64;
    Clock::System.now().unix_seconds() - created
}

/// Locks, even after a panic: code under a lock only adds and takes values, so no state is incomplete.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;
    use tokio::sync::{Barrier, Semaphore, mpsc};

    use super::*;

    /// A batch by the sequence numbers of its records.
    type Batch = Vec<u64>;
    type Answers = dyn Fn(&[u64]) -> Result<Value, Failed> + Send + Sync;

    fn source() -> EventSource {
        EventSource {
            function: "fake".into(),
            batch_size: 10,
            filters: vec![],
            window_seconds: 0,
            lanes: 1,
            max_retries: 2,
            bisects: false,
            reports_failures: false,
            max_age_seconds: 3600,
            destination: None,
        }
    }

    fn now() -> i64 {
        Clock::System.now().unix_seconds()
    }

    fn record(number: u64, item: u64) -> Value {
        json!({"eventName": "MODIFY", "dynamodb": {
            "Keys": {"pk": {"S": "P"}, "sk": {"S": item.to_string()}},
            "SequenceNumber": number.to_string(),
            "ApproximateCreationDateTime": now(),
        }})
    }

    fn numbers(payload: &str) -> Batch {
        let event: Value = serde_json::from_str(payload).unwrap();
        let number = |record: &Value| record["dynamodb"]["SequenceNumber"].as_str().unwrap().parse().unwrap();
        event["Records"].as_array().unwrap().iter().map(number).collect()
    }

    fn failures(numbers: &[u64]) -> Value {
        let failures: Vec<_> = numbers.iter().map(|number| json!({"itemIdentifier": number.to_string()})).collect();
        json!({"batchItemFailures": failures})
    }

    /// A mapping to a function with these answers, and the batches that the function gets.
    fn mapping(
        source: EventSource,
        answer: impl Fn(&[u64]) -> Result<Value, Failed> + Send + Sync + 'static,
    ) -> (Mapping, Arc<Mutex<Vec<Batch>>>) {
        let batches: Arc<Mutex<Vec<Batch>>> = Arc::default();
        let (seen, answer): (_, Arc<Answers>) = (Arc::clone(&batches), Arc::new(answer));
        let function: Function = Arc::new(move |payload| {
            let (seen, answer) = (Arc::clone(&seen), Arc::clone(&answer));
            Box::pin(async move {
                let batch = numbers(&payload);
                lock(&seen).push(batch.clone());
                answer(&batch).map(|answer| answer.to_string())
            })
        });
        (Mapping::new(source, function), batches)
    }

    /// The batches of the records 1 to `count`, and the numbers of the given-up records.
    async fn batches(
        count: u64,
        source: EventSource,
        answer: impl Fn(&[u64]) -> Result<Value, Failed> + Send + Sync + 'static,
    ) -> (Vec<Batch>, Batch) {
        let (mapping, batches) = mapping(source, answer);
        mapping.take((1..=count).map(|number| record(number, number)));
        mapping.work_off().await;
        let given_up = numbers(&json!({"Records": mapping.given_up()}).to_string());
        let batches = lock(&batches).clone();
        (batches, given_up)
    }

    fn no() -> Result<Value, Failed> {
        Err(Failed::new("Error", "no"))
    }

    #[tokio::test]
    async fn matching_records_come_in_order_in_batches() {
        let sizes = EventSource { batch_size: 2, ..source() };
        assert_eq!(batches(5, sizes, |_| Ok(Value::Null)).await, (vec![vec![1, 2], vec![3, 4], vec![5]], vec![]));
        let sk = |number: &str| json!({"dynamodb": {"Keys": {"sk": {"S": [number]}}}});
        let filtered = EventSource { filters: vec![sk("2"), sk("4")], ..source() };
        assert_eq!(batches(5, filtered, |_| Ok(Value::Null)).await, (vec![vec![2, 4]], vec![]));
    }

    #[tokio::test]
    async fn a_failing_batch_is_retried_and_then_given_up() {
        let sizes = EventSource { batch_size: 2, ..source() };
        let (came, given_up) =
            batches(4, sizes.clone(), |batch| if batch.contains(&1) { no() } else { Ok(Value::Null) }).await;
        assert_eq!(came, [vec![1, 2], vec![1, 2], vec![1, 2], vec![3, 4]]);
        assert_eq!(given_up, [1, 2]);
        let (came, given_up) = batches(2, sizes, |_| panic!("as the test wants it")).await;
        assert_eq!((came.len(), given_up), (3, vec![1, 2]));
    }

    #[tokio::test]
    async fn a_failing_batch_is_bisected_down_to_the_bad_record() {
        let bisecting = EventSource { bisects: true, ..source() };
        let (came, given_up) =
            batches(5, bisecting, |batch| if batch.contains(&2) { no() } else { Ok(Value::Null) }).await;
        let wanted: [&[u64]; 8] = [&[1, 2, 3, 4, 5], &[1, 2, 3], &[1, 2], &[1], &[2], &[2], &[2], &[3]];
        assert_eq!(came[..8], wanted);
        assert_eq!(came[8..], [[4, 5]]);
        assert_eq!(given_up, [2]);
    }

    #[tokio::test]
    async fn records_from_the_lowest_reported_one_are_repeated() {
        let reporting = EventSource { reports_failures: true, ..source() };
        let stops = |batch: &[u64]| if batch[0] == 1 { Ok(failures(&[5, 3])) } else { Ok(failures(&[])) };
        assert_eq!(batches(5, reporting.clone(), stops).await, (vec![vec![1, 2, 3, 4, 5], vec![3, 4, 5]], vec![]));
        // Without `reports_failures`, the report is ignored.
        assert_eq!(batches(5, source(), stops).await, (vec![vec![1, 2, 3, 4, 5]], vec![]));
        let stuck = |batch: &[u64]| Ok(failures(if batch.contains(&2) { &[2] } else { &[] }));
        let (came, given_up) = batches(3, reporting, stuck).await;
        assert_eq!(came, [vec![1, 2, 3], vec![2, 3], vec![2, 3], vec![2, 3]]);
        assert_eq!(given_up, [2, 3]);
    }

    #[tokio::test]
    async fn bisection_splits_a_batch_at_the_reported_record() {
        let both = EventSource { reports_failures: true, bisects: true, ..source() };
        let stuck = |batch: &[u64]| Ok(failures(if batch.contains(&3) { &[3] } else { &[] }));
        let (came, given_up) = batches(5, both, stuck).await;
        let wanted: [&[u64]; 8] = [&[1, 2, 3, 4, 5], &[3, 4, 5], &[3, 4], &[3], &[3], &[3], &[4], &[5]];
        assert_eq!(came, wanted);
        assert_eq!(given_up, [3]);
    }

    #[tokio::test]
    async fn an_invalid_report_fails_and_an_empty_one_succeeds() {
        let reporting = EventSource { reports_failures: true, max_retries: 0, ..source() };
        for (answer, lost) in [
            (json!(null), false),
            (json!({}), false),
            (json!({"batchItemFailures": null}), false),
            (json!({"batchItemFailures": []}), false),
            (json!({"batchItemFailures": [{"itemIdentifier": ""}]}), true),
            (json!({"batchItemFailures": [{"itemIdentifier": null}]}), true),
            (json!({"batchItemFailures": [{"id": "2"}]}), true),
            (json!({"batchItemFailures": [{"itemIdentifier": "9"}]}), true),
        ] {
            let text = answer.to_string();
            let (_, given_up) = batches(2, reporting.clone(), move |_| Ok(answer.clone())).await;
            assert_eq!(given_up.len(), if lost { 2 } else { 0 }, "{text}");
        }
    }

    #[tokio::test]
    async fn an_expired_record_is_given_up_alone() {
        let (mapping, batches) = mapping(source(), |_| Ok(Value::Null));
        let mut old = record(1, 1);
        old["dynamodb"]["ApproximateCreationDateTime"] = json!(now() - 3700);
        mapping.take([old.clone(), record(2, 2)]);
        mapping.work_off().await;
        assert_eq!(*lock(&batches), [vec![2]]);
        assert_eq!(mapping.given_up(), [old]);
    }

    /// A function that sends its batch to the test, and waits for a permit to end.
    fn waiting() -> (Function, mpsc::UnboundedReceiver<Batch>, Arc<Semaphore>) {
        let (send, receive) = mpsc::unbounded_channel();
        let permits = Arc::new(Semaphore::new(0));
        let taken = Arc::clone(&permits);
        let function: Function = Arc::new(move |payload| {
            let (send, taken) = (send.clone(), Arc::clone(&taken));
            Box::pin(async move {
                send.send(numbers(&payload)).unwrap();
                taken.acquire().await.unwrap().forget();
                Ok("null".into())
            })
        });
        (function, receive, permits)
    }

    #[tokio::test]
    async fn lanes_do_not_wait_for_each_other() {
        // The invocations of all three lanes meet here. If one lane waited for another, none would end.
        let meeting = Arc::new(Barrier::new(3));
        let function: Function = Arc::new(move |_| {
            let meeting = Arc::clone(&meeting);
            Box::pin(async move {
                meeting.wait().await;
                Ok("null".into())
            })
        });
        let mapping = Mapping::new(EventSource { lanes: 3, batch_size: 1, ..source() }, function);
        let lanes: BTreeSet<_> = (0..30).map(|item| mapping.lane_of(&record(item, item))).collect();
        assert_eq!(lanes, [0, 1, 2].into());
        for lane in lanes {
            let item = (0..30).find(|item| mapping.lane_of(&record(0, *item)) == lane).unwrap();
            mapping.take((0..5).map(|number| record(number, item)));
        }
        timeout(Duration::from_mins(1), mapping.work_off()).await.unwrap();
    }

    #[tokio::test]
    async fn a_waiting_lane_does_not_delay_another() {
        let source = EventSource { lanes: 2, batch_size: 1, ..source() };
        let (function, mut batches, permits) = waiting();
        let mapping = Arc::new(Mapping::new(source, function));
        let mut items: [Vec<u64>; 2] = [vec![], vec![]];
        for item in 0..40 {
            items[mapping.lane_of(&record(item, item))].push(item);
        }
        let mut attending = tokio::task::JoinSet::new();
        for lane in 0..mapping.lanes() {
            attending.spawn(Arc::clone(&mapping).attend(lane));
        }
        mapping.take([record(items[0][0], items[0][0])]);
        assert_eq!(batches.recv().await.unwrap(), [items[0][0]]);
        // While the first lane waits, all records of the other lane are handled, also later ones.
        for item in &items[1] {
            mapping.take([record(*item, *item)]);
            assert_eq!(batches.recv().await.unwrap(), [*item]);
            // Each lane takes one permit, in the order of waiting. Then the first lane waits again.
            permits.add_permits(2);
            mapping.take([record(items[0][0], items[0][0])]);
            assert_eq!(batches.recv().await.unwrap(), [items[0][0]]);
        }
    }

    #[tokio::test]
    async fn the_changes_of_an_item_stay_in_order_under_all_faults() {
        let (mapping, batches) = mapping(
            EventSource {
                lanes: 4,
                batch_size: 3,
                max_retries: 1000,
                bisects: true,
                reports_failures: true,
                ..source()
            },
            |batch| match batch[0] % 3 {
                0 => Ok(failures(&batch[..0])),
                1 if fastrand::bool() => no(),
                _ => Ok(failures(if fastrand::bool() { &batch[batch.len() - 1..] } else { &[] })),
            },
        );
        let random = fastrand::Rng::with_seed(7);
        mapping.set_faults(StreamFaults {
            redelivered: 0.3,
            split: 0.3,
            killed: 0.3,
            random,
            ..StreamFaults::default()
        });
        let item = |number: u64| number % 10;
        mapping.take((0..200).map(|number| record(number, item(number))));
        mapping.work_off().await;
        assert_eq!(mapping.given_up(), Vec::<Value>::new());
        for wanted in 0..10 {
            let came: Batch =
                lock(&batches).iter().flatten().copied().filter(|number| item(*number) == wanted).collect();
            // The first arrivals are in order, and none is missing.
            let mut first = BTreeSet::new();
            let firsts: Batch = came.into_iter().filter(|number| first.insert(*number)).collect();
            assert_eq!(firsts, (0..200).filter(|number| item(*number) == wanted).collect::<Batch>());
        }
    }

    #[tokio::test]
    async fn each_fault_has_its_own_effect() {
        let with = async |faults: StreamFaults| {
            let (mapping, batches) = mapping(EventSource { max_retries: 3, ..source() }, |_| Ok(Value::Null));
            mapping.set_faults(StreamFaults { random: fastrand::Rng::with_seed(1), ..faults });
            mapping.take((1..=4).map(|number| record(number, number)));
            mapping.work_off().await;
            let batches = lock(&batches).clone();
            (batches, mapping.given_up().len())
        };
        let split = with(StreamFaults { split: 1.0, ..StreamFaults::default() }).await;
        assert_eq!(split, (vec![vec![1], vec![2], vec![3], vec![4]], 0));
        let redelivered = with(StreamFaults { redelivered: 0.9, ..StreamFaults::default() }).await;
        assert!(redelivered.0.len() > 1 && redelivered.0.iter().all(|batch| *batch == [1, 2, 3, 4]), "{redelivered:?}");
        let given_up = with(StreamFaults { given_up: 1.0, ..StreamFaults::default() }).await;
        assert_eq!(given_up, (vec![], 4));
        let delay = Duration::from_millis(1);
        let delayed = with(StreamFaults { delayed: 1.0, delay, ..StreamFaults::default() }).await;
        assert_eq!(delayed, (vec![vec![1, 2, 3, 4]], 0));
    }

    #[tokio::test]
    async fn a_killed_function_is_a_failed_invocation() {
        let function: Function = Arc::new(|_| Box::pin(std::future::pending()));
        // The function is polled again and again until the fault kills it.
        let restless: Function = Arc::new(move |payload| {
            let mut still = function(payload);
            Box::pin(std::future::poll_fn(move |context| {
                context.waker().wake_by_ref();
                still.as_mut().poll(context)
            }))
        });
        let mapping = Mapping::new(EventSource { max_retries: 5, ..source() }, restless);
        mapping.set_faults(StreamFaults { killed: 1.0, ..StreamFaults::default() });
        mapping.take([record(1, 1)]);
        mapping.work_off().await;
        assert_eq!(mapping.given_up().len(), 1);
    }

    #[tokio::test]
    async fn an_aborted_batch_is_invoked_again() {
        let (function, mut batches, permits) = waiting();
        let mapping = Arc::new(Mapping::new(EventSource { batch_size: 2, ..source() }, function));
        let attending = tokio::spawn(Arc::clone(&mapping).attend(0));
        mapping.take((1..=3).map(|number| record(number, number)));
        assert_eq!(batches.recv().await.unwrap(), [1, 2]);
        attending.abort();
        assert!(attending.await.unwrap_err().is_cancelled());
        permits.add_permits(2);
        mapping.work_off().await;
        assert_eq!(batches.recv().await.unwrap(), [1, 2]);
        assert_eq!(batches.recv().await.unwrap(), [3]);
        assert!(batches.try_recv().is_err());
    }

    #[tokio::test]
    async fn a_batch_waits_for_its_window_unless_it_is_full() {
        let (function, mut batches, _permits) = waiting();
        // The window is longer than the test.
        let mapping = Arc::new(Mapping::new(EventSource { batch_size: 2, window_seconds: 300, ..source() }, function));
        let attending = tokio::spawn(Arc::clone(&mapping).attend(0));
        mapping.take([record(1, 1)]);
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(batches.try_recv().is_err());
        mapping.take([record(2, 2)]);
        assert_eq!(batches.recv().await.unwrap(), [1, 2]);
        attending.abort();
    }
}
