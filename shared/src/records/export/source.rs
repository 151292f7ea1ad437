//! The records that can be exported: how the rows of each are read, piece by piece, and which filters select some of
//! them.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use futures_util::future::{BoxFuture, try_join_all};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ExportedRecord;
use crate::input::schema::{Schema, Value};
use crate::input::{Input as _, Issues, Location, Parse, Raw, Source, words};
use crate::records::agency::{Agency, BillingPlan};
use crate::records::assistant::Assistant;
use crate::records::campaign::{Campaign, CampaignContact, storage as campaigns};
use crate::records::captured_form::CapturedForm;
use crate::records::captured_intent::CapturedIntent;
use crate::records::contact::Contact;
use crate::records::contact_custom_field::ContactCustomField;
use crate::records::conversation::{self, Conversation, Message};
use crate::records::datasource::{Datasource, DatasourceFile};
use crate::records::form::Form;
use crate::records::intent::Intent;
use crate::records::suppression::Suppression;
use crate::records::tag::{Link, Tag};
use crate::records::user::User;
use crate::records::webhook::Webhook;
use crate::records::widget::Widget;
use crate::table::page::ListQuery;
use crate::table::piece::Piece;
use crate::table::stored::{Listed, Stored};
use crate::table::{Table, TableError};
use crate::values::id::Id;
use crate::values::json::JsonObject;

/// Records whose own lists are read at the same time, and the fewest rows that are read of each.
const PARENTS: (usize, usize) = (16, 16);

/// Where the reading of a record goes on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadingPlace {
    /// The place of the row, or of the record that has the list of the row.
    pub row: u64,
    /// The place of the row in the list of that record.
    pub inner: u64,
    /// The place at which the reading ends; `None` before the first piece. Rows that are added later come after it.
    pub end: Option<u64>,
}

/// Rows, each as a line of JSON.
#[derive(Debug)]
pub(super) struct RowLines {
    /// The rows.
    pub lines: Vec<String>,
    /// Where the next ones begin; `None` after the last ones.
    pub next: Option<ReadingPlace>,
}

/// How the rows of a record are read, and what selects some of them.
trait ExportSource {
    /// The names of the filters.
    fn filters() -> Vec<&'static str>;

    /// Reads the values of the filters.
    fn check(source: &Source<'_>, issues: &mut Issues);

    /// The schema of a row.
    fn schema() -> Value;

    /// Reads rows from a place on, as a key that may only read sees them: so many, or a few more.
    fn read(
        table: &Table,
        filters: &JsonObject,
        at: ReadingPlace,
        most: usize,
    ) -> impl Future<Output = Result<RowLines, TableError>> + Send;
}

// Each function of this table names all records, so a binary has the code of the functions alone that it calls.
macro_rules! sources {
    ($($Record:ident $scope:literal $Source:ty;)*) => {
        /// The record, as the scopes of keys name it.
        pub(super) const fn scope(record: ExportedRecord) -> &'static str {
            match record { $(ExportedRecord::$Record => $scope,)* }
        }

        fn filters(record: ExportedRecord) -> Vec<&'static str> {
            match record { $(ExportedRecord::$Record => <$Source>::filters(),)* }
        }

        fn check_values(record: ExportedRecord, source: &Source<'_>, issues: &mut Issues) {
            match record { $(ExportedRecord::$Record => <$Source>::check(source, issues),)* }
        }

        fn schema(record: ExportedRecord) -> Value {
            match record { $(ExportedRecord::$Record => <$Source>::schema(),)* }
        }

        /// Reads rows of `record` from a place on, as a key that may only read sees them: so many, or a few more.
        ///
        /// # Errors
        /// [`TableError`].
        pub(super) fn read<'a>(
            record: ExportedRecord,
            table: &'a Table,
            filters: &'a JsonObject,
            at: ReadingPlace,
            most: usize,
        ) -> BoxFuture<'a, Result<RowLines, TableError>> {
            match record { $(ExportedRecord::$Record => Box::pin(<$Source>::read(table, filters, at, most)),)* }
        }
    };
}

sources! {
    Agency "agency" ListOf<Agency>;
    Assistant "assistant" ListOf<Assistant>;
    BillingPlan "billing-plan" Inner<Within<Agency, BillingPlan>>;
    Campaign "campaign" Campaigns;
    CampaignContact "campaign-contact" Inner<ContactsOfCampaign>;
    CapturedForm "captured-form" ListOf<CapturedForm>;
    CapturedIntent "captured-intent" ListOf<CapturedIntent>;
    Contact "contact" ListOf<Contact>;
    ContactCustomField "contact-custom-field" ListOf<ContactCustomField>;
    Conversation "conversation" ListOf<Conversation>;
    Datasource "datasource" ListOf<Datasource>;
    DatasourceFile "datasource-file" Inner<Within<Datasource, DatasourceFile>>;
    Form "form" ListOf<Form>;
    Intent "intent" ListOf<Intent>;
    LinkTagEntity "link" ListOf<Link>;
    Message "conversation" Inner<MessagesOfConversation>;
    Suppression "suppression" ListOf<Suppression>;
    Tag "tag" ListOf<Tag>;
    User "user" ListOf<User>;
    Webhook "webhook" ListOf<Webhook>;
    Widget "widget" ListOf<Widget>;
}

