//! The outcomes of a fault run: connectors report how calls and messages ended, twice and in any order. At the end
//! the results are compared with the reports.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, MutexGuard, PoisonError};

use fastrand::Rng;
use futures_util::future::{FutureExt as _, try_join_all};
use serde_json::{Value, json};
use shared::records::campaign::{CampaignContact, ContactStatus};
use shared::records::conversation::Conversation;
use shared::records::outcome::{OutcomeReport, ReportedOutcome};
use shared::routes;
use shared::values::id::{CampaignContactId, ConversationId};
use shared::values::time::Timestamp;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::acts::{FinishedCampaign, contacts_of};
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, at_once, path_of_connector};
use crate::receiver::Received;

/// The outcomes after which the campaigns with a policy try a contact again.
const RETRIED: [ReportedOutcome; 2] = [ReportedOutcome::NoAnswer, ReportedOutcome::Busy];
/// The outcomes that are reported beside them.
const OTHERS: [ReportedOutcome; 4] =
    [ReportedOutcome::Answered, ReportedOutcome::Voicemail, ReportedOutcome::Rejected, ReportedOutcome::Read];
/// How many times such a campaign tries a contact.
const MOST_ATTEMPTS: usize = 3;
/// Of so many attempts, the connector reports how one ended.
const REPORTED: usize = 2;
/// Attempts whose outcomes are reported at the same time.
const REPORTING: usize = 16;
/// Seconds from now to the time of the first report and of the last one. The clocks of the functions differ, and each
/// report is to be later than the dispatch.
const LATER: (i64, i64) = (5, 10);

/// The policy of the campaigns that try contacts again.
pub fn policy() -> Value {
    json!({"on": RETRIED, "max_attempts": MOST_ATTEMPTS, "wait_minutes": 1})
}

/// A report of an outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SentReport {
    outcome: ReportedOutcome,
    at: Timestamp,
    seconds: Option<u64>,
    /// Whether it comes after the next attempt has begun. Then it changes nothing.
    is_late: bool,
}

/// What the connectors have reported so far.
#[derive(Debug, Default)]
pub struct SentReports {
    /// The `webhook-id` of each request that a connector has accepted.
    seen: BTreeSet<String>,
    /// For each contact, the attempts that arrived, each with the report that counts.
    attempts: BTreeMap<CampaignContactId, Vec<Option<SentReport>>>,
    /// For each conversation, the report that counts.
    conversations: BTreeMap<ConversationId, SentReport>,
    /// The reports that count, with their organisations: of each attempt, and of each conversation.
    pub counting: Vec<(usize, ReportedOutcome, u64)>,
    /// The number of reports.
    count: usize,
    /// The answers that do not show the report that counts.
    wrong: Vec<String>,
}

