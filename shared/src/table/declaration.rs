//! `record!` declares a record once. From the declaration follow its struct, its JSON, its stored item, the bodies of create and update, its
//! filters, its schema and its place in the table. The macro is in the crate `record-declaration`, and this module has the functions that its
//! code calls. A mistake in a declaration is an error of the compiler, at the word that is wrong.
//!
//! ```text
//! record! {
//!     /// A label for other records.
//!     pub struct Tag(TagId): listed("TAG") {
//!         /// Name.
//!         input name: String,                                        required on create
//!         /// Colour in CSS notation.
//!         input color_code: Option<String> = None,                   optional; null and absent mean the default
//!         /// Form that it opens.
//!         input form_id: Option<FormId> = None => Form,              the form must exist
//!         /// Status.
//!         own(filter) status: TagStatus = TagStatus::New,            the service sets it; lists can be filtered by it
//!         /// When it was made.
//!         created created_at: Timestamp,
//!     }
//! }
//! ```
//!
//! The word before a field is its role:
//!
//! | role | body of create | body of update | value |
//! |---|---|---|---|
//! | `input` | yes | yes | the caller's |
//! | `fixed` | yes | no | the caller's |
//! | `later` | no | yes | the caller's; it begins with the default |
//! | `org` | yes | no | the caller's organisation; a body that names another one is 403 |
//! | `parent` | yes | no | the record that the path names; a body that names another one is 422 |
//! | `own` | no | no | the service's; it begins with the default |
//! | `hidden` | no | no | the service's; stored, and never answered |
//! | `derived` | no | no | answered, and never stored: `= Record::field` names the function of the record that makes it |
//! | `created`, `updated` | no | no | when the record was made, and when it last changed |
//!
//! The default is also what a stored item without the field has. `org` and `parent` have none. `later`, `own` and `hidden` need one, since no body of a
//! create has their value. A record of which a caller sends nothing is made by code, so its fields need no default; `Create` does not take it then.
//!
//! A mark behind the role gives the field a rule, which holds wherever the field is read, shown or changed. A rule that concerns the value alone, such as
//! a pattern or a limit, needs no mark: it is the field's type.
//!
//! | mark | roles | rule |
//! |---|---|---|
//! | `filter` | `input`, `fixed`, `later`, `own` | lists can be filtered by the field |
//! | `sparse filter` | the same | the same, where few rows have the same value: no set is kept of it and other filters together |
//! | `unique` | the same | no two records of a list have the same value |
//! | `unique filter` | the same | the same, and a list can be asked for the record with a value |
//! | `masks` | the same | texts in the object may be secrets: it is sealed in the table, a secret is answered masked, and stays as it is where an update sends it back masked |
//! | `sealed` | `hidden` | the secrets in it are sealed in the table |
//! | `address` | `input`, `later` | it is the address of an endpoint: events are sent to it, so create and update refuse one that is not public. A read-only key sees it without its query |
//! | `dates` | `created` | lists can be filtered by `date_from` and `date_to` |
//!
//! The place is one of three:
//!
//! - `listed("TAG")`: one list per organisation.
//! - `listed("PLAN" of AgencyId => Agency)`: one list per parent. A path to the record names the parent too.
//! - `listed("FILE" within DatasourceId => Datasource)`: one list per parent. The record's id contains the ordinal of the parent, so a
//!   path needs the record's id only.
//!
//! A list of one of the first two kinds that is `spread` lies in several partitions as soon as it is long: `listed("TAG" spread)`. No other list may be
//! `within` it.
//!
//! `, pointers f` names the function that returns the pointers of a record. `, due f` names the function that returns its partition in
//! the index `Due`. `, terms f` names the function that returns the filters that a record matches beside those of its fields. `, shown f` names the function that makes a record what an answer shows.

mod choice;

use uuid::Uuid;

use crate::input::schema::{Member, Schema, Value, object, titled};
use crate::input::{Input, Issues, Patch, Source, input_member, null_means};
use crate::network::LONGEST_URL;
use crate::table::error::TableError;
use crate::table::filters::Term;
use crate::table::item::Item;
use crate::table::keys::Key;
use crate::table::unique::UniqueValue;
use crate::table::version::Versioned;
use crate::values::id::{Id, OrgId};
use crate::values::mask::MASK;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

