//! The table of metrics: which change of which record is counted, by what, and how much it counts.

use serde::de::DeserializeOwned;

use crate::records::campaign::CampaignContact;
use crate::records::captured_form::CapturedForm;
use crate::records::captured_intent::CapturedIntent;
use crate::records::conversation::{Conversation, SenderType};
use crate::records::delivery::{Delivery, DeliveryState};
use crate::records::outcome::{CallSeconds, OutcomeReport};
use crate::table::TableError;
use crate::table::change::Change;
use crate::table::declaration::Declared as _;
use crate::table::keys::row_of;
use crate::values::id::EndpointId;
use crate::values::time::Timestamp;

crate::choice! {
    /// What is counted.
    pub enum Metric {
        /// Conversations that were opened.
        ConversationsOpened = "conversations_opened",
        /// Conversations that were closed.
        ConversationsClosed = "conversations_closed",
        /// Messages of conversations, by their sender.
        Messages = "messages",
        /// Seconds of calls, as connectors have reported them.
        VoiceSeconds = "voice_seconds",
        /// Forms that were filled in.
        CapturedForms = "captured_forms",
        /// Intents that were recognised.
        CapturedIntents = "captured_intents",
        /// Messages and calls that a connector has accepted.
        Sends = "sends",
        /// Attempts to reach a contact of a campaign, and conversations, by the outcome that a connector has reported last.
        Outcomes = "outcomes",
        /// Deliveries that have ended, by their outcome.
        Deliveries = "deliveries",
    }
}

crate::choice! {
    /// What counts are separated by, beside their time.
    pub enum Dimension {
        /// The assistant of a conversation.
        Assistant = "assistant_id",
        /// The widget of a conversation, or whose connector gets a delivery.
        Widget = "widget_id",
        /// The campaign of a delivery.
        Campaign = "campaign_id",
        /// How it ended.
        Outcome = "outcome",
        /// The intent.
        Intent = "intent_id",
        /// Who has said it.
        Sender = "sender_type",
    }
}

impl Dimension {
    /// Whether each row of an answer has it, whatever the rows are grouped by. It has few values.
    pub const fn is_always_shown(self) -> bool {
        matches!(self, Self::Outcome | Self::Sender)
    }
}

/// A change that a metric counts. A metric may have several rows.
#[derive(Debug, Clone, Copy)]
pub struct MetricRow {
    /// The metric.
    pub metric: Metric,
    /// The record that changes.
    pub record: &'static str,
    /// What its counts are separated by. All rows of a metric have the same dimensions.
    pub dimensions: &'static [Dimension],
    /// What a change counts. Times are those of the record: a change may be handled much later.
    count: fn(&Change) -> Result<Vec<MetricCount>, TableError>,
}

/// What a change adds to a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetricCount {
    /// When it happened.
    pub at: Timestamp,
    /// The values of the dimensions; one that is left out has none.
    pub values: Vec<(Dimension, String)>,
    /// How much it adds; a negative amount is taken away.
    pub amount: i64,
}

