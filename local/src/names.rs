//! The names of records, for the console: an id says little to a reader.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use shared::request::route::Route;

/// The most records whose names are known.
const KEPT: usize = 100_000;
/// The most characters of a name.
const LONGEST: usize = 80;
/// Members that name a record, the best name first.
pub const NAMES: [&str; 11] = [
    "name",
    "display_name",
    "form_name",
    "intent_name",
    "email",
    "phone_number",
    "domain",
    "operation",
    "event",
    "text",
    "message",
];

/// Members of members that name a record: an agency has no name of its own.
const INNER_NAMES: [&str; 2] = ["/branding/name", "/domain/host"];

/// The names of the records that were read or written last.
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
            let Some(id) = record["id"].as_str().map(str::to_owned) else { continue };
            match name_of(record) {
                Some(name) if known.len() < KEPT => drop(known.insert((route.record, id), name)),
                _ => drop(known.remove(&(route.record, id))),
            }
        }
    }

    /// The name of a record.
    pub fn find(&self, record: &'static str, id: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&(record, id.to_owned())).cloned()
    }
}

/// The name of a record, from its members that name it.
pub fn name_of(record: &Value) -> Option<String> {
    let is_name = |text: &&str| !text.trim().is_empty();
    let text = |name: &str| record[name].as_str().filter(is_name);
    let full: Vec<_> = ["first_name", "last_name"].into_iter().filter_map(text).collect();
    if !full.is_empty() {
        return Some(cut(&full.join(" ")));
    }
    let inner = || INNER_NAMES.into_iter().find_map(|place| record.pointer(place)?.as_str().filter(is_name));
    NAMES.into_iter().find_map(text).or_else(inner).map(cut)
}

/// The beginning of a text, as long as a name.
pub fn cut(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use shared::routes;

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
        let agencies = json!([{"id": "6", "branding": {"name": "A"}, "domain": {"host": "a"}}, {"id": "7", "branding": {}, "domain": {"host": "b"}}, {"id": "8", "domain": {}}]);
        names.learn(&routes::LIST_AGENCIES, &json!({"items": agencies}));
        let found = ["6", "7", "8"].map(|id| names.find("agency", id).unwrap_or_default());
        assert_eq!(found, ["A", "b", ""]);
        names.learn(&routes::UPDATE_CONTACT, &json!({"id": "2", "first_name": null}));
        assert_eq!(names.find("contact", "2"), None);
    }
}
