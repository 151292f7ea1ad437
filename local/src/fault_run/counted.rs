//! The counts of a fault run: compares the counts over time with the records and with the changes of the table.

use std::collections::BTreeMap;
use std::sync::PoisonError;

use serde_json::Value;
use shared::records::analytics::metrics::Metric;
use shared::records::conversation::Conversation;
use shared::records::outcome::ReportedOutcome;
use shared::routes;

use crate::Trouble;
use crate::api::ApiRequest;
use crate::fault_run::captured;
use crate::fault_run::changes::TableChanges;
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, member};

/// The first day of a run.
const FIRST_DAY: &str = "2026-02-01";

/// Checks that each change was counted once: conversations, messages, outcomes and captured data of each organisation,
/// deliveries of all together.
///
/// # Errors
/// [`Trouble`] where the counts or a list cannot be read.
pub async fn counts(world: &World, changes: &TableChanges) -> Result<Check, Trouble> {
    let mut exact = Check::that("each change is counted once");
    let [mut deliveries, mut sends] = [0, 0];
    for organisation in 0..world.organisations.len() {
        let conversations: Vec<Conversation> = world.list(organisation, &routes::LIST_CONVERSATIONS).await?;
        let closed = conversations.iter().filter(|conversation| !conversation.is_open()).count() as u64;
        let said = conversations.iter().map(|conversation| conversation.chat_count).sum();
        let (outcomes, captured) =
            (reported(world, organisation), captured::of_organisation(world, organisation).len());
        for metric in Metric::WORDS.iter().filter_map(|word| Metric::from_word(word)) {
            let query = format!("metric={}&date_from={FIRST_DAY}", metric.as_str());
            let counts = world.ask(organisation, ApiRequest::of(&routes::READ_ANALYTICS).query(query)).await?.data()?;
            let total: u64 = member(&counts, "total")?;
            let wanted = match metric {
                Metric::ConversationsOpened => conversations.len() as u64,
                Metric::ConversationsClosed => closed,
                Metric::Messages => said,
                Metric::VoiceSeconds => outcomes.values().map(|(_, seconds)| seconds).sum(),
                Metric::Outcomes => {
                    see_outcomes(&by_outcome(world, organisation).await?, &outcomes, &mut exact);
                    outcomes.values().map(|(count, _)| count).sum()
                }
                Metric::CapturedForms | Metric::CapturedIntents => captured as u64,
                Metric::Sends => {
                    sends += total;
                    continue;
                }
                Metric::Deliveries => {
                    deliveries += total;
                    continue;
                }
            };
            exact.see(total == wanted, || format!("{}: {total}, not {wanted}", metric.as_str()));
        }
    }
    let wanted = [changes.deliveries, changes.sends];
    exact.see([deliveries, sends] == wanted, || format!("{deliveries} deliveries, {sends} sends, not {wanted:?}"));
    Ok(exact)
}

/// How often each outcome of an organisation was reported, with its seconds: the report that counts of each attempt and
/// of each conversation.
fn reported(world: &World, organisation: usize) -> BTreeMap<ReportedOutcome, (u64, u64)> {
    let mut all: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    let reports = world.reports.lock().unwrap_or_else(PoisonError::into_inner);
    for (_, outcome, seconds) in reports.counting.iter().filter(|(own, ..)| *own == organisation) {
        let (count, sum) = all.entry(*outcome).or_default();
        (*count, *sum) = (*count + 1, *sum + seconds);
    }
    all
}

/// The rows of the counts of outcomes.
async fn by_outcome(world: &World, organisation: usize) -> Result<Vec<Value>, Trouble> {
    let query = format!("metric={}&group_by=outcome&date_from={FIRST_DAY}", Metric::Outcomes.as_str());
    let counts = world.ask(organisation, ApiRequest::of(&routes::READ_ANALYTICS).query(query)).await?.data()?;
    member(&counts, "rows")
}

fn see_outcomes(rows: &[Value], reported: &BTreeMap<ReportedOutcome, (u64, u64)>, exact: &mut Check) {
    for outcome in ReportedOutcome::every() {
        let row = rows.iter().find(|row| row["outcome"] == outcome.as_str());
        let (counted, wanted) =
            (row.and_then(|row| row["count"].as_u64()), reported.get(&outcome).map(|(count, _)| *count));
        exact.see(counted == wanted, || format!("{}: {counted:?}, not {wanted:?}", outcome.as_str()));
    }
}
