//! How events are appended to the log of their organisation, and read from it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{DAY, EVENT_DAYS, Event, EventId, EventKind, EventPage, EventQuery};
use crate::input::{Issues, Location};
use crate::records::conversation::Conversation;
use crate::request::error::{Error, Result};
use crate::table::error::Cancelled;
use crate::table::item::{from_item, number, readable};
use crate::table::keys::{Key, TTL};
use crate::table::stored::{Single, Stored};
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// The most events of one page. Its transaction writes each of them, and the page.
const ON_PAGE: usize = 90;
/// The most bytes of the events of one page: a transaction may have 4 MiB.
const PAGE_BYTES: usize = 3 * 1024 * 1024;
/// Days for which a page is kept: longer than its events, so that each event that is found has its page.
const PAGE_DAYS: i64 = 90;
/// The most bytes of the events in one answer.
const ANSWER_BYTES: usize = 4 * 1024 * 1024;
/// Seconds by which the times of pages may be out of order.
const CLOCKS_DIFFER: i64 = 60;
/// Seconds for which a process asks for the last page each time, after another one has written it: a refused transaction
/// costs as much as one that is made.
const SHARED: i64 = 10;
/// The pages that are read at once, and the most of such readings for one request.
const READING: (usize, usize) = (20, 10);

/// A page of the log.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct LogPage {
    /// Its number.
    pub number: u64,
    /// When it was written.
    pub at: Timestamp,
    /// The ids and the kinds of its events, in their order.
    pub events: Vec<(EventId, EventKind)>,
}

impl Stored for LogPage {
    type Id = u64;

    fn key(tenant: &Tenant, number: u64) -> Key {
        Key::of(tenant, "EVENT_LOG", format_args!("{number:012}"))
    }

    fn hide(&self, item: &mut crate::table::item::Item) -> std::result::Result<(), TableError> {
        item.insert(TTL.to_owned(), number(self.at.plus_seconds(PAGE_DAYS * DAY).unix_seconds()));
        Ok(())
    }
}

impl Single for LogPage {}

/// Why a page was not written.
#[derive(Debug, Clone, Copy)]
enum Unappended {
    /// Another page has its number.
    Taken,
    /// One of its events is logged already.
    Logged,
    /// The conversation that the events are about has changed.
    Changed,
}

/// Appends events to the log, in their order, except for those that are there already. Where the conversation
/// `unchanged` is no longer as it was read, appends none and returns false.
///
/// # Errors
/// [`TableError`]: some may have been appended.
pub async fn append(
    table: &Table,
    events: &[Event],
    unchanged: Option<&Conversation>,
    now: Timestamp,
) -> std::result::Result<bool, TableError> {
    let mut page = Vec::new();
    let mut bytes = 0;
    for event in events {
        let length = event.bytes();
        if page.len() == ON_PAGE || (bytes + length > PAGE_BYTES && !page.is_empty()) {
            if !append_page(table, std::mem::take(&mut page), unchanged, now).await? {
                return Ok(false);
            }
            bytes = 0;
        }
        bytes += length;
        page.push(event.clone());
    }
    append_page(table, page, unchanged, now).await
}

