//! The names of the operations in the packages under `clients/`: `client.campaigns.addContacts(…)` in TypeScript and
//! `client.campaigns.add_contacts(…)` in Python. They follow from the route table.

use std::collections::BTreeMap;

use repository::camel_case;
use serde_json::{Value, json};
use shared::request::route::Route;
use shared::routes;

/// The file with all names, by the id of the operation in `openapi.json`. The generator of the packages reads it.
pub const FILE: &str = "clients/names.json";

/// What a record is called in the names of its operations, where this is not the record's name.
const NOUNS: [(&str, &str); 2] = [("billing-plan", "agency-billing-plan"), ("link", "link-tag-entity")];

/// Records that cannot be counted: their resource has their own name.
const UNCOUNTABLE: [&str; 3] = ["analytics", "audit", "usage"];

/// Methods of operations whose names have another form.
const METHODS: [(&Route, &str); 5] = [
    (&routes::READ_LINK_TAG_ENTITY_LIST, "list"),
    (&routes::GET_AGENT_LIST, "list"),
    (&routes::READ_OWN_USER, "read-own"),
    (&routes::DELETE_LINKED_ASSISTANT_DATASOURCE, "unlink-assistant"),
    (&routes::ADD_DATASOURCE_TEXT_BLOB, "add-text-blob"),
];

/// The name of an operation in the packages, in kebab case.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientName {
    /// The group of the operations of a record, such as `campaign-contacts`.
    pub resource: String,
    /// What the operation does, such as `report-outcome`.
    pub method: String,
}

impl ClientName {
    /// The name of the operation of `route`.
    pub fn of(route: &Route) -> Self {
        Self { resource: resource(route.record), method: method(route) }
    }

    /// The name in TypeScript, such as `campaignContacts.reportOutcome`.
    pub fn typescript(&self) -> String {
        format!("{}.{}", operation_id(&self.resource), operation_id(&self.method))
    }

    /// The name in Python, such as `campaign_contacts.report_outcome`.
    pub fn python(&self) -> String {
        format!("{}.{}", self.resource, self.method).replace('-', "_")
    }
}

/// The text of [`FILE`].
pub fn file() -> String {
    let names: BTreeMap<String, Value> = routes::ALL
        .iter()
        .map(|route| {
            let name = ClientName::of(route);
            (operation_id(route.name), json!({"typescript": name.typescript(), "python": name.python()}))
        })
        .collect();
    format!("{:#}\n", json!(names))
}

fn resource(record: &str) -> String {
    if UNCOUNTABLE.contains(&record) { record.to_owned() } else { plural(record) }
}

fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'o']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

/// The name of the operation without its record: what stands behind the record is the object of the method, and what
/// stands in front of it is the record whose part the method takes. A method other than `list` for more than one record
/// says so.
fn method(route: &Route) -> String {
    if let Some((_, method)) = METHODS.iter().find(|(special, _)| *special == route) {
        return (*method).to_owned();
    }
    let noun = NOUNS.iter().find(|(record, _)| *record == route.record).map_or(route.record, |(_, noun)| noun);
    let Some((verb, object)) = route.name.split_once('-') else { return route.name.to_owned() };
    let padded = format!("-{object}-");
    let [one, many] = [noun.to_owned(), plural(noun)].map(|noun| format!("-{noun}-"));
    let found = padded.split_once(&one).map(|parts| (parts, false));
    let Some(((owner, rest), is_many)) = found.or_else(|| padded.split_once(&many).map(|parts| (parts, true))) else {
        return route.name.to_owned();
    };
    let owner = owner.trim_start_matches('-');
    let parts = [
        Some(verb),
        (!owner.is_empty()).then_some("for"),
        Some(owner),
        Some(rest.trim_end_matches('-')),
        (is_many && verb != "list").then_some("many"),
    ];
    parts.into_iter().flatten().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("-")
}

/// The name of an operation in clients of other languages.
pub fn operation_id(kebab_case: &str) -> String {
    let name = camel_case(kebab_case);
    let mut letters = name.chars();
    letters.next().map(|first| first.to_ascii_lowercase()).into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_name_says_what_is_done_to_which_record() {
        for (route, typescript, python) in [
            (routes::CREATE_ASSISTANT, "assistants.create", "assistants.create"),
            (routes::LIST_TAGS, "tags.list", "tags.list"),
            (routes::DELETE_TAGS, "tags.deleteMany", "tags.delete_many"),
            (routes::LIST_AGENCIES, "agencies.list", "agencies.list"),
            (routes::READ_AGENCY_BILLING_PLAN, "billingPlans.read", "billing_plans.read"),
            (routes::CREATE_LINK_TAG_ENTITY, "links.create", "links.create"),
            (routes::LIST_DELIVERIES, "deliveries.list", "deliveries.list"),
            (routes::REDELIVER, "deliveries.redeliver", "deliveries.redeliver"),
            (routes::LIST_KEYS, "keys.list", "keys.list"),
            (routes::LIST_AUDIT, "audit.list", "audit.list"),
            (routes::ADD_CAMPAIGN_CONTACTS, "campaigns.addContacts", "campaigns.add_contacts"),
            (routes::CLOSE_CONVERSATION, "conversations.close", "conversations.close"),
            (routes::LIST_CONTACT_CONVERSATIONS, "conversations.listForContact", "conversations.list_for_contact"),
            (
                routes::REPORT_CAMPAIGN_CONTACT_OUTCOME,
                "campaignContacts.reportOutcome",
                "campaign_contacts.report_outcome",
            ),
        ] {
            let name = ClientName::of(&route);
            assert_eq!((name.typescript().as_str(), name.python().as_str()), (typescript, python));
        }
    }

    #[test]
    fn no_two_operations_have_the_same_name() {
        let names: BTreeSet<ClientName> = routes::ALL.iter().map(|route| ClientName::of(route)).collect();
        assert_eq!(names.len(), routes::ALL.len());
    }

    /// A method must not be a word that Python keeps for itself.
    #[test]
    fn no_method_is_a_keyword() {
        for route in routes::ALL {
            let method = ClientName::of(route).method;
            assert!(!["import", "from", "pass", "raise", "return", "yield"].contains(&method.as_str()), "{method}");
        }
    }
}