/// The names of a row's members, in their order.
pub(super) fn columns(record: ExportedRecord) -> Vec<String> {
    let members = schema(record)["required"].as_array().cloned().unwrap_or_default();
    members.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect()
}

/// Adds the issues of the `given` filters of a record, which are at `at`.
pub(super) fn check(record: ExportedRecord, given: &JsonObject, at: &Location, issues: &mut Issues) {
    let known = filters(record);
    let names: BTreeMap<String, Box<RawValue>> = given.read().unwrap_or_default();
    for name in names.into_keys().filter(|name| !known.contains(&&**name)) {
        let (kind, _) = words::EXTRA;
        let list = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        let msg = format!("The filters of {} are: {list}", record.as_str());
        issues.push(at.name(name).issue(kind, msg));
    }
    let text = serde_json::to_string(given).unwrap_or_default();
    match Source::object(Raw::Json(&text), at) {
        Ok(source) => check_values(record, &source, issues),
        Err(issue) => issues.push(issue),
    }
}

/// What `read` reads of `filters`, which were checked before they were stored.
fn stored<T>(filters: &JsonObject, read: impl FnOnce(&Source<'_>, &mut Issues) -> Option<T>) -> Result<T, TableError> {
    let broken = || TableError::Broken("the filters of an export".into());
    let (text, mut issues) = (serde_json::to_string(filters).map_err(|_| broken())?, Issues::new());
    let source = Source::object(Raw::Json(&text), &Location::body()).map_err(|_| broken())?;
    read(&source, &mut issues).ok_or_else(broken)
}

fn line(row: &impl Serialize) -> Result<String, TableError> {
    // Free-form JSON is kept as it was sent. Outside of its texts, the end of a line is only space.
    let json = serde_json::to_string(row).map_err(|error| TableError::Broken(error.to_string()))?;
    Ok(if json.contains(['\n', '\r']) { json.replace(['\n', '\r'], " ") } else { json })
}

/// A record of which an organisation has one list.
struct ListOf<R>(PhantomData<fn() -> R>);

impl<R: Listed<Of = ()>> ExportSource for ListOf<R> {
    fn filters() -> Vec<&'static str> {
        let dates = R::DATED.then_some(["date_from", "date_to"]).into_iter().flatten();
        R::filter_members().into_iter().map(|member| member.name).chain(dates).collect()
    }

    fn check(source: &Source<'_>, issues: &mut Issues) {
        drop(ListQuery::<R>::read(source, issues));
    }

    fn schema() -> Value {
        R::schema()
    }

    async fn read(table: &Table, filters: &JsonObject, at: ReadingPlace, most: usize) -> Result<RowLines, TableError> {
        rows(table, filters, (at, most), |rows: Vec<R>| std::future::ready(Ok(rows))).await
    }
}

/// The campaigns, with the counts of their contacts.
struct Campaigns;

impl ExportSource for Campaigns {
    fn filters() -> Vec<&'static str> {
        ListOf::<Campaign>::filters()
    }

    fn check(source: &Source<'_>, issues: &mut Issues) {
        ListOf::<Campaign>::check(source, issues);
    }

    fn schema() -> Value {
        Campaign::schema()
    }

    async fn read(table: &Table, filters: &JsonObject, at: ReadingPlace, most: usize) -> Result<RowLines, TableError> {
        rows(table, filters, (at, most), |rows| campaigns::all_answered(table, rows)).await
    }
}

/// Rows of an organisation's list that match the filters, after `answer` has made them what a caller sees.
async fn rows<R: Listed<Of = ()>, F: Future<Output = Result<Vec<R>, TableError>>>(
    table: &Table,
    filters: &JsonObject,
    (at, most): (ReadingPlace, usize),
    answer: impl FnOnce(Vec<R>) -> F,
) -> Result<RowLines, TableError> {
    let query = stored(filters, ListQuery::<R>::read)?;
    let Piece { rows, next, end } = table.piece::<R>((), at.row..at.end.unwrap_or(u64::MAX), most).await?;
    let rows = answer(rows.into_iter().map(|(_, row)| row).collect()).await?;
    let rows = rows.into_iter().filter(|row| query.matches(row)).map(|row| line(&row.shown().for_reader()));
    let place = ReadingPlace { row: next, inner: 0, end: Some(at.end.unwrap_or(end)) };
    Ok(RowLines { lines: rows.collect::<Result<_, _>>()?, next: (next < end).then_some(place) })
}

/// A record that is in the lists of others.
trait InnerRows: 'static {
    type Parent: Listed<Of = (), Id: Parse + Id>;
    type Row: Serialize + Schema + Send;

    /// Rows of `parent` from a place on, and the place at which they go on if there are more.
    fn read(
        table: &Table,
        parent: &Self::Parent,
        from: u64,
        most: usize,
    ) -> impl Future<Output = Result<(Vec<Self::Row>, Option<u64>), TableError>> + Send;
}

