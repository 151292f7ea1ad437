//! Events of changes: what the log and the deliveries of a change cost, and whether each change of a busy organisation is
//! told exactly once.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use embedded_dynamodb::partitions::{Counting, Partition, Partitions, Unit as Units};
use local::faults::Faults;
use local::receiver::{Received, Receiver};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::input::Between;
use shared::reactions::emit::KNOWN;
use shared::records::event::{self, Event, EventCursor, EventQuery};
use shared::table::Table;
use shared::values::time::Clock;
use tokio::time::sleep;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::organisation::Organisation;

const SECTION: &str = "Events of one organisation, whose webhooks want all of them";

/// The function that tells of changes.
const TELLING: &str = "record-changed";
/// The path of the receiver for the webhook with this number.
const PATHS: [&str; 3] = ["/first", "/second", "/third"];
/// Deliveries per second, so high that none waits.
const MANY: u32 = 10_000;
/// The changes of a second, and for how many seconds they are made.
const RATE: (usize, usize) = (500, 4);
/// Rounds of a second; each makes all kinds of changes.
const ROUNDS: usize = 10;
/// The ticks after which every delivery must have arrived.
const TICKS: usize = 60;
/// The time between two looks at the log.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a call of the database takes where times are compared.
const CALL: Duration = Duration::from_millis(6);
/// The changes of which a figure tells.
const CHANGES: f64 = 10_000.0;
/// Lanes of the stream: each may be a process of its own.
const LANES: f64 = 10.0;
/// The milliseconds of a batch of 100 at which ten lanes handle 1,000 changes a second, twice as many as are made.
const MOST: f64 = 1000.0;

/// The webhooks of an organisation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Subscribed {
    /// It has none.
    None,
    /// One without an endpoint.
    Read,
    /// Three with an endpoint.
    Sent,
}

/// How many changes of each kind are made.
#[derive(Debug, Clone, Copy, Default)]
struct Mix {
    contacts: usize,
    tags: usize,
    messages: usize,
    opened: usize,
    closed: usize,
}

impl Mix {
    /// A batch of the stream.
    const BATCH: Self = Self { contacts: 40, tags: 20, messages: 20, opened: 10, closed: 10 };
    /// A tenth of a second.
    const ROUND: Self = Self { contacts: 35, tags: 5, messages: 5, opened: 3, closed: 2 };
    /// One of each kind.
    const SINGLE: [Self; 5] = [
        Self { contacts: 1, ..Self::NONE },
        Self { tags: 1, ..Self::NONE },
        Self { messages: 1, ..Self::NONE },
        Self { opened: 1, ..Self::NONE },
        Self { closed: 1, ..Self::NONE },
    ];
    const NONE: Self = Self { contacts: 0, tags: 0, messages: 0, opened: 0, closed: 0 };

    const fn count(self) -> usize {
        self.contacts + self.tags + self.messages + self.opened + self.closed
    }
}

/// When each change was answered, by the type of its event and its record.
type Made = HashMap<(&'static str, String), Instant>;

/// What telling costs.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    calls: f64,
    read: f64,
    written: f64,
    /// Milliseconds, where each call takes [`CALL`].
    took: f64,
}

impl Cost {
    fn and(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            read: self.read + other.read,
            written: self.written + other.written,
            took: self.took + other.took,
        }
    }

    /// What this is more than `other`, for each of `count`.
    fn above(self, other: Self, count: usize) -> Self {
        let each = |own: f64, other: f64| (own - other) / figure(count as u64);
        Self {
            calls: each(self.calls, other.calls),
            read: each(self.read, other.read),
            written: each(self.written, other.written),
            took: each(self.took, other.took),
        }
    }
}

/// The service with an organisation.
struct Busy {
    stack: Stack,
    receiver: Receiver,
    partitions: Partitions,
    faults: Faults,
    clock: Clock,
    organisation: Organisation,
    assistant: Value,
    /// Open conversations.
    open: Vec<String>,
    /// Changes made so far.
    number: usize,
}

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        count(bench, figures).await?;
        follow(bench, figures).await
    })
}