/// What follows from the declaration of a record, apart from its place in the table.
pub trait Declared: Schema + Versioned + serde::Serialize + Clone + Send + Sync + Sized + 'static {
    /// Name of the schema component.
    const NAME: &'static str;
    /// The body of an update.
    type Changes: Send + Sync;

    /// The members, with the role that each has.
    fn members() -> Vec<(FieldRole, Member)>;

    /// Its id.
    fn uuid(&self) -> Uuid;

    /// The new record with `id`, made `now`.
    #[must_use]
    fn begun(self, id: Uuid, org: OrgId, parent: Uuid, now: Timestamp) -> Self;

    /// Reads the body of an update.
    fn read_changes(source: &Source<'_>, issues: &mut Issues) -> Option<Self::Changes>;

    /// Makes the changes of an update.
    fn apply(&mut self, changes: &Self::Changes);

    /// Whether an update has masked texts, which stand for secrets of the record: they have to be open then.
    fn sends_masks(_: &Self::Changes) -> bool {
        false
    }

    /// Notes that the record changed `now`.
    fn touch(&mut self, _now: Timestamp) {}

    /// The records that its fields name. They must exist.
    fn references(&self, _: &Tenant) -> Vec<Reference> {
        Vec::new()
    }

    /// The filters that the record matches.
    fn terms(&self) -> Vec<Term> {
        Vec::new()
    }

    /// Whether lists can be filtered by the time at which records were made.
    const DATED: bool = false;

    /// When it was made, where lists can be filtered by that.
    fn dated(&self) -> Option<Timestamp> {
        None
    }

    /// Reads the filters of a list from its query.
    fn read_terms(_: &Source<'_>, _: &mut Issues) -> Option<Vec<Term>> {
        Some(Vec::new())
    }

    /// The values of the record that no other record of its list may have.
    fn unique(&self) -> Vec<UniqueValue> {
        Vec::new()
    }

    /// Reads the unique values that a list is asked for from its query.
    fn read_unique(_: &Source<'_>, _: &mut Issues) -> Option<Vec<Term>> {
        Some(Vec::new())
    }

    /// The filters among the members of a query.
    fn filter_members() -> Vec<Member> {
        Vec::new()
    }

    /// The addresses of endpoints in it, with their fields.
    fn addresses(&self) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// The addresses of endpoints that an update sets, with their fields.
    fn changed_addresses(_: &Self::Changes) -> Vec<(&'static str, &str)> {
        Vec::new()
    }

    /// The record as an answer shows it: a field that is empty may show the value of another one.
    #[must_use]
    fn shown(self) -> Self {
        self
    }

    /// The record as a key that may only read sees it: the queries of addresses may contain keys.
    #[must_use]
    fn for_reader(self) -> Self {
        self
    }

    /// Adds the attributes that are stored but never answered.
    ///
    /// # Errors
    /// [`TableError::Broken`] where one cannot be an attribute.
    fn hide(&self, item: &mut Item) -> Result<(), TableError>;
}

/// A record that the body of a create makes: each field that no body sets has a default.
pub trait MadeOfBody: Declared {
    /// Reads the body of a create. Fields that the service sets have their defaults, and the id is nil.
    fn read(source: &Source<'_>, issues: &mut Issues, named: &mut Named) -> Option<Self>;
}

/// The schema of a record with the member `id`.
pub fn schema<R: Declared>(id: Member, doc: &str) -> Value {
    let members = R::members().into_iter().map(|(_, member)| Member { required: true, ..member });
    titled(object([id].into_iter().chain(members).collect()), R::NAME, doc)
}

/// Who sets a field that is answered: see the table above.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldRole {
    /// Create and update take it.
    Input,
    /// Create takes it.
    Fixed,
    /// Update takes it.
    Later,
    /// Create takes the caller's own organisation.
    Org,
    /// Create takes the parent that the path names.
    Parent,
    /// The service sets it.
    Own,
}

