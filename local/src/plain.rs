//! The plain operations. They have no file: their code and description follow from their names and from the records of
//! their routes.

use std::path::Path;

use crate::template::camel_case;

/// The first words of their names.
const VERBS: [&str; 5] = ["create", "read", "list", "update", "delete"];

/// Descriptions of plain operations that their names do not contain.
const SAYS: &[(&str, &str)] = &[
    (
        "create-agency",
        "Creates an agency: a reseller with its branding, domains and billing plans. To take payments, set up its webhook afterwards.",
    ),
    ("delete-agency", "Deletes an agency, its billing plans, and its webhook at the payment provider."),
    (
        "update-agency",
        "Changes an agency. Absent objects stay as they are; each given object replaces the whole stored one.",
    ),
    (
        "list-assistants",
        "A page of the organisation's assistants, oldest first. `assistant_type` selects those of one type.",
    ),
    ("list-agency-billing-plans", "A page of an agency's billing plans, oldest first."),
    ("read-agency-billing-plan", "One billing plan of an agency."),
    ("delete-contact", "Deletes a contact. Its conversations stay."),
    (
        "list-contacts",
        "A page of the organisation's contacts, oldest first. `email` and `phone_number` select the one contact that has them.",
    ),
    ("delete-datasource-file", "Deletes a file of a data source, with its bytes."),
    ("list-datasource-files", "A page of the files of a data source, oldest first."),
    ("create-datasource", "Creates an empty data source. Add files to it, and link it to assistants."),
    ("delete-datasource", "Deletes a data source with its files, and its links to assistants and tags."),
    (
        "list-datasources",
        "A page of the organisation's data sources, oldest first. `ds_type` and `ds_status` select some of them.",
    ),
    ("read-datasource", "One data source."),
    ("update-datasource", "Changes a data source. Absent fields keep their values."),
    ("create-form", "Creates a form that an assistant can offer."),
    (
        "list-captured-intents",
        "A page of the intents that were recognised in conversations, oldest first. `intent_id` and `conversation_id` select some of them.",
    ),
    ("delete-form", "Deletes a form, what was filled into it, and its links to tags."),
    ("create-intent", "Creates an intent. Link it to the assistants that are to look for it."),
    ("delete-intent", "Deletes an intent, its links to assistants and tags, and what was captured of it."),
    ("delete-link-tag-entity", "Deletes the link between a tag and a record. Both stay."),
    ("create-tag", "Creates a tag. Put it on records with `create-link-tag-entity`."),
    ("delete-tag", "Deletes a tag and its links."),
    ("create-user", "Creates a user of the organisation."),
    ("delete-user", "Deletes a user, and what is known of its customer at the payment provider."),
    ("delete-webhook", "Deletes a webhook with its deliveries. What is not delivered yet is never sent."),
    ("read-webhook", "One webhook, without its secret."),
    ("delete-widget", "Deletes a widget. Deliveries to its connector that are not sent yet are given up."),
    (
        "list-widgets",
        "A page of the organisation's widgets, oldest first. `assistant_id` and `widget_type` select some of them.",
    ),
];

/// The path of an operation's file, unless it is plain.
pub fn own_file(record: &str, name: &str) -> String {
    format!("functions/{record}/src/{}.rs", name.replace('-', "_"))
}

/// An operation without a file, such as `Create<Tag>`.
#[derive(Debug)]
pub struct PlainOperation<'a> {
    name: &'a str,
    verb: &'a str,
    record: &'a str,
}

impl<'a> PlainOperation<'a> {
    /// The operation `name` of `record` in the checkout at `root`, unless it has a file.
    ///
    /// # Panics
    /// Where it has no file, and its name does not begin with one of the five verbs.
    pub fn of(root: &Path, record: &'a str, name: &'a str) -> Option<Self> {
        let file = own_file(record, name);
        if root.join(&file).exists() {
            return None;
        }
        let verb = name.split_once('-').map(|(verb, _)| verb).filter(|verb| VERBS.contains(verb));
        let verb =
            verb.unwrap_or_else(|| panic!("{file} is missing: only names that begin with {VERBS:?} need no file"));
        Some(Self { name, verb, record })
    }

    /// The type of the operation, and the type of its record.
    pub fn types(&self) -> [String; 2] {
        [self.verb, self.record].map(camel_case)
    }

    /// The file with its code.
    pub fn file(&self) -> String {
        format!("shared/src/operations/{}.rs", self.verb)
    }

    /// Its description.
    pub fn about(&self) -> String {
        if let Some((_, says)) = SAYS.iter().find(|(name, _)| *name == self.name) {
            return (*says).to_owned();
        }
        // Without "u": it is "a user".
        let article = if self.record.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let one = format!("{article} {}", self.record.replace('-', " "));
        match self.verb {
            "create" => format!("Creates {one}."),
            "read" => format!("One {}.", self.record.replace('-', " ")),
            "list" => {
                format!("A page of the organisation's {}, oldest first.", self.name["list-".len()..].replace('-', " "))
            }
            "update" => format!("Changes {one}. Absent fields keep their values."),
            _ => format!("Deletes {one}."),
        }
    }
}

#[cfg(test)]
mod tests {
    use shared::routes;

    use super::*;

    fn root() -> &'static Path {
        Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
    }

    #[test]
    fn a_name_describes_its_plain_operation() {
        let note = |name| PlainOperation::of(root(), "sticky-note", name).unwrap();
        assert_eq!(note("update-board-sticky-note").types(), ["Update", "StickyNote"]);
        assert_eq!(note("read-sticky-note").file(), "shared/src/operations/read.rs");
        assert_eq!(note("list-sticky-notes").about(), "A page of the organisation's sticky notes, oldest first.");
        assert_eq!(note("delete-sticky-note").about(), "Deletes a sticky note.");
        assert_eq!(PlainOperation::of(root(), "entry", "create-entry").unwrap().about(), "Creates an entry.");
        assert!(PlainOperation::of(root(), "webhook", "create-webhook").is_none());
    }

    #[test]
    #[should_panic(expected = "functions/tag/src/merge_tags.rs is missing: only names that begin with [\"create\",")]
    fn an_operation_with_another_verb_needs_its_file() {
        PlainOperation::of(root(), "tag", "merge-tags");
    }

    #[test]
    fn every_description_belongs_to_a_plain_operation() {
        for (name, _) in SAYS {
            let route = routes::ALL.iter().find(|route| route.name == *name).unwrap();
            assert!(PlainOperation::of(root(), route.record, name).is_some(), "{name} says it in its file");
        }
    }
}