async fn append_page(
    table: &Table,
    mut events: Vec<Event>,
    unchanged: Option<&Conversation>,
    now: Timestamp,
) -> std::result::Result<bool, TableError> {
    let mut round = table.store.backoff();
    let (org, recent) = (table.tenant.org(), &table.store.recent);
    let (mut last, mut from) = (recent.last_page(org, now), now);
    while !events.is_empty() {
        let number = match last.take() {
            Some(last) => last + 1,
            None => last_page(table).await?.map_or(0, |last| last + 1),
        };
        let mut transaction = Transaction::new(table).otherwise(Unappended::Logged);
        for (place, event) in (0..).zip(&events) {
            let ttl = now.plus_seconds(EVENT_DAYS * DAY).unix_seconds();
            let event = Event { page: number, place, ttl, ..event.clone() };
            transaction.write(Write::create(table.item(event.id, &event)?));
        }
        let page = LogPage { number, at: now, events: events.iter().map(|event| (event.id, event.event)).collect() };
        transaction.write(Write::create(table.item(number, &page)?)).or(Unappended::Taken);
        if let Some(was) = unchanged {
            let condition = was.version.unchanged(was.id.0);
            transaction.write(Write::check(table.key::<Conversation>(was.id), condition)).or(Unappended::Changed);
        }
        match transaction.commit().await {
            Ok(()) => {
                recent.note_page(org, number, from);
                return Ok(true);
            }
            Err(Cancelled::Condition(Unappended::Changed, _)) => return Ok(false),
            Err(Cancelled::Condition(Unappended::Taken, _)) => {
                from = now.plus_seconds(SHARED);
                round.again("the log of events").await?;
            }
            Err(Cancelled::Condition(Unappended::Logged, _)) => {
                let keys: Vec<Key> = events.iter().map(|event| table.key::<Event>(event.id)).collect();
                let logged = table.store.get_attributes(&keys, "pk, sk").await?;
                events.retain(|event| !logged.contains_key(&table.key::<Event>(event.id)));
            }
            Err(cancelled) => return Err(cancelled.into()),
        }
    }
    Ok(true)
}

/// The number of the last page.
async fn last_page(table: &Table) -> std::result::Result<Option<u64>, TableError> {
    let item = table.store.last(&LogPage::key(&table.tenant, 0).pk, None).await?;
    item.map(|item| from_item::<LogPage>(item).map(|page| page.number)).transpose()
}

/// A part of the log, and how much of it is read.
#[derive(Debug, Clone, Copy)]
pub struct LogStretch {
    /// The last event that is known already.
    pub after: Option<EventId>,
    /// Only what was logged from this time on,
    pub since: Timestamp,
    /// and until this time.
    pub until: Option<Timestamp>,
    /// The most events that are wanted.
    pub most: usize,
}

/// Events that were found in the log.
#[derive(Debug)]
pub struct FoundEvents {
    /// The wanted events, oldest first.
    pub wanted: Vec<(EventId, EventKind)>,
    /// The last event that was looked at; `None` at the end of the stretch.
    pub next: Option<EventId>,
}

/// The wanted events of a stretch of the log. A reading has a bounded length, so it may end before the stretch does.
///
/// # Errors
/// [`TableError::Missing`] where there is no event `after` which to begin, or no longer.
pub async fn find(
    table: &Table,
    stretch: &LogStretch,
    is_wanted: impl Fn(EventKind) -> bool,
    now: Timestamp,
) -> std::result::Result<FoundEvents, TableError> {
    let LogStretch { after, since, until, most } = *stretch;
    let (mut next_page, known) = match after {
        Some(after) => {
            let event = logged(table, after, now).await?;
            (event.page, Some((event.page, event.place)))
        }
        None => (0, None),
    };
    let (mut wanted, mut looked_at) = (Vec::new(), None);
    for _ in 0..READING.1 {
        let pages = pages_from(table, next_page, READING.0).await?;
        let is_late = |page: &LogPage| until.is_some_and(|until| until < page.at);
        let is_end = pages.len() < READING.0 || pages.last().is_some_and(is_late);
        next_page = pages.last().map_or(next_page, |page| page.number + 1);
        if looked_at.is_none() && !is_end && pages.last().is_some_and(|page| page.at < since) {
            next_page = first_since(table, next_page, since).await?;
        }
        let within = pages.iter().filter(|page| since <= page.at && !is_late(page));
        let places = within.flat_map(|page| {
            (0u64..).zip(&page.events).map(move |(place, (id, kind))| ((page.number, place), *id, *kind))
        });
        for (_, id, kind) in places.filter(|(place, ..)| known.is_none_or(|known| known < *place)) {
            if wanted.len() == most {
                return Ok(FoundEvents { wanted, next: looked_at });
            }
            looked_at = Some(id);
            if is_wanted(kind) {
                wanted.push((id, kind));
            }
        }
        if is_end || wanted.len() == most {
            return Ok(FoundEvents { wanted, next: looked_at.filter(|_| !is_end) });
        }
    }
    Ok(FoundEvents { wanted, next: looked_at })
}

