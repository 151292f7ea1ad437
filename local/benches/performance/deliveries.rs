//! Deliveries: many tenants at the same time, a connector at its rate limit, and a process with few descriptors and
//! little memory.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::types::AttributeValue;
use futures_util::future::try_join_all;
use local::Stack;
use local::database::TABLE_NAME;
use local::receiver::{Behaviour, Receiver};
use serde_json::{Value, json};
use shared::records::assistant::Assistant;
use shared::records::conversation::Conversation;
use shared::records::delivery::{
    self, Delivery, DeliveryOutcome, DeliveryState, EndpointHealth, NewDelivery, Observed,
};
use shared::records::event::EventId;
use shared::records::widget::Widget;
use shared::table::Table;
use shared::table::page::PageQuery;
use shared::values::id::{EndpointId, WidgetId};
use shared::values::time::Clock;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::campaign::{self, RATE, SENT, TICK};
use crate::conflicts::Proxy;
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::organisation::Organisation;
use crate::process::Process;

const TENANTS: &str = "A hundred deliveries in one batch, 6 ms for each call of the database";
const CONNECTOR: &str = "Deliveries to a connector at 500 a second";
const LIMITS: &str = "10,000 due deliveries and 800 bad endpoints, with 1,024 descriptors and 512 MB of address space";

/// The most changes in a batch.
const BATCH: usize = 100;
/// How many times each batch is measured; the median counts.
const ROUNDS: usize = 5;
/// The most by which a batch for a hundred tenants may be slower, as a factor.
const LITTLE: f64 = 2.0;

/// The widget of the recorded campaign.
const WIDGET: &str = "01900000-0000-7000-8000-a00700000001";
/// The lanes of the stream: batches that are processed at the same time.
const LANES: usize = 10;

/// Memory of the function, in megabytes.
const MEGABYTES: f64 = 512.0;

/// Organisations, each with as many endpoints of each kind.
const ORGANISATIONS: usize = 20;
/// Endpoints of an organisation that answer at once, and the deliveries to each.
const HEALTHY: (usize, usize) = (10, 30);
/// Endpoints of an organisation that are slow, never answer, or refuse a connection, and the deliveries to each.
const BAD: (usize, usize) = (40, 5);
/// One of so many endpoints gets a transcript of the largest size.
const ONE_LARGE_OF: usize = 10;
/// Messages that fill a conversation, and the characters of each.
const LARGEST: (usize, usize) = (127, 32_768);
/// The most ticks. The measure ends before the last attempt to an endpoint that never answers.
const TICKS: usize = 12;
/// The command that starts a process with these limits, in kibibytes.
const LIMITED: &str = "ulimit -n 1024; ulimit -v 524288; exec \"$0\"";

/// An organisation, and its deliveries.
struct Customer {
    organisation: Organisation,
    assistant: Value,
}

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        measure_tenants(bench, figures).await?;
        measure_connector(bench, figures).await?;
        measure_limits(bench, figures).await
    })
}

async fn measure_tenants(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (stack, receiver) = (bench.stack().await?, Receiver::start().await?);
    let proxy = Proxy::start(&stack).await?;
    let mut process = sender(bench, &stack, &proxy).start().await?;
    let mut customers = Vec::new();
    for _ in 0..BATCH {
        let customer = Customer::new(&stack).await?;
        let webhook = customer.webhook(&stack, &format!("{}/hook", receiver.url)).await?;
        customers.push((customer, webhook));
    }
    let (mut one, mut many) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (first, webhook) = &customers[0];
        first.enqueue(*webhook, BATCH).await?;
        one.push(timed(&mut process, &ready(&stack).await?).await?);
        try_join_all(customers.iter().map(|(customer, webhook)| customer.enqueue(*webhook, 1))).await?;
        many.push(timed(&mut process, &ready(&stack).await?).await?);
    }
    one.sort_unstable();
    many.sort_unstable();
    let (one, many) = (milliseconds(one[ROUNDS / 2]), milliseconds(many[ROUNDS / 2]));
    let row = Row::new(TENANTS, "for a hundred organisations", many, Unit::Milliseconds);
    figures.push(row.compared_with("for one", one).must(Must::AtMost(LITTLE * one)));
    let wanted = 2 * ROUNDS * BATCH;
    let arrived = figure(receiver.count("/hook") as u64);
    let row = Row::new(TENANTS, "received", arrived, Unit::Requests);
    figures.push(row.must(Must::Exactly(figure(wanted as u64))));
    stack.stop().await;
    Ok(())
}

