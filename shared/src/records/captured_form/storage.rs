//! How captured forms are written, together with the fields of the contact to which the form maps their values.

use uuid::Uuid;

use super::{CapturedForm, NewCapturedForm};
use crate::input::schema::{Value, extended};
use crate::input::{Input, Issues, Location, Source, member};
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::form::Form;
use crate::records::form::fields;
use crate::records::form::mapping::ContactIssue;
use crate::request::context::Context;
use crate::request::error::{Error, OnMissing as _, Result};
use crate::table::declaration::Declared;
use crate::table::error::Cancelled;
use crate::table::filters::Term;
use crate::table::item::target_id;
use crate::table::keys::made_by;
use crate::table::page::{ListQuery, Page, PageQuery};
use crate::table::retry::Backoff;
use crate::table::transaction::{Transaction, Unmet};
use crate::table::version::{Version, Versioned as _};
use crate::table::{Table, TableError};
use crate::values::id::{CapturedFormId, ConversationId, FormId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

/// The contact before and after the values of a captured form were written to it.
#[derive(Debug, Default)]
struct MappedContact {
    /// `None` if nothing changes.
    change: Option<(Contact, Contact)>,
    /// The values that it does not take.
    issues: Vec<ContactIssue>,
}

/// The form and the conversation of a captured form, and the fields whose values another contact has.
struct ContactMapper<'a> {
    table: &'a Table,
    form: &'a Form,
    of: &'a Conversation,
    taken: Vec<&'static str>,
    round: Backoff,
    now: Timestamp,
}

impl<'a> ContactMapper<'a> {
    fn new(table: &'a Table, form: &'a Form, of: &'a Conversation, now: Timestamp) -> Self {
        Self { table, form, of, taken: Vec::new(), round: table.store.backoff(), now }
    }

    /// What `values` make of the contact of the conversation.
    async fn mapped(&self, values: &JsonObject) -> Result<MappedContact, TableError> {
        let mapping = &self.form.contact_mapping;
        let Some(id) = self.of.contact_id.filter(|_| !mapping.is_empty()) else { return Ok(MappedContact::default()) };
        let Some(was) = self.table.find::<Contact>(id).await? else { return Ok(MappedContact::default()) };
        let (is, issues) = mapping.apply(values, &was, &self.taken, self.now);
        let change = (is != was).then_some((was, is));
        Ok(MappedContact { change, issues })
    }

    /// Prepares a further attempt after a transaction was cancelled: another contact has a value, or the contact or the
    /// captured form has changed.
    ///
    /// # Errors
    /// The reason, where no further attempt helps.
    async fn again(&mut self, cancelled: Cancelled<Unmet>) -> Result<(), TableError> {
        match cancelled {
            Cancelled::Failed(TableError::Taken { field, .. }) if !self.taken.contains(&field) => {
                self.taken.push(field);
                Ok(())
            }
            Cancelled::Condition(..) => self.round.again("the contact").await,
            cancelled => Err(cancelled.into()),
        }
    }
}

impl MappedContact {
    /// Adds the change of the contact to a transaction.
    fn write(&self, transaction: &mut Transaction<'_, Unmet>) -> Result<(), TableError> {
        match &self.change {
            Some((was, is)) => transaction.replace(was.id, was, is.clone(), None).map(drop),
            None => Ok(()),
        }
    }
}

/// Stores what was filled into a form in a conversation. The same transaction writes the values to the contact that the
/// form maps. A value that the contact does not take is only noted.
///
/// # Errors
/// [`Error::NotFound`] without the conversation, [`Error::Invalid`] for an unknown form, and for values that do not fit it.
pub async fn capture_form(
    cx: &Context<'_>,
    conversation: ConversationId,
    new: &NewCapturedForm,
) -> Result<CapturedForm> {
    let (table, row) = (&cx.table, cx.new_row(()));
    // Not `try_join!`: the cost of a request must not depend on which records exist.
    let (of, form) = futures_util::join!(table.get::<Conversation>(conversation), table.find::<Form>(new.form_id));
    let (of, form) = (of.on_missing("conversation_id")?, form?);
    let form = form.ok_or_else(|| Error::unknown_in_body("form_id"))?;
    if let Err(refused) = check(&form, &new.field_values) {
        // The form may have changed since an earlier attempt of the same request.
        return made_before(table, row.origin).await?.ok_or(refused);
    }
    let mut mapping = ContactMapper::new(table, &form, &of, row.now);
    loop {
        let mapped = mapping.mapped(&new.field_values).await?;
        let captured = |id| CapturedForm {
            id,
            form_id: form.id,
            form_name: form.name.clone(),
            conversation_id: of.id,
            widget_id: of.widget_id,
            assistant_id: of.assistant_id,
            device_type: of.device_type.clone(),
            field_values: new.field_values.clone(),
            attributes: new.attributes.clone(),
            contact_issues: mapped.issues.clone(),
            created_at: row.now,
            updated_at: row.now,
            version: Version::default(),
        };
        match table.insert_with(row, None, captured, |transaction, _| mapped.write(transaction)).await {
            Ok(captured) => return Ok(captured),
            Err(cancelled) => mapping.again(cancelled).await?,
        }
    }
}

