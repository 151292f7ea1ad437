//! Assistants: their kind, language model, voice, and tools.

mod models;
mod settings;

use serde_json::{Value, json};

use crate::input::schema::Schema;
use crate::input::{Issues, Location, Parse, Raw, words};
use crate::records::webhook::Webhook;
use crate::values::id::{AssistantId, ConversationFlowId, OrgId, UserId, WebhookId};
use crate::values::json::JsonObject;
use crate::values::text::{Description, Name, Prompt};
pub use models::{CatalogueModel, LlmModel, LlmModelList, LlmModelStatus};
pub use settings::{ConversationSettings, IdleMinutes};

crate::choice! {
    /// What kind of assistant it is.
    pub enum AssistantType {
        Simple = "simple",
        Chat = "chat",
        Phone = "phone",
        Nl2sql = "nl2sql",
        Realtime = "realtime_openai",
    }
}

/// A locale code: a language and a region, such as `en-GB`, or `es-419` for Latin America.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(transparent)]
pub struct Locale(String);

impl Locale {
    const PATTERN: &'static str = "^[a-z]{2,3}-([A-Z]{2}|[0-9]{3})$";

    fn matches(text: &str) -> bool {
        let region = |region: &str| match region.len() {
            2 => region.bytes().all(|byte| byte.is_ascii_uppercase()),
            length => length == 3 && region.bytes().all(|byte| byte.is_ascii_digit()),
        };
        text.split_once('-').is_some_and(|(language, code)| {
            let fits = (2..=3).contains(&language.len()) && language.bytes().all(|byte| byte.is_ascii_lowercase());
            fits && region(code)
        })
    }
}

impl Parse for Locale {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        if Self::matches(&text) {
            return Some(Self(text));
        }
        issues.push(at.issue(words::PATTERN, format!("String should match pattern '{}'", Self::PATTERN)));
        None
    }
}

impl Schema for Locale {
    fn schema() -> Value {
        json!({"type": "string", "pattern": Self::PATTERN})
    }
}

crate::record! {
    /// An assistant.
    pub struct Assistant(AssistantId): listed("ASSISTANT") {
        /// Name of the assistant, for those who manage it.
        input name: Option<Name> = None,
        /// What the assistant is for.
        input description: Option<Description> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// System prompt that the language model gets.
        input system_prompt: Prompt = Prompt::default(),
        /// True if the assistant uses voice.
        input voice: bool = false,
        /// True if the assistant speaks with a voice of the customer's own.
        input custom_voice: bool = false,
        /// Languages that the assistant speaks, as locales such as `en-US`.
        input voice_languages: Vec<Locale> = Vec::new(),
        /// The organisation that owns the assistant. A body may leave it out; if it names one, it must be that of the API key.
        org org_id: OrgId,
        /// True if the assistant may show images in its answers.
        input show_images: bool = false,
        /// True if the assistant does not show its data sources.
        input hide_ds: bool = false,
        /// Webhook that gets the assistant's events, such as `conversation.closed`; null for none.
        input webhook_id: Option<WebhookId> = None => Webhook,
        /// True if a person can take over a conversation.
        input has_human_agent: bool = false,
        /// True if the language model may call tools.
        input use_tools: bool = false,
        /// Conversation flow that the assistant follows; null for none.
        input conversation_flow_id: Option<ConversationFlowId> = None,
        /// Kind of assistant.
        input(filter) assistant_type: AssistantType = AssistantType::Simple,
        /// Language model that answers.
        input llm_model: LlmModel = LlmModel::default(),
        /// Settings for its conversations. A conversation takes them over when it is opened: a change counts for the conversations after it.
        input conversation: ConversationSettings = ConversationSettings::default(),
        /// The user for whom it counts: that of the key that made it, if this user had a plan then.
        hidden metered_user_id: Option<UserId> = None,
        /// What is wrong with the assistant's settings, in sentences: that its provider has retired its language model, or will. Empty if nothing is wrong.
        derived warnings: Vec<String> = Assistant::warnings,
    }
}

impl Assistant {
    /// What is wrong with its settings.
    fn warnings(&self) -> Vec<String> {
        self.llm_model.warning().into_iter().collect()
    }
}
