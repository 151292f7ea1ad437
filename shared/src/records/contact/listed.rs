//! Lists of contacts, filtered by the values of custom fields.

use super::Contact;
use super::custom::{CUSTOM_FIELD, CustomFields};
use crate::input::schema::{Value, extended};
use crate::input::{Input, Issues, Location, Parse, Raw, Source, member, words};
use crate::request::context::Context;
use crate::request::error::Result;
use crate::table::page::ListQuery;

/// The most values in a query: an organisation has no more filters.
const MOST: usize = 3;

/// The query of `list-contacts`.
#[derive(Debug)]
pub struct ContactListQuery {
    list: ListQuery<Contact>,
    asked: Option<AskedValues>,
}

/// Names of custom fields, each with the wanted value.
#[derive(Debug, PartialEq, Eq)]
struct AskedValues(Vec<(String, String)>);

impl AskedValues {
    /// Reads `plan:gold,city:Berlin`. A backslash before a comma, a colon or a backslash makes it a part of the name or
    /// the value.
    fn of(text: &str) -> Option<Self> {
        let (mut values, mut name, mut part, mut rest) = (Vec::new(), None, String::new(), text.chars());
        loop {
            match rest.next() {
                Some('\\') => part.push(rest.next()?),
                Some(':') if name.is_none() => name = Some(std::mem::take(&mut part)),
                Some(',') => values.push((name.take()?, std::mem::take(&mut part))),
                Some(other) => part.push(other),
                None => {
                    values.push((name?, part));
                    return Some(Self(values));
                }
            }
        }
    }
}

impl Parse for AskedValues {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        let issue = match Self::of(&text) {
            Some(asked) if asked.0.len() <= MOST => return Some(asked),
            Some(_) => at.issue(words::TOO_LONG, format!("Input should have at most {MOST} values")),
            None => {
                at.issue("value_error", "Input should be the name of a custom field and a value, as in 'plan:gold'")
            }
        };
        issues.push(issue);
        None
    }
}

impl Input for ContactListQuery {
    fn read(source: &Source<'_>, issues: &mut Issues) -> Option<Self> {
        let list = ListQuery::read(source, issues);
        let asked = source.optional(CUSTOM_FIELD, issues, || None);
        Some(Self { list: list?, asked: asked? })
    }

    fn schema() -> Value {
        let doc = "Only contacts with this value of a custom field that has `is_filter`, as in `plan:gold`. Up to three, with commas between them; a backslash before a comma, a colon or a backslash makes it a part of the name or the value.";
        extended(ListQuery::<Contact>::schema(), vec![member::<String>(CUSTOM_FIELD, false, doc)])
    }
}

impl ContactListQuery {
    /// The query of the list, with a filter for each custom field.
    ///
    /// # Errors
    /// [`Error::Invalid`](crate::request::error::Error::Invalid) where a field is no filter, or cannot have the value.
    pub async fn with_fields(self, cx: &Context<'_>) -> Result<ListQuery<Contact>> {
        let Self { mut list, asked } = self;
        let Some(AskedValues(asked)) = asked else { return Ok(list) };
        let at = Location::query().name(CUSTOM_FIELD);
        let read = |fields: &CustomFields| fields.terms(&asked, &at);
        list.terms = CustomFields::check(cx, read, std::result::Result::is_ok).await??;
        Ok(list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_values_are_read_with_their_escapes() {
        for (text, wanted) in [
            ("plan:gold", &[("plan", "gold")][..]),
            ("plan:gold,seats:12", &[("plan", "gold"), ("seats", "12")]),
            ("at:12:30", &[("at", "12:30")]),
            (r"a\:b:c\,d\\", &[("a:b", r"c,d\")]),
            ("note:", &[("note", "")]),
        ] {
            let values = wanted.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            assert_eq!(AskedValues::of(text), Some(AskedValues(values)), "{text}");
        }
        for text in ["", "plan", "plan:gold,", "plan:gold,seats", r"plan:gold\"] {
            assert_eq!(AskedValues::of(text), None, "{text}");
        }
    }
}
