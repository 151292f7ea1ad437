//! The work of the ticks of a minute, by their processor time: dispatched contacts of campaigns, and deferred
//! deliveries that are handed to the stream.

use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use local::receiver::Receiver;
use serde_json::{Value, json};
use shared::records::delivery::{self, DeliveryOutcome, DeliveryState, EndpointHealth, NewDelivery, Observed};
use shared::records::event::EventId;
use shared::records::widget::Widget;
use shared::values::id::{EndpointId, WidgetId};
use shared::values::time::Clock;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::campaign::{RATE, TICK};
use crate::deliveries::{outbox_of, ready};
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::organisation::Organisation;
use crate::process::Process;

const SECTION: &str = "What a tick does, by its processor time";

/// Widgets, each with a campaign: enough that no dispatch waits for a rate limit.
const WIDGETS: usize = 10;
/// Contacts of each campaign: the most that a request imports.
const CONTACTS: usize = 500;
/// Seconds of a tick of `send-campaigns`, and contacts that all campaigns together must dispatch in a minute.
const CAMPAIGNS: (f64, f64) = (50.0, 200_000.0);

/// Deferred deliveries.
const DEFERRED: usize = 4_000;
/// Seconds of a tick of `send-delivery`, and the deferred deliveries that it must hand over in a minute.
const DELIVERIES: (f64, f64) = (40.0, 60_000.0);
/// The part of a processor for `send-delivery`: Lambda gives a whole one to 1,769 MB, which `send-campaigns` has.
const PART: f64 = 512.0 / 1769.0;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        campaigns(bench, figures).await?;
        deferred(bench, figures).await
    })
}

async fn campaigns(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
    let assistant = organisation.post(&stack, "/api/v1/assistant", &json!({})).await?;
    let of_number = |number| json!({"first_name": "New", "phone_number": format!("+3161{number:08}")});
    let contacts: Vec<Value> = (0..CONTACTS).map(of_number).collect();
    let imported = organisation.post(&stack, "/api/v1/contact/import", &json!({"contacts": contacts})).await?;
    let contacts: Vec<&Value> =
        imported["items"].as_array().ok_or("no items")?.iter().map(|item| &item["id"]).collect();
    let mut widgets = Vec::new();
    for _ in 0..WIDGETS {
        let widget = json!({"assistant_id": assistant["id"], "widget_type": "whatsapp"});
        let widget = organisation.post(&stack, "/api/v1/widget", &widget).await?["id"].take();
        // The address is not checked here, and no event is sent to it.
        let connect = |widget: &mut Widget| widget.connector_url = Some("https://connector.example/send".to_owned());
        organisation.table.change(WidgetId(serde_json::from_value(widget.clone())?), Uuid::now_v7(), connect).await?;
        widgets.push(widget);
    }
    let all = WIDGETS * CONTACTS;
    // At first no conversation is open. The second message continues the conversations that the first one has opened.
    for (round, what) in ["contacts that get a conversation", "contacts that have one"].into_iter().enumerate() {
        for widget in &widgets {
            let path = format!("/api/v1/campaign/run/{}", widget.as_str().ok_or("no id")?);
            let body = json!({"contact_ids": contacts, "message": format!("Message {round}")});
            organisation.post(&stack, &path, &body).await?;
        }
        let sender = bench.program("send-campaigns", &stack).with("SENDS_PER_SECOND", RATE.to_string());
        let each = tick(&mut sender.start().await?, all).await?;
        if ready(&stack).await?.len() != all * (round + 1) {
            return Err(format!("{what}: not all were dispatched").into());
        }
        report_tick(figures, &format!("{what}, dispatched by `send-campaigns`"), each, 1.0, CAMPAIGNS);
    }
    stack.stop().await;
    Ok(())
}

async fn deferred(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let (stack, receiver) = (bench.stack().await?, Receiver::start().await?);
    let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
    let hook = json!({"endpoint": format!("{}/hook", receiver.url)});
    let webhook = organisation.post(&stack, "/api/v1/outbound_webhook", &hook).await?;
    let (webhook, now) = (EndpointId(serde_json::from_value(webhook["id"].clone())?), Clock::System.now());
    let table = &organisation.table;
    let new: Vec<_> = (0..DEFERRED).map(|_| NewDelivery::test(EventId(Uuid::now_v7()), now)).collect();
    for some in new.chunks(100) {
        delivery::enqueue(table, webhook, some, now).await?;
    }
    let deferral = Observed { deferred_at: Some(now), ..Observed::default() };
    delivery::health::keep(table, &EndpointHealth::healthy(webhook), &deferral, now, now).await?;
    let all = outbox_of(table, webhook).await?;
    let defers =
        all.iter().map(|was| table.replace((webhook, was.id), was, was.clone().decide(DeliveryOutcome::Deferred, now)));
    stream::iter(defers.collect::<Vec<_>>()).buffer_unordered(32).try_collect::<Vec<_>>().await?;
    let each = tick(&mut bench.program("sender", &stack).start().await?, DEFERRED).await?;
    let all = outbox_of(table, webhook).await?;
    if all.len() != DEFERRED || all.iter().any(|delivery| delivery.state == DeliveryState::Waiting) {
        return Err("deliveries are still deferred".into());
    }
    report_tick(figures, "deferred deliveries, handed to the stream by `send-delivery`", each, PART, DELIVERIES);
    stack.stop().await;
    Ok(())
}

/// Milliseconds of processor time for each of the `count` units of a tick.
async fn tick(process: &mut Process, count: usize) -> Result<f64> {
    let before = process.cpu()?;
    process.invoke(TICK).await?;
    Ok(milliseconds(process.cpu()?.saturating_sub(before)) / figure(count as u64))
}

/// Adds the row with the processor time of each. Its bound is the time that a tick of `seconds`, with that part of a
/// processor, may spend on each of `wanted`.
fn report_tick(figures: &mut Figures, what: &str, each: f64, part: f64, (seconds, wanted): (f64, f64)) {
    let most = seconds * 1000.0 * part / wanted;
    let row = Row::new(SECTION, format!("{what}: for each"), each, Unit::Milliseconds);
    figures.push(row.compared_with(format!("for {wanted} a minute"), most).must(Must::AtMost(most)));
}
