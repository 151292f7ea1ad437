//! The inbox of `cargo local`: a customer's server that receives the events of the demo set. It verifies each
//! signature, keeps the events, and fails on request.

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use shared::records::webhook::{SigningSecret, Webhook};
use shared::records::widget::Widget;
use shared::request::route::Route;
use shared::routes;
use shared::table::page::PageQuery;
use shared::table::store::Store;
use shared::table::stored::Listed;
use shared::table::{Table, TableError};
use shared::values::id::OrgId;
use shared::values::tenant::Tenant;
use shared::values::time::{Clock, Timestamp};
use standardwebhooks::{HEADER_WEBHOOK_ID, HEADER_WEBHOOK_SIGNATURE, HEADER_WEBHOOK_TIMESTAMP};
use tokio::time::sleep;

use crate::Trouble;
use crate::api::{Api, ApiRequest};
use crate::journal::Journal;

/// Its path, on the port of the API.
pub const PATH: &str = "/inbox";

/// The end of the addresses to which the runtime is subscribed.
pub(crate) const RUNTIME: &str = "/runtime";

/// The most events that are kept.
const KEPT: usize = 1000;
/// The most bytes of their bodies: if transcripts are long, fewer events are kept.
const KEPT_BYTES: usize = 256 * 1024 * 1024;
/// The most bytes of an event: ten times the largest one of the service.
const LARGEST: usize = 64 * 1024 * 1024;
/// The longest delay of an answer, in milliseconds.
const LONGEST_DELAY: u64 = 60_000;
/// The most seconds between the time of a signature and the service's time, as in Standard Webhooks.
const TOLERANCE: u64 = 300;

/// The inbox.
#[derive(Debug)]
pub struct Inbox {
    store: Store,
    clock: Clock,
    organisations: Vec<OrgId>,
    journal: Arc<Journal>,
    state: Mutex<InboxState>,
}

#[derive(Debug, Default)]
struct InboxState {
    /// The events, the oldest first.
    events: VecDeque<Arc<Arrived>>,
    /// The bytes of their bodies.
    bytes: usize,
    /// The number of all events, including ones that are no longer kept.
    count: u64,
    /// The plan for the answers to the next events.
    plan: AnswerPlan,
}

/// The answers to the next events. All other events are answered with 200 at once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerPlan {
    /// The number of events.
    pub count: u32,
    /// The status of the answers.
    #[serde(default)]
    pub status: AnswerStatus,
    /// The delay of the answers in milliseconds, a minute at most.
    #[serde(default)]
    pub delay_milliseconds: u64,
}

/// A status that an answer can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u16", into = "u16")]
pub struct AnswerStatus(StatusCode);

impl Default for AnswerStatus {
    fn default() -> Self {
        Self(StatusCode::OK)
    }
}

impl TryFrom<u16> for AnswerStatus {
    type Error = String;

    fn try_from(status: u16) -> Result<Self, String> {
        let code = StatusCode::from_u16(status).ok().filter(|_| (200..600).contains(&status));
        code.map(Self).ok_or_else(|| format!("no answer has the status {status}"))
    }
}

impl From<AnswerStatus> for u16 {
    fn from(status: AnswerStatus) -> Self {
        status.0.as_u16()
    }
}

/// The result of the check of an event's signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Signature {
    /// A secret of a webhook or a widget of this organisation made it.
    Verified(OrgId),
    /// No secret of an organisation of the demo set made it, or it is too old.
    Wrong,
    /// The event has no signature.
    Missing,
}

/// An event that arrived.
#[derive(Debug, Clone, Serialize)]
pub struct Arrived {
    /// Its number, counted from 1.
    pub number: u64,
    /// When it arrived.
    pub at: Timestamp,
    /// The part of its path after `/inbox/`.
    pub to: String,
    /// Its headers, with their names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its JSON; a string if it is no JSON.
    pub body: Value,
    /// The length of the body, in bytes.
    pub bytes: usize,
    /// The result of the check of its signature.
    pub signature: Signature,
    /// The status of the answer.
    pub answered: u16,
}

impl Inbox {
    /// An empty inbox, which verifies with the secrets of these organisations.
    pub fn new(store: Store, clock: Clock, organisations: Vec<OrgId>, journal: Arc<Journal>) -> Self {
        Self { store, clock, organisations, journal, state: Mutex::default() }
    }

    /// The routes at [`PATH`].
    pub fn router(self: Arc<Self>) -> Router {
        let receiving = post(receive).layer(DefaultBodyLimit::max(LARGEST));
        Router::new()
            .route(PATH, get(list))
            .route(&format!("{PATH}/answers"), get(read_plan).put(set_plan))
            .route(&format!("{PATH}/events/{{*to}}"), receiving)
            .with_state(self)
    }

