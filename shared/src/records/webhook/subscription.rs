//! Subscriptions: which events a webhook gets.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::input::schema::{Schema, titled};
use crate::input::{Issues, Location, Parse, Raw, text_of};
use crate::records::event::{Event, EventKind};
use crate::records::webhook::Webhook;
use crate::values::id::{AssistantId, WebhookId, WidgetId};

/// The subjects that a webhook hears of whose `events` are empty.
const DEFAULT: [&str; 3] = ["conversation", "captured_form", "captured_intent"];
/// The most characters of an item of `events`.
const LONGEST_PATTERN: usize = 100;
/// Stands for every event, and behind a dot for every event of a subject.
const ANY: &str = "*";

/// An item of a webhook's `events`: a kind such as `contact.created`, `contact.*`, or `*`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EventPattern(String);

impl EventPattern {
    /// Whether it includes `kind`.
    pub fn includes(&self, kind: EventKind) -> bool {
        match self.0.strip_suffix(".*") {
            Some(subject) => subject == kind.subject(),
            None => self.0 == ANY || self.0 == kind.as_str(),
        }
    }

    /// Whether some event fits it.
    fn is_known(&self) -> bool {
        EventKind::emitted().any(|kind| self.includes(kind))
    }
}

impl Parse for EventPattern {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let pattern = Self(text_of(LONGEST_PATTERN, raw, at, issues)?);
        if pattern.is_known() {
            return Some(pattern);
        }
        let message = "Input should be the type of an event, such as 'contact.created', or 'contact.*', or '*'";
        issues.push(at.issue("value_error", message));
        None
    }
}

impl Schema for EventPattern {
    fn schema() -> Value {
        let subjects: BTreeSet<&str> = EventKind::emitted().map(EventKind::subject).collect();
        let kinds: BTreeSet<&str> = EventKind::emitted().map(EventKind::as_str).collect();
        let all_of = subjects.into_iter().map(|subject| format!("{subject}.*"));
        let words: Vec<String> =
            [ANY.to_owned()].into_iter().chain(all_of).chain(kinds.into_iter().map(str::to_owned)).collect();
        let about = "A type of event, all types of one kind, or all types.";
        titled(json!({"type": "string", "enum": words}), "EventPattern", about)
    }
}

/// What an event is about, as far as a subscription can be narrowed by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventScope {
    /// The assistant.
    pub assistant_id: Option<AssistantId>,
    /// The widget.
    pub widget_id: Option<WidgetId>,
}

/// How an event comes to a webhook, if the webhook is one that hears of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventPath {
    /// It is the close of a conversation whose assistant names the webhook: this needs no subscription.
    Assistant,
    /// It is about what was filled into a form that names the webhook: this needs no subscription.
    Form,
    /// It is the news that the webhook itself was disabled: only the log has it.
    LogOnly,
    /// The webhook must subscribe to it.
    Subscription,
}

/// The webhooks that the records of an event name.
#[derive(Debug, Clone, Copy)]
pub struct NamedWebhooks {
    /// The webhook of its assistant.
    pub of_assistant: Option<WebhookId>,
    /// The webhook of its form, if it is about what was filled into the form.
    pub of_form: Option<WebhookId>,
}

/// The webhooks of an organisation, as far as it matters for events.
#[derive(Debug, Default)]
pub struct Subscriptions(Arc<Vec<Webhook>>);

impl Subscriptions {
    /// The subscriptions of these webhooks.
    pub const fn of(webhooks: Arc<Vec<Webhook>>) -> Self {
        Self(webhooks)
    }

    /// Whether no webhook can get any event.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether a webhook may get an event of one of these kinds.
    pub fn include_any(&self, kinds: impl IntoIterator<Item = EventKind, IntoIter: Clone>) -> bool {
        let kinds = kinds.into_iter();
        self.0.iter().any(|webhook| kinds.clone().any(|kind| webhook.includes(kind)))
    }

    /// Whether a webhook without `events` gets such events, unless their assistant names another one.
    pub fn is_default(kind: EventKind) -> bool {
        DEFAULT.contains(&kind.subject())
    }

    /// The webhooks that subscribe to an event. `named` has the webhooks that assistants name themselves.
    pub fn to(
        &self,
        kind: EventKind,
        scope: EventScope,
        named: &BTreeMap<AssistantId, WebhookId>,
    ) -> impl Iterator<Item = &Webhook> {
        let other = scope.assistant_id.and_then(|assistant| named.get(&assistant));
        self.0.iter().filter(move |webhook| {
            let is_of_other = webhook.events.0.is_empty() && other.is_some();
            webhook.includes(kind) && webhook.is_within(scope) && !is_of_other
        })
    }
}

impl Webhook {
    /// Whether it subscribes to events of this kind.
    pub fn includes(&self, kind: EventKind) -> bool {
        let patterns = &self.events.0;
        if patterns.is_empty() {
            Subscriptions::is_default(kind)
        } else {
            patterns.iter().any(|pattern| pattern.includes(kind))
        }
    }

    /// Whether events of this scope are not excluded by `assistant_ids` and `widget_ids`.
    pub fn is_within(&self, scope: EventScope) -> bool {
        let assistants = &self.assistant_ids.0;
        let widgets = &self.widget_ids.0;
        (assistants.is_empty() || scope.assistant_id.is_some_and(|id| assistants.contains(&id)))
            && (widgets.is_empty() || scope.widget_id.is_some_and(|id| widgets.contains(&id)))
    }

    /// How `event` comes to it, if it comes. `names` has the webhooks that get the event without a subscription.
    pub fn path_of(&self, event: &Event, names: NamedWebhooks) -> EventPath {
        if event.event == EventKind::CONVERSATION_CLOSED && names.of_assistant == Some(self.id) {
            EventPath::Assistant
        } else if names.of_form == Some(self.id) {
            EventPath::Form
        } else if event.event == EventKind::WEBHOOK_DISABLED && event.is_about(self.id.0) {
            EventPath::LogOnly
        } else {
            EventPath::Subscription
        }
    }

    /// Whether events are sent to it: otherwise they are only read.
    pub fn gets_deliveries(&self) -> bool {
        self.enabled && !self.endpoint.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_includes_a_kind_a_subject_or_all() {
        let rows = [
            ("*", &["contact.created", "conversation.closed"][..], &[][..]),
            ("contact.*", &["contact.created", "contact.deleted"], &["campaign_contact.updated", "tag.created"]),
            ("contact.created", &["contact.created"], &["contact.updated"]),
        ];
        for (pattern, included, others) in rows {
            let pattern = EventPattern(pattern.to_owned());
            assert!(pattern.is_known());
            for (words, wanted) in [(included, true), (others, false)] {
                for word in words {
                    assert_eq!(pattern.includes(EventKind::from_word(word).unwrap()), wanted, "{word}");
                }
            }
        }
        for unknown in ["", "contact", "contact.", "*.*", "contact.made", "webhook.test", ".*"] {
            assert!(!EventPattern(unknown.to_owned()).is_known(), "{unknown}");
        }
    }
}
