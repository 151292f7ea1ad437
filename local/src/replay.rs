//! The replay: sends recorded requests to a deployed service and compares its answers with those of a reference.
//!
//! - [`calls`] are the calls: the recorded event of every route, and a few calls that cannot be recorded as events.
//! - [`address`] sends a call over HTTP.
//! - [`comparison`] compares two answers; [`fresh`] replaces the values that differ from run to run.
//! - [`report`] shows the result of each call.
//!
//! The reference is a second address with the same records, or otherwise an empty local stack that the replay starts
//! itself. In the second case every id of the demo set is replaced by one that does not exist, so that no call can
//! change a record of the service.

pub mod address;
pub mod calls;
pub mod comparison;
pub mod fresh;
pub mod report;

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use shared::request::api_key::Role;
use shared::request::route::Route;
use shared::routes;
use shared::values::time::Clock;

use crate::Trouble;
use crate::http::{Answer, Call};
use crate::replay::address::Address;
use crate::replay::calls::NamedCall;
use crate::replay::comparison::{Pages, Seen, difference};
use crate::replay::report::{CallOutcome, Outcome, ReplayReport};
use crate::stack::{Settings, Stack};

/// The options of a replay.
#[derive(Debug, Clone, Default)]
pub struct ReplayOptions {
    /// The checkout.
    pub root: PathBuf,
    /// The address of the service, without `/api/v1`.
    pub base_url: String,
    /// A full key of the service; it replaces the one of the demo set.
    pub api_key: String,
    /// The address that the service returns to its callers, if it differs from `base_url`.
    pub public_url: Option<String>,
    /// A second address to compare with. Both services must have the demo set.
    pub against: Option<String>,
    /// Leaves out the calls that would create a record.
    pub read_only: bool,
    /// If not empty, only the calls whose names begin with one of these are sent.
    pub only: Vec<String>,
    /// The calls whose names begin with one of these are not sent.
    pub skip: Vec<String>,
}

/// The service whose answers are the reference.
struct ReferenceService {
    address: Address,
    pages: Pages,
    /// The replay's own stack, which must run until the last call.
    stack: Option<Stack>,
}

/// Sends the calls, one after the other, and compares the answers.
///
/// `begin` gets the number of each call, the number of all calls, and its name.
///
/// # Errors
/// [`Trouble`] where no answers can be compared: the service does not answer, it refuses the key, the events cannot be
/// read.
pub async fn run(options: &ReplayOptions, begin: impl Fn(usize, usize, &str)) -> Result<ReplayReport, Trouble> {
    let recorded = calls::recorded(&options.root)?;
    let service = Address::new(&options.base_url, &recorded.key, &options.api_key, options.public_url.as_deref())?;
    check_key(&service, &recorded.key).await?;
    let role = role_of(&service, &recorded.key).await?;
    let reference = ReferenceService::of(options, &recorded.key, role).await?;
    let calls = if options.against.is_some() { recorded.calls } else { calls::with_unknown_ids(recorded.calls) };
    let (mut report, all) = (ReplayReport::default(), calls.len());
    for (number, NamedCall { name, call }) in calls.into_iter().enumerate() {
        begin(number + 1, all, &name);
        if !options.selects(&name) {
            report.left_out += 1;
            continue;
        }
        let outcome = if options.against.is_none() && calls::takes_another_demo_key(&call, &recorded.key) {
            Outcome::NotSent("it takes a second key, which only reads: the demo set's".to_owned())
        } else if options.against.is_none() && name == routes::READ_OWN_USER.name {
            Outcome::NotSent("its answer depends on the user of the key".to_owned())
        } else if options.against.is_none() && calls::has_custom_fields(&call) {
            Outcome::NotSent("its answer depends on the organisation's custom fields".to_owned())
        } else {
            compare(options, &service, &reference, &call).await?
        };
        let function = routes::find(&call.method, &call.path).map(|route| route.name);
        report.rows.push(CallOutcome { name, function, outcome });
    }
    if let Some(stack) = reference.stack {
        stack.stop().await;
    }
    Ok(report)
}

impl ReplayOptions {
    fn selects(&self, name: &str) -> bool {
        let begins = |prefixes: &[String]| prefixes.iter().any(|prefix| name.starts_with(prefix.as_str()));
        (self.only.is_empty() || begins(&self.only)) && !begins(&self.skip)
    }
}

impl ReferenceService {
    async fn of(options: &ReplayOptions, demo_key: &str, role: Role) -> Result<Self, Trouble> {
        if let Some(url) = &options.against {
            let address = Address::new(url, demo_key, demo_key, None)?;
            return Ok(Self { address, pages: Pages::Compared, stack: None });
        }
        let stack = empty_stack(&options.root).await?;
        let address = Address::new(&stack.url, demo_key, &new_key(&stack, role).await?, None)?;
        Ok(Self { address, pages: Pages::OfUnknownRecords, stack: Some(stack) })
    }
}

