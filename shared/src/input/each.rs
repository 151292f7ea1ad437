//! Lists in a body whose items fail each by themselves.

use serde_json::json;

use crate::input::schema::{Schema, Value};
use crate::input::{Input, Issues, Location, Parse, Raw, Source, bounded_list};

/// One to `MOST` items: each one is valid, or has issues. The issues of an item do not make the request invalid.
#[derive(Debug)]
pub struct Each<const MOST: usize, T>(pub Vec<Result<T, Issues>>);

/// One item. Its issues fail this item only.
struct Item<T>(Result<T, Issues>);

impl<T: Input> Parse for Item<T> {
    fn parse(raw: Raw<'_>, at: &Location, _: &mut Issues) -> Option<Self> {
        let mut own = Issues::new();
        let fields = match Source::object(raw, at) {
            Ok(source) => T::read(&source, &mut own),
            Err(issue) => {
                own.push(issue);
                None
            }
        };
        Some(Self(fields.filter(|_| own.is_empty()).ok_or(own)))
    }
}

impl<const MOST: usize, T: Input> Parse for Each<MOST, T> {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let items: Vec<Item<T>> = bounded_list(raw, at, issues, (1, MOST))?;
        Some(Self(items.into_iter().map(|item| item.0).collect()))
    }
}

impl<const MOST: usize, T: Input> Schema for Each<MOST, T> {
    fn schema() -> Value {
        json!({"type": "array", "items": T::schema(), "minItems": 1, "maxItems": MOST})
    }
}
