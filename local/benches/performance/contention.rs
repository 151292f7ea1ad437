//! Many environments of one function that work for one organisation, compared with the same number that work for one
//! organisation each.

use std::time::{Duration, Instant};

use local::Stack;
use serde_json::{Value, json};
use shared::records::assistant::Assistant;
use shared::records::contact::Contact;
use shared::records::conversation::Conversation;
use shared::records::tag::Tag;
use shared::records::widget::Widget;
use shared::request::api_key::{ApiKey, ApiKeyRecord};
use shared::table::Table;
use shared::table::rows::INSERT_LIMIT;
use shared::table::stored::Listed;
use shared::values::id::OrgId;
use shared::values::tenant::Tenant;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::conflicts::Proxy;
use crate::figures::{Figures, Must, Row, Series, Unit, figure, milliseconds};
use crate::process::Process;

pub const SECTION: &str =
    "Many environments of one function, 6 ms for each call of the database, overlapping writes refused";
/// The name of its chart.
pub const CHART: &str = "contention";
/// The names of its two lines.
pub const TOGETHER: &str = "one organisation";
pub const APART: &str = "an organisation each";

/// Environments of a function that all write to the same list.
const MANY: usize = 64;
/// Environments that write to the same record, or remove neighbours.
const CLOSE: usize = 16;
/// Requests that each environment answers while the clock runs.
const REQUESTS: usize = 20;
/// Requests that each environment answers before that: they look up the key and the records, and open the connection.
const BEFORE: usize = 2;

/// The keys and records of the demo set's first organisation, which the recorded events name.
pub const KEY: &str = "in-demo-acme-admin-000000000000000000000000000";
const ASSISTANT: &str = "01900000-0000-7000-8000-a00600000001";
const WIDGET: &str = "01900000-0000-7000-8000-a00700000001";
const CONTACT: &str = "01900000-0000-7000-8000-a00800000001";
const CONVERSATION: &str = "01900000-0000-7000-8000-a00f00000001";
const TAG: &str = "01900000-0000-7000-8000-a00100000001";

/// The requests to a function.
#[derive(Clone, Copy)]
enum Asks {
    /// The same request each time.
    Recorded,
    /// Requests to open a conversation with the organisation's assistant, widget and contact.
    Open,
    /// Requests about a conversation of this environment's own.
    OwnConversation,
    /// Requests about another conversation each time.
    NextConversation,
    /// Requests about the same conversation as in all other environments.
    SameConversation,
    /// Requests about another tag each time: neighbours in their list.
    NextTag,
}

/// The subjects of the measure: a function, its requests, the number of its environments, and whether they must nearly
/// reach the rate that they have with an organisation each.
const SUBJECTS: [(&str, Asks, usize); 7] = [
    ("open-conversation", Asks::Open, MANY),
    ("close-conversation", Asks::NextConversation, MANY),
    ("add-message", Asks::OwnConversation, MANY),
    ("create-webhook", Asks::Recorded, MANY),
    ("create-agency", Asks::Recorded, MANY),
    ("add-message", Asks::SameConversation, CLOSE),
    ("delete-tag", Asks::NextTag, CLOSE),
];

/// The results of many requests.
struct Outcome {
    seconds: f64,
    /// The durations, sorted.
    times: Vec<Duration>,
    calls: f64,
    /// The number of answers with a 5xx, and the number without success.
    failed: usize,
    refused: usize,
}

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| measure_all(bench, figures))
}

async fn measure_all(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (mut together, mut apart) = (Vec::new(), Vec::new());
    for (number, (function, asks, environments)) in SUBJECTS.into_iter().enumerate() {
        let stack = bench.stack().await?;
        let proxy = Proxy::start(&stack).await?;
        let program = bench.program(function, &stack).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url);
        let mut processes = Vec::with_capacity(environments);
        for _ in 0..environments {
            processes.push(program.start().await?);
        }
        for number in 0..=environments {
            add_organisation(&stack, number).await?;
        }
        let event = bench.event(function)?;
        // The last organisation belongs to one environment alone.
        let alone = run(&mut processes[..1], &proxy, |_| environments, asks, &event, 0).await?;
        let each = run(&mut processes, &proxy, |environment| environment, asks, &event, 1).await?;
        let one = run(&mut processes, &proxy, |_| 0, asks, &event, 2).await?;
        eprintln!("{function}: alone {alone}, apart {each}, together {one}");
        report(figures, function, asks, environments, (&alone, &each, &one));
        let point = |outcome: &Outcome| (figure(number as u64), outcome.rate());
        if environments == MANY {
            together.push((function, point(&one)));
            apart.push((function, point(&each)));
        }
        drop(processes);
        stack.stop().await;
    }
    for (name, points) in [(TOGETHER, together), (APART, apart)] {
        for (function, point) in points {
            figures.series.push(Series {
                chart: CHART.into(),
                name: format!("{function}, {name}"),
                points: vec![point],
            });
        }
    }
    Ok(())
}

