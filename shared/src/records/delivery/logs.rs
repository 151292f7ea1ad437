//! The list of the deliveries to a webhook: any page of all, or the ones that match filters.
//!
//! A delivery changes its state several times within seconds, and few people ever ask for its state. So no sets are kept
//! for these filters: a request reads rows ([`stretch`](crate::table::stretch)), and its answer says where to go on.

use serde::Serialize;

use crate::input::schema::{Schema, Value, extended};
use crate::input::{Input, Issues, Source, member};
use crate::records::delivery::{Delivery, DeliveryState, EventKind};
use crate::records::webhook::Webhook;
use crate::request::response::Reply;
use crate::table::dates::Dates;
use crate::table::page::{Page, PageQuery};
use crate::table::stretch::Appended;
use crate::table::{Table, TableError};
use crate::values::id::{DeliveryId, WebhookId, ordinal};
use crate::values::time::Timestamp;

/// The most deliveries that a request with filters looks at: the most read units are about ten times those of the
/// largest page without filters.
const LOOKED_AT: usize = 1_000;

/// The query for a page of deliveries.
#[derive(Debug)]
pub struct DeliveryQuery {
    page: PageQuery,
    state: Option<DeliveryState>,
    event: Option<EventKind>,
    dates: Dates,
    after: Option<DeliveryId>,
}

impl Input for DeliveryQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let page = PageQuery::read(source, issues);
        let state = source.optional("state", issues, || None);
        let event = source.optional("event", issues, || None);
        let dates = Dates::read(source, issues);
        let after = source.optional("after", issues, || None);
        Some(Self { page: page?, state: state?, event: event?, dates: dates?, after: after? })
    }

    fn schema() -> Value {
        let own = [
            member::<DeliveryState>("state", false, "Only deliveries in this state."),
            member::<EventKind>("event", false, "Only deliveries of this event."),
            member::<DeliveryId>(
                "after",
                false,
                "Only deliveries after this one, in the order of the query: the `next` of the answer before.",
            ),
        ];
        extended(PageQuery::schema(), own.into_iter().chain(Dates::members()).collect())
    }
}

impl DeliveryQuery {
    const fn has_filters(&self) -> bool {
        let Self { page: _, state, event, dates, after } = self;
        state.is_some() || event.is_some() || !dates.are_unbounded() || after.is_some()
    }

    fn matches(&self, delivery: &Delivery) -> bool {
        self.state.is_none_or(|state| delivery.state == state)
            && self.event.is_none_or(|event| delivery.event == event)
            && self.dates.contain(delivery.created_at)
    }
}

/// A page of deliveries.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum DeliveryPage {
    /// A page of all deliveries.
    OfAll(Page<Delivery>),
    /// A page of the ones that match filters.
    Filtered {
        /// The page.
        #[serde(flatten)]
        page: Page<Delivery>,
        /// The value of `after` for the deliveries after this page.
        next: Option<DeliveryId>,
    },
}

impl Schema for DeliveryPage {
    fn schema() -> Value {
        let next = "Only with filters: the value of `after` for the deliveries after this page. Null if there are no more. `total` and `pages` count \
                    the matching ones of the 1,000 deliveries from `after` on.";
        extended(Page::<Delivery>::schema(), vec![member::<Option<DeliveryId>>("next", false, next)])
    }
}

impl Reply for DeliveryPage {
    type Data = Self;

    fn message(&self) -> &'static str {
        match self {
            Self::OfAll(page) | Self::Filtered { page, .. } => page.message(),
        }
    }

    fn data(&self) -> &Self {
        self
    }
}

impl Appended for Delivery {
    fn time(&self) -> Timestamp {
        self.created_at
    }

    fn appended_by(&self) -> Timestamp {
        // The log may have lost its first attempts, but each one came after the delivery was made.
        self.log.first().map_or(self.updated_at, |attempt| attempt.at.min(self.updated_at))
    }
}

/// A page of the deliveries to a webhook.
///
/// # Errors
/// [`TableError::Missing`] where there is no such webhook.
pub async fn of_webhook(table: &Table, id: WebhookId, query: &DeliveryQuery) -> Result<DeliveryPage, TableError> {
    let page = async {
        if query.has_filters() {
            return filtered(table, id, query).await;
        }
        Ok(DeliveryPage::OfAll(table.page(id.into(), &query.page).await?))
    };
    // Not `try_join!`: the cost must not depend on whether the webhook exists.
    let (webhook, page) = futures_util::join!(table.get::<Webhook>(id), Box::pin(page));
    webhook.and(page)
}

async fn filtered(table: &Table, id: WebhookId, query: &DeliveryQuery) -> Result<DeliveryPage, TableError> {
    let DeliveryQuery { page, dates, .. } = *query;
    let after = query.after.map(|after| ordinal(after.0));
    let mut stretch = table.stretch::<Delivery>(id.into(), (dates, page.order), after).await?;
    let rows: Vec<Delivery> = table.next_rows(&mut stretch, LOOKED_AT).await?;
    let last = rows.last().map(|row| row.id).filter(|_| !stretch.is_read());
    let matching: Vec<Delivery> = rows.into_iter().filter(|row| query.matches(row)).collect();
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let (total, before) = (matching.len(), count(page.offset()));
    let items: Vec<Delivery> = matching.into_iter().skip(before).take(count(page.size())).collect();
    let is_last_page = before.saturating_add(items.len()) >= total;
    let next = if is_last_page { last } else { items.last().map(|item| item.id) };
    Ok(DeliveryPage::Filtered { page: page.of(items, total as u64), next })
}
