//! The names of records, for the console: an id says little to a reader.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use shared::request::route::Route;
use shared::routes;

/// The most records whose names are known.
const KEPT: usize = 100_000;
/// The most characters of a name.
const LONGEST: usize = 60;

/// The records that were read or written last.
#[derive(Debug, Default)]
pub struct KnownNames(Mutex<HashMap<RecordId, String>>);

/// The kind of a record, as in the route table, and its id. A record of another kind may have the same id.
type RecordId = (&'static str, String);

impl KnownNames {
    /// Learns the records in `data`, an answer of `route`. Other answers than one record and a list of them are left
    /// out, such as the list of another record's links.
    pub fn learn(&self, route: &Route, data: &Value) {
        let is_list = route.parameters().next().is_none() && data["items"].is_array();
        let is_one = route.name.ends_with(route.record) && data["id"].is_string();
        let records = match &data["items"] {
            Value::Array(items) if is_list => items.as_slice(),
            _ if is_one => std::slice::from_ref(data),
            _ => return,
        };
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records {
            if let (Some(id), Some(name)) = (record["id"].as_str(), name(record))
                && known.len() < KEPT
            {
                known.insert((route.record, id.to_owned()), name);
            }
        }
    }

    /// The name of a record.
    pub fn find(&self, record: &'static str, id: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(record, id.to_owned())).cloned()
    }
}

/// The kind of the record to which the parameter `name` of `route` leads.
pub fn record_of(route: &Route, name: &str) -> &'static str {
    let kind = name.trim_end_matches("_id").replace('_', "-");
    routes::ALL.iter().map(|route| route.record).find(|record| *record == kind).unwrap_or(route.record)
}

/// The name of a record: what a person would call it.
fn name(record: &Value) -> Option<String> {
    let text = |name: &str| record[name].as_str().filter(|text| !text.is_empty()).map(str::to_owned);
    let person = || match (text("first_name"), text("last_name")) {
        (Some(first), Some(last)) => Some(format!("{first} {last}")),
        (first, last) => first.or(last),
    };
    let others = || ["title", "email", "phone_number", "message"].into_iter().find_map(text);
    let name = text("name").or_else(person).or_else(others)?;
    Some(name.chars().take(LONGEST).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn names_come_from_records_and_from_lists_of_them() {
        let names = KnownNames::default();
        names.learn(&routes::READ_TAG, &json!({"id": "1", "name": "VIP"}));
        let contacts = json!([{"id": "2", "first_name": "Ada", "last_name": "L", "email": "a"}, {"id": "3", "email": "b"}, {"id": "4"}]);
        names.learn(&routes::LIST_CONTACTS, &json!({"items": contacts}));
        // These are the links of an assistant, and no assistants.
        names.learn(&routes::LIST_ASSISTANT_INTENTS, &json!({"items": [{"id": "5", "name": "x"}]}));
        let found =
            [("tag", "1"), ("contact", "2"), ("contact", "3"), ("contact", "4"), ("tag", "2"), ("assistant", "5")];
        let found = found.map(|(record, id)| names.find(record, id).unwrap_or_default());
        assert_eq!(found, ["VIP", "Ada L", "b", "", "", ""]);
        assert_eq!(record_of(&routes::LINK_ASSISTANT_INTENT, "assistant_id"), "assistant");
        assert_eq!(record_of(&routes::READ_WEBHOOK, "webhook_id"), "webhook");
    }
}
