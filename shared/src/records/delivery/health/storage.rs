//! How the health of endpoints is kept, and which endpoints the tick is to drain.

use aws_sdk_dynamodb::types::AttributeValue;

use super::{EndpointHealth, Observed};
use crate::records::due::Due;
use crate::table::expression::UpdateExpression;
use crate::table::item::{number, text};
use crate::table::single::SingleChange;
use crate::table::transaction::Write;
use crate::table::{Table, TableError};
use crate::values::id::EndpointId;
use crate::values::time::Timestamp;

/// The health of `endpoint`.
///
/// # Errors
/// [`TableError`].
pub async fn of(table: &Table, endpoint: EndpointId) -> Result<EndpointHealth, TableError> {
    Ok(table.find(endpoint).await?.unwrap_or_else(|| EndpointHealth::healthy(endpoint)))
}

/// Adds what was `observed` to the health of an endpoint, which was last read as `seen`, and lets the tick drain the
/// endpoint. Returns the sum of all observations. `read_at` is the time when the observer read the endpoint's address.
///
/// # Errors
/// [`TableError`].
pub async fn keep(
    table: &Table,
    seen: &EndpointHealth,
    observed: &Observed,
    read_at: Timestamp,
    now: Timestamp,
) -> Result<EndpointHealth, TableError> {
    let healthy = EndpointHealth { connector: seen.connector, ..EndpointHealth::healthy(seen.id) };
    let after = |existing: Option<&EndpointHealth>| Some(existing.unwrap_or(&healthy).after(observed, read_at, now));
    match table.change_single(seen.id, Some(seen.clone()), after).await? {
        SingleChange::Made(kept) => Ok(kept),
        SingleChange::NotWanted(existing) => Ok(existing.unwrap_or(healthy)),
    }
}

/// Closes the circuit of an endpoint whose owner says that it works again, or has changed its address. If the endpoint
/// was slow within the hour, the tick still makes the first attempts. The health is written without a read.
pub fn resetting(table: &Table, (endpoint, connector): (EndpointId, bool), now: Timestamp) -> Write {
    let healthy = UpdateExpression::new()
        .set("id", text(endpoint))
        .set("connector", AttributeValue::Bool(connector))
        .set("due_pk", text(Due::Endpoint.partition(endpoint.0)))
        .set_if_absent("due_at", text(now))
        .set("failures", number(0))
        .set("slow", AttributeValue::Bool(false))
        .set("reset_at", text(now))
        .remove("failing_since")
        .add("version", number(1));
    Write::update(table.key::<EndpointHealth>(endpoint), healthy)
}

/// Moves an endpoint to the end of the tick's queue.
///
/// # Errors
/// [`TableError`].
pub async fn drain_later(table: &Table, seen: &EndpointHealth, now: Timestamp) -> Result<(), TableError> {
    let later = |existing: Option<&EndpointHealth>| {
        let due = existing.filter(|existing| existing.due_at.is_some_and(|due| due < now))?;
        Some(EndpointHealth { due_at: Some(now), ..due.clone() })
    };
    table.change_single(seen.id, Some(seen.clone()), later).await.map(drop)
}

/// Lets the tick drain an endpoint once more at `later` and read the list of deliveries itself, unless a delivery was
/// deferred since its health was `seen`.
///
/// # Errors
/// [`TableError`].
pub async fn recheck_at(table: &Table, seen: &EndpointHealth, later: Timestamp) -> Result<(), TableError> {
    let recheck = |existing: Option<&EndpointHealth>| {
        let due = existing.filter(|existing| existing.due_at.is_some() && existing.deferred_at == seen.deferred_at)?;
        (!due.looked).then(|| EndpointHealth { due_at: Some(later), looked: true, ..due.clone() })
    };
    table.change_single(seen.id, Some(seen.clone()), recheck).await.map(drop)
}

/// Removes an endpoint from the tick's queue, unless a delivery was deferred since its health was `seen`. `forget`
/// deletes its health.
///
/// # Errors
/// [`TableError`].
pub async fn stop_draining(table: &Table, seen: &EndpointHealth, forget: bool) -> Result<(), TableError> {
    if forget {
        return table.remove_seen(seen.id, seen).await.map(drop);
    }
    let idle = |existing: Option<&EndpointHealth>| {
        let due = existing.filter(|existing| existing.due_at.is_some() && existing.deferred_at == seen.deferred_at)?;
        Some(EndpointHealth { due_at: None, ..due.clone() })
    };
    table.change_single(seen.id, Some(seen.clone()), idle).await.map(drop)
}
