//! Widgets: the channels through which an assistant sends messages and makes calls.

use crate::input::Location;
use crate::records::assistant::Assistant;
use crate::request::error::{Error, Result};
use crate::values::id::{AssistantId, OrgId, WidgetId};
use crate::values::json::{JsonObject, JsonObjects};
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
        /// The name that its users read.
        input display_name: Option<String> = None,
        /// The assistant that speaks through it.
        input(filter) assistant_id: Option<AssistantId> = None => Assistant,
        /// The channel.
        input(filter) widget_type: WidgetType,
        /// What its users read before a chat begins.
        input intro_message: Option<String> = None,
        /// The first message of a chat, if a campaign has no message.
        input opening_message: Option<String> = None,
        /// Messages of which the first is the opening message, if there is no other.
        input user_opening_messages: Vec<String> = Vec::new(),
        /// Free-form buttons, in their order.
        input action_buttons: JsonObjects = JsonObjects::default(),
        /// Free-form.
        input style_params: JsonObject = JsonObject::default(),
        /// Whether our brand is hidden.
        input remove_branding: bool = false,
        /// The connector: the address that messages and calls are sent to.
        input(address) connector_url: Option<String> = None,
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

impl Widget {
    /// Whether it has a connector, at another address than it had.
    pub fn has_moved_from(&self, was: &Self) -> bool {
        self.connector_url.is_some() && self.connector_url != was.connector_url
    }

    /// The first message of a chat, if a campaign has no message.
    pub fn first_message(&self) -> Option<&String> {
        self.opening_message.as_ref().or_else(|| self.user_opening_messages.first())
    }
}

impl Widget {
    /// Requires that it sends messages.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it makes calls.
    pub fn require_messages(&self) -> Result<()> {
        if self.widget_type.calls() {
            return Err(Self::conflict("widget_makes_calls", "The widget makes calls"));
        }
        Ok(())
    }

    /// Requires that it makes calls.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it sends messages.
    pub fn require_calls(&self) -> Result<()> {
        if !self.widget_type.calls() {
            return Err(Self::conflict("widget_sends_messages", "The widget sends messages"));
        }
        Ok(())
    }

    /// Requires a connector and an assistant, whose id is returned.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it has none.
    pub fn require_connector(&self) -> Result<AssistantId> {
        if self.connector_url.is_none() {
            return Err(Self::conflict("no_connector", "The widget has no connector"));
        }
        self.assistant_id.ok_or_else(Self::has_no_assistant)
    }

    /// The answer to a request that needs the widget's assistant.
    pub fn has_no_assistant() -> Error {
        Self::conflict("no_assistant", "The widget has no assistant")
    }

    /// The answer to a request that needs to sign what is sent to the connector.
    pub fn has_no_webhook() -> Error {
        Self::conflict("no_webhook", "The widget's assistant has no webhook, whose secret would sign")
    }

    fn conflict(kind: &'static str, message: &'static str) -> Error {
        Error::Conflict { at: Location::path().name("widget_id"), kind, message }
    }
}
