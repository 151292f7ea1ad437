//! The import of contacts: 500 by one call, and 100,000 by 200 calls, eight at a time, then a campaign to 10,000 of
//! them.

use std::time::Instant;

use futures_util::future::try_join_all;
use serde_json::{Value, json};
use shared::records::contact::Contact;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::campaign::table;
use crate::conflicts::Proxy;
use crate::figures::{Figures, Must, Row, Unit};
use crate::process::Program;

const SECTION: &str = "An import of contacts, 6 ms for each call of the database, overlapping writes refused";
const FUNCTION: &str = "import-contacts";
/// Contacts of one call, the most that a call accepts.
const EACH: usize = 500;
/// Calls of the whole import, and how many are made at the same time.
const CALLS: usize = 200;
const AT_ONCE: usize = 8;
/// Contacts that get a campaign.
const INVITED: usize = 10_000;
/// Seconds that a call may take on a function of 256 MB.
const SECONDS: f64 = 3.0;
/// The memory in megabytes that gives a function a whole processor, divided by 256: with 256 MB the same work takes so
/// many times longer.
const PART: f64 = 1769.0 / 256.0;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| import(bench, figures))
}

async fn import(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    let proxy = Proxy::start(&stack).await?;
    let program = bench.program(FUNCTION, &stack).with("AWS_ENDPOINT_URL_DYNAMODB", proxy.url.clone());
    let recorded: Value = serde_json::from_str(&bench.event(FUNCTION)?)?;
    let row = |subject: &str, value: f64, unit: Unit| Row::new(SECTION, subject, value, unit);

    let mut process = program.start().await?;
    // The first call also looks the key up, and opens the connections.
    process.invoke(&recorded.to_string()).await?;
    let before = process.cpu()?;
    let answer = process.invoke(&event(&recorded, CALLS)).await?;
    created(&answer.body)?;
    let (wall, busy) = (answer.wall.as_secs_f64(), process.cpu()?.saturating_sub(before).as_secs_f64());
    let small = wall - busy + busy * PART;
    figures.push(row("500 contacts by one call, on this machine", wall, Unit::Seconds));
    figures.push(
        row("the same on 256 MB, whose processor is a seventh", small, Unit::Seconds).must(Must::AtMost(SECONDS)),
    );
    let cost = answer.cost.ok_or("the call logged no cost")?;
    figures.push(row("sequential calls of it", cost.depth.into(), Unit::Calls));
    figures.push(row("write units a contact", cost.write_units / 500.0, Unit::CapacityUnits));
    let memory = process.peak()?;
    #[expect(clippy::cast_precision_loss, reason = "memory has few digits")]
    figures.push(row("memory at the peak", memory as f64, Unit::Bytes).must(Must::AtMost(256.0 * 1024.0 * 1024.0)));
    process.end().await?;

    let first = table(&stack)?.appended::<Contact>(()).await?;
    let begun = Instant::now();
    let lanes: Vec<_> = (0..AT_ONCE).map(|lane| import_some(&program, &recorded, lane)).collect();
    let ids: Vec<Value> = try_join_all(lanes).await?.concat();
    let seconds = begun.elapsed().as_secs_f64();
    let there = table(&stack)?.appended::<Contact>(()).await? - first;
    if there != (CALLS * EACH) as u64 || ids.len() != CALLS * EACH {
        return Err(format!("{there} contacts are there, and {} were answered", ids.len()).into());
    }
    #[expect(clippy::cast_precision_loss, reason = "these are few")]
    let (calls, contacts) = (CALLS as f64, (CALLS * EACH) as f64);
    figures.push(row("calls for 100,000 contacts, eight at a time, none refused", calls, Unit::Requests));
    figures.push(row("contacts a second", contacts / seconds, Unit::PerSecond));

    let mut campaign: Value = serde_json::from_str(&bench.event("run-campaign")?)?;
    campaign["body"] = json!(json!({"contact_ids": ids[..INVITED]}).to_string());
    let mut runner =
        bench.program("run-campaign", &stack).with("AWS_ENDPOINT_URL_DYNAMODB", proxy.url.clone()).start().await?;
    let answer = runner.invoke(&campaign.to_string()).await?;
    let status = serde_json::from_str::<Value>(&answer.body)?["statusCode"].as_u64().unwrap_or_default();
    if status >= 300 {
        return Err(format!("run-campaign: {}", answer.body).into());
    }
    figures.push(row("a campaign to 10,000 of them is queued within", answer.wall.as_secs_f64(), Unit::Seconds));
    runner.end().await?;
    stack.stop().await;
    Ok(())
}

/// The calls of one process, one after another; returns the ids of the created contacts.
async fn import_some(program: &Program, recorded: &Value, lane: usize) -> Result<Vec<Value>> {
    let mut process = program.start().await?;
    let mut ids = Vec::new();
    for call in (lane..CALLS).step_by(AT_ONCE) {
        ids.extend(created(&process.invoke(&event(recorded, call)).await?.body)?);
    }
    process.end().await?;
    Ok(ids)
}

/// The call with this number: it has contacts that no other call has.
fn event(recorded: &Value, call: usize) -> String {
    let contact = |number: usize| {
        json!({
            "first_name": format!("Contact {number}"),
            "email": format!("{call}-{number}@import.example"),
            "phone_number": format!("+316{call:04}{number:04}"),
        })
    };
    let contacts: Vec<Value> = (0..EACH).map(contact).collect();
    let mut event = recorded.clone();
    event["body"] = json!(json!({"contacts": contacts}).to_string());
    event.to_string()
}

/// The ids in an answer, each of a created contact.
fn created(answer: &str) -> Result<Vec<Value>> {
    let response: Value = serde_json::from_str(answer)?;
    let body: Value = serde_json::from_str(response["body"].as_str().unwrap_or_default())?;
    let items = body["data"]["items"].as_array().cloned().unwrap_or_default();
    if items.len() == EACH && items.iter().all(|item| item["outcome"] == "created") {
        return Ok(items.into_iter().map(|mut item| item["id"].take()).collect());
    }
    Err(format!("{FUNCTION}: {}", answer.chars().take(500).collect::<String>()).into())
}
