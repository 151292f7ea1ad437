//! How a campaign with a schedule is created and changed.

use std::collections::HashSet;

use super::staged::{Addition, PlacedContacts, add, addition, show_contacts, with_places};
use super::state::{CampaignCommand, CampaignRefusal, ContactTotals};
use super::storage::{answered, missing_contacts, read, stage, with_items};
use super::{Campaign, CampaignContact, CampaignStatus, CampaignType, ContactIds, Counts, RunId, text};
use crate::input::schema::{Member, Value, object, titled};
use crate::input::{Input, Issues, Location, Patch, Source, input_member, member, settle, words};
use crate::operations::new::{New, require_room};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::{Changes, Declared as _, FieldRole};
use crate::table::error::{Cancelled, was_done};
use crate::table::item::{Item, target_id};
use crate::table::quota::Quota;
use crate::table::rows::NewRow;
use crate::table::stored::Listed as _;
use crate::table::transaction::{Transaction, Unmet};
use crate::table::{Table, TableError};
use crate::values::id::{CampaignId, ContactId, WidgetId, with_ordinal};
use crate::values::time::Timestamp;

/// The fields that a campaign with a schedule must have.
const REQUIRED: [&str; 3] = ["name", "type", "start_time"];

/// The input of create-campaign.
#[derive(Debug)]
pub struct NewScheduledCampaign {
    campaign: Campaign,
    contact_ids: Option<ContactIds>,
    status: Option<CampaignStatus>,
}

impl Input for NewScheduledCampaign {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let campaign = New::<Campaign>::read(source, issues);
        let contact_ids = source.optional::<Option<ContactIds>>("contact_ids", issues, || None);
        let status = source.optional::<Option<CampaignStatus>>("status", issues, || None);
        for field in REQUIRED.into_iter().filter(|field| !source.has(field)) {
            issues.push(Location::body().name(field).issue(words::MISSING.0, words::MISSING.1));
        }
        let (New { record: campaign, .. }, contact_ids, status) = (campaign?, contact_ids?, status?);
        issues.is_empty().then_some(Self { campaign, contact_ids, status })
    }

    fn schema() -> Value {
        let required = |member: Member| Member { required: REQUIRED.contains(&member.name), ..member };
        let mut members: Vec<_> = inputs().map(required).map(input_member).collect();
        members.push(contact_ids("The contacts of the first execution."));
        members.push(status(
            "`paused` waits until it is resumed. `cancelled` and `completed` have ended, and send nothing. With any other status, or none, the campaign \
             begins as `to_be_run` if it is enabled, and as `not_started` if it is not: it becomes `in_progress` when it is sent.",
        ));
        titled(object(members), "NewScheduledCampaign", "A campaign that is sent later, or again and again.")
    }
}

/// The input of update-campaign.
#[derive(Debug)]
pub struct CampaignChanges {
    changes: Changes<Campaign>,
    contact_ids: Option<ContactIds>,
    status: Option<CampaignStatus>,
}

impl Input for CampaignChanges {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let changes = Changes::read(source, issues);
        let contact_ids = source.optional::<Option<ContactIds>>("contact_ids", issues, || None);
        let status = source.optional::<Option<CampaignStatus>>("status", issues, || None);
        Some(Self { changes: changes?, contact_ids: contact_ids?, status: status? })
    }

    fn schema() -> Value {
        let mut schema = Changes::<Campaign>::schema();
        let members = [
            contact_ids("Contacts that are added. Those that are in it already stay."),
            status(
                "`paused`, `in_progress` and `cancelled` do what pause, resume and cancel do. Its present status changes nothing.",
            ),
        ];
        for member in members {
            schema["properties"][member.name] = member.schema;
        }
        schema
    }
}

/// The members that a caller sets.
fn inputs() -> impl Iterator<Item = Member> {
    Campaign::members().into_iter().filter(|(role, _)| *role == FieldRole::Input).map(|(_, member)| member)
}

