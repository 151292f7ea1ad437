//! The counts of a fault run: compares the counts over time with the records and with the changes of the table.

use serde_json::Value;
use shared::records::analytics::metrics::Metric;
use shared::records::conversation::Conversation;
use shared::records::event::EventKind;

use crate::Trouble;
use crate::fault_run::check::Check;
use crate::fault_run::world::{World, member};
use crate::stream::Stream;

/// The first day of a run.
const FIRST_DAY: &str = "2026-02-01";

/// Checks that each change was counted once: conversations and messages of each organisation, deliveries of all together.
///
/// # Errors
/// [`Trouble`] where the counts, a list or the stream cannot be read.
pub async fn counts(world: &World) -> Result<Check, Trouble> {
    let mut exact = Check::that("each change is counted once");
    let [mut deliveries, mut sends] = [0, 0];
    for organisation in 0..world.organisations.len() {
        let conversations: Vec<Conversation> = world.list(organisation, "/api/v1/conversation", "").await?;
        let closed = conversations.iter().filter(|conversation| !conversation.is_open()).count() as u64;
        let said = conversations.iter().map(|conversation| conversation.chat_count).sum();
        for metric in Metric::WORDS.iter().filter_map(|word| Metric::from_word(word)) {
            let query = format!("metric={}&date_from={FIRST_DAY}", metric.as_str());
            let answer = world.ask(organisation, "GET", "/api/v1/analytics", &query, &Value::Null).await?.body;
            let total: u64 = member(&answer["data"], "total")?;
            let wanted = match metric {
                Metric::ConversationsOpened => conversations.len() as u64,
                Metric::ConversationsClosed => closed,
                Metric::Messages => said,
                // Nothing in the run makes any.
                Metric::VoiceSeconds | Metric::CapturedForms | Metric::CapturedIntents | Metric::Outcomes => 0,
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
    let wanted = ends(&Stream::changes(&world.stack.database)?);
    exact.see([deliveries, sends] == wanted, || format!("{deliveries} deliveries, {sends} sends, not {wanted:?}"));
    Ok(exact)
}

/// How many deliveries have ended, and how many of them a connector has accepted, by all changes of the table.
fn ends(changes: &[Value]) -> [u64; 2] {
    let text = |image: &Value, name: &str| image[name]["S"].as_str().unwrap_or_default().to_owned();
    let is_for_connector = |is: &Value| EventKind::OF_CONNECTORS.iter().any(|kind| kind.as_str() == text(is, "event"));
    let has_ended = |image: &Value| ["delivered", "dead"].contains(&&*text(image, "state"));
    let images = changes.iter().map(|change| (&change["dynamodb"]["OldImage"], &change["dynamodb"]["NewImage"]));
    let ended = images.filter(|(was, is)| text(is, "record") == "Delivery" && !has_ended(was) && has_ended(is));
    ended.fold([0, 0], |[deliveries, sends], (_, is)| {
        let is_send = is_for_connector(is) && text(is, "state") == "delivered";
        [deliveries + 1, sends + u64::from(is_send)]
    })
}