fn report(
    figures: &mut Figures,
    function: &str,
    asks: Asks,
    environments: usize,
    (alone, each, one): (&Outcome, &Outcome, &Outcome),
) {
    let which = match asks {
        Asks::SameConversation => ", all to one conversation",
        Asks::NextTag => ", neighbouring rows",
        _ => "",
    };
    let subject = |what: &str| format!("`{function}`{which}, {environments} environments: {what}");
    let row = |what: &str, value: f64, unit: Unit| Row::new(SECTION, subject(what), value, unit);
    figures.push(row("answers with a 5xx status", figure(one.failed as u64), Unit::Requests).must(Must::Exactly(0.0)));
    if environments < MANY {
        figures.push(row("requests a second", one.rate(), Unit::PerSecond));
        return;
    }
    let (p50, p99) = (milliseconds(one.percentile(50)), milliseconds(one.percentile(99)));
    let rate = row("requests a second", one.rate(), Unit::PerSecond).compared_with(APART, each.rate());
    figures.push(rate.must(Must::AtLeast(0.8 * each.rate())));
    figures.push(
        row("99th percentile", p99, Unit::Milliseconds).compared_with("median", p50).must(Must::AtMost(5.0 * p50)),
    );
    let calls = row("database calls for a request", one.calls, Unit::Calls);
    figures.push(calls.compared_with("one environment alone", alone.calls).must(Must::AtMost(1.1 * alone.calls)));
}

/// Lets every process answer its requests, one after another, all processes at the same time.
async fn run(
    processes: &mut [Process],
    proxy: &Proxy,
    organisation: impl Fn(usize) -> usize,
    asks: Asks,
    event: &str,
    turn: usize,
) -> Result<Outcome> {
    let events = |environment: usize, from: usize, to: usize| -> Vec<String> {
        let of = organisation(environment);
        // In one organisation, each record is requested only once.
        let first = if of == 0 && turn == 2 {
            turn * (REQUESTS + BEFORE) * (environment + 1)
        } else {
            turn * (REQUESTS + BEFORE)
        };
        (from..to).map(|request| asks.event(event, of, environment, first + request)).collect()
    };
    let before = answers(processes, |environment| events(environment, 0, BEFORE)).await?;
    if let Some((_, status, body)) = before.iter().find(|(_, status, _)| (400..500).contains(status)) {
        return Err(format!("{status}: {body}").into());
    }
    proxy.calls();
    let begun = Instant::now();
    let answers = answers(processes, |environment| events(environment, BEFORE, BEFORE + REQUESTS)).await?;
    let seconds = begun.elapsed().as_secs_f64();
    let mut times: Vec<Duration> = answers.iter().map(|(wall, ..)| *wall).collect();
    times.sort_unstable();
    if let Some((_, status, body)) = answers.iter().find(|(_, status, _)| (400..500).contains(status)) {
        return Err(format!("{status}: {body}").into());
    }
    Ok(Outcome {
        seconds,
        calls: figure(proxy.calls() as u64) / figure(times.len() as u64),
        times,
        failed: answers.iter().filter(|(_, status, _)| *status >= 500).count(),
        refused: answers.iter().filter(|(_, status, _)| *status >= 300).count(),
    })
}

/// The answers of each process to its events, one after another, all processes at the same time: duration, status,
/// body.
async fn answers(
    processes: &mut [Process],
    events: impl Fn(usize) -> Vec<String>,
) -> Result<Vec<(Duration, u64, String)>> {
    let work = processes.iter_mut().enumerate().map(|(environment, process)| {
        let events = events(environment);
        async move {
            let mut answers = Vec::with_capacity(events.len());
            for event in &events {
                let answer = process.invoke(event).await?;
                let status = serde_json::from_str::<Value>(&answer.body)?["statusCode"].as_u64().unwrap_or_default();
                answers.push((answer.wall, status, answer.body));
            }
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(answers)
        }
    });
    Ok(futures_util::future::try_join_all(work).await?.concat())
}

impl Outcome {
    fn rate(&self) -> f64 {
        figure((self.times.len() - self.refused) as u64) / self.seconds
    }