/// Every metric. A new one is a row here, and a word above.
pub const METRICS: &[MetricRow] = &[
    MetricRow {
        metric: Metric::ConversationsOpened,
        record: Conversation::NAME,
        dimensions: &[Dimension::Assistant, Dimension::Widget],
        count: |change| of(change, |was, is: &Conversation| was.is_none().then(|| in_conversation(is, is.created_at))),
    },
    MetricRow {
        metric: Metric::ConversationsClosed,
        record: Conversation::NAME,
        dimensions: &[Dimension::Assistant, Dimension::Widget],
        count: |change| {
            of(change, |was, is: &Conversation| {
                let is_closed = was.is_some_and(Conversation::is_open) && !is.is_open();
                is_closed.then(|| in_conversation(is, is.closed_at.unwrap_or(is.updated_at)))
            })
        },
    },
    MetricRow {
        metric: Metric::Messages,
        record: Conversation::NAME,
        dimensions: &[Dimension::Assistant, Dimension::Widget, Dimension::Sender],
        count: |change| of(change, messages),
    },
    MetricRow {
        metric: Metric::VoiceSeconds,
        record: CampaignContact::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign],
        count: |change| reported::<CampaignContact>(change, seconds),
    },
    MetricRow {
        metric: Metric::VoiceSeconds,
        record: Conversation::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign],
        count: |change| reported::<Conversation>(change, seconds),
    },
    MetricRow {
        metric: Metric::CapturedForms,
        record: CapturedForm::NAME,
        dimensions: &[Dimension::Assistant, Dimension::Widget],
        count: |change| {
            of(change, |was, is: &CapturedForm| {
                let count = MetricCount::one(is.created_at).with(Dimension::Assistant, Some(is.assistant_id));
                was.is_none().then(|| count.with(Dimension::Widget, is.widget_id))
            })
        },
    },
    MetricRow {
        metric: Metric::CapturedIntents,
        record: CapturedIntent::NAME,
        dimensions: &[Dimension::Assistant, Dimension::Widget, Dimension::Intent],
        count: |change| {
            of(change, |was, is: &CapturedIntent| {
                let count = MetricCount::one(is.created_at).with(Dimension::Assistant, Some(is.assistant_id));
                let count = count.with(Dimension::Widget, is.widget_id);
                was.is_none().then(|| count.with(Dimension::Intent, Some(is.intent_id)))
            })
        },
    },
    MetricRow {
        metric: Metric::Sends,
        record: Delivery::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign],
        count: |change| {
            let is_send = |is: &Delivery| is.event.is_for_connector() && is.state == DeliveryState::Delivered;
            ended(change).map(|ended| ended.filter(is_send).map(|is| of_delivery(change, &is)).into_iter().collect())
        },
    },
    MetricRow {
        metric: Metric::Outcomes,
        record: CampaignContact::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign, Dimension::Outcome],
        count: |change| reported::<CampaignContact>(change, outcome),
    },
    MetricRow {
        metric: Metric::Outcomes,
        record: Conversation::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign, Dimension::Outcome],
        count: |change| reported::<Conversation>(change, outcome),
    },
    MetricRow {
        metric: Metric::Deliveries,
        record: Delivery::NAME,
        dimensions: &[Dimension::Widget, Dimension::Campaign, Dimension::Outcome],
        count: |change| {
            let counted = |is: Delivery| of_delivery(change, &is).with(Dimension::Outcome, Some(is.state.as_str()));
            ended(change).map(|ended| ended.map(counted).into_iter().collect())
        },
    },
];

impl Metric {
    /// What its counts are separated by.
    pub fn dimensions(self) -> &'static [Dimension] {
        METRICS.iter().find(|row| row.metric == self).map_or(&[], |row| row.dimensions)
    }
}

/// What a change counts, for each metric.
///
/// # Errors
/// [`TableError::Broken`] where the item is another record.
pub fn counted(change: &Change) -> Result<Vec<(Metric, MetricCount)>, TableError> {
    let of_record = METRICS.iter().filter(|row| change.record_name() == Some(row.record));
    let counted = of_record.map(|row| Ok((row.count)(change)?.into_iter().map(|counted| (row.metric, counted))));
    let counted = counted.collect::<Result<Vec<_>, TableError>>()?.into_iter().flatten();
    Ok(counted.filter(|(_, counted)| counted.amount != 0).collect())
}

impl MetricCount {
    /// One, at this time.
    const fn one(at: Timestamp) -> Self {
        Self { at, values: Vec::new(), amount: 1 }
    }

    /// The same, with the value of a dimension, if there is one.
    fn with(mut self, dimension: Dimension, value: Option<impl ToString>) -> Self {
        self.values.extend(value.map(|value| (dimension, value.to_string())));
        self
    }

    /// Its value of a dimension.
    pub fn value(&self, dimension: Dimension) -> Option<&str> {
        self.values.iter().find(|(known, _)| *known == dimension).map(|(_, value)| value.as_str())
    }
}

/// What `count` makes of the record before and after a change; nothing of a removal.
fn of<R: DeserializeOwned>(
    change: &Change,
    count: impl FnOnce(Option<&R>, &R) -> Option<MetricCount>,
) -> Result<Vec<MetricCount>, TableError> {
    let Some(is) = change.record::<R>()? else { return Ok(Vec::new()) };
    Ok(count(change.record_before()?.as_ref(), &is).into_iter().collect())
}

/// A record of which a connector reports outcomes.
trait Reported: DeserializeOwned {
    /// The report that counts.
    fn result(&self) -> Option<&OutcomeReport>;
    /// Whether a report is about the present attempt to reach the person.
    fn is_of_present_attempt(&self, report: &OutcomeReport) -> bool;
    /// One, with the values of the dimensions.
    fn one(&self, at: Timestamp) -> MetricCount;
}

