//! The import of contacts: many upserts in one request, of which each succeeds or fails by itself.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::StreamExt as _;
use futures_util::future::join_all;
use futures_util::stream::iter;
use serde::Serialize;
use uuid::Uuid;

use super::{Contact, ContactFields, Upsert};
use crate::request::context::Context;
use crate::request::error::{Error, Issue, Issues, Location, Result};
use crate::request::input::{Input as _, Parse, Raw, Source, bounded_list, member};
use crate::request::response::Upserted;
use crate::table::store::TRANSACTION_LIMIT;
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, OrgId};
use crate::values::schema::{Schema, Value, object, titled};

/// The most contacts of one import.
const MOST: usize = 500;
/// The contacts that one transaction inserts: each has a row, an e-mail address and a telephone number.
const AT_ONCE: usize = TRANSACTION_LIMIT / 3;
/// The most contacts that are changed at the same time.
const CHANGES: usize = 32;

/// The contacts of an import: each one, or what is wrong with it.
#[derive(Debug)]
pub struct Import(Vec<Result<ContactFields, Issues>>);

crate::input! {
    /// The body of an import.
    pub struct NewContacts {
        /// The contacts, each as in an upsert.
        pub contacts: Import,
    }
}

impl Parse for Import {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let items: Vec<Item> = bounded_list(raw, at, issues, (1, MOST))?;
        Some(Self(items.into_iter().map(|item| item.0).collect()))
    }
}

impl Schema for Import {
    fn schema() -> Value {
        serde_json::json!({"type": "array", "items": ContactFields::schema(), "minItems": 1, "maxItems": MOST})
    }
}

/// One contact of an import. What is wrong with it fails this one alone.
struct Item(Result<ContactFields, Issues>);

impl Parse for Item {
    fn parse(raw: Raw<'_>, at: &Location, _: &mut Issues) -> Option<Self> {
        let mut own = Issues::new();
        let fields = match Source::object(raw, at) {
            Ok(source) => ContactFields::read(&source, &mut own),
            Err(issue) => {
                own.push(issue);
                None
            }
        };
        Some(Self(fields.filter(|_| own.is_empty()).ok_or(own)))
    }
}

crate::choice! {
    /// What an import did with a contact.
    pub enum ImportOutcome {
        /// It is new.
        Created = "created",
        /// It existed, and has what was sent.
        Updated = "updated",
        /// Nothing was done; the issues tell why.
        Failed = "failed",
    }
}

/// What an import did with one contact.
#[derive(Debug, Serialize)]
pub struct ImportedContact {
    /// Its place in the request, from 0.
    pub index: u64,
    /// Its identifier; null where it failed.
    pub id: Option<ContactId>,
    /// What was done.
    pub outcome: ImportOutcome,
    /// What is wrong with it.
    pub issues: Issues,
}

/// What an import did.
#[derive(Debug, Serialize)]
pub struct ImportedContacts {
    /// One for each contact, in their order.
    pub items: Vec<ImportedContact>,
}

impl Schema for ImportedContact {
    fn schema() -> Value {
        let members = vec![
            member::<u64>("index", true, "Its place in the request, from 0."),
            member::<Option<ContactId>>("id", true, "Its identifier; null where it failed."),
            member::<ImportOutcome>("outcome", true, "What was done."),
            member::<Vec<Issue>>("issues", true, "What is wrong with it."),
        ];
        titled(object(members), "ImportedContact")
    }
}

impl Schema for ImportedContacts {
    fn schema() -> Value {
        let items = member::<Vec<ImportedContact>>("items", true, "One for each contact, in their order.");
        titled(object(vec![items]), "ImportedContacts")
    }
}

/// A contact of an import that is to be written.
struct Wanted {
    index: usize,
    fields: ContactFields,
    upsert: Upsert,
}

