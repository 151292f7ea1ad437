//! The bodies of events, as endpoints receive them.

use serde::Serialize;

use crate::records::campaign::{Campaign, CampaignContact};
use crate::records::contact::Contact;
use crate::records::conversation::{Conversation, Message};
use crate::records::delivery::{Delivery, EventId, EventKind};
use crate::values::id::{
    AssistantId, CampaignContactId, CampaignId, ContactId, ConversationId, MessageId, WebhookId, WidgetId,
};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

/// The body of an event, the same on every attempt.
#[derive(Debug, Serialize)]
pub struct Event<'a> {
    id: EventId,
    object: &'static str,
    #[serde(rename = "event")]
    kind: EventKind,
    created_at: Timestamp,
    data: EventData<'a>,
}

/// What an event tells.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum EventData<'a> {
    /// `conversation.closed`
    Conversation(ConversationData<'a>),
    /// `campaign.message` and `campaign.call`
    Campaign(CampaignData<'a>),
    /// `webhook.test`
    Test(TestData),
}

/// A closed conversation with its transcript.
#[derive(Debug, Serialize)]
pub struct ConversationData<'a> {
    conversation_id: ConversationId,
    widget_id: Option<WidgetId>,
    assistant_id: AssistantId,
    contact_id: Option<ContactId>,
    device_type: Option<&'a str>,
    chat_count: u64,
    first_message: Option<&'a str>,
    attributes: &'a JsonObject,
    transcript: Vec<TranscriptItem<'a>>,
}

/// A message of a transcript, with the fields that receivers expect of it.
#[derive(Debug, Serialize)]
struct TranscriptItem<'a> {
    #[serde(flatten)]
    message: &'a Message,
    /// No voice is kept.
    voice_base64: Option<&'a str>,
    /// It is not kept which data sources an answer was made from.
    data_sources: [&'a str; 0],
}

/// A message or a call, which the connector is to deliver to a contact.
#[derive(Debug, Serialize)]
pub struct CampaignData<'a> {
    campaign_id: CampaignId,
    campaign_contact_id: CampaignContactId,
    widget_id: WidgetId,
    assistant_id: Option<AssistantId>,
    conversation_id: Option<ConversationId>,
    contact_id: ContactId,
    message_id: Option<MessageId>,
    message: Option<&'a str>,
    contact: &'a Contact,
}

/// A test: its arrival is all that it tells.
#[derive(Debug, Serialize)]
pub struct TestData {
    webhook_id: WebhookId,
}

impl<'a> Event<'a> {
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
            device_type: conversation.device_type.as_deref(),
            chat_count: conversation.chat_count,
            first_message: transcript.first().map(|message| message.text.as_str()),
            attributes: &conversation.attributes,
            transcript: transcript.iter().map(TranscriptItem::of).collect(),
        }
    }
}

impl<'a> TranscriptItem<'a> {
    const fn of(message: &'a Message) -> Self {
        Self { message, voice_base64: None, data_sources: [] }
    }
}

impl<'a> CampaignData<'a> {
    /// The message or the call for one contact of a campaign.
    pub fn of(
        campaign: &'a Campaign,
        member: &CampaignContact,
        contact: &'a Contact,
        message_id: Option<MessageId>,
    ) -> Self {
        Self {
            campaign_id: campaign.id,
            campaign_contact_id: member.id,
            widget_id: campaign.widget_id,
            assistant_id: campaign.assistant_id,
            conversation_id: member.conversation_id,
            contact_id: contact.id,
            message_id,
            message: campaign.message.as_deref(),
            contact,
        }
    }
}

impl TestData {
    /// A test of `webhook_id`.
    pub const fn of(webhook_id: WebhookId) -> Self {
        Self { webhook_id }
    }
}
