//! The answer of an import: what was done with each item of the request. Each item succeeds or fails by itself.

use serde::Serialize;

use crate::input::schema::{Schema, Value, object, titled};
use crate::input::{Issue, Issues, Location, member};
use crate::request::error::Error;
use crate::request::response::Upserted;
use crate::table::stored::Listed;
use crate::values::id::Id;

crate::choice! {
    /// What an import did with a contact or a suppression.
    pub enum ImportOutcome {
        /// It is new.
        Created = "created",
        /// It existed, and has what was sent.
        Updated = "updated",
        /// Nothing was done; the issues tell why.
        Failed = "failed",
    }
}

/// What an import did with one `R`.
#[derive(Serialize)]
#[serde(bound(serialize = ""))]
pub struct Imported<R: Listed<Id: Id>> {
    /// Its place in the request, from 0.
    pub index: u64,
    /// Its identifier; null where it failed.
    pub id: Option<R::Id>,
    /// What was done.
    pub outcome: ImportOutcome,
    /// What is wrong with it; empty otherwise.
    pub issues: Issues,
}

/// What an import did with each `R`, in the order of the request.
#[derive(Serialize)]
#[serde(bound(serialize = ""))]
pub struct ImportedAll<R: Listed<Id: Id>> {
    /// One for each item.
    pub items: Vec<Imported<R>>,
}

impl<R: Listed<Id: Id>> Imported<R> {
    /// The result of the item at `index`.
    pub fn of(index: usize, result: Result<Upserted<R::Id>, Issues>) -> Self {
        let (id, outcome, issues) = match result {
            Ok(Upserted::Created(id)) => (Some(id), ImportOutcome::Created, Issues::new()),
            Ok(Upserted::Updated(id)) => (Some(id), ImportOutcome::Updated, Issues::new()),
            Err(issues) => (None, ImportOutcome::Failed, issues),
        };
        Self { index: index as u64, id, outcome, issues }
    }
}

impl<R: Listed<Id: Id>> Schema for Imported<R> {
    fn schema() -> Value {
        let members = vec![
            member::<u64>("index", true, "Its place in the request, from 0."),
            member::<Option<R::Id>>("id", true, "Its identifier; null where it failed."),
            member::<ImportOutcome>("outcome", true, "What was done."),
            member::<Vec<Issue>>("issues", true, "What is wrong with it."),
        ];
        let about = format!("What an import did with one {}.", R::NAME.to_lowercase());
        titled(object(members), &format!("Imported{}", R::NAME), &about)
    }
}

impl<R: Listed<Id: Id>> Schema for ImportedAll<R> {
    fn schema() -> Value {
        let name = R::NAME.to_lowercase();
        let about = format!("One for each {name}, in their order.");
        let items = member::<Vec<Imported<R>>>("items", true, &about);
        titled(object(vec![items]), &format!("Imported{}s", R::NAME), &format!("What an import of {name}s did."))
    }
}

/// The issues of an item at `place` that the error is about: they fail this item only.
pub fn issues_of(error: Error, place: &Location) -> Issues {
    match error {
        Error::Invalid(issues) => issues,
        Error::Forbidden(at, message) => vec![at.issue("forbidden", message)],
        other => vec![place.issue("value_error", other.to_string())],
    }
}