struct Inner<I>(PhantomData<fn() -> I>);

impl<I: InnerRows> ExportSource for Inner<I> {
    fn filters() -> Vec<&'static str> {
        vec![I::Parent::PARAMETER]
    }

    fn check(source: &Source<'_>, issues: &mut Issues) {
        let _ = parent_of::<I>(source, issues);
    }

    fn schema() -> Value {
        I::Row::schema()
    }

    async fn read(table: &Table, filters: &JsonObject, at: ReadingPlace, most: usize) -> Result<RowLines, TableError> {
        inner_rows::<I>(table, filters, at, most).await
    }
}

type ParentId<I> = <<I as InnerRows>::Parent as Stored>::Id;

/// The one record whose rows are wanted, if the filters name one.
#[expect(clippy::option_option, reason = "the outer one is empty after an issue")]
fn parent_of<I: InnerRows>(source: &Source<'_>, issues: &mut Issues) -> Option<Option<ParentId<I>>> {
    source.optional(I::Parent::PARAMETER, issues, || None)
}

async fn inner_rows<I: InnerRows>(
    table: &Table,
    filters: &JsonObject,
    at: ReadingPlace,
    most: usize,
) -> Result<RowLines, TableError> {
    // A long list is read alone, as soon as it is known to be long.
    let (together, most) = if at.inner > 0 { (1, most) } else { (PARENTS.0, (most / PARENTS.0).max(PARENTS.1)) };
    let parents: Piece<I::Parent> = match stored(filters, parent_of::<I>)? {
        Some(id) => {
            let found = table.find::<I::Parent>(id).await?;
            Piece { rows: found.into_iter().map(|parent| (0, parent)).collect(), next: 1, end: 1 }
        }
        None => table.piece::<I::Parent>((), at.row..at.end.unwrap_or(u64::MAX), together).await?,
    };
    let end = Some(at.end.unwrap_or(parents.end));
    let read = parents.rows.iter().map(|(place, parent)| {
        let from = if *place == at.row { at.inner } else { 0 };
        I::read(table, parent, from, most)
    });
    let mut lines = Vec::new();
    for ((place, _), (rows, next)) in parents.rows.iter().zip(try_join_all(read).await?) {
        for row in &rows {
            lines.push(line(row)?);
        }
        if let Some(inner) = next {
            return Ok(RowLines { lines, next: Some(ReadingPlace { row: *place, inner, end }) });
        }
    }
    let next = ReadingPlace { row: parents.next, inner: 0, end };
    Ok(RowLines { lines, next: (parents.next < parents.end).then_some(next) })
}

/// A list of `R` for each `P`.
struct Within<P, R>(PhantomData<fn() -> (P, R)>);

impl<P, R> InnerRows for Within<P, R>
where
    P: Listed<Of = (), Id: Parse + Id>,
    R: Listed<Of: Id>,
{
    type Parent = P;
    type Row = R;

    async fn read(table: &Table, parent: &P, from: u64, most: usize) -> Result<(Vec<R>, Option<u64>), TableError> {
        let Piece { rows, next, end } = table.piece::<R>(parent.uuid().into(), from..u64::MAX, most).await?;
        let rows = rows.into_iter().map(|(_, row)| row.shown().for_reader()).collect();
        Ok((rows, (next < end).then_some(next)))
    }
}

struct MessagesOfConversation;

impl InnerRows for MessagesOfConversation {
    type Parent = Conversation;
    type Row = Message;

    async fn read(
        table: &Table,
        parent: &Conversation,
        from: u64,
        most: usize,
    ) -> Result<(Vec<Message>, Option<u64>), TableError> {
        let end = parent.chat_count.min(from + most as u64);
        let messages = conversation::said_between(table, parent.id, from..end.max(from)).await?;
        Ok((messages, (end < parent.chat_count).then_some(end)))
    }
}

struct ContactsOfCampaign;

impl InnerRows for ContactsOfCampaign {
    type Parent = Campaign;
    type Row = CampaignContact;

    async fn read(
        table: &Table,
        parent: &Campaign,
        from: u64,
        most: usize,
    ) -> Result<(Vec<CampaignContact>, Option<u64>), TableError> {
        let (from, most) = (u32::try_from(from).unwrap_or(u32::MAX), u32::try_from(most).unwrap_or(u32::MAX));
        let (contacts, next) = campaigns::contacts_from(table, parent.id, from, most).await?;
        Ok((contacts, next.map(u64::from)))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_columns_are_all_members_of_a_row() {
        for record in ExportedRecord::WORDS.iter().map(|word| ExportedRecord::from_word(word).unwrap()) {
            let schema = schema(record);
            let members: BTreeSet<_> = schema["properties"].as_object().unwrap().keys().cloned().collect();
            assert_eq!(columns(record).into_iter().collect::<BTreeSet<_>>(), members, "{}", record.as_str());
            assert!(!members.contains("record"), "{}", record.as_str());
        }
    }
}
