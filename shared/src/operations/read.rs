//! Reads a record.

use std::marker::PhantomData;

use crate::input::Input;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Retrieved;
use crate::table::stored::Listed;

/// Reads the `R` that the path names.
#[derive(Debug)]
pub struct Read<R>(PhantomData<R>);

impl<R: Listed> Operation for Read<R>
where
    R::Id: Input,
{
    type Path = R::Id;
    type Query = ();
    type Body = ();
    type Reply = Retrieved<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        let record = cx.table.get::<R>(request.path).await.on_missing(R::PARAMETER)?;
        Ok(Retrieved(cx.shown(record)))
    }
}
