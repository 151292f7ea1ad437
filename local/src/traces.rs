//! Traces: which request a change of the table, an event and a delivery come from.
//!
//! A request begins a trace. An item has the trace of the request that wrote it. When a function gets the change of an
//! item from the stream, the function's own writes have the trace of that change. So a delivery, and the event that
//! arrives, lead to the request.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::Deserialize as _;
use serde_json::Value;
use shared::reactions;
use shared::table::change::Change;
use shared::table::keys::{PK, SK};
use uuid::Uuid;

/// The most items and events whose trace is known.
const KEPT: usize = 50_000;
/// The most changes that are kept.
const KEPT_CHANGES: usize = 200;

/// The function that runs the reactions.
const REACTS: &str = "record-changed";

/// The id of the request with which a trace began.
pub type TraceId = Arc<str>;

/// The traces of the items that were written last, and the last changes of the stream.
#[derive(Debug, Default)]
pub struct Traces(Mutex<KnownTraces>);

#[derive(Debug, Default)]
struct KnownTraces {
    /// The trace of each item by its key, and of each event by its id.
    of: HashMap<String, TraceId>,
    /// The same names, the oldest first.
    order: VecDeque<String>,
    /// By their numbers in the stream.
    changes: BTreeMap<u128, StreamChange>,
}

/// A change that the stream has reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StreamChange {
    /// The key of the item.
    pub pk: String,
    /// Its sort key.
    pub sk: String,
    /// `INSERT`, `MODIFY` or `REMOVE`.
    pub name: String,
    /// The request with which its trace began.
    pub trace: Option<TraceId>,
    /// The functions that took it.
    pub taken_by: Vec<&'static str>,
    /// The reactions that it had.
    pub reactions: Vec<&'static str>,
}

/// Where the writes of one invocation come from.
#[derive(Debug, Clone)]
pub struct Origin {
    traces: Arc<Traces>,
    sources: Arc<[TraceSource]>,
}

/// A request, or a change with a trace.
#[derive(Debug)]
struct TraceSource {
    trace: TraceId,
    /// The ids in the change; none for a request.
    ids: HashSet<Uuid>,
}

impl Origin {
    /// The request with this id.
    pub fn request(traces: &Arc<Traces>, id: &str) -> Self {
        let source = TraceSource { trace: id.into(), ids: HashSet::new() };
        Self { traces: Arc::clone(traces), sources: [source].into() }
    }

    /// The changes in the event of a function. An event of a schedule has none.
    pub fn changes(traces: &Arc<Traces>, event: &Value) -> Self {
        let state = traces.state();
        let source = |record: &Value| {
            let trace = Arc::clone(state.of.get(&key(record))?);
            Some(TraceSource { trace, ids: ids(&record["dynamodb"].to_string()) })
        };
        let sources = event["Records"].as_array().into_iter().flatten().filter_map(source).collect();
        drop(state);
        Self { traces: Arc::clone(traces), sources }
    }

    /// The trace of a write of `item`: the one of all changes, or else the one of the changes with the most ids that
    /// are in the item too. `None` if several traces have as many.
    fn trace(&self, item: &str) -> Option<TraceId> {
        let first = &self.sources.first()?.trace;
        if self.sources.iter().all(|source| source.trace == *first) {
            return Some(Arc::clone(first));
        }
        let written = ids(item);
        let mut shared: HashMap<&TraceId, usize> = HashMap::new();
        for source in self.sources.iter() {
            let count = source.ids.intersection(&written).count();
            let most = shared.entry(&source.trace).or_default();
            *most = count.max(*most);
        }
        let most = shared.values().copied().max()?;
        let mut best = shared.into_iter().filter(|(_, count)| *count == most);
        match (best.next(), best.next()) {
            (Some((trace, _)), None) => Some(Arc::clone(trace)),
            _ => None,
        }
    }

    /// Gives an item that is being written its trace, and its event the same one. Returns what to do if the write is
    /// refused.
    pub(crate) fn writes(&self, key: &str, item: &Value) -> Vec<Undo> {
        let Some(trace) = self.trace(&format!("{key} {item}")) else { return Vec::new() };
        let event = item["event_id"]["S"].as_str().map(str::to_owned);
        let names = [Some(key.to_owned()), event].into_iter().flatten();
        let mut state = self.traces.state();
        names.map(|name| Undo { before: state.set(&name, &trace), name, trace: Arc::clone(&trace) }).collect()
    }

    /// Takes back what was noted for a write that was refused, unless another write came after it.
    pub(crate) fn undo(&self, written: Vec<Undo>) {
        let mut state = self.traces.state();
        for Undo { name, trace, before } in written {
            if state.of.get(&name) == Some(&trace) {
                match before {
                    Some(before) => state.of.insert(name, before),
                    None => state.of.remove(&name),
                };
            }
        }
    }
}

/// The trace of an item before a write.
#[derive(Debug)]
pub(crate) struct Undo {
    name: String,
    trace: TraceId,
    before: Option<TraceId>,
}

impl KnownTraces {
    /// Sets a trace, and returns the one before it.
    fn set(&mut self, name: &str, trace: &TraceId) -> Option<TraceId> {
        let before = self.of.insert(name.to_owned(), Arc::clone(trace));
        if before.is_none() {
            self.order.push_back(name.to_owned());
            if self.order.len() > KEPT
                && let Some(oldest) = self.order.pop_front()
            {
                self.of.remove(&oldest);
            }
        }
        before
    }
}

impl Traces {
    /// The trace of an event, by the `webhook-id` of its request.
    pub fn of_event(&self, id: &str) -> Option<TraceId> {
        self.state().of.get(id).cloned()
    }