    fn percentile(&self, percent: usize) -> Duration {
        self.times[(self.times.len() * percent / 100).min(self.times.len() - 1)]
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (p50, p99) = (milliseconds(self.percentile(50)), milliseconds(self.percentile(99)));
        let (rate, calls, failed) = (self.rate(), self.calls, self.failed);
        write!(formatter, "{rate:.0}/s, p50 {p50:.1} ms, p99 {p99:.1} ms, {calls:.2} calls, {failed} times 5xx")
    }
}

impl Asks {
    /// The event of one request of an environment, in the organisation `of`.
    fn event(self, recorded: &str, of: usize, environment: usize, number: usize) -> String {
        let event = recorded.replace(KEY, &key(of));
        let place = match self {
            Self::Recorded => return event,
            Self::Open => {
                let mut event: Value = serde_json::from_str(&event).unwrap_or_default();
                let body = json!({"assistant_id": ASSISTANT, "widget_id": WIDGET, "contact_id": CONTACT});
                event["body"] = body.to_string().into();
                return event.to_string();
            }
            Self::SameConversation => 0,
            Self::OwnConversation => environment,
            Self::NextConversation | Self::NextTag => number,
        };
        event.replace(CONVERSATION, &nth(CONVERSATION, place)).replace(TAG, &nth(TAG, place))
    }
}

/// The key of an organisation.
pub fn key(of: usize) -> String {
    format!("in-bench-{of:037}")
}

/// An organisation.
fn org_of(number: usize) -> OrgId {
    OrgId(Uuid::from_u128(0x0190_0000_0000_7000_9000_0000_0000_0000 + number as u128))
}

/// The demo set's id `first`, moved to another place.
fn nth(first: &str, place: usize) -> String {
    format!("{}{place:08x}", &first[..first.len() - 8])
}

/// Adds an organisation with a key that has these limits; returns its part of the table.
pub async fn add_key(stack: &Stack, number: usize, requests_per_second: Option<u32>) -> Result<Table> {
    let org = org_of(number);
    let store = stack.store();
    let secret = ApiKey::parse(&key(number)).ok_or("no key")?;
    let kept: ApiKeyRecord = serde_json::from_value(json!({
        "id": Uuid::now_v7(), "org_id": org, "name": "bench", "role": "full", "prefix": "in-bench",
        "created_at": "2026-01-01T00:00:00.000Z", "requests_per_second": requests_per_second, "burst": requests_per_second,
    }))?;
    store.add_api_key(&secret.hash(), &kept).await?;
    #[expect(clippy::disallowed_methods, reason = "the measure is its own operator")]
    Ok(Table::new(store, Tenant::operator(org)))
}

/// Adds an organisation with a key, and the records of the requests. The records have the demo set's ids.
async fn add_organisation(stack: &Stack, number: usize) -> Result<()> {
    let table = add_key(stack, number, None).await?;
    let org = org_of(number);
    let times = json!({"created_at": "2026-01-01T00:00:00.000Z", "updated_at": "2026-01-01T00:00:00.000Z"});
    let record = |more: Value| {
        let mut record = times.clone();
        record
            .as_object_mut()
            .into_iter()
            .for_each(|record| record.extend(more.as_object().cloned().unwrap_or_default()));
        record
    };
    add::<Assistant>(&table, ASSISTANT, 2, &record(json!({"org_id": org}))).await?;
    add::<Widget>(&table, WIDGET, 2, &record(json!({"org_id": org, "assistant_id": ASSISTANT, "widget_type": "chat"})))
        .await?;
    add::<Contact>(&table, CONTACT, 2, &record(json!({"org_id": org}))).await?;
    // In the first organisation, all environments have their records.
    let many = if number == 0 { (MANY + 3) * (REQUESTS + BEFORE) * 3 } else { 3 * (REQUESTS + BEFORE) + MANY };
    add::<Conversation>(&table, CONVERSATION, many, &record(json!({"assistant_id": ASSISTANT}))).await?;
    add::<Tag>(&table, TAG, many.min(1500), &record(json!({"org_id": org, "name": "bench"}))).await?;
    Ok(())
}

/// Adds rows with the demo set's ids.
async fn add<R: Listed<Of = ()>>(table: &Table, first: &str, count: usize, record: &Value) -> Result<()> {
    let ids: Vec<Uuid> = (0..count).map(|place| nth(first, place).parse()).collect::<std::result::Result<_, _>>()?;
    let rows = |id: &Uuid| {
        let mut row = record.clone();
        row["id"] = json!(id);
        serde_json::from_value::<R>(row)
    };
    for ids in ids.chunks(INSERT_LIMIT) {
        let rows: Vec<R> = ids.iter().map(rows).collect::<std::result::Result<_, _>>()?;
        table.insert_all::<R>((), ids, |index, _| rows[index].clone()).await?;
    }
    Ok(())
}
