//! Pages of lists: the query for a page, and the object in the answer.

use std::marker::PhantomData;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::input::schema::{Schema, extended, object, titled};
use crate::input::{Between, Input, Issues, Source, member};
use crate::table::dates::Dates;
use crate::table::declaration::Declared;
use crate::table::filters::Term;

crate::choice! {
    /// The order of a list.
    pub enum Order {
        /// The oldest record first.
        Ascending = "asc",
        /// The newest record first.
        Descending = "desc",
    }
}

impl Order {
    /// `oldest_first` in this order.
    pub fn of<T>(self, mut oldest_first: Vec<T>) -> Vec<T> {
        if self == Self::Descending {
            oldest_first.reverse();
        }
        oldest_first
    }
}

crate::input! {
    /// Which page of a list.
    #[derive(Clone, Copy)]
    pub struct PageQuery {
        /// Number of the page, from 1.
        pub page: Between<1, { i64::MAX }> = Between::clamped(1),
        /// Records on a page.
        pub size: Between<1, 100> = Between::clamped(50),
        /// Order of the records: by their creation, the oldest or the newest first.
        pub order: Order = Order::Ascending,
    }
}

/// The query for a page of a list, with its filters.
#[derive(Debug)]
pub struct ListQuery<R> {
    /// Number of the page, from 1.
    pub page: PageQuery,
    /// The filters that the rows match.
    pub terms: Vec<Term>,
    /// The sets in which the rows are because of rows of another list.
    pub marks: Vec<Term>,
    /// The unique values of the wanted row.
    pub unique: Vec<Term>,
    /// The range of creation times of the rows.
    pub dates: Dates,
    record: PhantomData<fn() -> R>,
}

impl<R: Declared> ListQuery<R> {
    /// A page of the rows that match `terms`.
    pub const fn new(page: PageQuery, terms: Vec<Term>) -> Self {
        let dates = Dates { from: None, to: None };
        Self { page, terms, marks: Vec::new(), unique: Vec::new(), dates, record: PhantomData }
    }

    /// The same page of the rows that are in the sets of `marks` too.
    #[must_use]
    pub fn marked(self, marks: Vec<Term>) -> Self {
        Self { marks, ..self }
    }

    /// Whether a row matches the filters.
    pub fn matches(&self, row: &R) -> bool {
        let (has, unique) = (row.terms(), row.unique());
        self.terms.iter().all(|asked| has.contains(asked))
            && self.unique.iter().all(|asked| unique.iter().any(|value| value.term == *asked))
            && row.dated().is_none_or(|time| self.dates.contain(time))
    }
}

impl<R: Declared> Input for ListQuery<R> {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let page = PageQuery::read(source, issues);
        let (terms, unique) = (R::read_terms(source, issues), R::read_unique(source, issues));
        let dates = if R::DATED { Dates::read(source, issues) } else { Some(Dates::default()) };
        Some(Self { unique: unique?, dates: dates?, ..Self::new(page?, terms?) })
    }

    fn schema() -> Value {
        let dates = R::DATED.then(Dates::members).into_iter().flatten();
        extended(PageQuery::schema(), R::filter_members().into_iter().chain(dates).collect())
    }
}

/// A page of a list. Its seven keys are always there.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page<R> {
    /// The records, in the order of the query.
    pub items: Vec<R>,
    /// How many there are on all pages.
    pub total: u64,
    /// Number of the page, from 1.
    pub page: u64,
    /// Records on a page.
    pub size: u64,
    /// The number of pages; 0 if there is no record.
    pub pages: u64,
    /// The page before; `None` on the first.
    pub previous_page: Option<u64>,
    /// The next page; `None` on the last one and after it.
    pub next_page: Option<u64>,
}

impl PageQuery {
    /// A page with the oldest records first. Both numbers are brought into their ranges.
    pub const fn oldest_first(page: i64, size: i64) -> Self {
        Self { page: Between::clamped(page), size: Between::clamped(size), order: Order::Ascending }
    }

    /// Page, counted from 1.
    pub const fn page(&self) -> u64 {
        self.page.get().unsigned_abs()
    }

    /// Records per page.
    pub const fn size(&self) -> u64 {
        self.size.get().unsigned_abs()
    }

    /// How many records come before this page.
    pub const fn offset(&self) -> u64 {
        (self.page() - 1).saturating_mul(self.size())
    }

    /// Which of `total` records are on this page: the number of older records, and the number of records.
    pub fn within(&self, total: u64) -> (u64, u64) {
        let before = self.offset().min(total);
        let count = self.size().min(total - before);
        match self.order {
            Order::Ascending => (before, count),
            Order::Descending => (total - before - count, count),
        }
    }

