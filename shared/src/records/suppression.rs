//! Suppressions: the telephone numbers and e-mail addresses that campaigns, messages and calls must not reach.
//!
//! A suppression is about the number or address, and not about a contact: it stays when the contact is deleted, and it
//! holds for a contact that is created later.

mod check;
mod import;

pub use check::{Points, ReadGuard, announce, read_guard, require_free, suppressed};
pub use import::{NewSuppressions, import};

use uuid::Uuid;

use crate::input::{Location, words};
use crate::records::contact::Contact;
use crate::records::contact_point::{Email, PhoneNumber};
use crate::records::widget::Widget;
use crate::request::context::Context;
use crate::request::error::{Error, Result};
use crate::request::response::Upserted;
use crate::table::error::{Cancelled, NotChanged};
use crate::table::filters::Term;
use crate::table::item::target_id;
use crate::table::reservation::Reservation;
use crate::table::transaction::{Transaction, Unmet};
use crate::table::version::Version;
use crate::table::{Table, TableError};
use crate::values::id::{ContactId, OrgId, SuppressionId, ordinal, with_ordinal};
use crate::values::text::Name;
use crate::values::time::Timestamp;

/// The reason of a suppression that follows from an outcome.
const OPTED_OUT: &str = "opted_out";

crate::choice! {
    /// What a suppression is against.
    pub enum SuppressedChannel {
        /// Calls.
        Call = "call",
        /// Messages.
        Message = "message",
        /// Both.
        All = "all",
    }
}

