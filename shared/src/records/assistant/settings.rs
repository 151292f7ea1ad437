//! What an assistant says about its conversations.

use serde::{Deserialize, Serialize};

use crate::input::schema::{Schema, Value, object, titled};
use crate::input::{Between, Issues, Location, Parse, Raw, Source, member_or};

/// Minutes after which an idle conversation is closed: ten minutes to thirty days.
pub type IdleMinutes = Between<10, 43_200>;

/// Settings for the conversations of an assistant. A conversation takes them over when it is opened.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversationSettings {
    /// Minutes after which a conversation is closed that nobody has added to or changed; `None` to leave it open.
    #[serde(default)]
    pub idle_close_minutes: Option<IdleMinutes>,
}

impl Parse for ConversationSettings {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let source = Source::object(raw, at).map_err(|issue| issues.push(issue)).ok()?;
        source.optional("idle_close_minutes", issues, || None).map(|idle_close_minutes| Self { idle_close_minutes })
    }
}

impl Schema for ConversationSettings {
    fn schema() -> Value {
        let doc = "Minutes, 10 to 43,200, after which the service closes a conversation that nobody has added a message \
            to, or changed; null to leave it open.";
        let members = vec![member_or::<Option<IdleMinutes>>("idle_close_minutes", doc, &None)];
        titled(object(members), "ConversationSettings", "Settings for the conversations of an assistant.")
    }
}
