//! The bodies of events, as endpoints receive them.

use serde::Serialize;
use serde_json::json;

use crate::input::member;
use crate::input::schema::{Member, Schema, Value, capitalised, extended, object, titled};
use crate::records::campaign::{Campaign, CampaignContact};
use crate::records::contact::Contact;
use crate::records::contact_point::PhoneNumber;
use crate::records::conversation::{Conversation, DatasourceIds, Message};
use crate::records::delivery::Delivery;
use crate::records::event::{Event, EventId, EventKind, HAVE_TRANSCRIPTS};
use crate::values::id::{
    AssistantId, CampaignContactId, CampaignId, ContactId, ConversationId, MessageId, WebhookId, WidgetId,
};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

/// The body of an event. From one attempt to the next may change: the `contact` of messages and calls, and what
/// update-conversation changes of a closed conversation.
#[derive(Debug, Serialize)]
pub struct EventBody<'a> {
    id: EventId,
    object: &'static str,
    #[serde(rename = "event")]
    kind: EventKind,
    created_at: Timestamp,
    data: EventData<'a>,
}

/// The data of an event.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EventData<'a> {
    /// `conversation.closed`
    Conversation(ConversationData<'a>),
    /// `campaign.message` and `campaign.call`
    Campaign(CampaignData<'a>),
    /// `message.requested` and `call.requested`
    Requested(Box<RequestedData<'a>>),
    /// `webhook.test`
    Test(TestData),
}

crate::object! {
    /// A closed conversation with its transcript.
    pub struct ConversationData<'a> {
        /// The conversation.
        pub conversation_id: ConversationId,
        /// The widget through which it was held.
        pub widget_id: Option<WidgetId>,
        /// The assistant that held it.
        pub assistant_id: AssistantId,
        /// Who spoke with it.
        pub contact_id: Option<ContactId>,
        /// The kind of device: `mobile`, `native`, `desktop`, `tablet` or `phone`.
        pub device_type: &'a str,
        /// Why it was closed: `idle` if the service closed it, or what close-conversation got; null for no reason.
        pub reason: Option<&'a str>,
        /// How many messages it has.
        pub chat_count: u64,
        /// What was said first.
        pub first_message: Option<&'a str>,
        /// Free-form.
        pub attributes: &'a JsonObject,
        /// All that was said, oldest first.
        pub transcript: Vec<TranscriptItem<'a>>,
    }
}

/// A message of a transcript, with the fields that receivers expect.
#[derive(Debug, Serialize)]
pub struct TranscriptItem<'a> {
    #[serde(flatten)]
    message: &'a Message,
    /// No recording is stored.
    voice_base64: Option<&'a str>,
    data_sources: &'a DatasourceIds,
}

impl Schema for TranscriptItem<'_> {
    fn schema() -> Value {
        let voice = member::<Option<&str>>("voice_base64", true, "Null: no voice is kept.");
        let sources = member::<DatasourceIds>("data_sources", true, "The same as `data_source_ids`.");
        titled(extended(Message::schema(), vec![voice, sources]), "TranscriptItem", "A message of a transcript.")
    }
}

crate::object! {
    /// A message or a call, which the connector is to deliver to a contact.
    pub struct CampaignData<'a> {
        /// The campaign.
        pub campaign_id: CampaignId,
        /// Its contact's place in the campaign.
        pub campaign_contact_id: CampaignContactId,
        /// The widget through which it is sent.
        pub widget_id: WidgetId,
        /// The assistant that answers.
        pub assistant_id: Option<AssistantId>,
        /// The conversation in which the message stands.
        pub conversation_id: Option<ConversationId>,
        /// Who gets it.
        pub contact_id: ContactId,
        /// The message; null of a call.
        pub message_id: Option<MessageId>,
        /// What it says; null of a call.
        pub message: Option<&'a str>,
        /// Who gets it, with address and number, as it is at the time of this attempt.
        pub contact: &'a Contact,
    }
}

crate::object! {
    /// A single message or call, which the connector is to deliver to a contact: what a campaign's has, as far as it goes.
    pub struct RequestedData<'a> {
        /// The widget through which it is sent.
        pub widget_id: WidgetId,
        /// The assistant that answers.
        pub assistant_id: AssistantId,
        /// The conversation in which the message stands.
        pub conversation_id: ConversationId,
        /// Who gets it.
        pub contact_id: ContactId,
        /// The telephone number that was asked for, or from which the person wrote, whatever number its contact has by now.
        pub to: Option<PhoneNumber>,
        /// The message; null of a call.
        pub message_id: Option<MessageId>,
        /// What it says; null of a call.
        pub message: Option<&'a str>,
        /// What was given for the assistant's prompt; null of a message.
        pub prompt_dynamic_variables: Option<&'a JsonObject>,
        /// Who gets it, as it is at the time of this attempt, but with the number `to`.
        pub contact: Contact,
    }
}

crate::object! {
    /// A test: only its arrival matters.
    pub struct TestData {
        /// The webhook.
        pub webhook_id: WebhookId,
    }
}

