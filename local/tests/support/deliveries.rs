//! Writes lists of deliveries to a webhook that has none, for the tests of filters and statistics.

use local::Stack;
use shared::records::delivery::{Attempt, Delivery, DeliveryState, NewDelivery};
use shared::records::event::{EventId, EventKind};
use shared::table::item::{number, to_item};
use shared::table::keys::{list_head, list_row};
use shared::table::reservation::LONG;
use shared::table::stored::Listed as _;
use shared::values::id::{EndpointId, Ids, SPREAD, ordinal};
use shared::values::time::Timestamp;

use crate::support::fixture::{id, kind, put_items, tenant};

/// A delivery to write.
#[derive(Debug, Clone)]
pub struct Made {
    /// When its event happened, in milliseconds since 1970.
    pub at: i64,
    /// How many milliseconds later it was made, and attempted.
    pub late: i64,
    pub event: EventKind,
    pub state: DeliveryState,
    /// How many milliseconds each attempt took.
    pub took: Vec<u64>,
}

/// Acme's first webhook, which has no deliveries in the demo set.
pub fn webhook() -> EndpointId {
    EndpointId(id('a', kind::WEBHOOK, 0).parse().unwrap())
}

/// The path of the webhook, with `rest` behind it.
pub fn path(rest: &str) -> String {
    format!("/api/v1/outbound_webhook/{}{rest}", webhook())
}

fn delivery(made: &Made, place: u64, ids: &Ids) -> Delivery {
    let [at, appended] = [made.at, made.at + made.late].map(Timestamp::from_unix_millis);
    let new = NewDelivery::test(EventId(ids.fresh(at)), at);
    let id = new.id(if place < LONG { place } else { SPREAD + place - LONG });
    let attempt = |milliseconds: &u64| Attempt {
        at: appended,
        status: Some(200),
        milliseconds: *milliseconds,
        error: None,
        answer: Some("thanks".into()),
    };
    let log = made.took.iter().map(attempt).collect();
    Delivery { event: made.event, state: made.state, log, ..Delivery::new(id, new, appended) }
}

/// Writes a list as if its deliveries had been made one after the other. The ones that are `gone` leave holes.
pub async fn write(stack: &Stack, all: &[Made], gone: impl Fn(usize) -> bool) -> Vec<Delivery> {
    let (list, ids) = (Delivery::list(webhook()), Ids::counted());
    let places = all.iter().enumerate().filter(|(place, _)| !gone(*place));
    let rows: Vec<Delivery> = places.map(|(place, made)| delivery(made, place as u64, &ids)).collect();
    let item = |row: &Delivery| to_item(&list_row(&tenant(), &list, ordinal(row.id.0)), row).unwrap();
    let mut head = list_head(&tenant(), &list).attributes();
    let count = all.len() as u64;
    let next = if count > LONG { SPREAD + count - LONG } else { count };
    head.insert("next_ordinal".into(), number(next));
    if count > LONG {
        head.insert("spread_from".into(), number(LONG));
    }
    put_items(stack, rows.iter().map(item).chain([head])).await;
    rows
}
