//! Reacts to rows that put rows of another list into sets.

use std::marker::PhantomData;

use super::{React, Reacting, RowChange, When};
use crate::request::error::Result;
use crate::table::filters::{Marks, follow_marks};

/// After a row that marks a row of another list was made or removed, updates the sets of that list.
pub(super) struct SelectMarked<R>(PhantomData<R>);

impl<R: Marks> React for SelectMarked<R> {
    const NAME: &'static str = "select-marked";
    const WHEN: When = When::Changed;
    const RECORD: &'static str = R::NAME;
    type Record = R;

    async fn react(cx: &Reacting<'_>, rows: &[RowChange<R>]) -> Result<()> {
        let rows: Vec<_> =
            rows.iter().filter_map(|row| Some((row.key.clone(), row.is.as_ref().or(row.was.as_ref())?))).collect();
        Ok(follow_marks(&cx.table, &rows, cx.now).await?)
    }
}
