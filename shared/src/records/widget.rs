//! Widgets: the channels through which an assistant sends messages and makes calls.

use crate::records::assistant::Assistant;
use crate::values::id::{AssistantId, OrgId, WidgetId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::choice! {
    /// The kind of channel. [`WidgetType::calls`] says which kinds make calls.
    pub enum WidgetType {
        Chat = "chat",
        Html = "html",
        FbMessenger = "fb_messenger",
        Instagram = "instagram",
        Whatsapp = "whatsapp",
        Sms = "sms",
        Telegram = "telegram",
        Leadconnector = "leadconnector",
        RenderForm = "render_form",
        Phone = "phone",
        HtmlCall = "html_call",
        WebCall = "web_call",
        Sip = "sip",
        PlivoCall = "plivo_call",
        TelnyxCall = "telnyx_call",
        LeadconnectorCall = "leadconnector_call",
    }
}

impl WidgetType {
    /// Whether this channel makes calls. The others send messages.
    pub const fn calls(self) -> bool {
        match self {
            Self::Phone
            | Self::HtmlCall
            | Self::WebCall
            | Self::Sip
            | Self::PlivoCall
            | Self::TelnyxCall
            | Self::LeadconnectorCall => true,
            Self::Chat
            | Self::Html
            | Self::FbMessenger
            | Self::Instagram
            | Self::Whatsapp
            | Self::Sms
            | Self::Telegram
            | Self::Leadconnector
            | Self::RenderForm => false,
        }
    }
}

crate::record! {
    /// A widget.
    pub struct Widget(WidgetId): listed("WIDGET") {
        /// What people read.
        input name: Option<String> = None,
        /// What it is for.
        input description: Option<String> = None,
        /// The assistant that speaks through it.
        input assistant_id: Option<AssistantId> = None => Assistant,
        /// The channel.
        input widget_type: WidgetType,
        /// The first message of a chat, if a campaign has no message.
        input opening_message: Option<String> = None,
        /// The connector: the address that messages and calls are sent to.
        input connector_url: Option<String> = None,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}