    /// The newest `most` events, the newest first.
    pub fn newest(&self, most: usize) -> Vec<Arc<Arrived>> {
        self.state().events.iter().rev().take(most).cloned().collect()
    }

    /// The number of events that are kept.
    pub fn count(&self) -> u64 {
        self.state().events.len() as u64
    }

    /// Sets the answers to the next events.
    pub fn answer_next(&self, plan: AnswerPlan) {
        self.state().plan = plan;
    }

    async fn signature(&self, headers: &HeaderMap, body: &[u8]) -> Result<Signature, TableError> {
        if !headers.contains_key(HEADER_WEBHOOK_SIGNATURE) {
            return Ok(Signature::Missing);
        }
        for org in &self.organisations {
            #[expect(
                clippy::disallowed_methods,
                reason = "the user of the stack is the customer, who knows the secrets"
            )]
            let table = Table::new(self.store.clone(), Tenant::operator(*org));
            let (of_webhooks, of_widgets) =
                (|webhook: &Webhook| webhook.secrets.clone(), |widget: &Widget| widget.secrets.clone());
            if self.is_signed(&table, of_webhooks, headers, body).await?
                || self.is_signed(&table, of_widgets, headers, body).await?
            {
                return Ok(Signature::Verified(*org));
            }
        }
        Ok(Signature::Wrong)
    }

    /// Whether one of the secrets that a record of `table` has signed it.
    async fn is_signed<R: Listed<Of = ()>>(
        &self,
        table: &Table,
        secrets: impl Fn(&R) -> Vec<SigningSecret>,
        headers: &HeaderMap,
        body: &[u8],
    ) -> Result<bool, TableError> {
        let mut next = Some(1);
        while let Some(number) = next {
            let page = PageQuery::oldest_first(number, 100);
            let (mut records, now) = (table.page::<R>((), &page).await?, self.clock.now());
            for record in &mut records.items {
                table.open(record).await?;
            }
            let secrets: Vec<SigningSecret> = records.items.iter().flat_map(&secrets).collect();
            let mut signing = SigningSecret::signing(&secrets, now).into_iter();
            if signing.any(|secret| verifies(secret.expose(), headers, body, now)) {
                return Ok(true);
            }
            next = records.next_page.and_then(|page| i64::try_from(page).ok());
        }
        Ok(false)
    }

    fn state(&self) -> MutexGuard<'_, InboxState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl InboxState {
    /// Keeps an event, and returns the plan for its answer.
    fn keep(&mut self, event: impl FnOnce(u64, u16) -> Arrived) -> AnswerPlan {
        self.count += 1;
        let plan = if self.plan.count == 0 { AnswerPlan::default() } else { self.plan };
        self.plan.count = self.plan.count.saturating_sub(1);
        let event = event(self.count, plan.status.into());
        self.bytes += event.bytes;
        self.events.push_back(Arc::new(event));
        while (self.events.len() > KEPT || self.bytes > KEPT_BYTES)
            && let Some(oldest) = self.events.pop_front()
        {
            self.bytes -= oldest.bytes;
        }
        plan
    }
}

/// Whether `secret` has signed it recently, by the service's time: `verify` of the crate uses the machine's clock,
/// which does not skip.
fn verifies(secret: &str, headers: &HeaderMap, body: &[u8], now: Timestamp) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let signed = || {
        let id = header(HEADER_WEBHOOK_ID)?;
        let at: i64 = header(HEADER_WEBHOOK_TIMESTAMP)?.parse().ok()?;
        let signature = standardwebhooks::Webhook::new(secret).ok()?.sign(id, at, body).ok()?;
        let mut sent = header(HEADER_WEBHOOK_SIGNATURE)?.split(' ');
        Some(now.unix_seconds().abs_diff(at) <= TOLERANCE && sent.any(|sent| sent == signature))
    };
    signed().unwrap_or(false)
}

