//! How a campaign with a schedule is made and changed.

use std::collections::HashSet;

use super::staged::{Addition, PlacedContacts, kept_changing};
use super::storage::complete;
use super::{Campaign, CampaignContact, CampaignStatus, CampaignType, ContactIds, Counts, RunId, Standing};
use crate::input::schema::{Member, Value, object, titled};
use crate::input::{Input, Issues, Location, Patch, Source, input_member, member, settle, words};
use crate::operations::new::{New, require_room};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::{Changes, Declared as _, FieldRole};
use crate::table::error::Cancelled;
use crate::table::item::{Item, from_item, made_id};
use crate::table::rows::{NewRow, version, was_changed_by};
use crate::table::transaction::Transaction;
use crate::table::{Table, TableError};
use crate::values::id::{CampaignId, ContactId, WidgetId, with_ordinal};
use crate::values::time::Timestamp;

/// What a campaign with a schedule cannot do without.
const REQUIRED: [&str; 3] = ["name", "type", "start_time"];

/// The input of create-campaign.
#[derive(Debug)]
pub struct NewScheduledCampaign {
    campaign: Campaign,
    contact_ids: Option<ContactIds>,
}

impl Input for NewScheduledCampaign {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let campaign = New::<Campaign>::read(source, issues);
        let contact_ids = source.optional::<Option<ContactIds>>("contact_ids", issues, || None);
        let status = source.optional::<Option<CampaignStatus>>("status", issues, || None);
        let (New { record: campaign, .. }, contact_ids, status) = (campaign?, contact_ids?, status?);
        let given = [campaign.name.is_some(), campaign.r#type.is_some(), campaign.start_time.is_some()];
        for (field, _) in REQUIRED.iter().zip(given).filter(|(_, given)| !given) {
            issues.push(Location::body().name(*field).issue(words::MISSING.0, words::MISSING.1));
        }
        // What it begins with follows from `enabled`.
        let begins = [None, Some(CampaignStatus::NotStarted), Some(CampaignStatus::ToBeRun)];
        if !begins.contains(&status) {
            issues.push(
                Location::body()
                    .name("status")
                    .issue("value_error", "Value error, a campaign begins as not_started or to_be_run"),
            );
        }
        issues.is_empty().then_some(Self { campaign, contact_ids })
    }

    fn schema() -> Value {
        let required = |member: Member| Member { required: REQUIRED.contains(&member.name), ..member };
        let mut members: Vec<_> = inputs().map(required).map(input_member).collect();
        members.push(contact_ids("The contacts of the first execution."));
        members.push(status("`not_started` or `to_be_run`: which of them it is follows from `enabled`."));
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

impl NewScheduledCampaign {
    /// Creates the campaign, with its first contacts.
    ///
    /// # Errors
    /// [`Error::Invalid`] at what is not there or does not fit.
    pub async fn create(self, cx: &Context<'_>) -> Result<Campaign> {
        let Self { campaign: mut new, contact_ids } = self;
        let (now, row) = (cx.now(), cx.new_row(()));
        let contacts = contact_ids.as_ref().map(ContactIds::distinct).unwrap_or_default();
        let widget = async {
            match new.widget_id {
                Some(id) => cx.table.find::<Widget>(id).await,
                None => Ok(None),
            }
        };
        let (widget, missing) = futures_util::try_join!(widget, cx.table.missing_contacts(&contacts))?;
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
        // As of a run, nothing refers to the staged contacts until the commit.
        let contacts = CampaignContact::all_queued(&new, &contacts);
        Ok(cx.table.insert_campaign(new, &contacts, row).await?)
    }
}

impl CampaignChanges {
    /// Changes a campaign that is not being sent. Its status alone may change at any time.
    ///
    /// # Errors
    /// [`Error::NotFound`], [`Error::Conflict`] while it is being sent, [`Error::Invalid`] at what does not fit.
    pub async fn make(self, cx: &Context<'_>, id: CampaignId) -> Result<Campaign> {
        let missing = cx.table.missing_contacts(&self.contacts()).await?;
        // Boxed: what waits for it would otherwise carry all that it holds.
        Box::pin(cx.table.change_campaign(id, &self, &missing, cx)).await.on_missing("campaign_id")?
    }

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
    /// Changes it by `changes`, with so many `new` contacts; `seen` is what it is answered as.
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
                CampaignStatus::Cancelled => return Err(seen.has_nothing_to_send()),
                CampaignStatus::Queued | CampaignStatus::InProgress => return Err(Self::is_in_progress()),
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
                if was.status == CampaignStatus::Paused {
                    // Once there is a time again, what the pause held back is looked at.
                    self.rewind();
                }
                (self.status, self.due_at) = (CampaignStatus::NotStarted, None);
            }
            if self.enabled != was.enabled || self.schedule() != was.schedule() {
                self.plan(now);
            }
        }
        if let Some(status) = status.filter(|status| *status != seen.status && *status != self.status) {
            let counts = Counts { queued: seen.counts.queued + new, ..seen.counts };
            self.turn(status, Standing { counts, ..Standing::default() }, now)?;
        }
        if new > 0 { self.require_open() } else { Ok(()) }
    }
}