/// Pages in their order, from the one with this number on.
async fn pages_from(table: &Table, number: u64, most: usize) -> std::result::Result<Vec<LogPage>, TableError> {
    let from = LogPage::key(&table.tenant, number);
    Ok(table.store.query_records::<LogPage>(&from.pk, (&from.sk, None), Some(most)).await?.records)
}

/// The number of the first page, from `low` on, that was written at `since` or later. The clocks of processes differ by seconds, so a
/// page or two of the same seconds may come before it.
async fn first_since(table: &Table, mut low: u64, since: Timestamp) -> std::result::Result<u64, TableError> {
    let since = since.plus_seconds(-CLOCKS_DIFFER);
    let mut high = last_page(table).await?.map_or(0, |last| last + 1);
    while low < high {
        let middle = low + (high - low) / 2;
        // Pages that have expired are missing: the next one shows that.
        match pages_from(table, middle, 1).await?.first() {
            Some(page) if page.at < since => low = page.number + 1,
            _ => high = middle,
        }
    }
    Ok(low)
}

/// A page of the events after the one that `query` names, oldest first.
///
/// # Errors
/// [`Error::Invalid`] where there is no such event, or no longer.
pub async fn list(table: &Table, query: &EventQuery, now: Timestamp) -> Result<EventPage> {
    let size = query.cursor.size.get().unsigned_abs();
    let stretch = LogStretch {
        after: query.cursor.after,
        since: now.plus_seconds(1 - EVENT_DAYS * DAY),
        until: None,
        most: usize::try_from(size).unwrap_or(usize::MAX),
    };
    let is_wanted = |kind| query.kind.as_ref().is_none_or(|pattern| pattern.includes(kind));
    let found = find(table, &stretch, is_wanted, now).await;
    let FoundEvents { wanted, next } = found.map_err(|error| unknown_after(error, &Location::query()))?;
    let wanted: Vec<EventId> = wanted.into_iter().map(|(id, _)| id).collect();
    let items = read(table, &wanted).await?;
    let (mut bytes, mut fitting) = (0, Vec::new());
    let count = items.len();
    for event in items {
        bytes += event.bytes();
        if bytes > ANSWER_BYTES && !fitting.is_empty() {
            break;
        }
        fitting.push(event);
    }
    let cut = fitting.last().filter(|_| fitting.len() < count).map(|event| event.id);
    let next = cut.or(next);
    Ok(EventPage { items: fitting, size, next })
}

/// An event of the log.
///
/// # Errors
/// [`TableError::Missing`] where there is none, or no longer.
pub async fn logged(table: &Table, id: EventId, now: Timestamp) -> std::result::Result<Event, TableError> {
    let event = table.find::<Event>(id).await?;
    event.filter(|event| now.unix_seconds() < event.ttl).ok_or(TableError::Missing)
}

/// The events with these ids, in this order.
///
/// # Errors
/// [`TableError`].
pub async fn read(table: &Table, ids: &[EventId]) -> std::result::Result<Vec<Event>, TableError> {
    let keys: Vec<Key> = ids.iter().map(|id| table.key::<Event>(*id)).collect();
    let events: Vec<Event> = readable(table.store.get_all(&keys).await?);
    let mut by_id: BTreeMap<EventId, Event> = events.into_iter().map(|event| (event.id, event)).collect();
    Ok(ids.iter().filter_map(|id| by_id.remove(id)).collect())
}

/// The failure where a request names an event `after` which to begin that is not in the log.
pub fn unknown_after(error: TableError, at: &Location) -> Error {
    let TableError::Missing = error else { return error.into() };
    Error::Invalid(Issues::from([at.name("after").issue("not_found", "Not found")]))
}