fn contact_ids(doc: &str) -> Member {
    input_member(member::<ContactIds>("contact_ids", false, doc))
}

fn status(doc: &str) -> Member {
    input_member(member::<CampaignStatus>("status", false, doc))
}

/// Creates a campaign that is sent later, with its first contacts.
///
/// # Errors
/// [`Error::Invalid`] at a missing record or a field that does not fit.
pub async fn create(cx: &Context<'_>, new: NewScheduledCampaign) -> Result<Campaign> {
    let NewScheduledCampaign { campaign: mut new, contact_ids, status } = new;
    let (now, row) = (cx.now(), cx.new_row(()));
    let contacts = contact_ids.as_ref().map(ContactIds::distinct).unwrap_or_default();
    let widget = async {
        match new.widget_id {
            Some(id) => cx.table.find::<Widget>(id).await,
            None => Ok(None),
        }
    };
    // A disabled campaign does not run.
    let room = async { if new.enabled { cx.table.require_room(Quota::RunningCampaigns).await } else { Ok(()) } };
    let (widget, missing, room) = futures_util::join!(widget, missing_contacts(&cx.table, &contacts), room);
    let (widget, missing) = (widget?, missing?);
    if widget.is_none() && new.widget_id.is_some() {
        return Err(Error::unknown_in_body("widget_id"));
    }
    new.fit(widget.as_ref(), true)?;
    settle(Some(()), contact_ids.map(|contacts| contacts.unknown(&missing)).unwrap_or_default())?;
    require_room(&new)?;
    (new.id, new.created_at) = (RunId::fresh(cx.new_attempt()).campaign(), now);
    new.counts = Counts { queued: contacts.len() as u64, ..Counts::default() };
    (new.has_pointers, new.spreads_contacts) = (true, true);
    new.plan(now);
    if let Some(status) = status {
        new.begin(status, now);
    }
    // A repeat of a request that made its campaign gets it, even if there is no more room.
    if let Err(full) = room
        && !new.uses().is_empty()
        && !cx.table.has_made(row.origin).await?
    {
        return Err(full.into());
    }
    // As with a run, nothing refers to the staged contacts until the commit.
    let contacts = CampaignContact::all_queued(&new, &contacts);
    Ok(insert(&cx.table, new, &contacts, row).await?)
}

/// Changes a campaign that is not being sent. Its status alone may change at any time.
///
/// # Errors
/// [`Error::NotFound`], [`Error::Conflict`] while it is being sent, [`Error::Invalid`] at a field that does not fit.
pub async fn update(cx: &Context<'_>, id: CampaignId, changes: CampaignChanges) -> Result<Campaign> {
    let missing = missing_contacts(&cx.table, &changes.contacts()).await?;
    // Boxed, because the future that waits for it would otherwise contain all of its state.
    Box::pin(change(cx, id, &changes, &missing)).await
}

impl CampaignChanges {
    /// The contacts that it names.
    fn contacts(&self) -> Vec<ContactId> {
        self.contact_ids.as_ref().map(ContactIds::distinct).unwrap_or_default()
    }

    /// The widget that the campaign names after the changes.
    fn widget_of(&self, campaign: &Campaign) -> Option<WidgetId> {
        match self.changes.0.widget_id {
            Patch::Absent => campaign.widget_id,
            Patch::Null => None,
            Patch::Set(widget) => widget,
        }
    }
}

