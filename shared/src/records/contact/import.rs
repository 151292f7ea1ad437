//! The import of contacts: many upserts in one request. Each upsert succeeds or fails by itself.

use super::upsert::{update_found, upsert};
use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt as _;
use futures_util::stream::iter;
use uuid::Uuid;

use super::custom::{CustomFields, CustomValues};
use super::{Contact, ContactFields, Upsert, WantedContact};
use crate::input::each::Each;
use crate::input::{Issues, Location};
use crate::operations::import::{Imported, ImportedAll, issues_of};
use crate::request::context::Context;
use crate::request::error::{Error, Result};
use crate::request::response::Upserted;
use crate::table::error::NotChanged;
use crate::table::store::TRANSACTION_LIMIT;
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, OrgId};

/// The most contacts of one import.
const MOST: usize = 500;
/// The contacts that one transaction inserts: each has a row, an e-mail address and a telephone number.
const AT_ONCE: usize = TRANSACTION_LIMIT / 3;
/// The most such transactions at the same time: if all of them ran at once, a few large imports at the same time would
/// make the table's calls wait for longer than one attempt may take.
const GROUPS: usize = 4;
/// The most contacts that are changed at the same time.
const CHANGES: usize = 32;

crate::input! {
    /// The body of an import.
    pub struct NewContacts {
        /// Contacts to create or to change, each as in `upsert-contact`.
        pub contacts: Each<MOST, ContactFields>,
    }
}

/// The result of the contact at an index.
type Outcome = (usize, Result<Upserted<ContactId>, Issues>);

/// A contact of an import that is to be written.
struct Wanted {
    index: usize,
    contact: WantedContact,
    upsert: Upsert,
}

/// Upserts every contact of `new`. Contacts that need no change are not written, so that a repeat changes nothing.
///
/// # Errors
/// An error of the database: some contacts may have been written. A repeat continues.
pub async fn import(cx: &Context<'_>, new: NewContacts) -> Result<ImportedAll<Contact>> {
    let table = &cx.table;
    let org = cx.tenant.org();
    let mut outcomes: BTreeMap<usize, Result<Upserted<ContactId>, Issues>> = BTreeMap::new();
    let mut waves: Vec<Vec<Wanted>> = Vec::new();
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let values = custom_values(cx, &new.contacts).await?;
    for ((index, contact), values) in new.contacts.0.into_iter().enumerate().zip(values) {
        match contact.and_then(|fields| valid(fields, org, index, values)) {
            Ok(contact) => {
                // Contacts with the same address or number are written one after another.
                let names: Vec<String> = contact.terms().iter().map(|term| format!("{term:?}")).collect();
                let wave = names.iter().filter_map(|name| seen.get(name)).max().map_or(0, |wave| wave + 1);
                seen.extend(names.into_iter().map(|name| (name, wave)));
                waves.resize_with(waves.len().max(wave + 1), Vec::new);
                waves[wave].push(Wanted { index, contact, upsert: Upsert::of(cx) });
            }
            Err(issues) => {
                outcomes.insert(index, Err(issues));
            }
        }
    }
    for wave in waves {
        outcomes.extend(import_wave(table, wave).await?);
    }
    let items = outcomes.into_iter().map(|(index, outcome)| Imported::of(index, outcome));
    Ok(ImportedAll { items: items.collect() })
}

/// The values of the custom fields of each contact. Those of a contact that has issues anyway do not matter.
async fn custom_values(cx: &Context<'_>, new: &Each<MOST, ContactFields>) -> Result<Vec<Result<CustomValues, Issues>>> {
    let read = |fields: &CustomFields| -> Vec<Result<CustomValues, Issues>> {
        let of = |(index, contact): (usize, &Result<ContactFields, Issues>)| match contact {
            Ok(contact) => contact.values(fields, &place_of(index)),
            Err(_) => Ok(CustomValues::default()),
        };
        new.0.iter().enumerate().map(of).collect()
    };
    Ok(CustomFields::check(cx, read, |values| values.iter().all(Result::is_ok)).await?)
}