async fn measure_connector(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (stack, receiver) = (bench.stack().await?, Receiver::start().await?);
    connect(&stack, &format!("{}/connector", receiver.url)).await?;
    campaign::run(bench, &stack, 100).await?;
    let dispatch = bench.program("send-campaigns", &stack).with("SENDS_PER_SECOND", RATE.to_string());
    dispatch.start().await?.invoke(TICK).await?;
    let items = ready(&stack).await?;
    let program = bench.program("sender", &stack).with("SENDS_PER_SECOND", RATE.to_string());
    let mut lanes = Vec::new();
    for _ in 0..LANES {
        lanes.push(program.start().await?);
    }
    let mut tick = program.start().await?;
    let share = items.len().div_ceil(LANES);
    let begun = Instant::now();
    let work = lanes.iter_mut().zip(items.chunks(share)).map(|(lane, own)| async move {
        for batch in own.chunks(BATCH / 4) {
            timed(lane, batch).await?;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    });
    // As in a deployment, the tick sends the deliveries that the stream defers.
    let ticks = async {
        while receiver.count("/connector") < items.len() && begun.elapsed() < Duration::from_mins(2) {
            tick.invoke(TICK).await?;
        }
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
    };
    let (worked, ticked) = futures_util::join!(try_join_all(work), ticks);
    worked?;
    ticked?;
    let arrived = receiver.received("/connector");
    let times: Vec<Instant> = arrived.iter().map(|request| request.at).collect();
    let (first, last) = (times.iter().min().ok_or("nothing came")?, times.iter().max().ok_or("nothing came")?);
    let rate = figure(arrived.len() as u64) / last.duration_since(*first).as_secs_f64();
    let mut cpu = tick.cpu()?;
    for lane in &lanes {
        cpu += lane.cpu()?;
    }
    let row = Row::new(
        CONNECTOR,
        "received a second, with database and receivers on the same two cores",
        rate,
        Unit::PerSecond,
    );
    figures.push(row.compared_with("SendsPerSecond", RATE.into()));
    let each = milliseconds(cpu) / f64::from(SENT);
    let row = Row::new(CONNECTOR, "processor time of the function for each", each, Unit::Milliseconds);
    // Lambda gives one processor to 1,769 MB.
    let processors = figure(LANES as u64) * MEGABYTES / 1769.0;
    let most = processors * 1000.0 / f64::from(RATE);
    figures.push(row.compared_with("what ten lanes of 512 MB have for each", most).must(Must::AtMost(most)));
    let row = Row::new(CONNECTOR, "received", figure(arrived.len() as u64), Unit::Requests);
    figures.push(row.must(Must::Exactly(SENT.into())));
    stack.stop().await;
    Ok(())
}

async fn measure_limits(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (stack, receiver) = (bench.stack().await?, Receiver::start().await?);
    receiver.behave("/never", Behaviour::Never);
    receiver.behave("/slow", Behaviour::Slow(Duration::from_secs(10), 200));
    let (mut healthy, mut bad) = (Vec::new(), Vec::new());
    for _ in 0..ORGANISATIONS {
        let customer = Customer::new(&stack).await?;
        let (small, large) = (customer.conversation(&stack, 1).await?, customer.conversation(&stack, LARGEST.0).await?);
        for number in 0..HEALTHY.0 + BAD.0 {
            let is_healthy = number < HEALTHY.0;
            let url = match number % 4 {
                _ if is_healthy => format!("{}/hook", receiver.url),
                0 | 1 => format!("{}/never", receiver.url),
                2 => format!("{}/slow", receiver.url),
                _ => "http://127.0.0.1:1/refused".to_owned(),
            };
            let webhook = customer.webhook(&stack, &url).await?;
            let first = if number % ONE_LARGE_OF == 0 { &large } else { &small };
            let count = if is_healthy { HEALTHY.1 } else { BAD.1 };
            customer.defer(webhook, first, &small, count).await?;
            (if is_healthy { &mut healthy } else { &mut bad }).push((customer.organisation.table.clone(), webhook));
        }
    }
    let binary = bench.binary("sender").display().to_string();
    let program = bench.program("sender", &stack).started_by(["bash", "-c", LIMITED, &binary]);
    let mut process = program.start().await?;
    let mut peak = 0;
    let mut ticks = 0;
    let charged = loop {
        process.invoke(TICK).await?;
        (peak, ticks) = (process.peak()?.max(peak), ticks + 1);
        let mut outbox = Vec::new();
        for (table, webhook) in &healthy {
            outbox.extend(outbox_of(table, *webhook).await?);
        }
        let left = outbox.iter().filter(|delivery| delivery.state != DeliveryState::Delivered).count();
        eprintln!("tick {ticks}: {left} of {} are left", outbox.len());
        if left == 0 {
            break outbox.iter().filter(|delivery| delivery.attempts != 1).count();
        }
        if ticks == TICKS {
            return Err(format!("{left} deliveries to healthy endpoints have not arrived").into());
        }
    };
    let mut errors: BTreeMap<String, usize> = BTreeMap::new();
    for (table, webhook) in &bad {
        for attempt in outbox_of(table, *webhook).await?.into_iter().flat_map(|delivery| delivery.log) {
            *errors.entry(attempt.error.unwrap_or_default()).or_default() += 1;
        }
    }
    eprintln!("of the bad endpoints: {errors:?}");
    let row = |subject: &str, value: f64, unit: Unit| Row::new(LIMITS, subject, value, unit);
    let to_healthy = ORGANISATIONS * HEALTHY.0 * HEALTHY.1;
    let arrived = row("deliveries to healthy endpoints that arrived", figure(to_healthy as u64), Unit::Requests);
    figures.push(arrived.must(Must::Exactly(figure(to_healthy as u64))));
    let more = row("of them, charged an attempt that failed", figure(charged as u64), Unit::Requests);
    figures.push(more.must(Must::Exactly(0.0)));
    figures.push(row("ticks until they had arrived", figure(ticks as u64), Unit::Calls));
    figures.push(row("memory at its peak", figure(peak), Unit::Bytes));
    stack.stop().await;
    Ok(())
}

/// `send-delivery`, which may send to this machine.
fn sender(bench: &Bench, stack: &Stack, proxy: &Proxy) -> crate::process::Program {
    bench.program("sender", stack).with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url)
}