async fn receive(
    State(inbox): State<Arc<Inbox>>,
    Path(to): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<StatusCode, InboxRefusal> {
    let signature = inbox.signature(&headers, &body).await.map_err(|error| InboxRefusal(500, error.to_string()))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let plan = inbox.state().keep(|number, answered| Arrived {
        number,
        at: inbox.clock.now(),
        to,
        headers: headers.iter().map(|(name, value)| (name.to_string(), text(value.as_bytes()))).collect(),
        body: serde_json::from_slice(&body).unwrap_or_else(|_| text(&body).into()),
        bytes: body.len(),
        signature,
        answered,
    });
    inbox.journal.changed();
    sleep(Duration::from_millis(plan.delay_milliseconds)).await;
    Ok(plan.status.0)
}

async fn list(State(inbox): State<Arc<Inbox>>) -> Json<Value> {
    let newest = inbox.newest(KEPT);
    let events: Vec<&Arrived> = newest.iter().map(AsRef::as_ref).collect();
    Json(json!({"events": events}))
}

async fn read_plan(State(inbox): State<Arc<Inbox>>) -> Json<AnswerPlan> {
    Json(inbox.state().plan)
}

async fn set_plan(State(inbox): State<Arc<Inbox>>, body: Bytes) -> Result<Json<AnswerPlan>, InboxRefusal> {
    let plan: AnswerPlan = serde_json::from_slice(&body).map_err(|error| InboxRefusal(400, error.to_string()))?;
    if plan.delay_milliseconds > LONGEST_DELAY {
        return Err(InboxRefusal(400, format!("delay_milliseconds is {LONGEST_DELAY} at most")));
    }
    inbox.answer_next(plan);
    Ok(Json(plan))
}

/// Why a request is refused: its status and the error.
#[derive(Debug)]
pub(crate) struct InboxRefusal(pub(crate) u16, pub(crate) String);

impl IntoResponse for InboxRefusal {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.0).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        (status, Json(json!({"error": self.1}))).into_response()
    }
}

/// Points the webhooks of the demo set, and the connectors of its widgets, at the inbox of the stack at `url`, through
/// its API. Changes by its user are kept.
///
/// # Errors
/// [`Trouble`] has the API's answer.
pub async fn connect(url: &str, api: &Api) -> Result<(), Trouble> {
    let Some(address) = reached_at(url) else { return Ok(()) };
    for organisation in api.organisations() {
        let events = |what: &str| format!("http://{address}{PATH}/events/{}/{what}", organisation.name);
        for (list, update, id, field, what) in [
            (&routes::LIST_WEBHOOKS, &routes::UPDATE_WEBHOOK, "webhook_id", "endpoint", "webhook"),
            (&routes::LIST_WIDGETS, &routes::UPDATE_WIDGET, "widget_id", "connector_url", "connector"),
        ] {
            let trouble = |route: &Route, says: String| Trouble(format!("the inbox: {}: {says}", route.name));
            let listed = api.ask(organisation, list).await.map_err(|says| trouble(list, says))?;
            for (number, record) in listed["items"].as_array().into_iter().flatten().enumerate() {
                let is = record[field].as_str();
                let ours = |is: &str| is.contains(&format!("{PATH}/events/")) && !is.ends_with(RUNTIME);
                let own = is.is_none_or(|is| is.starts_with(NOBODY) || ours(is));
                let to = events(&format!("{what}-{}", number + 1));
                if own && is != Some(&to) {
                    let request = ApiRequest::of(update).parameter(id, record["id"].as_str().unwrap_or_default());
                    let updated = api.ask(organisation, request.body(&json!({field: to}))).await;
                    updated.map_err(|says| trouble(update, says))?;
                }
            }
        }
    }
    Ok(())
}

/// The address at which the functions reach a stack. They send to this machine alone: `None` if the stack listens only
/// on another address.
pub(crate) fn reached_at(url: &str) -> Option<SocketAddr> {
    let mut address: SocketAddr = url.strip_prefix("http://")?.parse().ok()?;
    if address.ip().is_unspecified() {
        address.set_ip(if address.is_ipv4() { Ipv4Addr::LOCALHOST.into() } else { Ipv6Addr::LOCALHOST.into() });
    }
    address.ip().is_loopback().then_some(address)
}

/// The address of the demo set's own endpoints. It belongs to no customer.
const NOBODY: &str = "https://93.184.215.14/";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_inbox_is_reachable_only_on_this_machine() {
        for (listens, reached) in [
            ("127.0.0.1:3000", Some("127.0.0.1:3000")),
            ("[::1]:3000", Some("[::1]:3000")),
            ("0.0.0.0:3000", Some("127.0.0.1:3000")),
            ("[::]:3000", Some("[::1]:3000")),
            ("192.168.0.2:3000", None),
        ] {
            let address = reached_at(&format!("http://{listens}")).map(|address| address.to_string());
            assert_eq!(address.as_deref(), reached, "{listens}");
        }
    }

    #[test]
    fn a_plan_accepts_only_possible_statuses() {
        let plan = |status: &str| serde_json::from_str::<AnswerPlan>(&format!(r#"{{"count":1,"status":{status}}}"#));
        assert_eq!(plan("503").unwrap().status.0, StatusCode::SERVICE_UNAVAILABLE);
        for status in ["199", "600", "0", "-1", "70000", "\"200\""] {
            plan(status).unwrap_err();
        }
        serde_json::from_str::<AnswerPlan>(r#"{"count":1,"unknown":1}"#).unwrap_err();
    }
}