/// Counts calls and units of telling.
async fn count(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let mut costs = Vec::new();
    for subscribed in [Subscribed::None, Subscribed::Read, Subscribed::Sent] {
        let mut busy = Busy::new(bench, subscribed, Some(1)).await?;
        // Heads of lists are made by the first changes.
        busy.told(Mix::BATCH).await?;
        let batch = busy.told(Mix::BATCH).await?;
        let mut single = Cost::default();
        for mix in Mix::SINGLE {
            single = single.and(busy.told(mix).await?);
        }
        busy.clock.skip(Duration::from_secs(KNOWN.unsigned_abs() + 1));
        let asking = busy.told(Mix::SINGLE[1]).await?.above(busy.told(Mix::SINGLE[1]).await?, 1);
        costs.push((batch, single, asking));
        busy.stack.stop().await;
    }
    let asking = costs[0].2;
    let what = "without a webhook: calls of the first change after half a minute, more than of the next one";
    figures.push(row(what, asking.calls, Unit::Calls).must(Must::Exactly(1.0)));
    figures.push(row("without a webhook: read units of this call", asking.read, Unit::CapacityUnits));
    figures.push(
        row("without a webhook: write units of it", asking.written, Unit::CapacityUnits).must(Must::Exactly(0.0)),
    );
    let some = CHANGES * asking.calls * LANES / (figure(KNOWN.unsigned_abs()) * figure(RATE.0 as u64));
    figures.push(row(
        "without a webhook: calls for 10,000 changes at 500 a second, by ten processes",
        some,
        Unit::Calls,
    ));
    let cases = [("alone", Mix::SINGLE.len(), [5.0, 6.5]), ("each of a batch of 100", Mix::BATCH.count(), [2.5, 5.5])];
    for (which, changes, most) in cases {
        let of = |(batch, single, _): &(Cost, Cost, Cost)| if which == "alone" { *single } else { *batch };
        let (none, read, sent) = (of(&costs[0]), of(&costs[1]), of(&costs[2]));
        let logged = read.above(none, changes);
        let delivered = sent.above(read, changes * PATHS.len());
        let whats = [("an event in the log", logged), ("a delivery of it, before it is sent", delivered)];
        for ((what, cost), most) in whats.into_iter().zip(most) {
            let written = row(&format!("{what}, {which}: write units"), cost.written, Unit::CapacityUnits);
            figures.push(written.must(Must::AtMost(most)));
            figures.push(row(&format!("{what}, {which}: read units"), cost.read, Unit::CapacityUnits));
            figures.push(row(&format!("{what}, {which}: calls"), cost.calls, Unit::Calls));
        }
    }
    let batch = |place: usize| costs[place].0.took;
    let what = "a batch of 100 changes, 6 ms for each call of the database";
    for (place, name) in [(1, "told in the log"), (2, "and in three deliveries of each")] {
        let row = row(&format!("{what}: {name}"), batch(place), Unit::Milliseconds);
        figures.push(row.compared_with("without a webhook", batch(0)).must(Must::AtMost(MOST)));
    }
    Ok(())
}

/// Follows the stream while changes are made as fast as a busy organisation makes them.
async fn follow(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (mut behind, mut lag) = (Vec::new(), Vec::new());
    for subscribed in [Subscribed::None, Subscribed::Read, Subscribed::Sent] {
        let mut busy = Busy::new(bench, subscribed, None).await?;
        busy.open(ROUNDS * RATE.1 * Mix::ROUND.closed + Mix::ROUND.messages).await?;
        busy.stack.settle().await?;
        let (table, all_are_made) = (busy.log(), AtomicBool::new(false));
        let stream = busy.stack.following();
        let changing = async {
            let changed = busy.change_fast().await;
            let last = Instant::now();
            busy.stack.stream.drain_for(TELLING).await?;
            let behind = last.elapsed();
            all_are_made.store(true, Ordering::Relaxed);
            changed.map(|(made, rate)| (made, rate, behind))
        };
        let (changed, log) = futures_util::join!(changing, watch(&table, &all_are_made));
        drop(stream);
        let ((made, rate, took), log) = (changed?, log?);
        behind.push(milliseconds(took));
        if subscribed == Subscribed::None {
            figures.push(row("changes made a second", rate, Unit::PerSecond));
            continue;
        }
        lag.push(log.lag(&made));
        let what = if subscribed == Subscribed::Read { "only read" } else { "three are sent to" };
        let [lost, doubled] = log.wrong(&made);
        figures.push(exactly_none(&format!("{what}: changes without an event in the log"), lost));
        figures.push(exactly_none(&format!("{what}: changes with two"), doubled));
        figures.push(row(
            &format!("{what}: write units of an event with its page, at this rate"),
            busy.of_log(&log),
            Unit::CapacityUnits,
        ));
        if subscribed == Subscribed::Sent {
            busy.deliver(figures).await?;
        }
        busy.stack.stop().await;
    }
    let wait = |what: &str, value: f64| row(what, value, Unit::Milliseconds);
    let after = "from the last change until the stream is worked off";
    figures.push(wait(&format!("{after}: only read"), behind[1]).compared_with("without a webhook", behind[0]));
    figures.push(wait(&format!("{after}: three are sent to"), behind[2]).compared_with("without a webhook", behind[0]));
    let until = "from a change to its event in the log, the 99th percentile";
    figures.push(wait(&format!("{until}: only read"), lag[0]));
    let what = format!("{until}: three are sent to, on the same two cores");
    figures.push(wait(&what, lag[1]).compared_with("only read", lag[0]));
    Ok(())
}

