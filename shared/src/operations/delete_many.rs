//! Removes many records in one request.

use std::collections::BTreeSet;
use std::marker::PhantomData;

use serde::Serialize;

use crate::input::bounded::OneTo;
use crate::input::schema::{Schema, Value, object, titled};
use crate::input::{Input, Issue, Issues, Location, Source, input_member, member};
use crate::request::context::Context;
use crate::request::error::{Error, Result};
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Deleted;
use crate::table::stored::Listed;
use crate::values::id::{Id, RecordId};

/// The most records of one request.
const MOST: usize = 500;

/// Removes the `R`s that the body names, each as [`Delete`](crate::operations::Delete) does. The answer has a result for
/// each id.
#[derive(Debug)]
pub struct DeleteMany<R>(PhantomData<R>);

/// The body: the ids of the records.
#[derive(Debug)]
pub struct ManyIds<R: Listed>(pub Vec<R::Id>);

impl<R: Listed<Id: Id>> Input for ManyIds<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        source.required::<OneTo<MOST, R::Id>>(R::Id::MANY, issues).map(|ids| Self(ids.0))
    }

    fn schema() -> Value {
        let ids = member::<OneTo<MOST, R::Id>>(R::Id::MANY, true, "Identifiers of the records.");
        titled(object(vec![input_member(ids)]), &format!("{}Ids", R::NAME), "The records to delete.")
    }
}

crate::choice! {
    /// What became of a record that was to be deleted.
    pub enum DeleteOutcome {
        /// It is deleted.
        Deleted = "deleted",
        /// The organisation has no such record.
        NotFound = "not_found",
        /// It stays; the issues tell why.
        Failed = "failed",
    }
}

/// What became of one record.
#[derive(Debug, Serialize)]
pub struct DeletedRecord {
    /// Position of the id in the request, from 0.
    pub index: u64,
    /// The id.
    pub id: RecordId,
    /// What became of the record.
    pub outcome: DeleteOutcome,
    /// Why it stays; empty otherwise.
    pub issues: Issues,
}

/// What became of all records of a request.
#[derive(Debug, Serialize)]
pub struct DeletedRecords {
    /// One result for each id, in the order of the request.
    pub items: Vec<DeletedRecord>,
}

impl Schema for DeletedRecord {
    fn schema() -> Value {
        let members = vec![
            member::<u64>("index", true, "Position of the id in the request, from 0."),
            member::<RecordId>("id", true, "The id."),
            member::<DeleteOutcome>("outcome", true, "What became of the record."),
            member::<Vec<Issue>>("issues", true, "Why the record stays; empty otherwise."),
        ];
        titled(object(members), "DeletedRecord", "What became of a record that was to be deleted.")
    }
}

impl Schema for DeletedRecords {
    fn schema() -> Value {
        let items = member::<Vec<DeletedRecord>>("items", true, "One result for each id, in the order of the request.");
        titled(object(vec![items]), "DeletedRecords", "What became of the records that were to be deleted.")
    }
}

impl<R: Listed<Of = (), Id: Id>> Operation for DeleteMany<R> {
    type Path = ();
    type Query = ();
    type Body = ManyIds<R>;
    type Reply = Deleted<DeletedRecords>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        delete_many(cx, &request.body, |_| Ok(())).await
    }
}

/// Removes the records of `ids` that `check` allows. An id that the request names twice is deleted once: the second one is
/// not found, as if each record had a request of its own.
///
/// # Errors
/// An error of the database: some records may have been removed. A repeat removes the others.
pub async fn delete_many<R: Listed<Of = (), Id: Id>>(
    cx: &Context<'_>,
    ManyIds(ids): &ManyIds<R>,
    check: impl Fn(&R) -> Result<()> + Sync,
) -> Result<Deleted<DeletedRecords>> {
    let distinct: BTreeSet<R::Id> = ids.iter().copied().collect();
    // In a box: the future is nested too deeply for the compiler otherwise.
    let mut removals = Box::pin(cx.table.remove_many::<R, Error>(&distinct, check)).await?;
    let mut items = Vec::with_capacity(ids.len());
    for (index, id) in ids.iter().enumerate() {
        let (outcome, issues) = match removals.insert(*id, Ok(false)) {
            Some(Ok(true)) => (DeleteOutcome::Deleted, Issues::new()),
            Some(Ok(false)) | None => (DeleteOutcome::NotFound, Issues::new()),
            Some(Err(Error::Conflict { at, kind, message })) => {
                let issue = Location::body().name(R::Id::MANY).index(index).issue(kind, message);
                removals.insert(*id, Err(Error::Conflict { at, kind, message }));
                (DeleteOutcome::Failed, vec![issue])
            }
            Some(Err(error)) => return Err(error),
        };
        items.push(DeletedRecord { index: index as u64, id: RecordId((*id).into()), outcome, issues });
    }
    Ok(Deleted(DeletedRecords { items }))
}
