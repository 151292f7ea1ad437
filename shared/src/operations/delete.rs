//! Removes a record.

use std::marker::PhantomData;

use crate::input::Input;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Deleted;
use crate::table::stored::Listed;

/// Removes the `R` that the path names, and answers with it as it was before.
#[derive(Debug)]
pub struct Delete<R>(PhantomData<R>);

impl<R: Listed> Operation for Delete<R>
where
    R::Id: Input,
{
    type Path = R::Id;
    type Query = ();
    type Body = ();
    type Reply = Deleted<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        Ok(Deleted(cx.table.remove::<R>(request.path).await.on_missing(R::PARAMETER)?.shown()))
    }
}
