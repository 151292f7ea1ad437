//! The console of `cargo local`, at the root of its port: the activity of the service as it happens, and buttons for
//! the actions of its users.
//!
//! It calls the API as any caller would, with the keys of the demo set. Information that no operation returns, such as
//! the calls of a request, comes from the records of `cargo local` itself.

mod campaigns;
mod cells;
mod conversations;
mod counts;
mod deliveries;
mod described;
mod events;
mod fields;
mod forms;
mod icons;
mod keys;
mod layout;
mod markup;
mod pages;
mod payments;
mod record;
mod records;
mod request;
mod requests;
mod samples;
mod start;
mod table;
mod time;

pub use layout::Totals;
pub use pages::{ConsolePage, PAGES, PageScope};
pub use samples::Samples;
pub use time::Skips;

use std::convert::Infallible;
use std::sync::Arc;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::operation::scan::builders::ScanFluentBuilder;
use axum::Router;
use axum::extract::{Query, Request, State};
use axum::http::HeaderValue;
use axum::middleware::{self, Next};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{Html, Response};
use axum::routing::{get, post};
use futures_util::stream::{self, Stream};
use maud::Markup;
use serde::Deserialize;
use shared::table::store::Store;
use shared::values::time::Clock;
use tokio::sync::OnceCell;

use crate::api::{Api, OrganisationWithKey};
use crate::console::layout::Head;
use crate::database::TABLE_NAME;
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::payment_provider::ProviderStandIn;
use crate::schedule::Schedules;

/// The most rows of a section.
const ROWS: u64 = 100;

/// What a page of an organisation says where there is none.
const NO_ORGANISATION: &str = "There is no organisation whose key is known: the demo set was not loaded.";

/// The permissions of a page: it has its own script and style, and calls only this server. Its filters are forms that
/// need no script.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

/// The console.
pub struct Console {
    /// The address of the API.
    pub url: String,
    /// The API.
    pub api: Api,
    /// The requests.
    pub journal: Arc<Journal>,
    /// The events.
    pub inbox: Arc<Inbox>,
    /// The table, for its own calls.
    pub store: Store,
    /// The SDK, without faults.
    pub client: Client,
    /// The stand-in for the payment provider.
    pub payment_provider: ProviderStandIn,
    /// The time.
    pub clock: Clock,
    /// The functions that have a schedule.
    pub schedules: Arc<Schedules>,
    /// The time that was skipped.
    pub skips: Skips,
    /// The campaigns as they were.
    pub samples: Samples,
    /// Whether a user watches, so that samples of the campaigns are taken.
    pub watched: bool,
    /// The counts in the side bar.
    pub totals: Totals,
    /// Set when the names of the records were read.
    pub names_are_known: OnceCell<()>,
}

/// The query of a page.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Asked {
    /// The name of the organisation; without one, the first organisation is used.
    org: Option<String>,
    /// The conversation that is open.
    conversation: Option<String>,
    /// The partition of the table whose items are shown.
    partition: Option<String>,
    /// The sort key after which the items begin.
    after: Option<String>,
    /// The record whose items are shown.
    record: Option<String>,
    /// Whether the page of a form stays where it is.
    stay: Option<String>,
    /// The view of the table.
    view: Option<String>,
    /// The campaign that is shown.
    campaign: Option<String>,
    /// The first digit of the statuses of requests.
    status: Option<String>,
    /// The operation of requests.
    operation: Option<String>,
    /// Words that requests have.
    search: Option<String>,
}

/// The content of a page, or the reason why it has none.
type Shown = Result<Markup, String>;

impl Console {
    /// The routes at `/` and under `/console`.
    pub fn router(self) -> Router {
        let file = |kind: &'static str, text: &'static str| get(async move || ([("content-type", kind)], text));
        let style = concat!(include_str!("console/console.css"), include_str!("console/records.css"));
        let mut router = Router::new();
        for page in &PAGES {
            let answer = async move |State(console): State<Arc<Self>>, Query(asked): Query<Asked>| {
                console.page(page, &asked).await
            };
            router = router.route(page.path, get(answer));
        }
        let console = Arc::new(self);
        if console.watched {
            tokio::spawn(samples::follow(Arc::downgrade(&console), console.journal.changes()));
        }
        router
            .route("/console/records/{record}", get(records::page))
            .route("/console/records/{record}/{id}", get(record::page))
            .route("/console/forms/{operation}", post(forms::send))
            .route("/console/payments", post(payments::send))
            .route("/console/time", post(time::skip))
            .route("/console/requests/{id}", get(request::page))
            .route("/console/requests/{id}/curl", get(request::curl))
            .route("/console/requests/{id}/event", get(request::event))
            .route("/console/requests/{id}/mcp", get(request::tool))
            .route("/console/requests/{id}/again", post(request::again))
            .route("/console/requests/{id}/edited", post(request::edited))
            .route("/console/start/curl", get(start::curl))
            .route("/console/changes", get(changes))
            .route("/console/console.css", file("text/css", style))
            .route("/console/console.js", file("text/javascript", include_str!("console/console.js")))
            .layer(middleware::from_fn(with_permissions))
            .with_state(console)
    }

    /// A scan of the whole table.
    #[expect(clippy::disallowed_methods, reason = "no operation does this, and a table on this machine is small")]
    fn scan(&self) -> ScanFluentBuilder {
        self.client.scan().table_name(TABLE_NAME)
    }

    /// The organisation with this name, or the first one.
    fn organisation(&self, asked: Option<&str>) -> Option<&OrganisationWithKey> {
        let all = self.api.organisations();
        all.iter().find(|organisation| Some(organisation.name.as_str()) == asked).or_else(|| all.first())
    }

    async fn page(&self, page: &'static ConsolePage, asked: &Asked) -> Html<String> {
        let shown = match (page.path, self.organisation(asked.org.as_deref())) {
            ("/", _) => Ok(self.start().await),
            (pages::REQUESTS, _) => Ok(self.requests(asked).await),
            (pages::EVENTS, _) => Ok(self.events()),
            (pages::TIME, _) => Ok(self.time()),
            (_, None) => Err(NO_ORGANISATION.to_owned()),
            (pages::CONVERSATIONS, Some(organisation)) => self.conversations(organisation, asked).await,
            (pages::DELIVERIES, Some(organisation)) => self.deliveries(organisation).await,
            (pages::CAMPAIGNS, Some(organisation)) => self.campaigns(organisation, asked).await,
            (pages::RECORDS, Some(organisation)) => Ok(self.all_records(organisation).await),
            ("/console/counts", Some(organisation)) => self.counts(organisation).await,
            ("/console/payments", Some(organisation)) => self.payments(organisation).await,
            (_, Some(organisation)) => self.table(organisation, asked).await,
        };
        self.framed(Head::of(page, asked), shown).await
    }
}

/// Sends the permissions of each page with it.
async fn with_permissions(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    for (name, value) in
        [("content-security-policy", POLICY), ("cache-control", "no-store"), ("referrer-policy", "no-referrer")]
    {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// An event for each change, and one at the beginning: changes from the time before the connection are shown too.
async fn changes(State(console): State<Arc<Console>>) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let mut changes = console.journal.changes();
    changes.mark_changed();
    let events = stream::unfold(changes, async |mut changes| {
        changes.changed().await.ok()?;
        let count = changes.borrow_and_update().to_string();
        Some((Ok(Event::default().data(count)), changes))
    });
    Sse::new(events).keep_alive(KeepAlive::default())
}
