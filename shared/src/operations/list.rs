//! Lists records, page by page.

use std::marker::PhantomData;

use crate::request::context::Context;
use crate::request::error::{OnMissing as _, Result};
use crate::request::pipeline::{Operation, Request};
use crate::table::page::{ListQuery, Page};
use crate::table::stored::{Listed, Of};

/// Lists a page of `R`: the rows that match the query's filters, in the list of the parent if the path names one.
#[derive(Debug)]
pub struct List<R>(PhantomData<R>);

impl<R: Listed> Operation for List<R> {
    type Path = R::Of;
    type Query = ListQuery<R>;
    type Body = ();
    type Reply = Page<R>;

    async fn handle(cx: &Context<'_>, request: Request<Self>) -> Result<Self::Reply> {
        // The list is read even if the parent is missing: the cost of a request must not show whether the parent
        // exists.
        let (parent, page) = futures_util::join!(
            cx.table.require_parent::<R>(request.path),
            cx.table.list(request.path, &request.query)
        );
        parent.on_missing(R::Of::PARAMETER)?;
        let page = page?;
        Ok(Page { items: page.items.into_iter().map(|record| cx.shown(record)).collect(), ..page })
    }
}
