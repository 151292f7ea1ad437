//! Lists records, page by page.

use std::marker::PhantomData;

use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::page::{ListQuery, Page};
use crate::request::pipeline::{Operation, Request};
use crate::table::stored::{Listed, Of};

/// A page of the list of `R`: of the rows that match the query's filters, of the parent that the path names, where it names one.
#[derive(Debug)]
pub struct List<R>(PhantomData<R>);

impl<R: Listed> Operation for List<R> {
    type Path = R::Of;
    type Query = ListQuery<R>;
    type Body = ();
    type Reply = Page<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        // Both, whether or not the parent is there: what a request costs must not tell.
        let (parent, page) = futures_util::join!(
            cx.table.require_parent::<R>(request.path),
            cx.table.list(request.path, &request.query)
        );
        parent.on_missing(R::Of::PARAMETER)?;
        Ok(page?)
    }
}
