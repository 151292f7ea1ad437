//! The kinds of events, each once.

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::json;

use crate::input::schema::{Schema, Value, titled};
use crate::input::{Issues, Location, Parse, Raw, one_of};

/// What happened, such as `contact.created`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EventKind(&'static str);

/// The kinds of events of one record.
#[derive(Debug, Clone, Copy)]
pub struct RecordKinds {
    /// Name of the record.
    pub record: &'static str,
    /// It was made.
    pub created: EventKind,
    /// It was changed.
    pub updated: EventKind,
    /// Whether no operation changes it.
    pub is_fixed: bool,
    /// It was removed.
    pub deleted: EventKind,
    /// Changes with a name of their own: the first one that fits is emitted in place of `updated`.
    pub facts: &'static [Fact],
}

impl RecordKinds {
    /// All of them.
    pub fn all(&'static self) -> impl Iterator<Item = EventKind> + Clone {
        let facts = self.facts.iter().map(|fact| fact.kind);
        let updated = (!self.is_fixed).then_some(self.updated);
        [self.created].into_iter().chain(updated).chain([self.deleted]).chain(facts)
    }
}

/// A change that has a name of its own.
#[derive(Debug, Clone, Copy)]
pub struct Fact {
    /// Its kind.
    pub kind: EventKind,
    /// What shows it.
    pub shown_by: Sign,
}

/// What shows that a fact has happened.
#[derive(Debug, Clone, Copy)]
pub enum Sign {
    /// The field has this value now, and had another one before.
    Became(&'static str, &'static str),
    /// The field has a value now, and had none before.
    Set(&'static str),
    /// One of the fields has changed.
    Changed(&'static [&'static str]),
}

macro_rules! kinds {
    (@fixed) => { false };
    (@fixed fixed) => { true };
    ($($record:literal $name:literal $($fixed:ident)? $([$($fact:ident $sign:expr),*])?;)*) => {
        /// The records whose changes are events.
        pub const RECORDS: &[RecordKinds] = &[$(RecordKinds {
            record: $record,
            created: EventKind(concat!($name, ".created")),
            updated: EventKind(concat!($name, ".updated")),
            is_fixed: kinds!(@fixed $($fixed)?),
            deleted: EventKind(concat!($name, ".deleted")),
            facts: &[$($(Fact { kind: EventKind::$fact, shown_by: $sign }),*)?],
        }),*];
    };
}

kinds! {
    "Agency" "agency";
    "Assistant" "assistant";
    "BillingPlan" "billing_plan";
    "Campaign" "campaign" [
        CAMPAIGN_STARTED Sign::Became("status", "in_progress"),
        CAMPAIGN_COMPLETED Sign::Became("status", "completed")
    ];
    "CapturedForm" "captured_form";
    "CapturedIntent" "captured_intent" fixed;
    "Contact" "contact";
    "ContactCustomField" "contact_custom_field";
    "Datasource" "datasource";
    "DatasourceFile" "datasource_file" fixed [DATASOURCE_FILE_UPLOADED Sign::Changed(&["uploaded_at"])];
    "DatasourceLink" "datasource_link" fixed;
    "Export" "export" [
        EXPORT_COMPLETED Sign::Became("status", "completed"),
        EXPORT_FAILED Sign::Became("status", "failed")
    ];
    "Form" "form";
    "Intent" "intent";
    "IntentLink" "intent_link" fixed;
    "Link" "link_tag_entity" fixed;
    "Suppression" "suppression";
    "Tag" "tag";
    "User" "user" [PAYMENT_UPDATED Sign::Changed(PAYMENT)];
    "Webhook" "webhook" [WEBHOOK_DISABLED Sign::Set("disabled_reason")];
    "Widget" "widget";
}

/// The fields of a user that the payment provider sets.
const PAYMENT: &[&str] = &[
    "active_billing_plan_id",
    "next_billing_plan_id",
    "payment_customer_id",
    "payment_subscription_id",
    "payment_subscription_status",
    "payment_has_payment_method",
    "payment_last_payment_date",
    "is_trial",
    "used_trial",
    "is_paying",
];

