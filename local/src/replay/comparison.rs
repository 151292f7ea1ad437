//! Compares two answers, without the values that differ from run to run.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use shared::request::http::ALWAYS;
use shared::values::time::Timestamp;

use crate::http::Answer;
use crate::replay::fresh::Placeholders;

/// The headers that must be the same, in addition to those of every answer.
const HEADERS: [&str; 3] = ["content-type", "retry-after", "www-authenticate"];
/// The header that must be present: its value differs in each answer.
const REQUEST_ID: &str = "x-request-id";

/// The parts of lists that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pages {
    /// All records: both services have the same ones.
    Compared,
    /// Only the form of a page: the records of the service are unknown.
    OfUnknownRecords,
}

/// The parts of an answer that are compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Seen {
    status: u16,
    headers: BTreeMap<&'static str, String>,
    body: Value,
}

/// The names of the headers that must be the same.
fn compared() -> impl Iterator<Item = &'static str> {
    ALWAYS.iter().map(|(name, _)| *name).chain(HEADERS)
}

impl Seen {
    /// The parts of an answer at `now` of the service whose callers know it as `own_address`.
    pub fn of(answer: &Answer, own_address: &str, now: Timestamp, pages: Pages) -> Self {
        let header = |name: &'static str| Some((name, answer.headers.get(name)?.clone()));
        let mut headers: BTreeMap<_, _> = compared().filter_map(header).collect();
        if answer.headers.contains_key(REQUEST_ID) {
            headers.insert(REQUEST_ID, "<any>".to_owned());
        }
        let body = serde_json::from_str(&answer.body).unwrap_or_else(|_| Value::String(answer.body.clone()));
        let mut body = Placeholders::new(own_address, now).replace(body);
        if let Some(data) = body.get_mut("data") {
            // The audit list, which counts no entries, follows the stream, whose order differs from run to run.
            if pages == Pages::OfUnknownRecords || data.get("total").is_none() {
                forget_records(data);
            }
        }
        Self { status: answer.status, headers, body }
    }
}

/// Reduces a page to the common part of every list: the names of its members, and their types.
fn forget_records(data: &mut Value) {
    let Some(page) = data.as_object_mut().filter(|data| data.contains_key("items")) else { return };
    for value in page.values_mut() {
        *value = match value {
            Value::Array(_) => json!("<array>"),
            // The number of the previous or next page may be null, and so may a cursor.
            Value::Number(_) | Value::Null | Value::String(_) => json!("<value or null>"),
            _ => continue,
        };
    }
}

/// The differences of `got` from `wanted`, in lines; `None` if they are equal.
pub fn difference(got: &Seen, wanted: &Seen) -> Option<String> {
    if (got.status, &got.body) != (wanted.status, &wanted.body) {
        return Some(format!("answered {} {}\nwanted   {} {}", got.status, got.body, wanted.status, wanted.body));
    }
    let names = compared().chain([REQUEST_ID]);
    let shown = |seen: &Seen, name: &str| seen.headers.get(name).cloned().unwrap_or_else(|| "none".to_owned());
    let differ = names.filter(|name| got.headers.get(name) != wanted.headers.get(name));
    let lines: Vec<_> = differ
        .map(|name| format!("answered {name}: {}\nwanted   {name}: {}", shown(got, name), shown(wanted, name)))
        .collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use shared::table::meter::Cost;

    use super::*;

    fn seen(status: u16, headers: &[(&str, &str)], body: &Value, pages: Pages) -> Seen {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = Answer { status, headers, body: body.to_string(), cost: Cost::default() };
        Seen::of(&answer, "http://localhost", Timestamp::from_unix_millis(0), pages)
    }

    #[test]
    fn a_comparison_covers_only_status_body_and_headers() {
        let good = [("content-type", "application/json"), ("x-request-id", "1"), ("date", "today")];
        let body = json!({"data": {"id": 1}});
        let wanted = seen(200, &good, &body, Pages::Compared);
        let other = [("content-type", "application/json"), ("x-request-id", "2")];
        assert_eq!(difference(&seen(200, &other, &body, Pages::Compared), &wanted), None);
        let found = |got: &Seen| difference(got, &wanted).unwrap();
        assert!(found(&seen(500, &good, &body, Pages::Compared)).starts_with("answered 500"));
        assert!(found(&seen(200, &good, &json!({"data": {"id": 2}}), Pages::Compared)).contains(r#""id":2"#));
        assert!(found(&seen(200, &good[..1], &body, Pages::Compared)).contains("x-request-id: none"));
        assert!(found(&seen(200, &good[1..], &body, Pages::Compared)).contains("content-type: none"));
        let later = [good[0], good[1], ("retry-after", "1")];
        assert!(found(&seen(200, &later, &body, Pages::Compared)).contains("retry-after: 1"));
    }

    #[test]
    fn a_page_of_unknown_records_is_compared_by_its_shape() {
        let page = |items: Value, next: Value| json!({"data": {"items": items, "total": 1, "next_page": next}});
        let (empty, full) = (page(json!([]), json!(null)), page(json!([{"id": 1}]), json!(2)));
        let unknown = |body: &Value| seen(200, &[], body, Pages::OfUnknownRecords);
        assert_eq!(difference(&unknown(&full), &unknown(&empty)), None);
        let compared = |body: &Value| seen(200, &[], body, Pages::Compared);
        assert!(difference(&compared(&full), &compared(&empty)).is_some());
        let no_page = json!({"data": {"items": "x", "total": 1, "next_page": null}});
        assert!(difference(&unknown(&no_page), &unknown(&empty)).is_some());
        assert!(difference(&unknown(&json!({"data": {"total": 1}})), &unknown(&empty)).is_some());
        let audit = |id: &str, next: Value| json!({"data": {"items": [{"id": id}], "size": 1, "next": next}});
        assert_eq!(difference(&compared(&audit("a", json!("a"))), &compared(&audit("b", json!(null)))), None);
    }
}