impl Campaign {
    /// Applies `changes`, with `new` more contacts; `seen` is the campaign as a caller sees it.
    fn change(
        &mut self,
        (changes, new): (&CampaignChanges, u64),
        seen: &Self,
        widget: Option<&Widget>,
        now: Timestamp,
    ) -> Result<()> {
        let CampaignChanges { changes: Changes(fields), status, .. } = changes;
        let was = self.clone();
        self.apply(fields);
        let has_changed = *self != was;
        if has_changed || new > 0 {
            match seen.status {
                CampaignStatus::Cancelled => return Err(seen.nothing_to_send().into()),
                CampaignStatus::Queued | CampaignStatus::InProgress => return Err(CampaignRefusal::InProgress.into()),
                _ => self.touch(now),
            }
        }
        if has_changed {
            if self.widget_id != was.widget_id && self.widget_id.is_some() && widget.is_none() {
                return Err(Error::unknown_in_body("widget_id"));
            }
            self.fit(widget, self.widget_id != was.widget_id || self.enabled != was.enabled)?;
            require_room(self)?;
            if self.start_time.is_none() && was.waits() {
                self.unschedule();
            }
            if self.enabled != was.enabled || self.schedule() != was.schedule() {
                self.plan(now);
            }
        }
        if let Some(status) = status.filter(|status| *status != seen.status && *status != self.status) {
            let counts = Counts { queued: seen.counts.queued + new, ..seen.counts };
            self.turn(status, ContactTotals { counts, ..ContactTotals::default() }, now)?;
        }
        if new > 0 { self.require_open() } else { Ok(()) }
    }
}

impl Campaign {
    /// Brings the fields into their stored form, and copies the assistant and the message of the widget.
    ///
    /// Unless the widget or `enabled` `is_new`, a deleted widget is kept.
    ///
    /// # Errors
    /// [`Error::Invalid`] where they do not fit together.
    fn fit(&mut self, widget: Option<&Widget>, is_new: bool) -> Result<()> {
        let zone = &self.time_zone;
        self.start_time = self.start_time.map(|start| start.in_zone(zone).into());
        self.require_execution()?;
        let refused =
            |field, (kind, msg): words::Words| Err(Error::invalid(Location::body().name(field).issue(kind, msg)));
        let Some(widget) = widget else {
            // The assistant of a deleted widget stays.
            self.assistant_id = self.assistant_id.filter(|_| self.widget_id.is_some());
            return match self.widget_id {
                _ if !self.enabled || !is_new => Ok(()),
                Some(_) => Err(Error::unknown_in_body("widget_id")),
                None => refused("widget_id", words::MISSING),
            };
        };
        let kind = CampaignType::from(widget.widget_type);
        if *self.r#type.get_or_insert(kind) != kind {
            return refused("widget_id", ("value_error", "Value error, the widget is of the other kind"));
        }
        if self.enabled && is_new {
            widget.require_connector_of_calls(&Location::body())?;
        }
        self.assistant_id = widget.assistant_id;
        if kind == CampaignType::OutboundCall {
            (self.message, self.start_new_conversation) = (None, true);
            return Ok(());
        }
        self.message = self.message.take().or_else(|| widget.first_message().cloned());
        if self.enabled && self.message.is_none() { Err(Self::has_no_message()) } else { Ok(()) }
    }

    /// Executes the command that a new `status` asks for.
    fn turn(&mut self, status: CampaignStatus, totals: ContactTotals, now: Timestamp) -> Result<()> {
        let command = match status {
            CampaignStatus::Paused => CampaignCommand::Pause,
            CampaignStatus::InProgress => CampaignCommand::Resume,
            CampaignStatus::Cancelled => CampaignCommand::Cancel,
            _ => {
                let message = "Value error, status can be set to paused, in_progress or cancelled";
                return Err(Error::invalid(Location::body().name("status").issue("value_error", message)));
            }
        };
        *self = self.clone().on(command, totals, now)?;
        Ok(())
    }
}