async fn empty_stack(root: &Path) -> Result<Stack, Trouble> {
    Stack::start(Settings { demo: None, stream: false, ..Settings::of(root) }).await
}

/// A key of a new organisation.
async fn new_key(stack: &Stack, role: Role) -> Result<String, Trouble> {
    let new = json!({"name": "replay", "role": role}).to_string();
    let answer = stack.gateway.invoke_by_name("issue-api-key", new.as_bytes()).await;
    let issued: Value = serde_json::from_str(&answer.body).unwrap_or_default();
    let key = issued["api_key"].as_str().map(str::to_owned);
    key.ok_or_else(|| Trouble(format!("the local stack issues no key: {}", answer.body)))
}

/// Whether the service accepts the key for writing too; the request has a body that is never accepted.
async fn check_key(service: &Address, demo_key: &str) -> Result<(), Trouble> {
    let route = &routes::CREATE_KEY;
    let query = format!("api_key={demo_key}");
    let call =
        Call { method: route.method.into(), path: route.path.into(), query, body: b"{".into(), ..Call::default() };
    match service.send(&call).await?.status {
        401 => Err(Trouble("the service refuses the key (401): it is wrong, expired or revoked, or of another stack".into())),
        403 => Err(Trouble(
            "the service does not let the key do everything (403): some functions want one of the role `admin`. A firewall in front \
             answers 403 as well"
                .into(),
        )),
        _ => Ok(()),
    }
}

/// The role of a key that may write: the key of the reference gets the same one, so that both allow the same operations.
async fn role_of(service: &Address, demo_key: &str) -> Result<Role, Trouble> {
    let (route, query) = (&routes::LIST_AUDIT, format!("api_key={demo_key}&size=1"));
    let call = Call { method: route.method.into(), path: route.path.into(), query, ..Call::default() };
    Ok(if service.send(&call).await?.status == 403 { Role::Full } else { Role::Admin })
}

/// Sends `call` to the reference, and then to the service if that is allowed.
async fn compare(
    options: &ReplayOptions,
    service: &Address,
    reference: &ReferenceService,
    call: &Call,
) -> Result<Outcome, Trouble> {
    let wanted = reference.address.send(call).await?;
    if options.read_only && makes_a_record(call, &wanted) {
        return Ok(Outcome::NotSent("it would make a record (--read-only)".to_owned()));
    }
    let got = match service.send(call).await {
        Ok(got) => got,
        Err(Trouble(error)) => return Ok(Outcome::NoAnswer(error)),
    };
    let seen = |answer: &Answer, own: &str| Seen::of(answer, own, Clock::System.now(), reference.pages);
    let (status, wanted_status) = (got.status, wanted.status);
    let (got, wanted) = (seen(&got, service.public_url()), seen(&wanted, reference.address.public_url()));
    Ok(match difference(&got, &wanted) {
        None => Outcome::Same(status),
        Some(difference) => Outcome::Differs { status, wanted: wanted_status, difference },
    })
}

/// Whether a call with this answer has created a record.
fn makes_a_record(call: &Call, answer: &Answer) -> bool {
    let route = routes::find(&call.method, &call.path);
    answer.status < 300 && route.is_some_and(Route::writes)
}

#[cfg(test)]
mod tests {
    use shared::table::meter::Cost;

    use super::*;

    #[test]
    fn only_and_skip_match_prefixes_of_names() {
        let list = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let all = ReplayOptions::default();
        assert!(all.selects("delete-tag"));
        let deletes =
            ReplayOptions { only: list(&["delete-"]), skip: list(&["delete-tag."]), ..ReplayOptions::default() };
        assert!(deletes.selects("delete-tag") && deletes.selects("delete-form"));
        assert!(!deletes.selects("delete-tag.not-found") && !deletes.selects("create-agency"));
    }

    #[test]
    fn a_successful_write_makes_a_record() {
        let call = |method: &str, path: &str| Call { method: method.into(), path: path.into(), ..Call::default() };
        let answer = |status| Answer { status, headers: [].into(), body: String::new(), cost: Cost::default() };
        assert!(makes_a_record(&call("POST", "/api/v1/assistant"), &answer(201)));
        assert!(!makes_a_record(&call("POST", "/api/v1/assistant"), &answer(422)));
        assert!(!makes_a_record(&call("GET", "/api/v1/conversation"), &answer(200)));
        // This GET registers an endpoint at the payment provider.
        assert!(makes_a_record(&call("GET", "/api/v1/agency/billing/x/setup_payment_webhook"), &answer(200)));
    }
}
