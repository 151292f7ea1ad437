//! The plain operations. They have no file: their code and description follow from their names and from the records of
//! their routes.

use std::path::Path;

use shared::routes;

use crate::camel_case;

/// The first words of their names.
const VERBS: [&str; 5] = ["create", "read", "list", "update", "delete"];

/// Descriptions of plain operations that do not follow from their names and records.
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
        "list-agency-billing-plans",
        "A page of an agency's billing plans, oldest first. Use it to show what the agency offers.",
    ),
    ("read-agency-billing-plan", "One billing plan of an agency. Use it to see the limits of the plan."),
    ("delete-agency-billing-plan", "Deletes a billing plan of an agency, which offers it no longer."),
    (
        "delete-contact",
        "Deletes a contact. Its conversations stay, and so does the suppression of its telephone number or e-mail address.",
    ),
    ("delete-contact-custom-field", "Deletes a custom field of contacts. Contacts keep their values of it."),
    ("delete-datasource-file", "Deletes a file of a data source, with its bytes. Assistants can look it up no longer."),
    (
        "list-datasource-files",
        "A page of the files of a data source, oldest first. Use it to see what the data source has.",
    ),
    ("create-datasource", "Creates an empty data source. Add files to it, and link it to assistants."),
    ("delete-datasource", "Deletes a data source with its files, and its links to assistants and tags."),
    ("create-form", "Creates a form that an assistant can offer. Use it to ask everybody for the same data."),
    (
        "list-captured-intents",
        "A page of the intents that were recognised in conversations, oldest first. Use it to see what people ask for. `intent_id` and `conversation_id` select some of them.",
    ),
    ("delete-form", "Deletes a form, what was filled into it, and its links to tags."),
    ("create-intent", "Creates an intent. Link it to the assistants that are to look for it."),
    ("delete-intent", "Deletes an intent, its links to assistants and tags, and what was captured of it."),
    ("delete-link-tag-entity", "Deletes the link between a tag and a record. Both stay."),
    ("delete-suppression", "Deletes a suppression: its number or address may be contacted again."),
    (
        "list-suppressions",
        "A page of the organisation's suppressions, oldest first. Use it to see who must not be contacted. `phone_number` and `email` select the one suppression that has them.",
    ),
    ("create-tag", "Creates a tag. Put it on records with `create-link-tag-entity`."),
    ("delete-tag", "Deletes a tag and its links. The records that had the tag stay."),
    (
        "create-user",
        "Creates a user of the organisation. Use it for each person whose use of a billing plan is to be counted.",
    ),
    ("delete-user", "Deletes a user, and what is known of its customer at the payment provider."),
    ("read-user", "One user. Use it if you know the id; otherwise use `get-agent-list`."),
    ("delete-webhook", "Deletes a webhook with its deliveries. What is not delivered yet is never sent."),
    (
        "read-webhook",
        "One webhook, without its secret. Use it to see whether the service has disabled the webhook, and why.",
    ),
    ("delete-widget", "Deletes a widget. Deliveries to its connector that are not sent yet are given up."),
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

    /// Its description. A list is `selected` by these parameters.
    pub fn about(&self, selected: &[String]) -> String {
        if let Some((_, says)) = SAYS.iter().find(|(name, _)| *name == self.name) {
            return (*says).to_owned();
        }
        let noun = spaced(self.record);
        let one = with_article(&noun);
        match self.verb {
            "create" => format!("Creates {one}."),
            "read" => match self.list() {
                Some(list) => format!("One {noun}. Use it if you know the id; otherwise use `{list}`."),
                None => format!("One {noun}, by its id."),
            },
            "list" => {
                let many = spaced(&self.name["list-".len()..]);
                let page = format!("A page of the organisation's {many}, oldest first. Use it to find {one}");
                match selected {
                    [] => format!("{page}, or to read all of them."),
                    [name] => format!("{page}. `{name}` selects some of them."),
                    names => format!("{page}. `{}` select some of them.", names.join("` and `")),
                }
            }
            "update" => format!("Changes {one}. Send the fields that are to change; absent fields keep their values."),
            _ => format!("Deletes {one} for good."),
        }
    }

    /// The operation that lists the same records.
    fn list(&self) -> Option<&'static str> {
        let stem =
            self.record.strip_suffix('y').map_or_else(|| format!("{}s", self.record), |stem| format!("{stem}ies"));
        let route = routes::ALL.iter().find(|route| route.name.strip_prefix("list-") == Some(&stem));
        route.map(|route| route.name)
    }
}

/// Words of names that are other words in texts.
const WORDS: [(&str, &str); 3] = [("datasource", "data source"), ("llm", "language"), ("key", "API key")];

/// `name` as words, such as `data source file` for `datasource-file`.
pub fn spaced(name: &str) -> String {
    let word = |word: &str| match word.strip_suffix('s') {
        Some(one) if WORDS.iter().any(|(from, _)| *from == one) => format!("{}s", replaced(one)),
        _ => replaced(word).to_owned(),
    };
    name.split('-').map(word).collect::<Vec<_>>().join(" ")
}

fn replaced(word: &str) -> &str {
    WORDS.iter().find(|(from, _)| *from == word).map_or(word, |(_, to)| to)
}

/// `noun` behind its article.
pub fn with_article(noun: &str) -> String {
    // Without "u": it is "a user".
    let article = if noun.starts_with(['a', 'A', 'e', 'i', 'o']) { "an" } else { "a" };
    format!("{article} {noun}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::root;

    #[test]
    fn a_name_describes_its_plain_operation() {
        let note = |name| PlainOperation::of(&root(), "sticky-note", name).unwrap();
        assert_eq!(note("update-board-sticky-note").types(), ["Update", "StickyNote"]);
        assert_eq!(note("read-sticky-note").file(), "shared/src/operations/read.rs");
        let list = note("list-sticky-notes");
        let page = "A page of the organisation's sticky notes, oldest first. Use it to find a sticky note";
        assert_eq!(list.about(&[]), format!("{page}, or to read all of them."));
        let [colour, board] = ["colour", "board_id"].map(str::to_owned);
        assert_eq!(list.about(std::slice::from_ref(&colour)), format!("{page}. `colour` selects some of them."));
        assert_eq!(list.about(&[board, colour]), format!("{page}. `board_id` and `colour` select some of them."));
        assert_eq!(note("delete-sticky-note").about(&[]), "Deletes a sticky note for good.");
        let says = |record, name| PlainOperation::of(&root(), record, name).unwrap().about(&[]);
        assert_eq!(says("entry", "create-entry"), "Creates an entry.");
        assert_eq!(
            says("datasource", "read-datasource"),
            "One data source. Use it if you know the id; otherwise use `list-datasources`."
        );
        assert!(PlainOperation::of(&root(), "webhook", "create-webhook").is_none());
    }

    #[test]
    #[should_panic(expected = "functions/tag/src/merge_tags.rs is missing: only names that begin with [\"create\",")]
    fn an_operation_with_another_verb_needs_its_file() {
        PlainOperation::of(&root(), "tag", "merge-tags");
    }

    #[test]
    fn every_description_belongs_to_a_plain_operation() {
        for (name, _) in SAYS {
            let route = routes::ALL.iter().find(|route| route.name == *name).unwrap();
            assert!(PlainOperation::of(&root(), route.record, name).is_some(), "{name} says it in its file");
        }
    }
}
