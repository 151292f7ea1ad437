//! Changes a record.

use std::marker::PhantomData;

use crate::records::declaration::Changes;
use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::input::Input;
use crate::request::pipeline::{Operation, Request};
use crate::request::response::Updated;
use crate::table::stored::Listed;

/// Changes the `R` that the path names. An absent field keeps its value; null sets it to its default.
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
        let (Changes(changes), now) = (request.body, cx.now());
        let change = |record: &mut R| {
            record.apply(&changes);
            record.touch(now);
        };
        Ok(Updated(cx.table.change(request.path, cx.new_id(), change).await.on_missing(R::PARAMETER)?))
    }
}