/// Upserts contacts of which no two have an address or a number in common.
async fn import_wave(table: &Table, wave: Vec<Wanted>) -> Result<Vec<Outcome>> {
    let terms: Vec<_> = wave.iter().map(|wanted| wanted.contact.terms()).collect();
    let of_place: Vec<usize> = terms.iter().enumerate().flat_map(|(at, terms)| vec![at; terms.len()]).collect();
    let mut found: BTreeMap<usize, BTreeSet<Uuid>> = BTreeMap::new();
    for (place, id) in table.holders::<Contact>((), &terms.concat()).await? {
        found.entry(of_place[place]).or_default().insert(id);
    }
    // Upserts of the same contact are done in their order.
    let (mut known, mut groups, mut refused) = (BTreeMap::<_, Vec<_>>::new(), Vec::new(), Vec::new());
    let mut wave: Vec<(usize, Wanted)> = wave.into_iter().enumerate().collect();
    while !wave.is_empty() {
        let rest = wave.split_off(wave.len().min(AT_ONCE));
        let (there, group): (Vec<_>, Vec<_>) = wave.into_iter().partition(|(at, _)| found.contains_key(at));
        for (at, wanted) in there {
            let ids = found.get(&at).cloned().unwrap_or_default();
            known.entry(ids.first().copied()).or_default().push((wanted, ids));
        }
        let mut new: Vec<Wanted> = Vec::new();
        for (_, wanted) in group {
            match wanted.contact.complete() {
                Ok(()) => new.push(wanted),
                Err(issues) => refused.push((wanted.index, Err(issues))),
            }
        }
        groups.push(new);
        wave = rest;
    }
    let groups = groups.into_iter().filter(|group| !group.is_empty()).map(|group| import_group(table, group));
    let known = known.into_values().map(|of_one| import_known(table, of_one));
    let (inserted, changed): (Vec<_>, Vec<_>) = futures_util::join!(
        iter(groups).buffer_unordered(GROUPS).collect(),
        iter(known).buffer_unordered(CHANGES).collect()
    );
    let inserted: Vec<Vec<Outcome>> = inserted.into_iter().collect::<Result<_>>()?;
    let changed: Vec<Vec<Outcome>> = changed.into_iter().collect::<Result<_>>()?;
    Ok(inserted.into_iter().chain(changed).flatten().chain(refused).collect())
}

/// Changes one contact that was found, by one upsert after the other.
async fn import_known(table: &Table, of_one: Vec<(Wanted, BTreeSet<Uuid>)>) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::with_capacity(of_one.len());
    for (wanted, ids) in of_one {
        outcomes.push(import_found(table, wanted, ids).await?);
    }
    Ok(outcomes)
}

/// Changes one contact that was found; it has one of these ids.
async fn import_found(table: &Table, wanted: Wanted, ids: BTreeSet<Uuid>) -> Result<Outcome> {
    if let (Some(id), 1) = (ids.first(), ids.len()) {
        match update_found(table, &wanted.contact, &wanted.upsert, ContactId(*id)).await {
            Ok(upserted) => return Ok(outcome(wanted.index, upserted)),
            Err(NotChanged::Refused(issues)) => return Ok((wanted.index, Err(issues))),
            Err(NotChanged::Failed(TableError::Missing | TableError::Taken { .. })) => {}
            Err(NotChanged::Failed(error)) => return Err(error.into()),
        }
    }
    import_alone(table, wanted).await
}

/// Inserts new contacts in one transaction. If another writer has inserted one of them in the meantime, each is
/// upserted by itself.
async fn import_group(table: &Table, group: Vec<Wanted>) -> Result<Vec<Outcome>> {
    let ids: Vec<Uuid> = group.iter().map(|wanted| wanted.upsert.id()).collect();
    let make = |at: usize, id| group[at].upsert.contact(&group[at].contact, id);
    match table.insert_all::<Contact>((), &ids, make).await {
        Ok(contacts) => {
            let created = |(wanted, contact): (&Wanted, Contact)| (wanted.index, Ok(Upserted::Created(contact.id)));
            Ok(group.iter().zip(contacts).map(created).collect())
        }
        Err(TableError::Taken { .. } | TableError::Missing) => {
            let alone = group.into_iter().map(|wanted| import_alone(table, wanted));
            iter(alone).buffer_unordered(CHANGES).collect::<Vec<_>>().await.into_iter().collect()
        }
        Err(error) => Err(error.into()),
    }
}

/// Upserts a contact by itself.
async fn import_alone(table: &Table, wanted: Wanted) -> Result<Outcome> {
    match upsert(table, &wanted.contact, &wanted.upsert).await {
        Ok(upserted) => Ok(outcome(wanted.index, upserted)),
        Err(Error::Conflict { at, kind, message }) => {
            let field = at.field().unwrap_or_default().to_owned();
            Ok((wanted.index, Err(vec![place_of(wanted.index).name(field).issue(kind, message)])))
        }
        Err(Error::Invalid(issues)) => Ok((wanted.index, Err(issues))),
        Err(error) => Err(error),
    }
}

fn outcome(index: usize, upserted: Upserted<Contact>) -> Outcome {
    let upserted = match upserted {
        Upserted::Created(contact) => Upserted::Created(contact.id),
        Upserted::Updated(contact) => Upserted::Updated(contact.id),
    };
    (index, Ok(upserted))
}

fn place_of(index: usize) -> Location {
    Location::body().name("contacts").index(index)
}

/// The contact at `index`, where it can be found, belongs to `org`, and has these `values`.
fn valid(
    fields: ContactFields,
    org: OrgId,
    index: usize,
    values: Result<CustomValues, Issues>,
) -> Result<WantedContact, Issues> {
    fields.wanted(org, place_of(index), values).map_err(|error| issues_of(error, &place_of(index)))
}