impl EventKind {
    /// A conversation was opened.
    pub const CONVERSATION_OPENED: Self = Self("conversation.opened");
    /// A conversation has new messages, or was changed.
    pub const CONVERSATION_UPDATED: Self = Self("conversation.updated");
    /// A conversation was closed.
    pub const CONVERSATION_CLOSED: Self = Self("conversation.closed");
    /// A conversation was removed.
    pub const CONVERSATION_DELETED: Self = Self("conversation.deleted");
    /// A message was added to a conversation.
    pub const MESSAGE_CREATED: Self = Self("message.created");
    /// A form was filled in.
    pub const CAPTURED_FORM_CREATED: Self = Self("captured_form.created");
    /// A form that was filled in has changed.
    pub const CAPTURED_FORM_UPDATED: Self = Self("captured_form.updated");
    /// A campaign is being sent.
    pub const CAMPAIGN_STARTED: Self = Self("campaign.started");
    /// All contacts of a campaign have their result.
    pub const CAMPAIGN_COMPLETED: Self = Self("campaign.completed");
    /// The delivery to a contact of a campaign has ended.
    pub const CAMPAIGN_CONTACT_UPDATED: Self = Self("campaign_contact.updated");
    /// The bytes of a file of a data source have arrived.
    pub const DATASOURCE_FILE_UPLOADED: Self = Self("datasource_file.uploaded");
    /// The payment provider has reported a change of a user.
    pub const PAYMENT_UPDATED: Self = Self("payment.updated");
    /// The file of an export is complete.
    pub const EXPORT_COMPLETED: Self = Self("export.completed");
    /// An export was given up.
    pub const EXPORT_FAILED: Self = Self("export.failed");
    /// The service has disabled a webhook.
    pub const WEBHOOK_DISABLED: Self = Self("webhook.disabled");
    /// A message for the connector of a widget, from a campaign.
    pub const CAMPAIGN_MESSAGE: Self = Self("campaign.message");
    /// A call for the connector of a widget, from a campaign.
    pub const CAMPAIGN_CALL: Self = Self("campaign.call");
    /// A single message for the connector of a widget.
    pub const MESSAGE_REQUESTED: Self = Self("message.requested");
    /// A single call for the connector of a widget.
    pub const CALL_REQUESTED: Self = Self("call.requested");
    /// A test of a webhook.
    pub const WEBHOOK_TEST: Self = Self("webhook.test");

    /// The events of conversations and their messages.
    pub const OF_CONVERSATIONS: &[Self] = &[
        Self::CONVERSATION_OPENED,
        Self::CONVERSATION_UPDATED,
        Self::CONVERSATION_CLOSED,
        Self::CONVERSATION_DELETED,
        Self::MESSAGE_CREATED,
    ];
    /// What the connectors of widgets get.
    pub const OF_CONNECTORS: &[Self] =
        &[Self::CAMPAIGN_MESSAGE, Self::CAMPAIGN_CALL, Self::MESSAGE_REQUESTED, Self::CALL_REQUESTED];

    /// The kinds to which a webhook may subscribe.
    pub fn emitted() -> impl Iterator<Item = Self> {
        let others = Self::OF_CONVERSATIONS.iter().copied().chain([Self::CAMPAIGN_CONTACT_UPDATED]);
        RECORDS.iter().flat_map(RecordKinds::all).chain(others)
    }

    /// Every kind.
    pub fn every() -> impl Iterator<Item = Self> {
        Self::emitted().chain(Self::OF_CONNECTORS.iter().copied()).chain([Self::WEBHOOK_TEST])
    }

    /// The word itself.
    pub const fn as_str(self) -> &'static str {
        self.0
    }

    /// The kind with this word.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::every().find(|kind| kind.0 == word)
    }

    /// The part before the dot: what the event is about.
    pub fn subject(self) -> &'static str {
        self.0.split('.').next().unwrap_or(self.0)
    }

    /// Whether it is sent to the connector of a widget, and not to a webhook.
    pub fn is_for_connector(self) -> bool {
        Self::OF_CONNECTORS.contains(&self)
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.0)
    }
}

impl Serialize for EventKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.0)
    }
}

impl<'de> Deserialize<'de> for EventKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = Cow::<str>::deserialize(deserializer)?;
        Self::from_word(&word).ok_or_else(|| serde::de::Error::custom("no kind of event"))
    }
}

impl Parse for EventKind {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let words: Vec<_> = Self::every().map(Self::as_str).collect();
        one_of(raw, at, issues, &words, Self::from_word)
    }
}

impl Schema for EventKind {
    fn schema() -> Value {
        let words: Vec<_> = Self::every().map(Self::as_str).collect();
        titled(json!({"type": "string", "enum": words}), "EventKind", "What happened.")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_kind_is_listed_once() {
        let words: Vec<_> = EventKind::every().collect();
        assert_eq!(words.len(), words.iter().collect::<BTreeSet<_>>().len());
        for kind in words {
            assert_eq!(EventKind::from_word(kind.as_str()), Some(kind));
            assert!(kind.as_str().split_once('.').is_some_and(|(subject, _)| subject == kind.subject()));
        }
    }
}
