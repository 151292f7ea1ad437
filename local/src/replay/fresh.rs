//! Replaces the values that differ from run to run with numbered placeholders: young ids and times, keys, secrets, the
//! service's own address.

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::Value;
use shared::values::time::Timestamp;
use uuid::Uuid;

/// Seconds around now: a time in the past within this limit was made by this run, and one in the future was calculated
/// from it.
const YOUNG: i64 = 1800;

/// The placeholders of one answer. They are numbered by first appearance, so that two equal values stay equal.
#[derive(Debug)]
pub struct Placeholders<'a> {
    own_address: &'a str,
    now: Timestamp,
    seen: BTreeMap<String, String>,
}

impl<'a> Placeholders<'a> {
    /// The placeholders for an answer at `now` of a service whose callers know it as `own_address`.
    pub const fn new(own_address: &'a str, now: Timestamp) -> Self {
        Self { own_address, now, seen: BTreeMap::new() }
    }

    /// `value` with placeholders.
    pub fn replace(&mut self, value: Value) -> Value {
        match value {
            Value::String(text) => Value::String(self.replace_in_text(&text)),
            Value::Array(items) => items.into_iter().map(|item| self.replace(item)).collect(),
            Value::Object(members) => {
                // All answers need the same order, because otherwise the numbers would differ.
                let members: BTreeMap<_, _> = members.into_iter().collect();
                let replaced = members.into_iter().map(|(name, value)| {
                    let value = match value {
                        // Each key has an organisation of its own.
                        Value::String(text) if name == "org_id" => {
                            Value::String(self.placeholder("organisation", &text))
                        }
                        // Each deployment has limits of its own for keys that have none.
                        Value::Object(_) if name == "limits" => Value::String("<limits>".to_owned()),
                        value => self.replace(value),
                    };
                    (name, value)
                });
                Value::Object(replaced.collect())
            }
            value => value,
        }
    }

    fn replace_in_text(&mut self, text: &str) -> String {
        if is_key(text) {
            return self.placeholder("key", text);
        }
        if text.starts_with("whsec_") {
            return self.placeholder("secret", text);
        }
        if text.contains("X-Amz-Signature=") {
            return self.placeholder("signed address", text);
        }
        let text = text.replace(self.own_address, "<address>");
        let (mut replaced, mut rest) = (String::new(), text.as_str());
        while let Some(first) = rest.chars().next() {
            let (kind, length) = self.fresh(rest).unwrap_or(("", first.len_utf8()));
            let (head, tail) = rest.split_at(length);
            if kind.is_empty() {
                replaced.push_str(head);
            } else {
                replaced += &self.placeholder(kind, head);
            }
            rest = tail;
        }
        replaced
    }

    /// The kind and the length of the fresh value at the beginning of `text`.
    fn fresh(&self, text: &str) -> Option<(&'static str, usize)> {
        const ID: usize = 36;
        if let Some(id) = text.get(..ID).and_then(|id| Uuid::try_parse(id).ok()) {
            return self.is_young(made(id)?).then_some(("id", ID));
        }
        let length = text.get(..20)?.starts_with(|first: char| first.is_ascii_digit()).then(|| text.find('Z'))?? + 1;
        let time = DateTime::parse_from_rfc3339(text.get(..length)?).ok()?;
        // Times are not numbered: two of them may be equal by accident.
        // An old key ends up to a week after its rotation.
        let ahead = time.timestamp() - self.now.unix_seconds();
        let is_soon = (0..8 * 86_400).contains(&ahead);
        (is_soon || self.is_young(time.timestamp())).then_some(("time", length))
    }

    fn is_young(&self, made: i64) -> bool {
        (self.now.unix_seconds() - made).abs() < YOUNG
    }

    fn placeholder(&mut self, kind: &str, text: &str) -> String {
        if kind == "time" {
            return "<time>".to_owned();
        }
        let number = self.seen.len() + 1;
        self.seen.entry(text.to_owned()).or_insert_with(|| format!("<{kind} {number}>")).clone()
    }
}

/// When an id was created, in seconds, if the id contains this.
fn made(id: Uuid) -> Option<i64> {
    let (seconds, _) = id.get_timestamp()?.to_unix();
    i64::try_from(seconds).ok()
}

/// Whether this is an API key, or the beginning of one as in lists; the keys of the demo set are the same in every run.
fn is_key(text: &str) -> bool {
    text.strip_prefix("in-").is_some_and(|rest| {
        let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        [4, 43].contains(&rest.len()) && rest.bytes().all(word) && !rest.starts_with("demo")
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 2026-02-01T12:00:00Z.
    const NOW: i64 = 1_769_947_200_000;

    fn replaced(value: Value) -> Value {
        Placeholders::new("http://localhost:1/dev", Timestamp::from_unix_millis(NOW)).replace(value)
    }

    #[test]
    fn young_ids_and_times_are_replaced_and_old_ones_stay() {
        let (young, other, old) = (
            "019c1912-fa00-7000-8000-000000000000",
            "019c1912-fa00-7000-8000-000000000001",
            "01900000-0000-7000-8000-a00100000001",
        );
        assert_eq!(replaced(json!([young, other, young, old])), json!(["<id 1>", "<id 2>", "<id 1>", old]));
        let times = json!(["2026-02-01T12:00:01.123Z", "2026-02-08T11:59:59Z", "2026-01-01T00:00:00.000Z"]);
        assert_eq!(replaced(times), json!(["<time>", "<time>", "2026-01-01T00:00:00.000Z"]));
        // An id of another version contains no time.
        assert_eq!(replaced(json!("6f1e0d4c-1111-4222-8333-444455556666")), "6f1e0d4c-1111-4222-8333-444455556666");
    }

    #[test]
    fn keys_secrets_organisations_and_the_address_are_replaced() {
        let key = format!("in-{}", "A".repeat(43));
        assert_eq!(replaced(json!([key, "in-AbCd", key])), json!(["<key 1>", "<key 2>", "<key 1>"]));
        assert_eq!(replaced(json!(["in-demo", "in-short"])), json!(["in-demo", "in-short"]));
        assert_eq!(replaced(json!("whsec_MTIz")), "<secret 1>");
        assert_eq!(replaced(json!("http://localhost:2/a?X-Amz-Signature=1")), "<signed address 1>");
        assert_eq!(replaced(json!({"org_id": "x", "id": "x"})), json!({"org_id": "<organisation 1>", "id": "x"}));
        assert_eq!(replaced(json!("to http://localhost:1/dev/api/v1")), "to <address>/api/v1");
    }

    #[test]
    fn other_text_is_not_changed() {
        for text in ["", "é", "12é45678901234567890123456789012345678901", "2026-02-30T12:00:00Z", "Ωmega Z"] {
            assert_eq!(replaced(json!(text)), text);
        }
    }
}