crate::record! {
    /// A suppression: a telephone number or an e-mail address that is not to be contacted.
    pub struct Suppression(SuppressionId): listed("SUPPRESSION" spread) {
        /// The telephone number with its country code, answered as `+` and digits; null if it is an e-mail address. A number has one suppression at most.
        fixed(unique filter) phone_number: Option<PhoneNumber> = None,
        /// The e-mail address; null if it is a telephone number. Upper and lower case make no difference, and an address has one suppression at most.
        fixed(unique filter) email: Option<Email> = None,
        /// What it is against: calls, messages, or both.
        fixed channel: SuppressedChannel = SuppressedChannel::All,
        /// Why it is not to be contacted, for those who read the list.
        fixed reason: Option<Name> = None,
        /// The organisation that owns the suppression. A body may leave it out; if it names one, it must be that of the API key.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::input! {
    /// What is to be suppressed: a telephone number or an e-mail address.
    pub struct NewSuppression {
        /// The telephone number, with its country code.
        pub phone_number: Option<PhoneNumber> = None,
        /// The e-mail address. Upper and lower case make no difference.
        pub email: Option<Email> = None,
        /// What it is against: calls, messages, or both.
        pub channel: SuppressedChannel = SuppressedChannel::All,
        /// Why it is not to be contacted, for those who read the list.
        pub reason: Option<Name> = None,
        /// The organisation of the API key. It may be left out.
        pub org_id: Option<OrgId> = None,
    }
}

impl SuppressedChannel {
    /// The channel of a send.
    pub const fn of_send(calls: bool) -> Self {
        if calls { Self::Call } else { Self::Message }
    }

    /// The channel of what is sent through `widget`; all channels where it is gone.
    pub fn of_widget(widget: Option<&Widget>) -> Self {
        widget.map_or(Self::All, |widget| Self::of_send(widget.widget_type.calls()))
    }

    /// Both channels together.
    pub(crate) fn and(self, other: Self) -> Self {
        if self == other { self } else { Self::All }
    }

    /// Whether it includes all of `other`.
    pub(crate) fn covers(self, other: Self) -> bool {
        self.and(other) == self
    }
}

impl NewSuppression {
    /// This suppression, after a check: the organisation must be `org`, and it must name either a telephone number or
    /// an e-mail address.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at another organisation, [`Error::Invalid`] where it names none or both.
    pub fn checked(self, org: OrgId) -> Result<Self> {
        self.check(org, &Location::body())?;
        Ok(self)
    }

    /// The same check; its issues are at `place`.
    fn check(&self, org: OrgId, place: &Location) -> Result<()> {
        if self.org_id.is_some_and(|named| named != org) {
            return Err(Error::other_organisation(place.name("org_id")));
        }
        match (&self.phone_number, &self.email) {
            (None, None) => Err(Error::invalid(place.name("phone_number").issue(words::MISSING.0, words::MISSING.1))),
            (Some(_), Some(_)) => {
                let both = "A suppression has a telephone number or an e-mail address, not both";
                Err(Error::invalid(place.name("email").issue("value_error", both)))
            }
            _ => Ok(()),
        }
    }

    /// Adds what `other` says about the same number or address. Its reason counts if it adds a channel.
    fn add(&mut self, other: &Self) {
        if !self.channel.covers(other.channel) {
            self.channel = self.channel.and(other.channel);
            self.reason = other.reason.clone().or(self.reason.take());
        }
    }

    /// The value by which it is found.
    fn terms(&self) -> Vec<Term> {
        points(self.phone_number.as_ref(), self.email.as_ref())
    }
}

/// The values by which the suppressions of a telephone number and of an e-mail address are found.
fn points(phone_number: Option<&PhoneNumber>, email: Option<&Email>) -> Vec<Term> {
    let number = phone_number.and_then(|number| Term::of("phone_number", number));
    number.into_iter().chain(email.and_then(|email| Term::of("email", email))).collect()
}

/// One suppression that a request makes.
#[derive(Debug)]
struct WantedSuppression {
    new: NewSuppression,
    /// The id of the suppression, if it is new.
    id: Uuid,
    /// The mark by which a repeat finds what was created.
    origin: Option<Uuid>,
    /// The mark by which a repeat finds what was changed.
    change: Uuid,
    org: OrgId,
    now: Timestamp,
}

impl WantedSuppression {
    fn new(cx: &Context<'_>, new: NewSuppression) -> Self {
        let (id, change) = (cx.new_id(), cx.new_id());
        Self { new, id, origin: cx.origin(id), change, org: cx.tenant.org(), now: cx.now() }
    }

    /// The new suppression.
    fn suppression(&self, id: SuppressionId) -> Suppression {
        let NewSuppression { phone_number, email, channel, reason, org_id: _ } = &self.new;
        Suppression {
            id,
            phone_number: phone_number.clone(),
            email: email.clone(),
            channel: *channel,
            reason: reason.clone(),
            org_id: self.org,
            created_at: self.now,
            updated_at: self.now,
            version: Version::default(),
        }
    }
}

/// Suppresses a telephone number or an e-mail address. One that is suppressed already keeps its suppression, which gets
/// the further channel.
///
/// # Errors
/// An error of the database.
pub async fn create(cx: &Context<'_>, new: NewSuppression) -> Result<Upserted<Suppression>> {
    let created = suppress(&cx.table, &WantedSuppression::new(cx, new), None).await?;
    announce(&cx.table).await?;
    Ok(created)
}

/// Suppresses the telephone number and the e-mail address of a contact that wants no more of this channel. A contact that
/// is gone has none.
///
/// # Errors
/// An error of the database: a repeat continues.
pub async fn opt_out(cx: &Context<'_>, contact: ContactId, channel: SuppressedChannel) -> Result<()> {
    let Some(Contact { phone_number, email, .. }) = cx.table.find(contact).await? else { return Ok(()) };
    let reason = || Some(Name::from(OPTED_OUT));
    let of_number = NewSuppression { phone_number, email: None, channel, reason: reason(), org_id: None };
    let of_address = NewSuppression { phone_number: None, email, channel, reason: reason(), org_id: None };
    // Both take their ids, so that a repeat has the same ones if the contact has changed since.
    for wanted in [of_number, of_address].map(|new| WantedSuppression::new(cx, new)) {
        if !wanted.new.terms().is_empty() {
            suppress(&cx.table, &wanted, None).await?;
        }
    }
    Ok(announce(&cx.table).await?)
}

/// Makes the suppression, or widens the one that there is, which may be `known`. It holds for dispatches when it was
/// [announced](announce).
async fn suppress(
    table: &Table,
    wanted: &WantedSuppression,
    mut known: Option<SuppressionId>,
) -> Result<Upserted<Suppression>> {
    let mut round = table.store.backoff();
    loop {
        let suppressed = match known.take() {
            Some(id) => widen(table, wanted, id).await,
            None => find_or_insert(table, wanted).await,
        };
        match suppressed {
            // In the meantime, another writer has created or removed it.
            Err(TableError::Missing | TableError::Taken { .. }) => round.again("the suppression").await?,
            result => return Ok(result?),
        }
    }
}

/// Widens the suppression that there is, or inserts a new one. Its place is reserved while it is looked for, because most
/// suppressions are new.
async fn find_or_insert(table: &Table, wanted: &WantedSuppression) -> Result<Upserted<Suppression>, TableError> {
    let terms = wanted.new.terms();
    let (found, place) =
        futures_util::join!(table.holders::<Suppression>((), &terms), table.reserve::<Suppression>((), 1));
    let place = place?;
    match found.map(|found| found.first().map(|(_, id)| SuppressionId(*id))) {
        Ok(None) => insert(table, wanted, place).await.map(Upserted::Created),
        Ok(Some(id)) => futures_util::join!(widen(table, wanted, id), table.give_back([place])).0,
        Err(error) => {
            table.give_back([place]).await;
            Err(error)
        }
    }
}

async fn insert(table: &Table, wanted: &WantedSuppression, place: Reservation) -> Result<Suppression, TableError> {
    let made = |ordinal: u64| wanted.suppression(SuppressionId(with_ordinal(wanted.id, ordinal)));
    let new = made(place.first());
    let mut transaction = Transaction::of_request(table);
    transaction.once(wanted.origin, new.id.0, wanted.now);
    transaction.insert(new.id, &new)?;
    match transaction.commit_reserved([place]).await {
        Ok(()) => Ok(new),
        Err(Cancelled::Condition(Unmet::Repeated, Some(marker))) => Ok(made(ordinal(target_id(&marker)?))),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// Adds the wanted channel to the suppression `id`. One that covers it is not written.
async fn widen(
    table: &Table,
    wanted: &WantedSuppression,
    id: SuppressionId,
) -> Result<Upserted<Suppression>, TableError> {
    if with_ordinal(wanted.id, ordinal(id.0)) == id.0 {
        // An earlier attempt of this request has created it, or a call whose answer was lost.
        return Ok(Upserted::Created(table.get(id).await?));
    }
    let change = |found: &mut Suppression| {
        if found.channel.covers(wanted.new.channel) {
            return Err(Box::new(found.clone()));
        }
        found.channel = found.channel.and(wanted.new.channel);
        found.reason = wanted.new.reason.clone().or(found.reason.take());
        found.updated_at = wanted.now;
        Ok(())
    };
    match table.try_change(id, wanted.change, change).await {
        Ok(suppression) => Ok(Upserted::Updated(suppression)),
        Err(NotChanged::Refused(suppression)) => Ok(Upserted::Updated(*suppression)),
        Err(NotChanged::Failed(error)) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn channels_are_added_and_never_taken_away() {
        use SuppressedChannel::{All, Call, Message};
        for (one, other, both) in [(Call, Call, Call), (Call, Message, All), (All, Message, All), (Message, All, All)] {
            assert_eq!(one.and(other), both);
            assert_eq!(one.covers(other), one == both);
        }
    }
}
