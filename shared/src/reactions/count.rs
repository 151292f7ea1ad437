//! Counts changes: the table of metrics says which ones.

use std::collections::BTreeSet;

use uuid::Uuid;

use super::Reacting;
use crate::records::analytics::counters::{self, CountedChange};
use crate::records::analytics::metrics::{METRICS, counted};
use crate::records::delivery::Delivery;
use crate::request::error::Result;
use crate::table::change::Change;
use crate::table::declaration::Declared as _;
use crate::table::keys::Key;
use crate::values::hash::uuid_of;

/// Whether a metric may count `change`.
pub(super) fn is_counted(change: &Change) -> bool {
    !change.is_removal() && METRICS.iter().any(|row| change.record_name() == Some(row.record))
}

/// The names of the records of which all changes may be counted. Of deliveries only the end is.
pub(super) fn records() -> BTreeSet<&'static str> {
    METRICS.iter().map(|row| row.record).filter(|record| *record != Delivery::NAME).collect()
}

/// Counts the changes of an organisation, each once.
pub(super) async fn count(cx: &Reacting<'_>, changes: &[&Change]) -> Result<()> {
    let counted = changes.iter().map(|change| Ok(CountedChange { id: id(change), counts: counted(change)? }));
    let counted: Vec<CountedChange> = counted.collect::<Result<_>>()?;
    Ok(counters::count(&cx.table, &counted, cx.now).await?)
}

/// An id that no other change has.
fn id(change: &Change) -> Uuid {
    let Key { pk, sk } = change.key();
    let parts = ["counted ", &pk, " ", &sk, " ", change.sequence_number()].map(str::as_bytes);
    uuid_of(parts)
}
