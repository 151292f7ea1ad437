//! Intents: wishes of a person that an assistant recognises, and their links to assistants.

use crate::records::assistant::Assistant;
use crate::table::cascade::Links;
use crate::table::keys::Key;
use crate::table::version::Version;
use crate::values::id::{AssistantId, IntentId, IntentLinkId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};
use crate::values::time::Timestamp;
use uuid::Uuid;

crate::record! {
    /// An intent.
    pub struct Intent(IntentId): listed("INTENT") {
        /// Name of the intent.
        input name: Name,
        /// What a user says or wants when the intent applies.
        input description: Option<Description> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// True if assistants look for the intent.
        input is_active: bool = true,
        /// Type of the intent: `user`, or a word of your own.
        input intent_type: String = "user".to_owned(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::record! {
    /// The link between an intent and an assistant, once for each two.
    pub struct IntentLink(IntentLinkId): listed("INTENT_LINK" of AssistantId => Assistant, pointers Self::pointer) {
        /// The intent.
        fixed intent_id: IntentId => Intent,
        /// The assistant.
        parent assistant_id: AssistantId,
        /// When it was made.
        created created_at: Timestamp,
    }
}

impl IntentLink {
    /// A new link, in the list of the assistant.
    pub fn new(id: IntentLinkId, intent_id: IntentId, assistant_id: AssistantId, created_at: Timestamp) -> Self {
        Self { id, intent_id, assistant_id, created_at, version: Version::default() }
    }

    fn pointer(&self, tenant: &Tenant) -> Vec<Key> {
        vec![Self::pointer_of(tenant, self.intent_id.0, self.assistant_id)]
    }
}

impl Links<Intent> for IntentLink {
    fn partition(intent: Uuid) -> String {
        format!("INTENT_LINK#{intent}")
    }
}

crate::object! {
    /// An intent and the assistant that it is linked to.
    pub struct LinkedIntent {
        /// The intent.
        pub intent_id: IntentId,
        /// The assistant.
        pub assistant_id: AssistantId,
    }
}

impl From<IntentLink> for LinkedIntent {
    fn from(link: IntentLink) -> Self {
        Self { intent_id: link.intent_id, assistant_id: link.assistant_id }
    }
}