/// Passes a batch of these items, as the stream does, and returns the duration.
async fn timed(process: &mut Process, items: &[Value]) -> Result<Duration> {
    let now = Clock::System.now().unix_seconds();
    let change = |(number, item): (usize, &Value)| {
        let keys = json!({"pk": item["pk"], "sk": item["sk"]});
        json!({"eventName": "INSERT", "dynamodb": {
            "ApproximateCreationDateTime": now, "Keys": keys, "NewImage": item, "SequenceNumber": number.to_string(),
        }})
    };
    let records: Vec<Value> = items.iter().enumerate().map(change).collect();
    let answer = process.invoke(&json!({"Records": records}).to_string()).await?;
    let failed = serde_json::from_str::<Value>(&answer.body)?["batchItemFailures"].clone();
    if failed.as_array().is_some_and(|failed| !failed.is_empty()) {
        return Err(format!("a batch failed: {}\n{}", answer.body, process.complaints()).into());
    }
    Ok(answer.wall)
}

/// All deliveries to a webhook.
pub async fn outbox_of(table: &Table, webhook: EndpointId) -> Result<Vec<Delivery>> {
    let mut all = Vec::new();
    for page in 1.. {
        let query = PageQuery::oldest_first(page, 100);
        let page = table.page::<Delivery>(webhook, &query).await?;
        all.extend(page.items);
        if page.next_page.is_none() {
            break;
        }
    }
    Ok(all)
}

impl Customer {
    async fn new(stack: &Stack) -> Result<Self> {
        let store = stack.store();
        let organisation = Organisation::new(stack, store).await?;
        let assistant = organisation.post(stack, "/api/v1/assistant", &json!({})).await?;
        Ok(Self { organisation, assistant })
    }