impl Reported for CampaignContact {
    fn result(&self) -> Option<&OutcomeReport> {
        self.result.as_ref()
    }

    fn is_of_present_attempt(&self, report: &OutcomeReport) -> bool {
        self.is_of_present_attempt(report)
    }

    fn one(&self, at: Timestamp) -> MetricCount {
        let widget = self.endpoint_id.map(|EndpointId(widget)| widget);
        MetricCount::one(at).with(Dimension::Widget, widget).with(Dimension::Campaign, Some(self.campaign_id))
    }
}

impl Reported for Conversation {
    fn result(&self) -> Option<&OutcomeReport> {
        self.result.as_ref()
    }

    fn is_of_present_attempt(&self, _: &OutcomeReport) -> bool {
        true
    }

    fn one(&self, at: Timestamp) -> MetricCount {
        MetricCount::one(at).with(Dimension::Widget, self.widget_id)
    }
}

/// What a report of an outcome counts. It takes the place of an earlier report about the same attempt, whose count is
/// taken away at its own time.
fn reported<R: Reported>(
    change: &Change,
    count: fn(&OutcomeReport, MetricCount) -> MetricCount,
) -> Result<Vec<MetricCount>, TableError> {
    let Some(is) = change.record::<R>()? else { return Ok(Vec::new()) };
    let was = change.record_before::<R>()?;
    let counted = |record: &R| record.result().map(|report| count(report, record.one(report.at)));
    let present = |was: &&R| was.result().is_some_and(|report| is.is_of_present_attempt(report));
    let changed = was.as_ref().is_none_or(|was| was.result() != is.result());
    let before = was.as_ref().filter(present).and_then(counted).filter(|_| changed);
    let after = counted(&is).filter(|_| changed);
    Ok(before.map(|was| MetricCount { amount: -was.amount, ..was }).into_iter().chain(after).collect())
}

fn outcome(report: &OutcomeReport, of: MetricCount) -> MetricCount {
    of.with(Dimension::Outcome, Some(report.outcome.as_str()))
}

fn seconds(report: &OutcomeReport, of: MetricCount) -> MetricCount {
    MetricCount { amount: report.duration_seconds.map_or(0, CallSeconds::get), ..of }
}

fn in_conversation(is: &Conversation, at: Timestamp) -> MetricCount {
    MetricCount::one(at).with(Dimension::Assistant, Some(is.assistant_id)).with(Dimension::Widget, is.widget_id)
}

/// The messages that a change adds: one transaction adds one, and notes who has said it.
fn messages(was: Option<&Conversation>, is: &Conversation) -> Option<MetricCount> {
    let said = is.chat_count.checked_sub(was.map_or(0, |was| was.chat_count)).filter(|said| *said > 0)?;
    let amount = i64::try_from(said).ok()?;
    let sender = is.last_sender.map(SenderType::as_str);
    Some(MetricCount { amount, ..in_conversation(is, is.updated_at).with(Dimension::Sender, sender) })
}

/// The delivery that has ended with a change. One that is sent again ends again.
fn ended(change: &Change) -> Result<Option<Delivery>, TableError> {
    let has_ended = |state| matches!(state, DeliveryState::Delivered | DeliveryState::Dead);
    let Some(is) = change.record::<Delivery>()?.filter(|is| has_ended(is.state)) else { return Ok(None) };
    let was = change.record_before::<Delivery>()?;
    Ok(was.is_none_or(|was| !has_ended(was.state)).then_some(is))
}

fn of_delivery(change: &Change, is: &Delivery) -> MetricCount {
    // A delivery does not name its endpoint: the list does.
    let key = change.key();
    let endpoint = row_of(&key).and_then(|(_, list, _)| list.rsplit('#').next()).map(str::to_owned);
    let widget = endpoint.filter(|_| is.event.is_for_connector());
    MetricCount::one(is.updated_at).with(Dimension::Widget, widget).with(Dimension::Campaign, is.campaign_id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_metric_has_rows_with_the_same_dimensions() {
        for word in Metric::WORDS {
            let metric = Metric::from_word(word).unwrap();
            let rows: Vec<_> = METRICS.iter().filter(|row| row.metric == metric).collect();
            assert!(!rows.is_empty(), "{word}");
            assert!(rows.iter().all(|row| row.dimensions == rows[0].dimensions), "{word}");
        }
    }
}