fn row(subject: &str, value: f64, unit: Unit) -> Row {
    Row::new(SECTION, subject, value, unit)
}

fn exactly_none(subject: &str, count: usize) -> Row {
    row(subject, figure(count as u64), Unit::Requests).must(Must::Exactly(0.0))
}

/// The events of the log, in its order, and when a reader saw each.
struct Seen(Vec<(Event, Instant)>);

/// Reads the log until all changes are made, and then to its end.
async fn watch(table: &Table, all_are_made: &AtomicBool) -> Result<Seen> {
    let mut seen: Vec<(Event, Instant)> = Vec::new();
    loop {
        let is_last = all_are_made.load(Ordering::Relaxed);
        loop {
            let after = seen.last().map(|(event, _)| event.id);
            let query = EventQuery { cursor: EventCursor { size: Between::clamped(100), after }, kind: None };
            let page = event::list(table, &query, Clock::System.now()).await.map_err(|error| error.to_string())?;
            seen.extend(page.items.into_iter().map(|event| (event, Instant::now())));
            if page.next.is_none() {
                break;
            }
        }
        if is_last {
            return Ok(Seen(seen));
        }
        sleep(GLANCE).await;
    }
}

impl Seen {
    /// When each change was told.
    fn times(&self) -> HashMap<(&'static str, String), Vec<Instant>> {
        let mut times: HashMap<_, Vec<_>> = HashMap::new();
        for (event, at) in &self.0 {
            times.entry((event.event.as_str(), event.data.text("id").unwrap_or_default())).or_default().push(*at);
        }
        times
    }

    /// The changes without an event, and those with more than one.
    fn wrong(&self, made: &Made) -> [usize; 2] {
        let times = self.times();
        let with = |is_wrong: fn(usize) -> bool| {
            made.keys().filter(|change| is_wrong(times.get(change).map_or(0, Vec::len))).count()
        };
        [with(|count| count == 0), with(|count| count > 1)]
    }

    /// The 99th percentile of the milliseconds from a change to its event.
    fn lag(&self, made: &Made) -> f64 {
        let times = self.times();
        let lag = |(change, at): (&(&'static str, String), &Instant)| {
            Some(times.get(change)?.first()?.saturating_duration_since(*at))
        };
        let mut lags: Vec<Duration> = made.iter().filter_map(lag).collect();
        lags.sort_unstable();
        lags.get(lags.len() * 99 / 100).copied().map_or(f64::NAN, milliseconds)
    }
}

impl Busy {
    async fn new(bench: &Bench, subscribed: Subscribed, lanes: Option<usize>) -> Result<Self> {
        let (partitions, faults) = (Partitions::new(Counting::Counted), Faults::default());
        // A count takes as long as it takes. A process must not ask again in between.
        let clock = if lanes.is_some() { Clock::at(Clock::System.now()) } else { Clock::System };
        let settings = Settings {
            demo: None,
            partitions: partitions.clone(),
            faults: faults.clone(),
            clock: clock.clone(),
            sends_per_second: MANY,
            lanes,
            ..Settings::of(&bench.root)
        };
        let (stack, receiver) = (Stack::start(settings).await?, Receiver::start().await?);
        let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
        let endpoints = match subscribed {
            Subscribed::None => Vec::new(),
            Subscribed::Read => vec![String::new()],
            Subscribed::Sent => PATHS.map(|path| format!("{}{path}", receiver.url)).to_vec(),
        };
        for endpoint in endpoints {
            let mut webhook = json!({"events": ["*"]});
            if !endpoint.is_empty() {
                webhook["endpoint"] = endpoint.into();
            }
            organisation.post(&stack, "/api/v1/outbound_webhook", &webhook).await?;
        }
        let assistant = organisation.post(&stack, "/api/v1/assistant", &json!({})).await?["id"].take();
        let (open, number) = (Vec::new(), 0);
        Ok(Self { stack, receiver, partitions, faults, clock, organisation, assistant, open, number })
    }

    /// The log as a reader of its own sees it.
    fn log(&self) -> Table {
        Table::new(self.stack.store(), self.organisation.tenant)
    }

    /// The write units of the log for each of its events.
    fn of_log(&self, log: &Seen) -> f64 {
        let is_of_log = |of: &Partition| {
            of.unit == Units::Write && ["#EVENT#", "#EVENT_LOG"].iter().any(|part| of.key.contains(part))
        };
        let units: f64 =
            self.partitions.heat().iter().filter(|(of, _)| is_of_log(of)).map(|(_, heat)| heat.units).sum();
        units / figure(log.0.len() as u64)
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.organisation.post(&self.stack, path, body).await
    }

    /// Opens so many conversations.
    async fn open(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            let opened = self.post("/api/v1/conversation", &json!({"assistant_id": self.assistant})).await?;
            self.open.push(id_of(&opened)?);
        }
        Ok(())
    }

