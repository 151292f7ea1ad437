//! The plain operations. They have no file: what they are and do follows from their names and from the records of their routes.

use std::path::Path;

use shared::input::schema::capitalised;

use crate::template::camel_case;

/// The first words of their names.
const VERBS: [&str; 5] = ["create", "read", "list", "update", "delete"];

/// What the document says of those whose name does not say it.
const SAYS: &[(&str, &str)] = &[
    ("create-agency-billing-plan", "Makes a billing plan of an agency."),
    ("list-agency-billing-plans", "A page of the billing plans of an agency."),
    ("read-agency-billing-plan", "A billing plan of an agency."),
    ("update-agency", "Changes an agency; absent objects stay, the others are replaced as wholes."),
    ("list-assistants", "A page of the assistants; the query can filter them by type."),
    ("list-conversations", "A page of the conversations; the query can filter them by status and assistant."),
    ("create-datasource", "Makes a data source, which is empty."),
    ("list-datasources", "A page of the data sources; the query can filter them by type and status."),
    ("read-datasource", "A data source."),
    ("update-datasource", "Changes a data source; absent fields keep their values."),
    ("delete-datasource", "Removes a data source."),
    ("list-datasource-files", "A page of the files of a data source."),
    ("delete-datasource-file", "Removes a file of a data source."),
    ("delete-link-tag-entity", "Removes a link between a tag and an entity."),
    ("create-user", "Adds a user."),
    ("list-webhooks", "A page of the organisation's webhooks."),
    ("read-webhook", "A webhook, without its secret."),
    ("delete-webhook", "Removes a webhook; its unfinished deliveries are given up."),
    ("list-widgets", "A page of the widgets; the query can filter them by assistant and channel."),
];

/// The path of the file that an operation has, unless it is plain.
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

    /// The type of the operation, and that of its record.
    pub fn types(&self) -> [String; 2] {
        [self.verb, self.record].map(camel_case)
    }

    /// The file with its code.
    pub fn file(&self) -> String {
        format!("shared/src/operations/{}.rs", self.verb)
    }

    /// What it does.
    pub fn about(&self) -> String {
        if let Some((_, says)) = SAYS.iter().find(|(name, _)| *name == self.name) {
            return (*says).to_owned();
        }
        // Without "u": it is "a user".
        let article = if self.record.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
        let one = format!("{article} {}", self.record.replace('-', " "));
        match self.verb {
            "create" => format!("Makes {one}."),
            "read" => format!("{}.", capitalised(&one)),
            "list" => format!("A page of the {}.", self.name["list-".len()..].replace('-', " ")),
            "update" => format!("Changes {one}; absent fields keep their values."),
            _ => format!("Removes {one}."),
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
    fn a_name_says_what_a_plain_operation_is() {
        let note = |name| PlainOperation::of(root(), "sticky-note", name).unwrap();
        assert_eq!(note("update-board-sticky-note").types(), ["Update", "StickyNote"]);
        assert_eq!(note("read-sticky-note").file(), "shared/src/operations/read.rs");
        assert_eq!(note("list-sticky-notes").about(), "A page of the sticky notes.");
        assert_eq!(note("delete-sticky-note").about(), "Removes a sticky note.");
        assert_eq!(PlainOperation::of(root(), "entry", "read-entry").unwrap().about(), "An entry.");
        assert!(PlainOperation::of(root(), "webhook", "create-webhook").is_none());
    }

    #[test]
    #[should_panic(expected = "functions/tag/src/merge_tags.rs is missing: only names that begin with [\"create\",")]
    fn an_operation_with_another_verb_needs_its_file() {
        PlainOperation::of(root(), "tag", "merge-tags");
    }

    #[test]
    fn what_is_said_of_an_operation_is_said_of_a_plain_one() {
        for (name, _) in SAYS {
            let route = routes::ALL.iter().find(|route| route.name == *name).unwrap();
            assert!(PlainOperation::of(root(), route.record, name).is_some(), "{name} says it in its file");
        }
    }
}
