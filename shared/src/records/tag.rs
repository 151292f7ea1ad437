//! Tags, and their links to what they mark.

use crate::values::id::{LinkId, TagId, UserId};
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// A label for other records.
    pub struct Tag {
        /// Identifier.
        pub id: TagId,
        /// What people read.
        pub name: Option<String>,
        /// CSS colour.
        pub color_code: Option<String>,
        /// What it is for.
        pub description: Option<String>,
        /// Free-form.
        pub attributes: JsonObject,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

crate::choice! {
    /// What a tag can mark.
    pub enum EntityType {
        Widget = "widget",
        Assistant = "assistant",
        Contact = "contact",
        Conversation = "conversation",
        Campaign = "campaign",
        Datasource = "datasource",
        Form = "form",
        Intent = "intent",
    }
}

crate::record! {
    /// A link between a tag and an entity.
    pub struct Link {
        /// Identifier.
        pub id: LinkId,
        /// Identifier of the tagged entity.
        pub entity_id: String,
        /// What the entity is.
        pub entity_type: EntityType,
        /// The tag.
        pub tag_id: TagId,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
        /// Who made it.
        pub created_by_id: Option<UserId>,
    }
}
