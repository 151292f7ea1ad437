//! A campaign to ten thousand contacts, against the least that DynamoDB would let it take.

use local::Stack;
use local::database::TABLE_NAME;
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::request::tenant::Tenant;
use shared::table::Table;
use shared::table::rows::INSERT_LIMIT;
use shared::table::store::Store;
use shared::values::id::{ContactId, OrgId};
use uuid::Uuid;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit};

const SECTION: &str = "A campaign to 10,000 contacts";
const FUNCTION: &str = "run-campaign";
const CONTACTS: u32 = 10_000;
/// Whose contacts they are.
const ORG: &str = "01900000-0000-7000-8000-a00000000001";
/// The demo set's contact that the recorded event names.
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
    add_contacts(&stack).await?;
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

/// Has the demo organisation have that many contacts.
async fn add_contacts(stack: &Stack) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "the measure is its own operator")]
    let tenant = Tenant::operator(ORG.parse::<Uuid>().map(OrgId)?);
    let table = Table::new(Store::new(stack.client.clone(), TABLE_NAME.into()), tenant);
    let have = table.next_ordinal::<Contact>(()).await?;
    let ids: Vec<Uuid> =
        (have..CONTACTS).map(|number| contact(number).parse()).collect::<std::result::Result<_, _>>()?;
    let first = table.get::<Contact>(ContactId(CONTACT.parse()?)).await?;
    for ids in ids.chunks(INSERT_LIMIT) {
        table.insert_all((), ids, |_, id| Contact { id, ..first.clone() }).await?;
    }
    Ok(())
}

fn contact(number: u32) -> String {
    format!("{}{number:08x}", &CONTACT[..CONTACT.len() - 8])
}
