//! An export of an organisation with many contacts: what `run-exports` holds in its memory, and how long it works.

use std::collections::BTreeSet;
use std::time::Duration;

use dynoxide::Database;
use local::database::TABLE_NAME;
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::table::keys::{Key, list_head, list_row};
use shared::table::store::BATCH_WRITE_LIMIT;
use shared::table::stored::Listed as _;
use shared::values::id::{ordinal, with_ordinal};
use shared::values::tenant::Tenant;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::figures::{Figures, Must, Row, Unit, figure, thousands};
use crate::organisation::Organisation;

const SECTION: &str = "An export of all contacts of an organisation";
const FUNCTION: &str = "run-exports";
/// The memory of the function.
const MOST: f64 = 256.0 * 1024.0 * 1024.0;
/// The event of a tick.
const TICK: &str = r#"{"source": "aws.events", "detail": {}}"#;
/// The ticks after which an export is late: a day.
const TICKS: usize = 1_440;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| export(bench, figures))
}

async fn export(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = Stack::start(Settings { demo: None, stream: false, ..Settings::of(&bench.root) }).await?;
    let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
    fill(&stack, &organisation, bench.rows).await?;
    let made = organisation.post(&stack, "/api/v1/export", &json!({"records": ["contact"]})).await?;
    let path = format!("/api/v1/export/{}", made["id"].as_str().ok_or("no id")?);

    let mut process = bench.program(FUNCTION, &stack).start().await?;
    let (mut worked, mut ticks) = (Duration::ZERO, 0_usize);
    let done = loop {
        worked += process.invoke(TICK).await?.wall;
        ticks += 1;
        let export = organisation.ask(&stack, "GET", &path, &Value::Null).await?;
        match export["status"].as_str() {
            Some("completed") => break export,
            Some("failed") => return Err(format!("the export failed: {export}").into()),
            _ if ticks == TICKS => return Err(format!("the export does not end: {export}").into()),
            _ => eprintln!("tick {ticks}: {} rows", export["rows"]),
        }
    };
    let (peak, busy) = (process.peak()?, process.cpu()?);
    see_file(&stack, &done, bench.rows)?;

    let rows = figure(bench.rows);
    let row = |what: &str, value: f64, unit: Unit| {
        Row::new(SECTION, format!("{} contacts: {what}", thousands(bench.rows)), value, unit)
    };
    figures.push(row("memory at the peak", figure(peak), Unit::Bytes).must(Must::AtMost(MOST)));
    figures.push(row("work of all ticks, database included", worked.as_secs_f64(), Unit::Seconds));
    figures.push(row("processor time of the function", busy.as_secs_f64(), Unit::Seconds));
    figures.push(row("ticks", figure(ticks as u64), Unit::Calls));
    figures.push(row("rows a second", rows / worked.as_secs_f64(), Unit::PerSecond));
    figures.push(row("the file", done["bytes"].as_f64().unwrap_or_default(), Unit::Bytes));
    stack.stop().await;
    Ok(())
}

/// Fills the list of contacts. `create-contact` makes the first one. The others have the same form, and are put into the
/// table directly.
async fn fill(stack: &Stack, organisation: &Organisation, rows: u64) -> Result<()> {
    let contact = json!({
        "first_name": "Ada", "last_name": "Lovelace", "email": "ada@contacts.example", "phone_number": "+31612345678",
        "attributes": {"customer_number": "000000000001", "segment": "wholesale", "language": "en"},
    });
    let made = organisation.post(stack, "/api/v1/contact", &contact).await?;
    let id: Uuid = made["id"].as_str().ok_or("no id")?.parse()?;
    let (database, tenant, list) = (&stack.database, &organisation.tenant, Contact::list(()));
    let first = ordinal(id);
    let template = item(database, &list_row(tenant, &list, first))?;
    let others: Vec<u64> = (first + 1..first + rows).collect();
    for ordinals in others.chunks(BATCH_WRITE_LIMIT) {
        let puts: Vec<Value> = ordinals.iter().map(|ordinal| put(&template, tenant, (id, *ordinal))).collect();
        database.batch_write_item(serde_json::from_value(json!({"RequestItems": {TABLE_NAME: puts}}))?)?;
    }
    let mut head = item(database, &list_head(tenant, &list))?;
    head["next_ordinal"] = json!({"N": (first + rows).to_string()});
    database.put_item(serde_json::from_value(json!({"TableName": TABLE_NAME, "Item": head}))?)?;
    Ok(())
}

/// The request to put the contact with this ordinal.
fn put(template: &Value, tenant: &Tenant, (id, ordinal): (Uuid, u64)) -> Value {
    let Key { pk, sk } = list_row(tenant, &Contact::list(()), ordinal);
    let mut row = template.clone();
    (row["pk"]["S"], row["sk"]["S"]) = (pk.into(), sk.into());
    row["id"]["S"] = json!(with_ordinal(id, ordinal));
    row["email"]["S"] = json!(format!("{ordinal}@contacts.example"));
    row["phone_number"]["S"] = json!(format!("+316{:08}", ordinal % 100_000_000));
    json!({"PutRequest": {"Item": row}})
}

fn item(database: &Database, key: &Key) -> Result<Value> {
    let request = json!({"TableName": TABLE_NAME, "Key": {"pk": {"S": key.pk}, "sk": {"S": key.sk}}});
    let mut found = serde_json::to_value(database.get_item(serde_json::from_value(request)?)?)?;
    if found["Item"].is_null() {
        return Err(format!("there is no item at {key:?}").into());
    }
    Ok(found["Item"].take())
}

/// Fails unless the file has each row once.
fn see_file(stack: &Stack, export: &Value, rows: u64) -> Result<()> {
    let id = export["id"].as_str().ok_or("no id")?;
    let objects = stack.objects.objects()?;
    let (_, file) = objects.iter().find(|(key, _)| key.ends_with(id)).ok_or("there is no file")?;
    let mut ids = BTreeSet::new();
    let mut lines = 0;
    for line in file.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let row: Value = serde_json::from_slice(line)?;
        ids.insert(row["id"].as_str().ok_or("a row without an id")?.parse::<Uuid>()?);
        lines += 1;
    }
    let count = ids.len() as u64;
    if count == rows && lines == rows && export["rows"] == rows && export["bytes"] == file.len() {
        return Ok(());
    }
    Err(format!("{lines} lines with {count} ids, not {rows}: {export}").into())
}