impl Campaign {
    /// Brings the fields into the form in which they are stored, and takes from the widget what is its own.
    ///
    /// Where nothing of it `is_new`, a widget that is gone stays.
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
            // That of a widget that is gone stays.
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
        self.assistant_id = widget.assistant_id;
        if kind == CampaignType::OutboundCall {
            (self.message, self.start_new_conversation) = (None, true);
            return Ok(());
        }
        self.message = self.message.take().or_else(|| widget.first_message().cloned());
        if self.enabled && self.message.is_none() { Err(Self::has_no_message()) } else { Ok(()) }
    }

    /// Does what a `status` asks for.
    fn turn(&mut self, status: CampaignStatus, standing: Standing, now: Timestamp) -> Result<()> {
        match status {
            CampaignStatus::Paused => self.pause(standing, now),
            CampaignStatus::InProgress => self.resume(standing, now),
            CampaignStatus::Cancelled => self.cancel(standing, now),
            _ => {
                let message = "Value error, status can be set to paused, in_progress or cancelled";
                Err(Error::invalid(Location::body().name("status").issue("value_error", message)))
            }
        }
    }
}

impl Table {
    /// Inserts a campaign with its contacts. A repeat of the request gets the campaign as it was made.
    async fn insert_campaign(
        &self,
        new: Campaign,
        contacts: &[CampaignContact],
        row: NewRow<()>,
    ) -> Result<Campaign, TableError> {
        let place = self.stage_campaign(&new, contacts).await?;
        let at = |ordinal| CampaignId(with_ordinal(new.id.0, ordinal));
        let stored = Campaign { id: at(place.first()), message: None, ..new.clone() };
        let mut transaction = Transaction::new(self);
        if let Some(origin) = row.origin {
            transaction.made_by(origin, stored.id.0, row.now);
        }
        transaction.insert(stored.id, &stored)?;
        match self.commit(transaction, [place]).await {
            Err(Cancelled::Condition(0, Some(marker))) if row.origin.is_some() => {
                self.campaign(CampaignId(made_id(&marker)?)).await
            }
            Err(cancelled) => Err(cancelled.into()),
            Ok(()) => Ok(Campaign { message: new.message, ..stored }.seen()),
        }
    }

    /// Changes a campaign by `changes`, again where others change it at the same moment. Of one request the change is made once. New contacts get
    /// their places by the same write, so that they are part of what it plans.
    async fn change_campaign(
        &self,
        id: CampaignId,
        changes: &CampaignChanges,
        missing: &HashSet<ContactId>,
        cx: &Context<'_>,
    ) -> Result<Result<Campaign>, TableError> {
        let (by, now, wanted) = (cx.new_id(), cx.now(), changes.contacts());
        let (mut round, mut new): (_, Option<PlacedContacts>) = (self.store.backoff(), None);
        loop {
            let (item, items) = self.item_with_items(id).await?;
            let (version, is_done) = (version(&item), was_changed_by(&item, by));
            let was: Campaign = from_item(item)?;
            let seen = complete(&was, &items);
            if is_done {
                let all =
                    if wanted.is_empty() { Ok(seen) } else { self.rest_added((was, items), new, &wanted, cx).await? };
                return Ok(all);
            }
            if let Some(contacts) = &changes.contact_ids
                && let Err(unknown) = settle(Some(()), contacts.unknown(missing))
            {
                return Ok(Err(unknown.into()));
            }
            new = match self.addition(&was, &items, &wanted, cx).await? {
                Err(full) => return Ok(Err(full)),
                Ok(Addition::None) => None,
                Ok(Addition::Contacts(new)) => Some(new),
                Ok(Addition::Waits) if round.wait().await => continue,
                Ok(Addition::Waits) => return Err(kept_changing()),
            };
            let mut is = Campaign { message: seen.message.clone(), ..was.clone() };
            let count = new.as_ref().map_or(0, PlacedContacts::count);
            is.counts.queued += count;
            let widget = match changes.widget_of(&is) {
                Some(id) => self.find::<Widget>(id).await?,
                None => None,
            };
            if let Err(refused) = is.change((changes, count), &seen, widget.as_ref(), now) {
                return Ok(Err(refused));
            }
            let message = is.message.take();
            let says_another = message != seen.message || is.assistant_id != was.assistant_id;
            is.text_version += u32::from(says_another);
            if is == was {
                return Ok(Ok(seen));
            }
            let mut transaction = self.replacing(id, (&was, &is), version, by)?;
            if says_another {
                transaction.writes.extend(self.changing_text((&was, &items), (is.text_version, message.as_ref())));
            }
            if let Some(new) = &new {
                transaction.writes.extend(self.with_places(id, new)?);
            }
            match self.store.transact(&transaction.writes).await {
                Ok(()) => {
                    if let Some(new) = &new {
                        self.show_contacts(id, new, cx).await?;
                    }
                    return Ok(Ok(Campaign { message, ..complete(&is, &items) }));
                }
                Err(Cancelled::Condition(..)) if round.wait().await => {}
                Err(Cancelled::Condition(..)) => return Err(kept_changing()),
                Err(cancelled) => return Err(cancelled.into()),
            }
        }
    }

    /// Adds what an attempt to add `new` contacts has left, and returns the campaign with them.
    async fn rest_added(
        &self,
        (campaign, items): (Campaign, Vec<Item>),
        new: Option<PlacedContacts>,
        wanted: &[ContactId],
        cx: &Context<'_>,
    ) -> Result<Result<Campaign>, TableError> {
        let id = campaign.id;
        if let Some(new) = new.filter(|new| new.are_hidden(&items)) {
            self.show_contacts(id, &new, cx).await?;
        } else if let Err(closed) = self.add_contacts((campaign, items), wanted, cx).await? {
            return Ok(Err(closed));
        }
        self.campaign(id).await.map(Ok)
    }
}
