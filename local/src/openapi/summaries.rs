//! The summaries of operations: what an operation does, in a few English words.

use repository::plain::{spaced, with_article};
use shared::input::schema::capitalised;

/// Summaries that do not follow from a name.
const SUMMARIES: &[(&str, &str)] = &[
    ("add-campaign-contacts", "Add contacts to a campaign"),
    ("add-datasource-text-blob", "Add a text to a data source"),
    ("check-payment-webhook", "Check the payment webhook of an agency"),
    ("create-link-tag-entity", "Link a tag to a record"),
    ("delete-link-tag-entity", "Unlink a tag from a record"),
    ("delete-linked-assistant-datasource", "Unlink a data source from an assistant"),
    ("get-agent-list", "List users"),
    ("link-assistant-datasource", "Link a data source to an assistant"),
    ("link-assistant-intent", "Link an intent to an assistant"),
    ("list-assistant-datasources", "List the data sources of an assistant"),
    ("list-assistant-intents", "List the intents of an assistant"),
    ("list-audit", "List the entries of the audit list"),
    ("list-campaign-contacts", "List the contacts of a campaign"),
    ("list-contact-conversations", "List the conversations of a contact"),
    ("list-conversation-captured-forms", "List the captured forms of a conversation"),
    ("read-conversation-transcript", "Read the transcript of a conversation"),
    ("read-delivery-stats", "Read the statistics of a webhook"),
    ("read-link-tag-entity-list", "List the links of tags"),
    ("read-own-user", "Read the user of the key"),
    ("read-usage", "Read the usage of a plan"),
    ("recover-webhook", "Send again what a webhook has missed"),
    ("redeliver", "Send an event again"),
    ("report-campaign-contact-outcome", "Report the outcome of a campaign contact"),
    ("report-conversation-outcome", "Report the outcome of a conversation"),
    ("report-usage", "Report usage"),
    ("rotate-webhook-secret", "Rotate the secret of a webhook"),
    ("rotate-widget-secret", "Rotate the secret of a widget"),
    ("setup-payment-webhook", "Set up the payment webhook of an agency"),
    ("unlink-assistant-intent", "Unlink an intent from an assistant"),
    ("upsert-contact", "Create or change a contact"),
];

/// The summary of the operation `name`: `Create a tag` of `create-tag`.
pub(crate) fn summary(name: &str) -> String {
    if let Some((_, says)) = SUMMARIES.iter().find(|(known, _)| *known == name) {
        return (*says).to_owned();
    }
    let (verb, nouns) = name.split_once('-').unwrap_or((name, ""));
    let nouns = spaced(nouns);
    let nouns = if nouns.ends_with('s') { nouns } else { with_article(&nouns) };
    format!("{} {nouns}", capitalised(verb))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use shared::routes;

    use super::*;

    #[test]
    fn a_summary_follows_from_a_name() {
        for (name, says) in [
            ("create-tag", "Create a tag"),
            ("read-agency", "Read an agency"),
            ("revoke-key", "Revoke an API key"),
            ("list-datasource-files", "List data source files"),
            ("list-llm-models", "List language models"),
            ("list-keys", "List API keys"),
        ] {
            assert_eq!(summary(name), says);
        }
    }

    #[test]
    fn every_summary_belongs_to_one_operation() {
        let all: Vec<_> = routes::ALL.iter().chain(routes::SIGNED).map(|route| route.name).collect();
        assert_eq!(all.iter().map(|name| summary(name)).collect::<BTreeSet<_>>().len(), all.len());
        for (name, says) in SUMMARIES {
            assert!(all.contains(name), "{name} is no operation");
            assert!(!says.contains('-') && !says.ends_with('.'), "{says}");
        }
    }
}
