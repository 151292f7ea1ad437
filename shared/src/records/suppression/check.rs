//! Whether a telephone number or an e-mail address may be contacted, in a way that no later write can make untrue.
//!
//! A single message or call reads the pointer of its number, and its transaction requires that the pointer is as it was.
//! A campaign has many numbers, so it would need many conditions. Instead each suppression writes a new mark into the
//! *guard* before the request is answered. A dispatch reads the guard first and the pointers after it, and its
//! transaction requires that the guard is as it was:
//!
//! 1. A suppression whose mark the dispatch has read was written before that, so the dispatch has read it too.
//! 2. If the mark was written after the dispatch read the guard, and before its transaction, the condition fails.
//! 3. Otherwise the suppression is answered after the dispatch.
//!
//! A campaign's transaction checks one item of the guard, and those of other campaigns would wait for it. So the guard is
//! in several items: a suppression writes all of them, and a campaign checks one.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;
use uuid::Uuid;

use super::{SuppressedChannel, Suppression, points};
use crate::input::Location;
use crate::records::contact_point::{Email, PhoneNumber};
use crate::request::error::{Error, Result};
use crate::table::expression::Condition;
use crate::table::filters::Term;
use crate::table::item::{Item, text};
use crate::table::keys::Key;
use crate::table::transaction::Write;
use crate::table::version::Versioned as _;
use crate::table::{Table, TableError};
use crate::values::id::SuppressionId;
use crate::values::tenant::Tenant;

/// The items of the guard.
const SHARDS: u128 = 4;
/// The attribute with the mark.
const MARK: &str = "mark";

fn guard(tenant: &Tenant, shard: u128) -> Key {
    Key::of(tenant, "SUPPRESSION_GUARD", format_args!("{shard:02}"))
}

/// Makes suppressions that were written hold for all dispatches from now on.
///
/// # Errors
/// [`TableError`]: then the suppressions may not hold yet, and the request must not be answered.
pub async fn announce(table: &Table) -> Result<(), TableError> {
    let mark = Uuid::from_u128(fastrand::u128(..));
    let marked = |shard| {
        let mut item = guard(&table.tenant, shard).attributes();
        item.insert(MARK.to_owned(), text(mark));
        item
    };
    table.store.put_batch((0..SHARDS).map(marked).collect()).await
}

/// The guard as it was read.
#[derive(Debug, Clone)]
pub struct ReadGuard {
    key: Key,
    item: Option<Item>,
}

/// Reads the guard for what has the id `of`, such as a campaign.
///
/// # Errors
/// [`TableError`].
pub async fn read_guard(table: &Table, of: Uuid) -> Result<ReadGuard, TableError> {
    let key = guard(&table.tenant, of.as_u128() % SHARDS);
    let item = table.store.get(&key).await?;
    Ok(ReadGuard { key, item })
}

impl ReadGuard {
    /// Requires that no suppression was made since.
    pub fn unchanged(&self) -> Write {
        let mark = self.item.as_ref().and_then(|item| item.get(MARK));
        let condition =
            mark.map_or_else(Condition::absent, |mark| Condition::of("mark = :mark", [(":mark", mark.clone())]));
        Write::check(self.key.clone(), condition)
    }
}

/// The telephone number and the e-mail address of a contact.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Points {
    /// The telephone number.
    pub phone_number: Option<PhoneNumber>,
    /// The e-mail address.
    pub email: Option<Email>,
}

impl Points {
    /// The attributes of a contact that have them, with its key and its id.
    pub(crate) const ATTRIBUTES: &str = "pk, sk, id, phone_number, email";
}

/// The places of the people who must not be contacted, of those that were asked for.
///
/// # Errors
/// [`TableError`].
pub async fn suppressed(
    table: &Table,
    people: &[Points],
    channel: SuppressedChannel,
) -> Result<BTreeSet<usize>, TableError> {
    let (mut terms, mut of): (Vec<Term>, Vec<usize>) = (Vec::new(), Vec::new());
    for (place, one) in people.iter().enumerate() {
        let own = points(one.phone_number.as_ref(), one.email.as_ref());
        of.extend(own.iter().map(|_| place));
        terms.extend(own);
    }
    let held = table.holders::<Suppression>((), &terms).await?;
    if held.is_empty() {
        return Ok(BTreeSet::new());
    }
    let ids: BTreeSet<SuppressionId> = held.iter().map(|(_, id)| SuppressionId(*id)).collect();
    let found = table.get_each::<Suppression>(&ids).await?;
    let channels: BTreeMap<Uuid, SuppressedChannel> = found.iter().map(|one| (one.id.0, one.channel)).collect();
    let covers = |id: &Uuid| channels.get(id).is_some_and(|found| found.covers(channel));
    Ok(held.iter().filter(|(_, id)| covers(id)).filter_map(|(term, _)| of.get(*term).copied()).collect())
}

/// Requires that a telephone number may be contacted, and returns the condition that it still may.
///
/// # Errors
/// [`Error::Conflict`] where it is suppressed.
pub async fn require_free(table: &Table, number: &PhoneNumber, channel: SuppressedChannel) -> Result<Write> {
    let Some(term) = Term::of("phone_number", number) else { return Err(Error::Internal("no number".into())) };
    let held = table.holders::<Suppression>((), std::slice::from_ref(&term)).await?;
    let id = held.first().map(|(_, id)| SuppressionId(*id));
    let found = match id {
        Some(id) => table.find::<Suppression>(id).await?,
        None => None,
    };
    match found {
        // One that was removed after its pointer was read has no pointer any more either.
        None => Ok(table.require_unheld::<Suppression>((), &term)),
        Some(found) if found.channel.covers(channel) => Err(Error::Conflict {
            at: Location::body().name("to"),
            kind: "suppressed",
            message: "The telephone number is suppressed",
        }),
        Some(found) => {
            let unchanged = found.version().unchanged(found.id.0);
            Ok(Write::check(table.key::<Suppression>(found.id), unchanged))
        }
    }
}