    async fn webhook(&self, stack: &Stack, url: &str) -> Result<EndpointId> {
        let webhook = self.organisation.post(stack, "/api/v1/outbound_webhook", &json!({"endpoint": url})).await?;
        Ok(EndpointId(serde_json::from_value(webhook["id"].clone())?))
    }

    /// A closed conversation with so many messages.
    async fn conversation(&self, stack: &Stack, messages: usize) -> Result<Conversation> {
        let opened = self
            .organisation
            .post(stack, "/api/v1/conversation", &json!({"assistant_id": self.assistant["id"]}))
            .await?;
        let path = format!("/api/v1/conversation/{}", opened["id"].as_str().ok_or("no id")?);
        let body = json!({"sender_type": "user", "text": "x".repeat(LARGEST.1)});
        for _ in 0..messages {
            self.organisation.post(stack, &format!("{path}/message"), &body).await?;
        }
        Ok(serde_json::from_value(self.organisation.post(stack, &format!("{path}/close"), &json!({})).await?)?)
    }

    /// So many deliveries that are ready to be sent.
    async fn enqueue(&self, webhook: EndpointId, count: usize) -> Result<()> {
        let new = |_| NewDelivery::test(EventId(Uuid::now_v7()), Clock::System.now());
        let new: Vec<NewDelivery> = (0..count).map(new).collect();
        delivery::enqueue(&self.organisation.table, webhook, &new, Clock::System.now()).await?;
        Ok(())
    }

    /// So many deliveries for the tick: the first is about `first`, the others are about `other`.
    async fn defer(&self, webhook: EndpointId, first: &Conversation, other: &Conversation, count: usize) -> Result<()> {
        let now = Clock::System.now();
        let new = |number| {
            let about = NewDelivery::closed(if number == 0 { first } else { other });
            NewDelivery { event_id: EventId(Uuid::now_v7()), ..about }
        };
        let new: Vec<NewDelivery> = (0..count).map(new).collect();
        delivery::enqueue(&self.organisation.table, webhook, &new, now).await?;
        let deferral = Observed { deferred_at: Some(now), ..Observed::default() };
        let healthy = EndpointHealth::healthy(webhook);
        delivery::health::keep(&self.organisation.table, &healthy, &deferral, now, now).await?;
        for was in outbox_of(&self.organisation.table, webhook).await? {
            let is = was.clone().decide(DeliveryOutcome::Deferred, now);
            self.organisation.table.replace((webhook, was.id), &was, is).await?;
        }
        Ok(())
    }
}

/// Gives the campaign's widget a connector, and its assistant a webhook whose secret signs.
async fn connect(stack: &Stack, url: &str) -> Result<()> {
    let table = campaign::table(stack)?;
    let connector = |widget: &mut Widget| widget.connector_url = Some(url.to_owned());
    let widget = table.change(WidgetId(WIDGET.parse()?), Uuid::now_v7(), connector).await?;
    let assistant = table.get::<Assistant>(widget.assistant_id.ok_or("the widget has no assistant")?).await?;
    assistant.webhook_id.map(drop).ok_or_else(|| "the assistant has no webhook".into())
}

/// All deliveries that are ready to be sent, in the form of the stream.
pub async fn ready(stack: &Stack) -> Result<Vec<Value>> {
    #[expect(
        clippy::disallowed_methods,
        reason = "the measure is not a function: it looks for what the stream would have"
    )]
    let mut pages = stack
        .client
        .scan()
        .table_name(TABLE_NAME)
        .filter_expression("#state = :ready AND begins_with(due_pk, :delivery)")
        .expression_attribute_names("#state", "state")
        .expression_attribute_values(":ready", AttributeValue::S("ready".into()))
        .expression_attribute_values(":delivery", AttributeValue::S("DELIVERY#".into()))
        .into_paginator()
        .items()
        .send();
    let mut items = Vec::new();
    while let Some(item) = pages.next().await {
        items.push(serde_json::to_value(serde_dynamo::Item::from(item?))?);
    }
    Ok(items)
}
