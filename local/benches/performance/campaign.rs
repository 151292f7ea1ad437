//! A campaign to ten thousand contacts, compared with the minimum that DynamoDB allows.

use local::Stack;
use serde_json::{Value, json};
use shared::records::contact::Contact;
use shared::table::Table;
use shared::table::reservation::LONG;
use shared::table::rows::INSERT_LIMIT;
use shared::values::id::{ContactId, OrgId, SPREAD, with_ordinal};
use shared::values::tenant::Tenant;
use uuid::Uuid;

use crate::Result;
use crate::bench::{Bench, on_own_threads};
use crate::conflicts::Proxy;
use crate::figures::{Figures, Must, Row, Unit};

const SECTION: &str = "A campaign to 10,000 contacts";
const FUNCTION: &str = "run-campaign";
const CONTACTS: u32 = 10_000;
/// The organisation of the contacts.
const ORG: &str = "01900000-0000-7000-8000-a00000000001";
/// The demo set's contact that the recorded event names.
const CONTACT: &str = "01900000-0000-7000-8000-a00800000000";
/// A check that a contact exists costs half a unit, which is the price of an eventually consistent read of the smallest
/// item; storing that it is queued costs one unit, the price of an item of up to 1 KB. No call of DynamoDB reads or
/// writes an item for less.
const LEAST: f64 = 0.5 + 1.0;
/// The most that it may take, as a multiple of the minimum.
const MOST: f64 = 1.2;
/// The usual estimate without better knowledge: two units for each contact.
const EXPECTED: f64 = 2.0;
/// Seconds that it may take on this machine.
const SECONDS: f64 = 5.0;

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let stack = bench.stack().await?;
    add_contacts(&stack).await?;
    let recorded = bench.event(FUNCTION)?;
    let mut event: Value = serde_json::from_str(&recorded)?;
    let contacts: Vec<Uuid> = (0..CONTACTS).map(contact).collect::<Result<_>>()?;
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
        row("units for a contact, compared with what is expected", each, Unit::CapacityUnits)
            .compared_with("two units a contact", EXPECTED)
            .must(Must::AtMost(EXPECTED)),
        row(
            "units for a contact, compared with the least possible: an eventually consistent read and a write",
            each,
            Unit::CapacityUnits,
        )
        .compared_with("half a unit to read, one to write", LEAST)
        .must(Must::AtMost(MOST * LEAST)),
        row("calls", cost.calls.into(), Unit::Calls),
        row("sequential calls", cost.depth.into(), Unit::Calls),
    ]);
    stack.stop().await;
    Ok(())
}

/// The rate of the campaign of the second section; the number of its contacts follows.
pub const RATE: u32 = 500;
pub const SENT: u32 = 5_000;
/// The event of a tick.
pub const TICK: &str = r#"{"source": "aws.events", "detail": {}}"#;
/// The required share of the rate: the time from the first to the last contact is no whole number of seconds.
const REACHED: f64 = 0.98;
const SENDING: &str =
    "A campaign that is sent at 500 a second, without a connector, 6 ms for each call of the database";

pub fn measure_sending(bench: &Bench, figures: &mut Figures) -> Result<()> {
    on_own_threads(|| async {
        let (_, short) = send(bench, 10).await?;
        let (rate, long) = send(bench, 32_000).await?;
        let row = |subject: &str, value: f64, unit: Unit| Row::new(SENDING, subject, value, unit);
        let asked = f64::from(RATE);
        let sent = row("contacts a second", rate, Unit::PerSecond).compared_with("SendsPerSecond", asked);
        figures.push(sent.must(Must::AtLeast(REACHED * asked)));
        let units = row("write units a contact, a message of 32,000 characters", long, Unit::CapacityUnits);
        figures.push(units.compared_with("one of ten", short).must(Must::AtMost(short + 0.1)));
        Ok(())
    })
}

/// Sends a campaign with a message of so many characters; returns the contacts per second, and the write units of each.
async fn send(bench: &Bench, characters: usize) -> Result<(f64, f64)> {
    let stack = bench.stack().await?;
    let proxy = Proxy::start(&stack).await?;
    run(bench, &stack, characters).await?;
    let sender = bench.program("send-campaigns", &stack).with("SENDS_PER_SECOND", RATE.to_string());
    let mut sender = sender.with("AWS_ENDPOINT_URL_DYNAMODB", &proxy.url).start().await?;
    proxy.write_units();
    let answer = sender.invoke(TICK).await?;
    let units = proxy.write_units() / f64::from(SENT);
    stack.stop().await;
    Ok((f64::from(SENT) / answer.wall.as_secs_f64(), units))
}

/// Runs a campaign to [`SENT`] contacts of the demo organisation: from now on it may be sent.
pub async fn run(bench: &Bench, stack: &Stack, characters: usize) -> Result<()> {
    add_contacts(stack).await?;
    let mut event: Value = serde_json::from_str(&bench.event(FUNCTION)?)?;
    let contacts: Vec<Uuid> = (0..SENT).map(contact).collect::<Result<_>>()?;
    let body = json!({"contact_ids": contacts, "message": "x".repeat(characters), "start_new_conversation": true});
    event["body"] = json!(body.to_string());
    let mut runner = bench.program(FUNCTION, stack).start().await?;
    let answer = runner.invoke(&event.to_string()).await?;
    if serde_json::from_str::<Value>(&answer.body)?["statusCode"] == 200 {
        Ok(())
    } else {
        Err(format!("{FUNCTION}: {}", answer.body).into())
    }
}

/// The demo organisation's table.
pub fn table(stack: &Stack) -> Result<Table> {
    #[expect(clippy::disallowed_methods, reason = "the measure is its own operator")]
    let tenant = Tenant::operator(ORG.parse::<Uuid>().map(OrgId)?);
    Ok(Table::new(stack.store(), tenant))
}

/// Adds contacts to the demo organisation until it has this many.
async fn add_contacts(stack: &Stack) -> Result<()> {
    let table = table(stack)?;
    let have = u32::try_from(table.appended::<Contact>(()).await?)?;
    let ids: Vec<Uuid> = (have..CONTACTS).map(contact).collect::<Result<_>>()?;
    let first = table.get::<Contact>(ContactId(CONTACT.parse()?)).await?;
    // The list is spread from the first row after this many.
    let (few, more) = ids.split_at(ids.len().min(usize::try_from(LONG)? - have as usize));
    for ids in few.chunks(INSERT_LIMIT).chain(more.chunks(INSERT_LIMIT)) {
        table.insert_all((), ids, |_, id| Contact { id, email: None, phone_number: None, ..first.clone() }).await?;
    }
    Ok(())
}

fn contact(number: u32) -> Result<Uuid> {
    let (number, first) = (u64::from(number), CONTACT.parse()?);
    Ok(with_ordinal(first, if number < LONG { number } else { SPREAD + number - LONG }))
}