/// Inserts a campaign with its contacts. A repeat of the request gets the campaign as it was created.
async fn insert(
    table: &Table,
    new: Campaign,
    contacts: &[CampaignContact],
    row: NewRow<()>,
) -> Result<Campaign, TableError> {
    let place = stage(table, &new, contacts).await?;
    let at = |ordinal| CampaignId(with_ordinal(new.id.0, ordinal));
    let stored = Campaign { id: at(place.first()), message: None, ..new.clone() };
    let mut transaction = Transaction::of_request(table);
    transaction.once(row.origin, stored.id.0, row.now);
    transaction.insert(stored.id, &stored)?;
    match transaction.commit_reserved([place]).await {
        Err(Cancelled::Condition(Unmet::Repeated, Some(marker))) => read(table, CampaignId(target_id(&marker)?)).await,
        Err(cancelled) => Err(cancelled.into()),
        Ok(()) => Ok(Campaign { message: new.message, ..answered(&stored, &[]) }),
    }
}

/// Changes a campaign by `changes`, and retries if others change it at the same time. One request makes its change
/// once. The same write gives new contacts their places, so that the new plan includes them.
async fn change(
    cx: &Context<'_>,
    id: CampaignId,
    changes: &CampaignChanges,
    missing: &HashSet<ContactId>,
) -> Result<Campaign> {
    let (table, by, wanted) = (&cx.table, cx.new_id(), changes.contacts());
    let (mut round, mut earlier): (_, Option<PlacedContacts>) = (table.store.backoff(), None);
    loop {
        let (was, items) = with_items(table, id).await.on_missing("campaign_id")?;
        let seen = answered(&was, &items);
        if was.version.is_by(by) {
            let is_whole = wanted.is_empty();
            return if is_whole { Ok(seen) } else { add_rest(cx, (was, items), earlier, &wanted).await };
        }
        if let Some(contacts) = &changes.contact_ids {
            settle(Some(()), contacts.unknown(missing))?;
        }
        let new = match addition(cx, &was, &items, &wanted).await? {
            Addition::None => None,
            Addition::Contacts(new) => Some(new),
            Addition::Waits => {
                round.again("the campaign").await?;
                continue;
            }
        };
        let mut is = changed(cx, (&was, &seen), changes, new.as_ref()).await?;
        let message = is.message.take();
        let says_another = message != seen.message || is.assistant_id != was.assistant_id;
        is.text_version += u32::from(says_another);
        if is == was {
            return Ok(seen);
        }
        let mut transaction = Transaction::new(table);
        let is = transaction.replace(id, &was, is, Some(by))?;
        if says_another {
            let text = (is.text_version, message.as_ref());
            transaction.write_all(text::changing_text(table, (&was, &items), text));
        }
        if let Some(new) = &new {
            transaction.write_all(with_places(table, id, new)?);
        }
        if was_done(transaction.commit().await)? {
            if let Some(new) = &new {
                show_contacts(cx, id, new).await?;
            }
            return Ok(Campaign { message, ..answered(&is, &items) });
        }
        earlier = new;
        round.again("the campaign").await?;
    }
}

/// The campaign after `changes`, with its message and its `new` contacts.
async fn changed(
    cx: &Context<'_>,
    (was, seen): (&Campaign, &Campaign),
    changes: &CampaignChanges,
    new: Option<&PlacedContacts>,
) -> Result<Campaign> {
    let mut is = Campaign { message: seen.message.clone(), ..was.clone() };
    let count = new.map_or(0, PlacedContacts::count);
    is.counts.queued += count;
    let widget = match changes.widget_of(&is) {
        Some(id) => cx.table.find::<Widget>(id).await?,
        None => None,
    };
    is.change((changes, count), seen, widget.as_ref(), cx.now())?;
    Ok(is)
}

/// Adds the contacts that an earlier attempt left out, and returns the campaign with them.
async fn add_rest(
    cx: &Context<'_>,
    (campaign, items): (Campaign, Vec<Item>),
    new: Option<PlacedContacts>,
    wanted: &[ContactId],
) -> Result<Campaign> {
    let id = campaign.id;
    match new.filter(|new| new.are_hidden(&items)) {
        Some(new) => show_contacts(cx, id, &new).await?,
        None => drop(add(cx, (campaign, items), wanted).await?),
    }
    read(&cx.table, id).await.on_missing("campaign_id")
}