/// What a body names although the service knows it already.
#[derive(Debug, Clone, Copy, Default)]
pub struct Named {
    /// The organisation, with its field.
    pub org: Option<(&'static str, OrgId)>,
    /// The parent, with its field.
    pub parent: Option<(&'static str, Uuid)>,
}

impl Named {
    /// Reads the organisation that a body names in `field`. The result is nil: the record gets that of the caller.
    pub fn read_org(&mut self, field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<OrgId> {
        let org = source.optional::<Option<OrgId>>(field, issues, || None)?;
        self.org = org.map(|org| (field, org));
        Some(Uuid::nil().into())
    }

    /// Reads the parent that a body names in `field`. The result is nil: the record gets that of the path.
    pub fn read_parent<T: Id>(&mut self, field: &'static str, source: &Source<'_>, issues: &mut Issues) -> Option<T> {
        let parent = source.optional::<Option<T>>(field, issues, || None)?;
        self.parent = parent.map(|parent| (field, parent.into()));
        Some(Uuid::nil().into())
    }
}

/// A record that another one names in a field.
#[derive(Debug, Clone)]
pub struct Reference {
    /// The field.
    pub field: &'static str,
    /// What kind of record it is; empty for one that stands in no list.
    pub record: &'static str,
    /// The key of the named record.
    pub key: Key,
    /// The id that this item must have.
    pub proof: Option<Uuid>,
}

/// A field that may name a record.
pub trait Names {
    /// The identifier.
    type Id;

    /// The named record, if any.
    fn named(&self) -> Option<Self::Id>;
}

impl<T: Id> Names for T {
    type Id = T;

    fn named(&self) -> Option<T> {
        Some(*self)
    }
}

impl<T: Id> Names for Option<T> {
    type Id = T;

    fn named(&self) -> Option<T> {
        *self
    }
}

/// A field that may have the address of an endpoint.
pub trait MayBeAddress {
    /// The address, if it has one.
    fn address(&self) -> Option<&str>;
}

impl MayBeAddress for String {
    fn address(&self) -> Option<&str> {
        Some(&**self).filter(|address| !address.is_empty())
    }
}

impl MayBeAddress for Option<String> {
    fn address(&self) -> Option<&str> {
        self.as_deref()
    }
}

impl<T: MayBeAddress> MayBeAddress for Patch<T> {
    fn address(&self) -> Option<&str> {
        if let Self::Set(value) = self { value.address() } else { None }
    }
}

/// A field of a record that may have the address of an endpoint.
pub trait HoldsAddress: MayBeAddress + Clone + PartialEq {
    /// The same, with a mask in place of the query and the fragment.
    #[must_use]
    fn without_query(&self) -> Self;
}

impl HoldsAddress for String {
    fn without_query(&self) -> Self {
        self.find(['?', '#']).map_or_else(|| self.clone(), |at| format!("{}{MASK}", &self[..=at]))
    }
}

impl HoldsAddress for Option<String> {
    fn without_query(&self) -> Self {
        self.as_ref().map(HoldsAddress::without_query)
    }
}

/// The new value of a field with the address `stored`: `sent`, unless it is what a read-only key sees of the stored one.
pub fn sent_address<T: HoldsAddress>(sent: &T, stored: &T) -> T {
    if *sent == stored.without_query() { stored.clone() } else { sent.clone() }
}

/// The address in `value` with its field, if it has one.
pub fn named_address<'a>(field: &'static str, value: &'a impl MayBeAddress) -> Option<(&'static str, &'a str)> {
    value.address().map(|address| (field, address))
}

/// The terms that a query asks for by several fields. None after an issue at one of them.
pub fn all_terms<const N: usize>(terms: [Option<Vec<Term>>; N]) -> Option<Vec<Term>> {
    terms.into_iter().collect::<Option<Vec<_>>>().map(|terms| terms.concat())
}

/// `terms`, of values that few rows have.
pub fn sparse(terms: Option<Vec<Term>>) -> Option<Vec<Term>> {
    terms.map(|terms| terms.into_iter().map(Term::sparse).collect())
}

/// The body of an update: an absent field keeps its value, null sets it to its default.
#[derive(Debug)]
pub struct Changes<R: Declared>(pub R::Changes);

impl<R: Declared> Input for Changes<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        R::read_changes(source, issues).map(Self)
    }

