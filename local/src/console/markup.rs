//! Common parts of the pages: cards, tables, badges, times, code, progress, links to records, forms that send a request.

use std::time::Duration;

use maud::{Markup, Render, html};
use serde_json::Value;
use shared::request::route::Route;
use shared::values::time::Timestamp;

use super::layout::linked;
use super::pages;
use crate::api::OrganisationWithKey;

/// The most characters of a body that a page shows.
const SHOWN: usize = 20_000;

/// The colour of a badge or of a part of a bar.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// It went well.
    Good,
    /// It failed.
    Bad,
    /// It waits, or somebody should look.
    Warn,
    /// It says nothing about success.
    Quiet,
}

impl Tone {
    /// Its class in the style sheet.
    pub const fn class(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Bad => "bad",
            Self::Warn => "warn",
            Self::Quiet => "quiet",
        }
    }

    /// The tone of a state of a record, such as `paused`.
    pub fn of(state: &str) -> Self {
        match state {
            "active" | "applied" | "completed" | "delivered" | "done" | "enabled" | "open" | "ready_for_use"
            | "sent" | "stored" | "trialing" => Self::Good,
            "dead" | "failed" | "past_due" | "unpaid" => Self::Bad,
            "in_progress" | "paused" | "pending" | "queued" | "ready" | "to_be_run" | "waiting" => Self::Warn,
            _ => Self::Quiet,
        }
    }
}

/// A section that is kept up to date, with a table in it, or with `empty` if the table has no rows. A heading that
/// begins with `#` is for numbers.
pub fn rows(id: &str, headings: &[&str], rows: &[Markup], empty: impl Render) -> Markup {
    html! {
        div.live.rows id=(id) tabindex="0" role="region" aria-label=(id) {
            @if rows.is_empty() { div.empty { (empty) } }
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

/// A card: a title, and something below it.
pub fn card(title: &str, content: &Markup) -> Markup {
    html! { section.card { h2 { (title) } (content) } }
}

/// What a page says where it has nothing: a sentence, and below it what to do next.
pub fn empty(sentence: &str, next: &Markup) -> Markup {
    html! { p { (sentence) } (next) }
}

/// A word in the colour of its tone.
pub fn badge(tone: Tone, text: impl Render) -> Markup {
    html! { span.badge.(tone.class()) { (text) } }
}

/// The state of a record as a badge; nothing where it is empty.
pub fn state(state: &str) -> Markup {
    html! { @if !state.is_empty() { (badge(Tone::of(state), state.replace('_', " "))) } }
}

/// Names with their values, below each other.
pub fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! { dl.facts { @for (name, value) in facts { div { dt { (name) } dd { (value) } } } } }
}

/// Links of which one is current: name, address, whether it is current.
pub fn tabs(label: &str, tabs: &[(&str, String, bool)]) -> Markup {
    html! {
        nav.tabs aria-label=(label) {
            @for (name, to, is_current) in tabs { a href=(to) aria-current=[is_current.then_some("true")] { (name) } }
        }
    }
}

/// How many of `total` are done.
pub fn progress(done: u64, total: u64) -> Markup {
    html! { progress aria-label={ (done) " of " (total) } value=(done) max=(total.max(1)) {} }
}

/// A bar with a part for each count: name, tone, count.
pub fn shares(parts: &[(&str, Tone, u64)]) -> Markup {
    /// The width of the whole bar.
    const WIDTH: u64 = 1000;
    let total = parts.iter().map(|part| part.2).sum::<u64>().max(1);
    let mut from = 0;
    let mut placed = Vec::new();
    for (name, tone, count) in parts.iter().filter(|part| part.2 > 0) {
        placed.push((from * WIDTH / total, count * WIDTH / total, name, tone, count));
        from += count;
    }
    let said: Vec<_> = placed.iter().map(|(_, _, name, _, count)| format!("{count} {name}")).collect();
    html! {
        svg.shares role="img" aria-label=(if said.is_empty() { "nothing".to_owned() } else { said.join(", ") })
            viewBox="0 0 1000 8" preserveAspectRatio="none" height="8"
        {
            @for (from, width, name, tone, count) in placed {
                rect.(tone.class()) x=(from) y="0" width=(width) height="8" { title { (count) " " (name) } }
            }
        }
    }
}

/// Code with a button that copies it.
pub fn code_block(label: &str, code: &str) -> Markup {
    html! { div.code { button type="button" data-copy { "Copy" } pre tabindex="0" role="region" aria-label=(label) { (cut(code)) } } }
}

/// A link to the page of a record, with its name.
pub fn record_link(organisation: &str, record: &str, id: &str, name: impl Render) -> Markup {
    html! { a href=(linked(&format!("{}/{record}/{id}", pages::RECORDS), Some(organisation))) { (name) } }
}

/// The last part of an id, which tells it from others; the whole id is in the title.
pub fn short_id(id: &str) -> Markup {
    let from = id.len().saturating_sub(8);
    html! { code.id title=(id) { "…" (id.get(from..).unwrap_or(id)) } }
}

/// A duration, in the unit that suits it.
pub fn duration(took: Duration) -> String {
    let microseconds = took.as_micros();
    match microseconds {
        0..1_000 => format!("{microseconds} µs"),
        1_000..10_000 => format!("{:.1} ms", took.as_secs_f64() * 1e3),
        10_000..1_000_000 => format!("{} ms", took.as_millis()),
        _ => format!("{:.1} s", took.as_secs_f64()),
    }
}

/// A point in time. The script shows how long ago it is.
pub fn time_of(at: Timestamp) -> Markup {
    moment(&at.to_string())
}

/// The same for a member of an answer; nothing where it is null.
pub fn moment_of(at: &Value) -> Markup {
    moment(at.as_str().unwrap_or_default())
}

fn moment(text: &str) -> Markup {
    let (day, time) = (text.get(..10).unwrap_or_default(), text.get(11..19).unwrap_or_default());
    html! { @if !text.is_empty() { time datetime=(text) title=(text) { (day) " " (time) } } }
}

/// An HTTP status.
pub fn status(status: u64) -> Markup {
    let tone = match status {
        0..300 => Tone::Good,
        300..400 => Tone::Quiet,
        400..500 => Tone::Warn,
        _ => Tone::Bad,
    };
    badge(tone, status)
}

/// Text of any length; a long text is cut.
pub fn text(text: &str) -> Markup {
    html! { pre tabindex="0" { (cut(text)) } }
}

fn cut(text: &str) -> Markup {
    let end = text.char_indices().nth(SHOWN).map(|(end, _)| end);
    html! { (&text[..end.unwrap_or(text.len())]) @if end.is_some() { "\n… and more" } }
}

/// JSON, on several lines.
pub fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

/// A member of an answer, as text.
pub fn member<'a>(record: &'a Value, name: &str) -> &'a str {
    record[name].as_str().unwrap_or_default()
}

/// A form that sends a request of `route` with `fields`, and with the values of `inputs`. The page stays open.
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
            action=(format!("/console/forms/{}?org={}&stay=yes", route.name, organisation.name))
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
