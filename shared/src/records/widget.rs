//! Widgets: the channels through which an assistant sends messages and makes calls.

use serde::Serialize;

use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Location, member};
use crate::records::assistant::Assistant;
use crate::records::webhook::SigningSecret;
use crate::request::error::{Error, Result};
use crate::table::declaration::Declared as _;
use crate::table::quota::{Amounts, Quota};
use crate::values::id::{AssistantId, OrgId, WidgetId};
use crate::values::json::{JsonObject, JsonObjects};
use crate::values::secret::Secret;
use crate::values::text::{Description, MessageText, Name};
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

impl Widget {
    fn uses_of_quotas(_: &Self) -> Amounts {
        vec![(Quota::Widgets, 1)]
    }

    /// The widget with what its answers show in place of an empty display name and provider. Clients list widgets by
    /// the one, and distinguish them by the other.
    fn named(mut self) -> Self {
        let set = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.is_empty());
        let channel = || self.widget_type.as_str().to_owned();
        if !set(&self.widget_provider) {
            self.widget_provider = Some(channel());
        }
        if !set(&self.display_name) {
            let name = self.name.as_ref().map(ToString::to_string).filter(|name| !name.is_empty());
            self.display_name = Some(name.unwrap_or_else(channel));
        }
        self
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
    pub struct Widget(WidgetId): listed("WIDGET", counted Widget::uses_of_quotas, shown Widget::named) {
        /// Name of the widget, for those who manage it.
        input name: Option<Name> = None,
        /// What the widget is for.
        input description: Option<Description> = None,
        /// Name that is shown to those who use the widget. Where none is set, an answer has the name, or the channel of a widget without a name.
        input display_name: Option<String> = None,
        /// Assistant that answers through the widget; null for none.
        input(filter) assistant_id: Option<AssistantId> = None => Assistant,
        /// Channel of the widget.
        input(filter) widget_type: WidgetType,
        /// Provider of the channel. The service stores it and does not read it. Where none is set, an answer has the channel.
        input widget_provider: Option<String> = None,
        /// Text that is shown before a chat begins.
        input intro_message: Option<MessageText> = None,
        /// First message of a conversation, if the campaign has no message of its own.
        input opening_message: Option<MessageText> = None,
        /// Opening messages. The first one is sent if `opening_message` is null.
        input user_opening_messages: Vec<MessageText> = Vec::new(),
        /// Buttons of the widget, in their order. The service stores them and does not read them.
        input action_buttons: JsonObjects = JsonObjects::default(),
        /// How the widget looks. The service stores it and does not read it.
        input style_params: JsonObject = JsonObject::default(),
        /// True if the brand of the service is hidden.
        input remove_branding: bool = false,
        /// Connector: HTTPS address of the server that gets the widget's messages and calls as events, and delivers them.
        input(address) connector_url: Option<String> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// The organisation.
        org org_id: OrgId,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// The secrets that sign the events to its connector, the newest first. A widget that has had no connector since
        /// widgets got secrets has none.
        hidden(sealed) secrets: Vec<SigningSecret> = Vec::new(),
    }
}

/// A widget, with the secret of its connector if the request made one. No other answer contains it.
#[derive(Debug, Serialize)]
pub struct WidgetWithSecret {
    /// The widget.
    #[serde(flatten)]
    pub widget: Widget,
    /// The secret, if the request made it.
    pub secret: Option<Secret>,
}

impl WidgetWithSecret {
    /// `widget`, as it is answered after a request that made `secret`. The secret is answered if the widget has it.
    pub fn new(widget: Widget, secret: Option<Secret>) -> Self {
        let has = |secret: &Secret| widget.secrets.iter().any(|known| known.is(secret));
        let secret = secret.filter(has);
        Self { widget: widget.shown(), secret }
    }
}

impl Schema for WidgetWithSecret {
    fn schema() -> Value {
        let secret = member::<Option<Secret>>(
            "secret",
            true,
            "Signs the events to the connector. It is answered once, by the request that first sets `connector_url`, and by each rotation; otherwise null.",
        );
        titled(extended(Widget::schema(), vec![secret]), "WidgetWithSecret", "A widget, with a secret that is new.")
    }
}

impl Widget {
    /// Gives it a first secret, if it has a connector and no secret.
    pub fn connect(&mut self, secret: &Secret) {
        if self.connector_url.is_some() && self.secrets.is_empty() {
            self.secrets = SigningSecret::first(secret.clone());
        }
    }

    /// Gives it a new secret. The replaced one also signs for a day.
    pub fn rotate(&mut self, secret: &Secret, now: Timestamp) {
        if SigningSecret::rotate(&mut self.secrets, secret, now) {
            self.touch(now);
        }
    }

    /// Whether it has a connector, and its address differs from the one before.
    pub fn has_moved_from(&self, was: &Self) -> bool {
        self.connector_url.is_some() && self.connector_url != was.connector_url
    }

    /// The first message of a chat, if a campaign has no message.
    pub fn first_message(&self) -> Option<&MessageText> {
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

    /// Whether its connector delivers messages.
    pub const fn delivers_messages(&self) -> bool {
        self.connector_url.is_some() && !self.widget_type.calls()
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

    /// Requires a connector and an assistant; returns the id of the assistant.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it has none.
    pub fn require_connector(&self) -> Result<AssistantId> {
        if self.connector_url.is_none() {
            return Err(Self::has_no_connector(&Location::path()));
        }
        self.assistant_id.ok_or_else(Self::has_no_assistant)
    }

    /// Requires a connector, if it makes calls: without one, nobody is called. The request names the widget in the part
    /// `of` it.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it makes calls and has none.
    pub fn require_connector_of_calls(&self, of: &Location) -> Result<()> {
        if self.makes_calls_without_connector() { Err(Self::has_no_connector(of)) } else { Ok(()) }
    }

    /// Whether nobody would be called through it.
    pub const fn makes_calls_without_connector(&self) -> bool {
        self.widget_type.calls() && self.connector_url.is_none()
    }

    /// The answer to a request that needs the widget's connector. The request names the widget in the part `of` it.
    fn has_no_connector(of: &Location) -> Error {
        Error::Conflict { at: of.name("widget_id"), kind: "no_connector", message: "The widget has no connector" }
    }

    /// The answer to a request that needs the widget's assistant.
    pub fn has_no_assistant() -> Error {
        Self::conflict("no_assistant", "The widget has no assistant")
    }

    /// The answer to a request that needs a webhook's secret to sign calls to the connector.
    pub fn has_no_webhook() -> Error {
        Self::conflict("no_webhook", "The widget's assistant has no webhook, whose secret would sign")
    }

    fn conflict(kind: &'static str, message: &'static str) -> Error {
        Error::Conflict { at: Location::path().name("widget_id"), kind, message }
    }
}