impl World {
    fn reports(&self) -> MutexGuard<'_, SentReports> {
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt that has arrived at its connector.
struct ArrivedAttempt {
    campaign: usize,
    contact: CampaignContactId,
    /// Its number among the attempts of the contact.
    number: usize,
}

/// Reports how the attempts ended that have arrived since the last call of this function. Returns the number of reports.
///
/// # Errors
/// [`Trouble`] where the service never answers.
pub async fn report(world: &Arc<World>) -> Result<usize, Trouble> {
    let arrived = Arc::new(arrived(world));
    let reported = at_once(world, REPORTING, 0..arrived.len(), |world, place| {
        let arrived = Arc::clone(&arrived);
        async move { report_attempt(&world, &arrived[place]).await }
    });
    Ok(reported.await?.into_iter().sum())
}

/// The attempts that were not seen before.
fn arrived(world: &World) -> Vec<ArrivedAttempt> {
    let paths: BTreeMap<String, usize> =
        (0..world.plan.campaigns.len()).map(|number| (path_of_connector(number), number)).collect();
    let mut sent = world.reports();
    world.receiver.each(|received| {
        let campaign = *paths.get(&received.path).filter(|_| received.succeeded())?;
        let id = received.headers.get("webhook-id").filter(|id| !sent.seen.contains(*id))?;
        let contact = contact_of(received)?;
        sent.seen.insert(id.clone());
        let attempts = sent.attempts.entry(contact).or_default();
        attempts.push(None);
        Some(ArrivedAttempt { campaign, contact, number: attempts.len() - 1 })
    })
}

fn contact_of(received: &Received) -> Option<CampaignContactId> {
    let body: Value = serde_json::from_slice(&received.body).ok()?;
    body["data"]["campaign_contact_id"].as_str()?.parse().ok().map(CampaignContactId)
}

async fn report_attempt(world: &World, attempt: &ArrivedAttempt) -> Result<usize, Trouble> {
    let &ArrivedAttempt { campaign, contact, number } = attempt;
    let (upper, lower) = contact.0.as_u64_pair();
    let mut random = Rng::with_seed(world.plan.seed ^ upper ^ lower ^ number as u64);
    if random.usize(0..REPORTED) > 0 {
        return Ok(0);
    }
    let (run, now) = (&world.plan.campaigns[campaign], world.clock.now());
    let is_retried = run.retries && random.bool();
    let outcomes: &[ReportedOutcome] = if is_retried || (!run.retries && random.bool()) { &RETRIED } else { &OTHERS };
    let (last, mut reports) = reports(outcomes, now, &mut random);
    let before = number.checked_sub(1).and_then(|before| world.reports().attempts[&contact][before]);
    if let Some(before) = before {
        let at = before.at.plus_seconds(1);
        reports.push(SentReport { outcome: ReportedOutcome::Answered, at, seconds: Some(1_000), is_late: true });
    }
    random.shuffle(&mut reports);
    let report = ApiRequest::of(&routes::REPORT_CAMPAIGN_CONTACT_OUTCOME).parameter("campaign_contact_id", contact);
    let organisation = world.plan.webhooks[run.webhook].organisation;
    send_all(world, organisation, &report, &reports).await?;
    let mut sent = world.reports();
    if let Some(kept) = sent.attempts.get_mut(&contact).and_then(|attempts| attempts.get_mut(number)) {
        *kept = Some(last);
    }
    sent.counting.push((organisation, last.outcome, last.seconds.unwrap_or_default()));
    Ok(reports.len())
}

/// Reports of one attempt, of which some come twice, and the one that counts.
fn reports(outcomes: &[ReportedOutcome], now: Timestamp, random: &mut Rng) -> (SentReport, Vec<SentReport>) {
    let outcome = outcomes[random.usize(..outcomes.len())];
    let seconds = (outcome == ReportedOutcome::Answered).then(|| random.u64(1..=600));
    let first = SentReport {
        outcome: ReportedOutcome::Delivered,
        at: now.plus_seconds(LATER.0),
        seconds: Some(1),
        is_late: false,
    };
    let last = SentReport { outcome, at: now.plus_seconds(LATER.1), seconds, is_late: false };
    let further = [first, last, first].into_iter().filter(|_| random.bool());
    (last, [last].into_iter().chain(further).collect())
}

/// The reports of the call that a conversation is, in any order; none of another conversation.
pub fn of_conversation(world: &World, number: usize) -> Vec<SentReport> {
    if !world.plan.conversations[number].is_call {
        return Vec::new();
    }
    let mut random = Rng::with_seed(world.plan.seed ^ number as u64);
    let (last, mut reports) = reports(&ReportedOutcome::every().collect::<Vec<_>>(), world.clock.now(), &mut random);
    random.shuffle(&mut reports);
    let organisation = world.plan.webhooks[world.plan.conversations[number].webhook].organisation;
    let mut sent = world.reports();
    sent.conversations.insert(world.conversations[number], last);
    sent.counting.push((organisation, last.outcome, last.seconds.unwrap_or_default()));
    reports
}

/// Sends some of the reports of a conversation.
///
/// # Errors
/// [`Trouble`] where the service never answers.
pub async fn report_conversation(world: &World, number: usize, reports: &[SentReport]) -> Result<(), Trouble> {
    let organisation = world.plan.webhooks[world.plan.conversations[number].webhook].organisation;
    let report = ApiRequest::of(&routes::REPORT_CONVERSATION_OUTCOME);
    let report = report.parameter("conversation_id", world.conversations[number]);
    send_all(world, organisation, &report, reports).await
}

/// Sends reports, two of them at the same time.
async fn send_all(
    world: &World,
    organisation: usize,
    request: &ApiRequest,
    reports: &[SentReport],
) -> Result<(), Trouble> {
    for together in reports.chunks(2) {
        // Erased: otherwise the caller's future would be too large for the compiler.
        let sent = together.iter().map(|report| send(world, organisation, request.clone(), report).boxed());
        try_join_all(sent).await?;
    }
    Ok(())
}

async fn send(world: &World, organisation: usize, request: ApiRequest, report: &SentReport) -> Result<(), Trouble> {
    let &SentReport { outcome, at, seconds, is_late } = report;
    let body = json!({"outcome": outcome, "at": at, "duration_seconds": seconds});
    let answered = world.ask(organisation, request.body(&body)).await?;
    let counts: Option<OutcomeReport> = serde_json::from_value(answered.body["data"]["result"].clone()).ok();
    let is_shown = counts.is_some_and(|counts| at <= counts.at || is_late);
    let mut sent = world.reports();
    sent.count += 1;
    if answered.status != 200 || !is_shown {
        sent.wrong.push(format!("{body} {}", answered.trouble()));
    }
    Ok(())
}

/// Checks that each result is the report that counts, and that contacts were tried again as their policy says.
///
/// # Errors
/// [`Trouble`] where records cannot be read.
pub async fn results(world: &World, finished: &[FinishedCampaign]) -> Result<Vec<Check>, Trouble> {
    let mut answered = Check::that("each report of an outcome is answered with the one that counts");
    let mut latest =
        Check::that("the result of a contact or a conversation is the latest report, and that of no earlier attempt");
    let mut again = Check::that("a contact is tried again after each outcome of its policy, and after no other");
    {
        let mut sent = world.reports();
        (answered.seen, answered.wrong) = (sent.count, std::mem::take(&mut sent.wrong));
    }
    for (number, run) in finished.iter().enumerate() {
        for place in contacts_of(world, number, run.id).await? {
            let attempts = world.reports().attempts.get(&place.id).cloned().unwrap_or_default();
            let wanted = attempts.iter().rev().flatten().next();
            latest.see(is_result(place.result.as_ref(), wanted), || format!("{place:?}, not {wanted:?}"));
            if place.status == ContactStatus::Sent {
                let retries = world.plan.campaigns[number].retries;
                again.see(is_tried_as_reported(&place, &attempts, retries), || format!("{place:?}: {attempts:?}"));
            }
        }
    }
    for organisation in 0..world.organisations.len() {
        let conversations: Vec<Conversation> = world.list(organisation, &routes::LIST_CONVERSATIONS).await?;
        for conversation in conversations {
            let wanted = world.reports().conversations.get(&conversation.id).copied();
            latest.see(is_result(conversation.result.as_ref(), wanted.as_ref()), || {
                format!("{conversation:?}, not {wanted:?}")
            });
        }
    }
    Ok(vec![answered, latest, again])
}

fn is_result(result: Option<&OutcomeReport>, report: Option<&SentReport>) -> bool {
    match (result, report) {
        (None, None) => true,
        (Some(result), Some(report)) => {
            let seconds = result.duration_seconds.and_then(|seconds| u64::try_from(seconds.get()).ok());
            (result.outcome, result.at, seconds) == (report.outcome, report.at, report.seconds)
        }
        _ => false,
    }
}

/// Whether each attempt but the last one ended with an outcome of the policy, and the last one with another outcome, with
/// none, or as the last one that the policy allows.
fn is_tried_as_reported(place: &CampaignContact, attempts: &[Option<SentReport>], retries: bool) -> bool {
    let is_followed = |attempt: &Option<SentReport>| attempt.is_some_and(|report| RETRIED.contains(&report.outcome));
    let Some((last, earlier)) = attempts.split_last() else { return false };
    let most = if retries { MOST_ATTEMPTS } else { 1 };
    place.attempts as usize == attempts.len()
        && earlier.iter().all(is_followed)
        && attempts.len() <= most
        && (attempts.len() == most || !is_followed(last))
}