    fn schema() -> Value {
        let members = R::members().into_iter().filter(|(role, _)| [FieldRole::Input, FieldRole::Later].contains(role));
        let members = members.map(|(_, member)| Member { required: false, ..input_member(without_default(member)) });
        titled(
            object(members.collect()),
            &format!("{}Changes", R::NAME),
            "Fields to change. An absent field keeps its value.",
        )
    }
}

/// `member` of an update: what is absent has no default there, null has. A client that sends defaults by itself would otherwise reset what it does not name.
fn without_default(mut member: Member) -> Member {
    if let Some(default) = member.schema.as_object_mut().and_then(|schema| schema.remove("default")) {
        member.schema["description"] = null_means(&member.schema, &default.to_string());
    }
    member
}

/// `member`, the address of an endpoint, with its own limit in place of that of other texts.
pub fn address(mut member: Member) -> Member {
    let texts = match member.schema.get_mut("anyOf").and_then(Value::as_array_mut) {
        Some(choices) => choices.iter_mut().find(|choice| choice["type"] == "string"),
        None => Some(&mut member.schema),
    };
    if let Some(text) = texts {
        text["maxLength"] = LONGEST_URL.into();
    }
    member
}

/// A stored attribute that an old item may lack.
pub struct Attribute<T>(pub Option<T>);

impl<T> Default for Attribute<T> {
    fn default() -> Self {
        Self(None)
    }
}

impl<'de, T: serde::Deserialize<'de>> serde::Deserialize<'de> for Attribute<T> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(deserializer).map(|value| Self(Some(value)))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::values::id::TagId;
    use crate::values::json::GuardedObject;

    crate::record! {
        /// A record whose fields have the names of variables that its code has.
        pub struct Namesake(TagId): listed("NAMESAKE") {
            /// One.
            input source: String,
            /// Two.
            input issues: i64 = 1 + 1,
            /// Three.
            input changes: bool = false,
            /// Four.
            input(masks) value: GuardedObject,
            /// Five.
            org named: OrgId,
            /// Six.
            own stored: Option<String> = None,
            /// Seven.
            hidden members: Vec<String> = Vec::new(),
            /// Eight.
            derived read: i64 = Namesake::issues_read,
            /// Nine.
            created now: Timestamp,
            /// Ten.
            updated r#type: Timestamp,
        }
    }

    impl Namesake {
        fn issues_read(&self) -> i64 {
            self.issues * 10
        }
    }

    /// Calls `read` with a body.
    fn of_body<T>(body: &Value, read: impl FnOnce(&Source<'_>, &mut Issues) -> Option<T>) -> T {
        let (bytes, mut issues) = (body.to_string().into_bytes(), Issues::new());
        let read = read(&Source::body(Some(&bytes)).unwrap(), &mut issues);
        read.unwrap_or_else(|| panic!("{issues:?}"))
    }

    #[test]
    fn fields_may_have_the_names_of_variables_of_the_macro() {
        let body = json!({"source": "a", "value": {"api_key": "abcdefghijklmnopqrstuvwxyz"}});
        let read = of_body(&body, |source, issues| Namesake::read(source, issues, &mut Named::default()));
        let now = Timestamp::from_unix_millis(1_000);
        let mut record = read.begun(Uuid::from_u128(1), OrgId(Uuid::from_u128(2)), Uuid::nil(), now);
        assert_eq!((record.issues, record.now, record.r#type, record.named.0), (2, now, now, Uuid::from_u128(2)));
        let answered = serde_json::to_value(&record).unwrap();
        assert!(answered.get("type").is_some() && answered.get("members").is_none(), "{answered}");
        assert_ne!(answered["value"], body["value"]);
        assert_eq!(answered["read"], 20);
        let mut item = Item::from([("read".to_owned(), crate::table::item::number(20))]);
        record.hide(&mut item).unwrap();
        assert!(!item.contains_key("read"));
        // A secret stays as it is where an update sends it back masked, also in a field without a default.
        let body = json!({"value": answered["value"], "issues": 3});
        let changes = of_body(&body, Namesake::read_changes);
        let before = record.clone();
        record.apply(&changes);
        record.touch(Timestamp::from_unix_millis(2_000));
        assert_eq!((record.value.clone(), record.issues), (before.value, 3));
        assert_eq!((record.now, record.r#type), (now, Timestamp::from_unix_millis(2_000)));
    }
}
