//! The tags of the document: a group of operations for each record. Each tag says when to use the group.

use std::collections::BTreeMap;

use repository::camel_case;
use repository::plain::spaced;
use serde_json::{Value, json};
use shared::input::schema::capitalised;
use shared::routes;

use crate::client_names::ClientName;
use crate::openapi::names::component_name;
use crate::openapi::summaries::summary;

/// Descriptions of records for readers who look for the right group.
const TAGS: &[(&str, &str)] = &[
    (
        "assistant",
        "An assistant answers people. It has a language model, a prompt, data sources to look things up in, and intents to look for. Begin here.",
    ),
    (
        "agency",
        "An agency sells the service to others, under its own brand and with its own billing plans. Use it if you are a reseller. Its secrets are answered masked.",
    ),
    (
        "billing-plan",
        "A billing plan has the limits of what a user may use up, such as words and seconds of calls. Use plans if you sell the service to others.",
    ),
    (
        "campaign",
        "A campaign sends a message to many contacts, or calls them, at once or by a schedule. Use it for more than one recipient; for a single one use `send-message` or `start-call`.",
    ),
    ("user", "A user is a person of your organisation. Use users to count what each one uses up of a billing plan."),
    ("link", "A link puts a tag on a record. Use links to group records, and to find the records of a group."),
    (
        "datasource",
        "A data source is a collection of files in which assistants look things up. Link it to each assistant that is to know what it says.",
    ),
    (
        "datasource-file",
        "The files of a data source. Use them to give assistants texts and documents, and to download them again.",
    ),
    (
        "campaign-contact",
        "One contact of a campaign, with its status and its outcome. Use it to see whom a campaign has reached. Connectors report outcomes here.",
    ),
    (
        "intent",
        "An intent is something that a person may want, such as to cancel an order. Use intents to find the conversations about it.",
    ),
    (
        "form",
        "A form has the fields for which an assistant asks people. Use forms to get the same data from everybody, such as a name and a date.",
    ),
    (
        "tag",
        "A label of your own for other records. Use tags to group contacts, assistants and more; a link puts a tag on a record.",
    ),
    (
        "webhook",
        "A webhook is the address of a server of yours that gets events, signed with a secret. Use webhooks to hear of changes as they happen.",
    ),
    (
        "delivery",
        "One event that is sent to one endpoint, with its attempts. Use deliveries to see why an event did not arrive, and to send it again.",
    ),
    (
        "conversation",
        "What a person and an assistant say to each other. Use these operations for a chat of your own, for single messages and calls, and to read what was said.",
    ),
    (
        "contact",
        "A person who is reached by telephone number or e-mail address. Use contacts as the recipients of campaigns, and to know with whom an assistant speaks.",
    ),
    (
        "widget",
        "A widget is a channel of an assistant, such as a chat on a page, WhatsApp or a telephone. Its connector, a server of yours, sends messages and makes calls.",
    ),
    (
        "contact-custom-field",
        "Fields of contacts that you define. Use them for data of your own, such as a customer number, and to find contacts by it.",
    ),
    (
        "key",
        "API keys. Use them to give each program a key with its own role, scopes and limits. The answer that makes a key is the only one that has the key itself.",
    ),
    (
        "audit",
        "The audit list says what each key has done to which record, without values of the record. Use it to find out who changed something.",
    ),
    (
        "event",
        "The log of the events of the last 30 days. Use it in place of a webhook if no server of yours can be called, or to catch up after a failure.",
    ),
    ("export", "An export is a file of all records of some kinds. Use it to take your data to another system."),
    (
        "usage",
        "What a user has used up of its billing plan in the current billing period. Use it to show what is left, and to report what your runtime has used.",
    ),
    (
        "captured-form",
        "What was filled into a form in a conversation. Runtimes store it; use it to read what people have entered, and to correct it.",
    ),
    (
        "captured-intent",
        "An intent that was recognised in a conversation. Runtimes note it; use it to see what people ask for.",
    ),
    (
        "suppression",
        "A telephone number or an e-mail address that is not to be contacted. Use suppressions for people who want no more messages or calls: every campaign leaves them out.",
    ),
    (
        "analytics",
        "Counts over time, by day, hour or what is counted. Use them for charts and reports in place of reading all records.",
    ),
];

/// A tag for each record, in the order of the route table.
pub(super) fn tags(components: &BTreeMap<String, Value>) -> Vec<Value> {
    let mut names: Vec<(&str, String)> = Vec::new();
    for route in routes::ALL {
        if !names.iter().any(|(name, _)| *name == route.record) {
            names.push((route.record, ClientName::of(route).resource));
        }
    }
    let tag = |(name, resource): (&str, String)| json!({"name": name, "x-displayName": capitalised(&spaced(&resource)), "description": about(name, components)});
    names.into_iter().map(tag).collect()
}

/// What a tag is for. A record that is not in the list above has the description of its component.
fn about(name: &str, components: &BTreeMap<String, Value>) -> String {
    if let Some((_, says)) = TAGS.iter().find(|(known, _)| *known == name) {
        return (*says).to_owned();
    }
    let component = component_name(&camel_case(name));
    let says = components.get(&component).and_then(|schema| schema["description"].as_str());
    let says = says.unwrap_or_else(|| panic!("no component is called {component}"));
    let operations: Vec<_> =
        routes::ALL.iter().filter(|route| route.record == name).map(|route| summary(route.name)).collect();
    format!("{says} Operations: {}.", operations.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_without_a_text_has_that_of_its_component() {
        let component = json!({"description": "A label."});
        let components = BTreeMap::from([("StickyNote".to_owned(), component)]);
        assert_eq!(about("sticky-note", &components), "A label. Operations: .");
        assert!(about("tag", &components).starts_with("A label of your own"));
    }

    #[test]
    fn every_text_belongs_to_a_tag() {
        for (name, _) in TAGS {
            assert!(routes::ALL.iter().any(|route| route.record == *name), "{name} is no tag");
        }
    }
}
