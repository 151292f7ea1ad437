//! A campaign to ten thousand contacts, against the least that DynamoDB would let it take.

use dynoxide::Database;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::table::store::BATCH_WRITE_LIMIT;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit};

const SECTION: &str = "A campaign to 10,000 contacts";
const FUNCTION: &str = "run-campaign";
const CONTACTS: u32 = 10_000;
/// The item of the demo set's contact that the recorded event names.
const CONTACT: &str = "01900000-0000-7000-8000-a00800000000";
/// To see that a contact exists is half a unit, which an eventually consistent read of one item takes however small it is; to write
/// down that it is queued is one, the price of an item of up to 1 KB. No call of DynamoDB reads or writes an item for less.
const LEAST: f64 = 0.5 + 1.0;
/// How many times the least it may take.
const MOST: f64 = 1.2;
/// What is said of it where nothing better is known: two units for each contact.
const EXPECTED: f64 = 2.0;
/// Seconds that it may take here.
const SECONDS: f64 = 5.0;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    put_contacts(&stack.database)?;
    let recorded = bench.event(FUNCTION)?;
    let mut event: Value = serde_json::from_str(&recorded)?;
    let contacts: Vec<String> = (0..CONTACTS).map(contact).collect();
    event["body"] = json!(json!({"contact_ids": contacts}).to_string());

    let mut process = bench.program(FUNCTION, &stack).start().await?;
    // The first call also looks the key up.
    process.invoke(&recorded).await?;
    let answer = process.invoke(&event.to_string()).await?;
    let response: Value = serde_json::from_str(&answer.body)?;
    if response["statusCode"] != 200 && response["statusCode"] != 201 {
        return Err(format!("{FUNCTION}: {}", answer.body).into());
    }
    let cost = answer.cost.ok_or("the call logged no cost")?;
    let each = (cost.read_units + cost.write_units) / f64::from(CONTACTS);

    let row = |subject: &str, value: f64, unit: Unit| Row::new(SECTION, subject, value, unit);
    figures.rows.extend([
        row("from the event to the answer, on this machine", answer.wall.as_secs_f64(), Unit::Seconds)
            .must(Must::AtMost(SECONDS)),
        row("units a contact, against what is expected", each, Unit::CapacityUnits)
            .beside("two units a contact", EXPECTED)
            .must(Must::AtMost(EXPECTED)),
        row(
            "units a contact, against the least: an eventually consistent read and a write of it",
            each,
            Unit::CapacityUnits,
        )
        .beside("half a unit to read, one to write", LEAST)
        .must(Must::AtMost(MOST * LEAST)),
        row("calls", cost.calls.into(), Unit::Calls),
        row("sequential calls", cost.depth.into(), Unit::Calls),
    ]);
    stack.stop().await;
    Ok(())
}

/// Makes more contacts of one of the demo set's.
fn put_contacts(database: &Database) -> Result<()> {
    let items = serde_json::to_value(database.scan(serde_json::from_value(json!({"TableName": TABLE_NAME}))?)?)?;
    let first = items["Items"].as_array().into_iter().flatten().find(|item| item["id"]["S"] == CONTACT);
    let first = first.ok_or("the demo set lacks the contact of the recorded event")?.to_string();
    let numbers: Vec<u32> = (0..CONTACTS).collect();
    for batch in numbers.chunks(BATCH_WRITE_LIMIT) {
        let puts = batch.iter().map(|number| {
            let item: Value = serde_json::from_str(&first.replace(CONTACT, &contact(*number)))?;
            Ok(json!({"PutRequest": {"Item": item}}))
        });
        let puts = puts.collect::<Result<Vec<_>>>()?;
        database.batch_write_item(serde_json::from_value(json!({"RequestItems": {TABLE_NAME: puts}}))?)?;
    }
    Ok(())
}

fn contact(number: u32) -> String {
    format!("{}{number:08x}", &CONTACT[..CONTACT.len() - 8])
}
