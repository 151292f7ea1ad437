//! The import of suppressions: many of them in one request. Each succeeds or fails by itself.

use std::collections::BTreeMap;

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use uuid::Uuid;

use super::{NewSuppression, Suppression, WantedSuppression, announce, suppress};
use crate::input::each::Each;
use crate::input::{Issues, Location};
use crate::operations::import::{Imported, ImportedAll, issues_of};
use crate::request::context::Context;
use crate::request::error::Result;
use crate::request::response::Upserted;
use crate::table::rows::INSERT_LIMIT;
use crate::table::{Table, TableError};
use crate::values::id::SuppressionId;

/// The transactions with new suppressions that are under way at the same time.
const GROUPS: usize = 4;
/// The most suppressions that are changed at the same time.
const CHANGES: usize = 32;

crate::input! {
    /// The body of an import of suppressions.
    pub struct NewSuppressions {
        /// What is to be suppressed, each as in `create-suppression`.
        pub suppressions: Each<500, NewSuppression>,
    }
}

/// The suppressions of an import that have the same number or address, with their places: they become one.
struct Together {
    places: Vec<usize>,
    wanted: WantedSuppression,
}

/// The result for suppressions that became one.
type Done = (Vec<usize>, Upserted<SuppressionId>);

/// Makes every suppression of `new`. Those that need no change are not written, so that a repeat changes nothing.
///
/// # Errors
/// An error of the database: some suppressions may have been written. A repeat continues.
pub async fn import(cx: &Context<'_>, new: NewSuppressions) -> Result<ImportedAll<Suppression>> {
    let mut items: BTreeMap<usize, Result<Upserted<SuppressionId>, Issues>> = BTreeMap::new();
    let mut all: Vec<Together> = Vec::new();
    let mut known: BTreeMap<String, usize> = BTreeMap::new();
    for (place, one) in new.suppressions.0.into_iter().enumerate() {
        match one.and_then(|one| valid(cx, one, place)) {
            Ok(one) => {
                let name = format!("{:?}", one.terms());
                if let Some(first) = known.get(&name).and_then(|first| all.get_mut(*first)) {
                    first.wanted.new.add(&one);
                    first.places.push(place);
                } else {
                    known.insert(name, all.len());
                    all.push(Together { places: vec![place], wanted: WantedSuppression::new(cx, one) });
                }
            }
            Err(issues) => {
                items.insert(place, Err(issues));
            }
        }
    }
    for (places, done) in suppress_all(&cx.table, all).await? {
        let (Upserted::Created(id) | Upserted::Updated(id)) = done;
        for (nth, place) in places.into_iter().enumerate() {
            let is_new = nth == 0 && matches!(done, Upserted::Created(_));
            items.insert(place, Ok(if is_new { Upserted::Created(id) } else { Upserted::Updated(id) }));
        }
    }
    announce(&cx.table).await?;
    let items = items.into_iter().map(|(place, result)| Imported::of(place, result));
    Ok(ImportedAll { items: items.collect() })
}

/// Makes suppressions of which no two have the same number or address.
async fn suppress_all(table: &Table, all: Vec<Together>) -> Result<Vec<Done>> {
    let terms: Vec<_> = all.iter().flat_map(|one| one.wanted.new.terms()).collect();
    // Each has one value, so the places of the values are those of the suppressions.
    let found = table.holders::<Suppression>((), &terms).await?;
    let found: BTreeMap<usize, SuppressionId> =
        found.into_iter().map(|(place, id)| (place, SuppressionId(id))).collect();
    let (mut existing, mut new) = (Vec::new(), Vec::new());
    for (place, one) in all.into_iter().enumerate() {
        match found.get(&place) {
            Some(id) => existing.push(suppress_alone(table, one, Some(*id))),
            None => new.push(one),
        }
    }
    let mut groups = Vec::new();
    while !new.is_empty() {
        let rest = new.split_off(new.len().min(INSERT_LIMIT));
        groups.push(insert_group(table, new));
        new = rest;
    }
    let (inserted, changed): (Vec<_>, Vec<_>) = futures_util::join!(
        iter(groups).buffer_unordered(GROUPS).collect(),
        iter(existing).buffer_unordered(CHANGES).collect()
    );
    let inserted: Vec<Vec<Done>> = inserted.into_iter().collect::<Result<_>>()?;
    let changed: Vec<Done> = changed.into_iter().collect::<Result<_>>()?;
    Ok(inserted.into_iter().flatten().chain(changed).collect())
}

/// Inserts new suppressions in one transaction. If another writer has inserted one of them in the meantime, each is made
/// by itself.
async fn insert_group(table: &Table, group: Vec<Together>) -> Result<Vec<Done>> {
    let ids: Vec<Uuid> = group.iter().map(|one| one.wanted.id).collect();
    match table.insert_all::<Suppression>((), &ids, |at, id| group[at].wanted.suppression(id)).await {
        Ok(rows) => Ok(group.into_iter().zip(rows).map(|(one, row)| (one.places, Upserted::Created(row.id))).collect()),
        Err(TableError::Taken { .. } | TableError::Missing) => {
            let alone = group.into_iter().map(|one| suppress_alone(table, one, None));
            iter(alone).buffer_unordered(CHANGES).collect::<Vec<_>>().await.into_iter().collect()
        }
        Err(error) => Err(error.into()),
    }
}

async fn suppress_alone(table: &Table, one: Together, known: Option<SuppressionId>) -> Result<Done> {
    let done = match suppress(table, &one.wanted, known).await? {
        Upserted::Created(row) => Upserted::Created(row.id),
        Upserted::Updated(row) => Upserted::Updated(row.id),
    };
    Ok((one.places, done))
}

/// The suppression at `place`, where it is one and belongs to the caller's organisation.
fn valid(cx: &Context<'_>, new: NewSuppression, place: usize) -> Result<NewSuppression, Issues> {
    let at = Location::body().name("suppressions").index(place);
    new.check(cx.tenant.org(), &at).map_err(|error| issues_of(error, &at))?;
    Ok(new)
}