    /// The trace of the item with this key.
    pub fn of_item(&self, pk: &str, sk: &str) -> Option<TraceId> {
        self.state().of.get(&format!("{pk} {sk}")).cloned()
    }

    /// Notes the changes that a reader of the stream has read. Each reader reads all of them.
    pub fn reported(&self, records: &[Value]) {
        let mut state = self.state();
        for record in records.iter().rev().take(KEPT_CHANGES).rev() {
            let text = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().unwrap_or_default().to_owned();
            let trace = state.of.get(&key(record)).cloned();
            let name = record["eventName"].as_str().unwrap_or_default().to_owned();
            let change =
                StreamChange { pk: text(PK), sk: text(SK), name, trace, taken_by: Vec::new(), reactions: Vec::new() };
            state.changes.entry(number(record)).or_insert(change);
        }
        while state.changes.len() > KEPT_CHANGES {
            state.changes.pop_first();
        }
    }

    /// Notes that the function `name` gets the changes in this event.
    pub fn passed_on(&self, name: &'static str, event: &Value) {
        let mut state = self.state();
        for record in event["Records"].as_array().into_iter().flatten() {
            if let Some(change) = state.changes.get_mut(&number(record))
                && !change.taken_by.contains(&name)
            {
                change.taken_by.push(name);
                if name == REACTS {
                    change.reactions = reactions_to(record);
                }
            }
        }
    }

    /// The last changes of the stream, the newest first, `most` at most.
    pub fn newest_changes(&self, most: usize) -> Vec<StreamChange> {
        self.state().changes.values().rev().take(most).cloned().collect()
    }

    fn state(&self) -> MutexGuard<'_, KnownTraces> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The key of the item of a change, in the form of [`crate::calls`].
fn key(record: &Value) -> String {
    let text = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().unwrap_or_default();
    format!("{} {}", text(PK), text(SK))
}

/// The names of the reactions to a change.
fn reactions_to(record: &Value) -> Vec<&'static str> {
    let Ok(change) = Change::deserialize(record) else { return Vec::new() };
    reactions::ALL.iter().filter(|reaction| reaction.is_for(&change)).map(|reaction| reaction.name).collect()
}

/// The number of a change in the stream.
fn number(record: &Value) -> u128 {
    record["dynamodb"]["SequenceNumber"].as_str().and_then(|number| number.parse().ok()).unwrap_or_default()
}

/// The ids in a text.
fn ids(text: &str) -> HashSet<Uuid> {
    let words = text.split(|character: char| !character.is_ascii_hexdigit() && character != '-');
    words.filter(|word| word.len() == 36).filter_map(|word| Uuid::try_parse(word).ok()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const FIRST: &str = "01900000-0000-7000-8000-000000000001";
    const SECOND: &str = "01900000-0000-7000-8000-000000000002";

    fn change(number: u32, id: &str) -> Value {
        let keys = json!({"pk": {"S": "ORG#1#TAG"}, "sk": {"S": id}});
        json!({"eventName": "INSERT", "dynamodb": {"Keys": keys, "SequenceNumber": number.to_string()}})
    }

    /// Two requests, each of which wrote an item.
    fn two_requests() -> Arc<Traces> {
        let traces = Arc::<Traces>::default();
        for (request, id) in [("one", FIRST), ("two", SECOND)] {
            Origin::request(&traces, request).writes(&format!("ORG#1#TAG {id}"), &json!({}));
        }
        traces
    }

    #[test]
    fn a_write_has_the_trace_of_the_change_with_the_same_ids() {
        let traces = two_requests();
        let both = json!({"Records": [change(1, FIRST), change(2, SECOND)]});
        let reaction = Origin::changes(&traces, &both);
        for (number, id) in [FIRST, SECOND, "none"].into_iter().enumerate() {
            let item = json!({"event_id": {"S": format!("event {number}")}, "tag_id": {"S": id}});
            reaction.writes(&format!("ORG#1#DELIVERY {number}"), &item);
        }
        let of = |number: u32| traces.of_event(&format!("event {number}")).map(|trace| trace.to_string());
        assert_eq!([of(0), of(1), of(2)], [Some("one".into()), Some("two".into()), None]);
        // With one trace in the batch, no id is needed.
        let alone = Origin::changes(&traces, &json!({"Records": [change(2, SECOND)]}));
        alone.writes("ORG#1#DELIVERY 2", &json!({"event_id": {"S": "event 2"}}));
        assert_eq!(of(2), Some("two".into()));
        assert_eq!(traces.of_item("ORG#1#DELIVERY", "2").as_deref(), Some("two"));
    }

    #[test]
    fn a_refused_write_leaves_the_trace_of_the_item() {
        let traces = two_requests();
        let (late, of) = (Origin::request(&traces, "late"), || traces.of_item("ORG#1#TAG", FIRST));
        let written = late.writes(&format!("ORG#1#TAG {FIRST}"), &json!({}));
        assert_eq!(of().as_deref(), Some("late"));
        late.undo(written);
        assert_eq!(of().as_deref(), Some("one"));
    }

    #[test]
    fn the_last_changes_are_kept_with_the_functions_that_took_them() {
        let traces = two_requests();
        let all: Vec<_> = (1..=201).map(|number| change(number, FIRST)).collect();
        // Each of two readers reads them.
        for _ in 0..2 {
            traces.reported(&all);
            traces.passed_on("record-changed", &json!({"Records": all}));
        }
        let newest = traces.newest_changes(1000);
        assert_eq!((newest.len(), newest[0].trace.as_deref()), (200, Some("one")));
        assert_eq!(newest[0].taken_by, ["record-changed"]);
    }
}
