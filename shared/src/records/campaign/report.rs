//! What a connector reports of a contact: how its call or its message ended. One transaction stores the report, counts
//! it, and has the contact dispatched again where the retry policy says so.

use super::counts::Tally;
use super::state::CampaignStep;
use super::storage::{as_read, with_campaign};
use super::waiting;
use super::{Campaign, CampaignContact, CampaignStatus, ContactStatus};
use crate::input::Location;
use crate::records::outcome::{NewOutcome, OutcomeReport, ReportedOutcome};
use crate::records::suppression::{self, SuppressedChannel};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::error::was_done;
use crate::table::expression::{Condition, UpdateExpression};
use crate::table::item::{attribute, null, number, text};
use crate::table::keys::RECORD;
use crate::table::transaction::{Transaction, Write};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignContactId, WidgetId};
use crate::values::time::Timestamp;

/// Stores how the call or the message to a contact ended, unless a later report is stored. Returns the contact with the
/// report that counts.
///
/// # Errors
/// [`Error::NotFound`] where there is no such contact, [`Error::Conflict`] where nothing was sent to it,
/// [`Error::Invalid`] at a time in the future.
pub async fn report(cx: &Context<'_>, id: CampaignContactId, new: NewOutcome) -> Result<CampaignContact> {
    let (table, now) = (&cx.table, cx.now());
    let report = new.report(now)?;
    if report.outcome == ReportedOutcome::OptedOut {
        // First, and whatever time the report has: a person who has opted out is not contacted again.
        opt_out(cx, id).await?;
    }
    let mut round = table.store.backoff();
    loop {
        let found = with_campaign(table, id).await?.ok_or(TableError::Missing);
        let (contact, campaign) = found.on_missing("campaign_contact_id")?;
        contact.require_dispatched()?;
        if !contact.takes(&report) {
            return Ok(contact.as_answered_in(&campaign));
        }
        let is = contact.reported(&campaign, report.clone(), now);
        if reporting(table, (&contact, &is), &campaign, now).await? {
            return Ok(is.as_answered_in(&campaign));
        }
        round.again("the contact of the campaign").await?;
    }
}

/// Suppresses the contact for the channel of its campaign, or for all where the widget is gone.
async fn opt_out(cx: &Context<'_>, id: CampaignContactId) -> Result<()> {
    let found = with_campaign(&cx.table, id).await?.ok_or(TableError::Missing);
    let (contact, campaign) = found.on_missing("campaign_contact_id")?;
    contact.require_dispatched()?;
    let widget = match contact.endpoint_id.map(|endpoint| WidgetId(endpoint.0)).or(campaign.widget_id) {
        Some(widget) => cx.table.find::<Widget>(widget).await?,
        None => None,
    };
    suppression::opt_out(cx, contact.contact_id, SuppressedChannel::of_widget(widget.as_ref())).await
}

impl CampaignContact {
    /// The name of the record, in the audit list and in the stream.
    pub const NAME: &'static str = "CampaignContact";

    /// Requires that something was sent to it.
    fn require_dispatched(&self) -> Result<()> {
        if self.conversation_id.is_some() {
            return Ok(());
        }
        let at = Location::path().name("campaign_contact_id");
        Err(Error::Conflict { at, kind: "not_sent", message: "Nothing was sent to the contact" })
    }

    /// Whether `report` counts: it is the first one, or a later one. One from before the present attempt is about an
    /// attempt before.
    fn takes(&self, report: &OutcomeReport) -> bool {
        report.replaces(self.result.as_ref()) && self.is_of_present_attempt(report)
    }

    /// Whether a report is about the present attempt.
    pub fn is_of_present_attempt(&self, report: &OutcomeReport) -> bool {
        self.times_dispatched() <= 1 || self.sent_at.is_none_or(|sent| report.at >= sent)
    }

    /// This contact after a report. A contact whose outcome is known has got its message or its call.
    fn reported(&self, campaign: &Campaign, report: OutcomeReport, now: Timestamp) -> Self {
        let goes_on = matches!(self.status, ContactStatus::Queued | ContactStatus::Sent);
        let next_attempt_at = campaign.next_attempt(self, &report).filter(|_| goes_on);
        let status = match next_attempt_at {
            Some(_) => ContactStatus::Queued,
            None if goes_on => ContactStatus::Sent,
            None => self.status,
        };
        // The end of an earlier delivery must not end the next attempt.
        let delivery_id = self.delivery_id.filter(|_| next_attempt_at.is_none());
        Self { status, next_attempt_at, delivery_id, result: Some(report), updated_at: now, ..self.clone() }
    }
}

/// Replaces the contact `was` by `is`, with the counts, unless it or its campaign has changed since they were read.
async fn reporting(
    table: &Table,
    (was, is): (&CampaignContact, &CampaignContact),
    campaign: &Campaign,
    now: Timestamp,
) -> Result<bool, TableError> {
    // The stream takes the contact by its record, and emits an event of the outcome.
    let change = UpdateExpression::new()
        .add("version", number(1))
        .set("status", text(is.status.as_str()))
        .set("result", attribute(&is.result)?)
        // Whoever reads the stream needs the whole id of the campaign, which a contact lacks until then.
        .set("campaign_id", text(campaign.id))
        .set("next_attempt_at", is.next_attempt_at.map_or_else(null, text))
        .set("delivery_id", is.delivery_id.map_or_else(null, text))
        .set("updated_at", text(now))
        .set(RECORD, text(CampaignContact::NAME));
    let change = Write::update(table.key::<CampaignContact>(is.id), table.stamping(change));
    let outcome = |contact: &CampaignContact| contact.result.as_ref().map(|result| result.outcome);
    let mut tally = Tally::default().outcome(outcome(was), -1).outcome(outcome(is), 1);
    if is.status != was.status {
        tally = tally.status((was.status, was.round), -1).status((is.status, is.round), 1);
    }
    let mut transaction = Transaction::new(table);
    transaction.write(change.when(as_read(was)));
    transaction.write_all(tally.write(table, is.id));
    if let Some(at) = is.next_attempt_at {
        transaction.write(waiting::noting(table, was, at));
        if !waking(&mut transaction, campaign, at, now)? {
            return Ok(false);
        }
    }
    was_done(transaction.commit().await)
}

/// Adds that the campaign looks for the contact at `at`: as it does already, or from now on. Returns false if it is
/// cancelled.
fn waking(
    transaction: &mut Transaction<'_, ()>,
    campaign: &Campaign,
    at: Timestamp,
    now: Timestamp,
) -> Result<bool, TableError> {
    if campaign.again_at.is_some_and(|known| known <= at) {
        // Many contacts of a campaign are reported at the same time, and the row of the campaign is only checked.
        let looks = Condition::of(
            "again_at <= :at AND #status <> :cancelled",
            [(":at", text(at)), (":cancelled", text(CampaignStatus::Cancelled.as_str()))],
        );
        let key = transaction.table().key::<Campaign>(campaign.id);
        transaction.write(Write::check(key, looks));
        return Ok(true);
    }
    let Some(woken) = campaign.clone().after(CampaignStep::Again { at }, now) else { return Ok(false) };
    transaction.replace(campaign.id, campaign, woken, None)?;
    Ok(true)
}