/// Changes a captured form. New values are checked, and written to the contact, as those of a new one are.
///
/// # Errors
/// [`Error::NotFound`] without the captured form, [`Error::Invalid`] for values that do not fit the form.
pub async fn change_form(
    cx: &Context<'_>,
    id: CapturedFormId,
    changes: &<CapturedForm as Declared>::Changes,
) -> Result<CapturedForm> {
    let (table, by, now): (_, Uuid, _) = (&cx.table, cx.new_id(), cx.now());
    let mut was: CapturedForm = table.get(id).await.on_missing(CAPTURED)?;
    let owners = futures_util::try_join!(table.find::<Form>(was.form_id), table.find(was.conversation_id))?;
    // Without one of them the captured form is being removed.
    let (Some(form), Some(of)) = owners else { return Err(TableError::Missing).on_missing(CAPTURED) };
    let mut mapping = ContactMapper::new(table, &form, &of, now);
    while !was.version().is_by(by) {
        let mut is = was.clone();
        is.apply(changes);
        is.touch(now);
        let mut mapped = MappedContact::default();
        if is.field_values != was.field_values {
            check(&form, &is.field_values)?;
            mapped = mapping.mapped(&is.field_values).await?;
            (is.contact_issues, is.form_name) = (mapped.issues.clone(), form.name.clone());
        }
        let mut transaction = Transaction::of_request(table);
        let is = transaction.replace(id, &was, is, Some(by))?;
        mapped.write(&mut transaction)?;
        match transaction.commit().await {
            Ok(()) => return Ok(is),
            Err(cancelled) => mapping.again(cancelled).await?,
        }
        was = table.get(id).await.on_missing(CAPTURED)?;
    }
    Ok(was)
}

/// The path parameter of a captured form.
const CAPTURED: &str = "captured_form_id";

/// Checks values against the fields of their form.
fn check(form: &Form, values: &JsonObject) -> Result<()> {
    let issues = fields::check(&form.fields, values, &Location::body().name("field_values"));
    if issues.is_empty() { Ok(()) } else { Err(Error::Invalid(issues)) }
}

/// The captured form that an earlier attempt of the request has made.
async fn made_before(table: &Table, origin: Option<Uuid>) -> Result<Option<CapturedForm>, TableError> {
    let Some(origin) = origin else { return Ok(None) };
    match table.store.get(&made_by(&table.tenant, origin)).await? {
        Some(marker) => table.find(CapturedFormId(target_id(&marker)?)).await,
        None => Ok(None),
    }
}

/// The query for a page of the captured forms of a form.
#[derive(Debug)]
pub struct CapturedFormQuery {
    page: PageQuery,
    of_conversation: Option<Term>,
}

impl Input for CapturedFormQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let page = PageQuery::read(source, issues);
        let asked = Term::read::<ConversationId>("conversation_id", source, issues);
        Some(Self { page: page?, of_conversation: asked?.pop().map(Term::sparse) })
    }

    fn schema() -> Value {
        let doc = "Only records with this `conversation_id`.";
        extended(PageQuery::schema(), vec![member::<ConversationId>("conversation_id", false, doc)])
    }
}

/// A page of what was filled into a form.
///
/// # Errors
/// [`TableError::Missing`] without the form.
pub async fn forms_of_form(
    table: &Table,
    form: FormId,
    query: CapturedFormQuery,
) -> Result<Page<CapturedForm>, TableError> {
    let terms = Term::of("form_id", &form).into_iter().chain(query.of_conversation).collect();
    let query = ListQuery::new(query.page, terms);
    filled_in(table, table.get::<Form>(form), query).await
}

/// A page of the forms that were filled in in a conversation.
///
/// # Errors
/// [`TableError::Missing`] without the conversation.
pub async fn forms_of_conversation(
    table: &Table,
    conversation: ConversationId,
    page: PageQuery,
) -> Result<Page<CapturedForm>, TableError> {
    let terms = Term::of("conversation_id", &conversation).map(Term::sparse);
    let query = ListQuery::new(page, terms.into_iter().collect());
    filled_in(table, table.get::<Conversation>(conversation), query).await
}

/// The page of a query that names a record, if that record exists.
async fn filled_in<T>(
    table: &Table,
    named: impl Future<Output = Result<T, TableError>>,
    query: ListQuery<CapturedForm>,
) -> Result<Page<CapturedForm>, TableError> {
    // Not `try_join!`: the cost of a request must not depend on whether the record exists.
    let (named, page) = futures_util::join!(named, table.list((), &query));
    named.and(page)
}
