//! The dispatch of a campaign to contacts of whom none is suppressed, with no suppression in the table and with 100,000.

use std::time::{Duration, Instant};

use embedded_dynamodb::partitions::{Counting, Partitions, Unit as CapacityUnit};
use local::{Settings, Stack};
use serde_json::{Value, json};
use shared::records::contact_point::PhoneNumber;
use shared::records::suppression::{SuppressedChannel, Suppression};
use shared::table::rows::INSERT_LIMIT;
use shared::table::version::Version;
use shared::values::id::SuppressionId;
use shared::values::time::Clock;
use uuid::Uuid;

use crate::Result;
use crate::bench::Bench;
use crate::figures::{Figures, Must, Row, Unit, figure, milliseconds};
use crate::organisation::Organisation;

const SECTION: &str = "A campaign beside 100,000 suppressions";
const SUPPRESSIONS: usize = 100_000;
/// The most contacts of a call of `import-contacts`.
const IMPORTED: usize = 500;
/// Contacts of a campaign: each has a telephone number and an e-mail address.
const CONTACTS: usize = 1_000;
/// Campaigns of which the fastest counts.
const CAMPAIGNS: usize = 5;
/// Sends per second, so high that none waits.
const MANY: u32 = 100_000;
/// The most that the suppressions may add, as a multiple.
const MOST: f64 = 1.1;

/// What the dispatch of a contact takes.
#[derive(Debug, Clone, Copy)]
struct Taken {
    read: f64,
    written: f64,
    time: Duration,
}

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let partitions = Partitions::new(Counting::Counted);
    let settings = Settings {
        demo: None,
        partitions: partitions.clone(),
        sends_per_second: MANY,
        stream: false,
        ..Settings::of(&bench.root)
    };
    let stack = Stack::start(settings).await?;
    let organisation = Organisation::new(&stack, stack.gateway.service.store.clone()).await?;
    let of_number = |number: usize| json!({"phone_number": format!("+3161{number:08}"), "email": format!("{number}@contacts.example")});
    let contacts: Vec<Value> = (0..CONTACTS).map(of_number).collect();
    let mut ids = Vec::new();
    for contacts in contacts.chunks(IMPORTED) {
        let mut made = organisation.post(&stack, "/api/v1/contact/import", &json!({"contacts": contacts})).await?;
        ids.extend(made["items"].as_array_mut().ok_or("no items")?.iter_mut().map(|item| item["id"].take()));
    }
    let without = least(&stack, &organisation, &partitions, &ids).await?;
    suppress(&organisation).await?;
    let with = least(&stack, &organisation, &partitions, &ids).await?;

    let row = |subject: &str, value: f64, unit: Unit| Row::new(SECTION, subject, value, unit);
    let mut compare = |what: &str, without: f64, with: f64, unit: Unit| {
        figures.push(row(&format!("{what} for each contact"), with, unit));
        let times = row(&format!("{what} for each contact: times that without them"), with / without, Unit::Times);
        figures.push(times.must(Must::AtMost(MOST)));
    };
    compare("read units", without.read, with.read, Unit::CapacityUnits);
    compare("write units", without.written, with.written, Unit::CapacityUnits);
    compare("time", milliseconds(without.time), milliseconds(with.time), Unit::Milliseconds);
    stack.stop().await;
    Ok(())
}

/// Sends campaigns to all contacts; returns the units, and the time of the fastest.
async fn least(
    stack: &Stack,
    organisation: &Organisation,
    partitions: &Partitions,
    contacts: &[Value],
) -> Result<Taken> {
    let assistant = organisation.post(stack, "/api/v1/assistant", &json!({})).await?;
    let mut least: Option<Taken> = None;
    for _ in 0..CAMPAIGNS {
        let widget = json!({"assistant_id": assistant["id"], "widget_type": "whatsapp"});
        let widget = organisation.post(stack, "/api/v1/widget", &widget).await?;
        let path = format!("/api/v1/campaign/run/{}", widget["id"].as_str().ok_or("no id")?);
        let run = organisation.post(stack, &path, &json!({"contact_ids": contacts, "message": "Hello"})).await?;
        partitions.forget();
        let begun = Instant::now();
        stack.tick("send-campaigns").await?;
        let time = begun.elapsed() / u32::try_from(CONTACTS)?;
        let units = |of: CapacityUnit| {
            let heat = partitions.heat().into_iter().filter(|(partition, _)| partition.unit == of);
            heat.map(|(_, heat)| heat.units).sum::<f64>() / figure(CONTACTS as u64)
        };
        let taken = Taken { read: units(CapacityUnit::Read), written: units(CapacityUnit::Write), time };
        let campaign = run["campaign_id"].as_str().ok_or("no campaign")?;
        let campaign =
            organisation.ask(stack, "GET", &format!("/api/v1/campaign/get/{campaign}"), &Value::Null).await?;
        if campaign["counts"]["queued"] != 0 {
            return Err(format!("not all contacts were dispatched: {}", campaign["counts"]).into());
        }
        least = least.filter(|least| least.time < taken.time).or(Some(taken));
    }
    least.ok_or_else(|| "no campaign was sent".into())
}

/// Suppresses numbers that no contact has.
async fn suppress(organisation: &Organisation) -> Result<()> {
    let (table, now) = (&organisation.table, Clock::System.now());
    let one = |number: usize, id: SuppressionId| Suppression {
        id,
        phone_number: PhoneNumber::new(&format!("+4917{number:08}")),
        email: None,
        channel: SuppressedChannel::All,
        reason: None,
        org_id: organisation.tenant.org(),
        created_at: now,
        updated_at: now,
        version: Version::default(),
    };
    for first in (0..SUPPRESSIONS).step_by(INSERT_LIMIT) {
        let ids: Vec<Uuid> = (first..SUPPRESSIONS.min(first + INSERT_LIMIT)).map(|_| Uuid::now_v7()).collect();
        table.insert_all((), &ids, |place, id| one(first + place, id)).await?;
    }
    Ok(())
}