/// The JSON schema of the body of each event that is no change of a record: its data alone for the events of the log.
pub fn schemas() -> Vec<(EventKind, Value)> {
    let of_connectors = EventKind::OF_CONNECTORS.iter().chain([&EventKind::WEBHOOK_TEST]).map(|kind| {
        let data = match *kind {
            EventKind::CAMPAIGN_MESSAGE | EventKind::CAMPAIGN_CALL => CampaignData::schema(),
            EventKind::MESSAGE_REQUESTED | EventKind::CALL_REQUESTED => RequestedData::schema(),
            _ => TestData::schema(),
        };
        (*kind, envelope(*kind, data, Vec::new()))
    });
    let with_transcript = HAVE_TRANSCRIPTS.map(|kind| (kind, logged_schema(kind, ConversationData::schema())));
    of_connectors.chain(with_transcript).collect()
}

/// The JSON schema of the body of an event of the log, with this data.
pub fn logged_schema(kind: EventKind, data: Value) -> Value {
    // The webhook that an assistant names gets its closed conversations without these.
    let required = kind != EventKind::CONVERSATION_CLOSED;
    let members = Event::members().map(|member| Member { required, ..member });
    envelope(kind, data, members.into())
}

fn envelope(kind: EventKind, data: Value, more: Vec<Member>) -> Value {
    let constant = |word: &str| json!({"type": "string", "const": word});
    let mut members = vec![
        member::<EventId>("id", true, "The same on every attempt, and that of the header `webhook-id`."),
        Member { name: "object", required: true, schema: constant("event") },
        Member { name: "event", required: true, schema: constant(kind.as_str()) },
        member::<Timestamp>("created_at", true, "When it happened."),
        Member { name: "data", required: true, schema: data },
    ];
    members.extend(more);
    let words = kind.as_str().split(['.', '_']);
    let name = words.map(capitalised).chain(["Event".to_owned()]).collect::<String>();
    titled(object(members), &name, "The body of an event.")
}

impl<'a> EventBody<'a> {
    /// The event of `delivery`.
    pub const fn of(delivery: &Delivery, data: EventData<'a>) -> Self {
        Self { id: delivery.event_id, object: "event", kind: delivery.event, created_at: delivery.created_at, data }
    }
}

impl<'a> ConversationData<'a> {
    /// A closed conversation, with all of its messages.
    pub fn of(conversation: &'a Conversation, transcript: &'a [Message]) -> Self {
        Self {
            conversation_id: conversation.id,
            widget_id: conversation.widget_id,
            assistant_id: conversation.assistant_id,
            contact_id: conversation.contact_id,
            device_type: device_shown(conversation.device_type.as_deref()),
            reason: conversation.close_reason.as_deref(),
            chat_count: conversation.chat_count,
            first_message: transcript.first().map(|message| &*message.text),
            attributes: &conversation.attributes,
            transcript: transcript.iter().map(TranscriptItem::of).collect(),
        }
    }
}

/// The kinds of devices that receivers of events know.
const DEVICES: [&str; 5] = ["mobile", "native", "desktop", "tablet", "phone"];

/// The kind of device as receivers know it: `desktop` for `web`, for any other text, and if the widget sent none.
fn device_shown(sent: Option<&str>) -> &str {
    sent.filter(|device| DEVICES.contains(device)).unwrap_or("desktop")
}

impl<'a> TranscriptItem<'a> {
    const fn of(message: &'a Message) -> Self {
        Self { message, voice_base64: None, data_sources: &message.data_source_ids }
    }
}

impl<'a> CampaignData<'a> {
    /// The message or the call for one contact of a campaign.
    pub fn of(
        campaign: &'a Campaign,
        widget: WidgetId,
        member: &CampaignContact,
        contact: &'a Contact,
        message_id: Option<MessageId>,
    ) -> Self {
        Self {
            campaign_id: campaign.id,
            campaign_contact_id: member.id,
            widget_id: widget,
            assistant_id: campaign.assistant_id,
            conversation_id: member.conversation_id,
            contact_id: contact.id,
            message_id,
            message: campaign.message.as_deref(),
            contact,
        }
    }
}

impl<'a> RequestedData<'a> {
    /// The message or the call for `contact` and the number `to`, through `widget`. If a delivery is older than the
    /// field for the number, the contact's number is used.
    pub fn of(
        widget: WidgetId,
        conversation: &'a Conversation,
        (contact, to): (Contact, Option<PhoneNumber>),
        message: Option<&'a Message>,
    ) -> Self {
        let to = to.or_else(|| contact.phone_number.clone());
        Self {
            widget_id: widget,
            assistant_id: conversation.assistant_id,
            conversation_id: conversation.id,
            contact_id: contact.id,
            to: to.clone(),
            message_id: message.map(|message| message.id),
            message: message.map(|message| &*message.text),
            prompt_dynamic_variables: conversation.prompt_dynamic_variables.as_ref().filter(|_| message.is_none()),
            contact: Contact { phone_number: to, ..contact },
        }
    }
}

impl TestData {
    /// A test of `webhook_id`.
    pub const fn of(webhook_id: WebhookId) -> Self {
        Self { webhook_id }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn receivers_see_only_the_kinds_of_devices_they_know() {
        for known in DEVICES {
            assert_eq!(device_shown(Some(known)), known);
        }
        for other in [None, Some("web"), Some(""), Some("Smart-TV"), Some("Mobile")] {
            assert_eq!(device_shown(other), "desktop", "{other:?}");
        }
    }
}
