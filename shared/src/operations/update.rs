//! Changes a record.

use std::marker::PhantomData;

use crate::input::Input;
use crate::operations::new::require_room;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Updated;
use crate::table::declaration::Changes;
use crate::table::stored::Listed;
use crate::table::transaction::Write;

/// Changes the `R` that the path names. An absent field keeps its value; null sets it to its default. Records that the
/// change newly names must exist, and new addresses must be public.
#[derive(Debug)]
pub struct Update<R>(PhantomData<R>);

impl<R: Listed> Operation for Update<R>
where
    R::Id: Input,
{
    type Path = R::Id;
    type Query = ();
    type Body = Changes<R>;
    type Reply = Updated<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let Changes(changes) = request.body;
        update(cx, request.path, &changes, |_| {}, |_, _| None).await.map(R::shown).map(Updated)
    }
}

/// Changes the `R` of `id`: by `changes`, and then by what follows from them, `also`. The same transaction makes the write
/// that follows from the record before and after the change.
///
/// # Errors
/// [`Error::NotFound`](crate::request::error::Error::NotFound) where there is none,
/// [`Error::Invalid`](crate::request::error::Error::Invalid) at a field that cannot be changed in this way.
pub async fn update<R: Listed>(
    cx: &Context<'_>,
    id: R::Id,
    changes: &R::Changes,
    also: impl Fn(&mut R) + Sync,
    with: impl Fn(&R, &R) -> Option<Write> + Sync,
) -> Result<R> {
    let now = cx.now();
    if let Err(refused) = cx.require_public(&R::changed_addresses(changes)).await {
        // A missing record is reported as not found, even if the new address is invalid.
        cx.table.get::<R>(id).await.on_missing(R::PARAMETER)?;
        return Err(refused);
    }
    let change = |record: &mut R| {
        record.apply(changes);
        also(record);
        record.touch(now);
        require_room(record)
    };
    let opened = R::sends_masks(changes);
    cx.table.try_change_opened(id, cx.new_id(), opened, change, with).await.on_missing(R::PARAMETER)
}