    /// The page object around `items`, which are in its order.
    pub fn of<R>(&self, items: Vec<R>, total: u64) -> Page<R> {
        let (page, size) = (self.page(), self.size());
        let pages = total.div_ceil(size);
        Page {
            items,
            total,
            page,
            size,
            pages,
            previous_page: (page > 1).then(|| page - 1),
            next_page: (page < pages).then(|| page + 1),
        }
    }
}

/// The most bytes of a page.
const MOST: usize = 5 * 1024 * 1024;
/// The most bytes of a page as a string in the function's response: Lambda accepts 6,291,556, and the rest of the
/// response takes some.
const MOST_PASSED_ON: usize = 6_291_556 - 16 * 1024;

/// Whether `answer` is small enough to be sent.
pub(crate) fn fits(answer: &str) -> bool {
    // Nearly all pages are far smaller, even if every character needed an escape.
    answer.len() <= MOST / 2 || (answer.len() <= MOST && escaped(answer) <= MOST_PASSED_ON)
}

/// The length of `json` as a string in JSON, in bytes.
fn escaped(json: &str) -> usize {
    json.len() + json.bytes().filter(|byte| matches!(byte, b'"' | b'\\')).count()
}

/// The number of records at the beginning of the page in `answer` that fit; at least one, since every record fits
/// alone.
pub(crate) fn fitting(answer: &str) -> u64 {
    #[derive(Deserialize)]
    struct PageAnswer<'a> {
        #[serde(borrow)]
        data: PageData<'a>,
    }
    #[derive(Deserialize)]
    struct PageData<'a> {
        #[serde(borrow, default)]
        items: Vec<&'a RawValue>,
        #[serde(borrow, default)]
        transcript: Option<PageItems<'a>>,
    }
    #[derive(Deserialize)]
    struct PageItems<'a> {
        #[serde(borrow)]
        items: Vec<&'a RawValue>,
    }
    let items = serde_json::from_str::<PageAnswer<'_>>(answer).map(|answer| match answer.data {
        PageData { transcript: Some(PageItems { items }), .. } | PageData { items, .. } => items,
    });
    let items = items.unwrap_or_default();
    let sizes = items.iter().map(|item| (item.get().len() + 1, escaped(item.get()) + 1));
    // The bytes around the records stay.
    let all = sizes.clone().fold((0, 0), |all, size| (all.0 + size.0, all.1 + size.1));
    let mut page = (answer.len().saturating_sub(all.0), escaped(answer).saturating_sub(all.1));
    let fit = sizes.take_while(|size| {
        page = (page.0 + size.0, page.1 + size.1);
        page.0 <= MOST && page.1 <= MOST_PASSED_ON
    });
    (fit.count() as u64).max(1)
}

impl<R> Page<R> {
    /// This page with each record replaced by the result of `of`.
    pub fn map<S>(self, of: impl FnMut(R) -> S) -> Page<S> {
        let Self { items, total, page, size, pages, previous_page, next_page } = self;
        Page { items: items.into_iter().map(of).collect(), total, page, size, pages, previous_page, next_page }
    }
}

impl<R: Schema> Schema for Page<R> {
    fn schema() -> Value {
        let record = R::schema();
        let page = object(vec![
            member::<Vec<R>>("items", true, "The records, in the order of the query."),
            member::<u64>("total", true, "Number of records on all pages."),
            member::<u64>("page", true, "Number of this page, from 1."),
            member::<u64>("size", true, "Records per page."),
            member::<u64>("pages", true, "Number of pages."),
            member::<Option<u64>>(
                "previous_page",
                true,
                "The previous page's number, or null if this is the first page.",
            ),
            member::<Option<u64>>("next_page", true, "The next page's number, or null if this is the last page."),
        ]);
        match record["title"].as_str() {
            Some(record) => titled(page, &format!("{record}Page"), "A page of a list."),
            None => page,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answer with a page of so many of these records.
    fn answer(record: &str, count: u64) -> String {
        let records = vec![record; usize::try_from(count).unwrap()];
        format!(r#"{{"data":{{"items":[{}],"total":{count}}}}}"#, records.join(","))
    }

    #[test]
    fn a_page_has_as_many_records_as_fit() {
        // The page itself has a limit, and so has its text in the response, where each quote has an escape.
        for (text, count) in [("a".repeat(98), 80_000), (r#"\""#.repeat(49), 45_000)] {
            let record = format!(r#""{text}""#);
            let fit = fitting(&answer(&record, count));
            // The number of all records has the same length in each of these answers.
            assert!((10_000..count).contains(&fit), "{fit}");
            assert_eq!([fit, fit + 1].map(|count| fits(&answer(&record, count))), [true, false], "{fit}");
        }
    }
}