    /// Makes changes, and notes when each was answered.
    async fn change(&mut self, mix: Mix, made: &mut Made) -> Result<()> {
        let mut note = |kind: &'static str, id: String| made.insert((kind, id), Instant::now());
        if mix.contacts > 0 {
            let contact =
                |place: usize| json!({"first_name": "New", "phone_number": format!("+316{:09}", self.number + place)});
            let contacts: Vec<Value> = (0..mix.contacts).map(contact).collect();
            let imported = self.post("/api/v1/contact/import", &json!({"contacts": contacts})).await?;
            self.number += mix.contacts;
            for contact in imported["items"].as_array().ok_or("no items")? {
                note("contact.created", id_of(contact)?);
            }
        }
        for _ in 0..mix.tags {
            self.number += 1;
            let tag = self.post("/api/v1/tag", &json!({"name": format!("Tag {}", self.number)})).await?;
            note("tag.created", id_of(&tag)?);
        }
        for place in 0..mix.messages {
            let path = format!("/api/v1/conversation/{}/message", self.open[place]);
            let said = self.post(&path, &json!({"sender_type": "user", "text": "Until when are you open?"})).await?;
            note("message.created", id_of(&said)?);
        }
        for _ in 0..mix.closed {
            let id = self.open.pop().ok_or("no conversation is open")?;
            self.post(&format!("/api/v1/conversation/{id}/close"), &Value::Null).await?;
            note("conversation.closed", id);
        }
        for _ in 0..mix.opened {
            self.open(1).await?;
            let id = self.open.pop().ok_or("no conversation is open")?;
            note("conversation.opened", id.clone());
            // The messages go to the first ones.
            self.open.push(id);
        }
        Ok(())
    }

    /// What it costs to tell of such changes together.
    async fn told(&mut self, mix: Mix) -> Result<Cost> {
        self.open((mix.messages + mix.closed).saturating_sub(self.open.len())).await?;
        self.stack.settle().await?;
        self.change(mix, &mut Made::new()).await?;
        self.partitions.forget();
        self.faults.set_latency(CALL);
        let (before, begun) = (self.faults.requests().len(), Instant::now());
        self.stack.stream.drain_for(TELLING).await?;
        let took = milliseconds(begun.elapsed());
        self.faults.set_latency(Duration::ZERO);
        let calls = figure((self.faults.requests().len() - before) as u64);
        let heat = self.partitions.heat();
        let units = |unit: Units| heat.iter().filter(|(of, _)| of.unit == unit).map(|(_, heat)| heat.units).sum();
        let (read, written) = (units(Units::Read), units(Units::Write));
        self.stack.settle().await?;
        Ok(Cost { calls, read, written, took })
    }

    /// Makes changes as fast as a busy organisation does; also returns how many in a second.
    async fn change_fast(&mut self) -> Result<(Made, f64)> {
        let (mut made, begun, rounds) = (Made::new(), Instant::now(), ROUNDS * RATE.1);
        for round in 0..rounds {
            let due = begun + Duration::from_millis(1000 * round as u64 / ROUNDS as u64);
            sleep(due.saturating_duration_since(Instant::now())).await;
            self.change(Mix::ROUND, &mut made).await?;
        }
        Ok((made, figure((rounds * Mix::ROUND.count()) as u64) / begun.elapsed().as_secs_f64()))
    }

    /// Lets all events of the log arrive, and compares.
    async fn deliver(&self, figures: &mut Figures) -> Result<()> {
        let mut wanted = HashSet::new();
        for _ in 0..TICKS {
            self.stack.settle().await?;
            let Seen(log) = watch(&self.log(), &AtomicBool::new(true)).await?;
            wanted = log.iter().map(|(event, _)| event.id.to_string()).collect();
            if PATHS.iter().all(|path| self.receiver.count(path) >= wanted.len()) {
                break;
            }
            self.stack.minute().await?;
        }
        let (mut lost, mut again, mut others) = (0, 0, 0);
        for path in PATHS {
            let requests = self.receiver.received(path);
            let id = |received: &Received| received.headers.get("webhook-id").cloned();
            let came: HashSet<String> = requests.iter().filter_map(id).collect();
            (lost, again) = (lost + wanted.difference(&came).count(), again + requests.len() - came.len());
            others += came.difference(&wanted).count();
        }
        figures.push(exactly_none("three are sent to: events that did not arrive at one of them", lost));
        figures.push(exactly_none("three are sent to: events that arrived and are not in the log", others));
        figures.push(row(
            "three are sent to: requests with the id of an earlier one",
            figure(again as u64),
            Unit::Requests,
        ));
        Ok(())
    }
}

fn id_of(record: &Value) -> Result<String> {
    Ok(record["id"].as_str().ok_or("no id")?.to_owned())
}