impl Table {
    /// Upserts every contact of `new`. Those that need no change are not written, so that a repeat changes nothing.
    ///
    /// # Errors
    /// An error of the database: some contacts may have been written. A repeat continues.
    pub async fn import_contacts(&self, new: NewContacts, cx: &Context<'_>) -> Result<ImportedContacts> {
        let org = cx.caller.tenant.org();
        let mut outcomes: BTreeMap<usize, Result<Upserted<ContactId>, Issues>> = BTreeMap::new();
        let mut waves: Vec<Vec<Wanted>> = Vec::new();
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, contact) in new.contacts.0.into_iter().enumerate() {
            match contact.and_then(|fields| valid(fields, org, index)) {
                Ok(fields) => {
                    // Contacts with the same address or number are written one after another.
                    let names: Vec<String> = fields.terms().iter().map(|term| format!("{term:?}")).collect();
                    let wave = names.iter().filter_map(|name| seen.get(name)).max().map_or(0, |wave| wave + 1);
                    seen.extend(names.into_iter().map(|name| (name, wave)));
                    waves.resize_with(waves.len().max(wave + 1), Vec::new);
                    waves[wave].push(Wanted { index, fields, upsert: Upsert::of(cx) });
                }
                Err(issues) => {
                    outcomes.insert(index, Err(issues));
                }
            }
        }
        for wave in waves {
            outcomes.extend(self.import_wave(wave).await?);
        }
        let items = outcomes.into_iter().map(|(index, outcome)| ImportedContact::of(index, outcome));
        Ok(ImportedContacts { items: items.collect() })
    }

    /// Upserts contacts of which no two have an address or a number in common.
    async fn import_wave(&self, wave: Vec<Wanted>) -> Result<Vec<(usize, Result<Upserted<ContactId>, Issues>)>> {
        let terms: Vec<_> = wave.iter().map(|wanted| wanted.fields.terms()).collect();
        let of_place: Vec<usize> = terms.iter().enumerate().flat_map(|(at, terms)| vec![at; terms.len()]).collect();
        let found = self.holders::<Contact>((), &terms.concat()).await?;
        let known: BTreeSet<usize> = found.iter().map(|(place, _)| of_place[*place]).collect();
        let (known, unknown): (Vec<_>, Vec<_>) = wave.into_iter().enumerate().partition(|(at, _)| known.contains(at));
        let mut single: Vec<Wanted> = known.into_iter().map(|(_, wanted)| wanted).collect();
        let mut outcomes = Vec::new();
        let mut unknown: Vec<Wanted> = unknown.into_iter().map(|(_, wanted)| wanted).collect();
        let mut groups = Vec::new();
        while !unknown.is_empty() {
            groups.push(unknown.split_off(unknown.len().saturating_sub(AT_ONCE)));
        }
        for (group, inserted) in join_all(groups.into_iter().map(|group| self.insert_group(group))).await {
            match inserted {
                Ok(contacts) => {
                    let created = |(wanted, id): (Wanted, ContactId)| (wanted.index, Ok(Upserted::Created(id)));
                    outcomes.extend(group.into_iter().zip(contacts).map(created));
                }
                // Another writer has one of them by now: each is looked at by itself.
                Err(TableError::Taken { .. } | TableError::Missing) => single.extend(group),
                Err(error) => return Err(error.into()),
            }
        }
        let upserts = single.into_iter().map(|wanted| async move {
            let upserted = self.upsert_contact(&wanted.fields, &wanted.upsert).await;
            (wanted.index, upserted)
        });
        let upserted: Vec<_> = iter(upserts).buffer_unordered(CHANGES).collect().await;
        for (index, upserted) in upserted {
            let outcome = match upserted {
                Ok(Upserted::Created(contact)) => Ok(Upserted::Created(contact.id)),
                Ok(Upserted::Updated(contact)) => Ok(Upserted::Updated(contact.id)),
                Err(Error::Conflict { at, kind, message }) => {
                    let field = at.field().unwrap_or_default().to_owned();
                    Err(vec![place_of(index).name(field).issue(kind, message)])
                }
                Err(error) => return Err(error),
            };
            outcomes.push((index, outcome));
        }
        Ok(outcomes)
    }

    /// Inserts contacts that nobody has yet, all or none.
    async fn insert_group(&self, group: Vec<Wanted>) -> (Vec<Wanted>, Result<Vec<ContactId>, TableError>) {
        let ids: Vec<Uuid> = group.iter().map(|wanted| wanted.upsert.id()).collect();
        let make = |at: usize, id| group[at].upsert.contact(&group[at].fields, id);
        let inserted = self.insert_all::<Contact>((), &ids, make).await;
        let inserted = inserted.map(|contacts| contacts.into_iter().map(|contact| contact.id).collect());
        (group, inserted)
    }
}

impl ImportedContact {
    fn of(index: usize, outcome: Result<Upserted<ContactId>, Issues>) -> Self {
        let (id, outcome, issues) = match outcome {
            Ok(Upserted::Created(id)) => (Some(id), ImportOutcome::Created, Issues::new()),
            Ok(Upserted::Updated(id)) => (Some(id), ImportOutcome::Updated, Issues::new()),
            Err(issues) => (None, ImportOutcome::Failed, issues),
        };
        Self { index: index as u64, id, outcome, issues }
    }
}

fn place_of(index: usize) -> Location {
    Location::body().name("contacts").index(index)
}

/// The contact at `index`, where it can be found and belongs to `org`.
fn valid(fields: ContactFields, org: OrgId, index: usize) -> Result<ContactFields, Issues> {
    match fields.check(org, &place_of(index)) {
        Ok(()) => Ok(fields),
        Err(Error::Invalid(issues)) => Err(issues),
        Err(Error::Forbidden(at, message)) => Err(vec![at.issue("forbidden", message)]),
        Err(other) => Err(vec![place_of(index).issue("value_error", other.to_string())]),
    }
}
