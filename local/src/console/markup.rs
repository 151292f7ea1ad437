//! Common parts of the pages: a table, a time, a status, a form that sends a request.

use maud::{Markup, html};
use serde_json::Value;
use shared::request::route::Route;
use shared::values::time::Timestamp;

use crate::api::OrganisationWithKey;

/// The most characters of a body that a page shows.
const SHOWN: usize = 20_000;

/// A section that is kept up to date, with a table in it, or with `empty` if the table has no rows. A heading that
/// begins with `#` is for numbers.
pub fn rows(id: &str, headings: &[&str], rows: &[Markup], empty: &str) -> Markup {
    html! {
        div.live.rows id=(id) tabindex="0" role="region" aria-label=(id) {
            @if rows.is_empty() { p.empty { (empty) } }
            @else {
                table {
                    thead {
                        tr {
                            @for heading in headings {
                                @let name = heading.trim_start_matches('#');
                                @if name.is_empty() { td {} } @else { th.number[name != *heading] scope="col" { (name) } }
                            }
                        }
                    }
                    tbody { @for row in rows { tr { (row) } } }
                }
            }
        }
    }
}

/// The time of day to read, and the full time for programs.
pub fn time_of(at: Timestamp) -> Markup {
    moment(&at.to_string())
}

/// The same for a member of an answer; nothing where it is null.
pub fn moment_of(at: &Value) -> Markup {
    moment(at.as_str().unwrap_or_default())
}

fn moment(text: &str) -> Markup {
    let (day, time) = (text.get(..10).unwrap_or_default(), text.get(11..).unwrap_or_default());
    html! { @if !text.is_empty() { time datetime=(text) title=(day) { (time) } } }
}

/// An HTTP status.
pub fn status(status: u64) -> Markup {
    html! { span.good[status < 400].bad[status >= 400] { (status) } }
}

/// Text of any length; a long text is cut.
pub fn text(text: &str) -> Markup {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    html! {
        pre tabindex="0" {
            (&text[..end.unwrap_or(text.len())])
            @if end.is_some() { "\n… and more" }
        }
    }
}

/// JSON, on several lines.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A member of an answer, as text.
pub fn member<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// A form that sends a request of `route` with `fields`, and with the values of `inputs`.
pub fn form(
    organisation: &OrganisationWithKey,
    route: &Route,
    fields: &[(&str, &str)],
    inputs: &Markup,
    button: &str,
) -> Markup {
    let of = fields.first().map_or("", |field| field.1);
    html! {
        form id=(format!("{}-{of}", route.name)) data-method="POST"
            action=(format!("/console/operations/{}?org={}", route.name, organisation.name))
        {
            @for (name, value) in fields { input type="hidden" name=(name) value=(value); }
            (inputs)
            button { (button) }
        }
    }
}

/// A form that is a button.
pub fn button(organisation: &OrganisationWithKey, route: &Route, fields: &[(&str, &str)], label: &str) -> Markup {
    form(organisation, route, fields, &html! {}, label)
}
