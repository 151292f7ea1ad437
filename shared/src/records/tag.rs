//! Tags, and the links between tags and other records.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw};
use crate::table::filters::FilterValue;
use crate::table::keys::Key;
use crate::values::hash::{hex, sha256};
use crate::values::id::{LinkId, TagId, UserId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::text::{Description, Name};
use crate::values::time::Timestamp;

crate::record! {
    /// A label for other records.
    pub struct Tag(TagId): listed("TAG") {
        /// Name of the tag.
        input name: Name,
        /// Colour of the tag, in CSS notation.
        input color_code: Option<String> = None,
        /// What the tag stands for.
        input description: Option<Description> = None,
        /// Any JSON object of your own. The service stores it and does not read it.
        input attributes: JsonObject = JsonObject::default(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}

crate::choice! {
    /// The kinds of entities that a tag can be linked to.
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

/// The id of a tagged entity. A text that is no UUID matches no entity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(String);

impl EntityId {
    /// The id as a UUID, if it is one.
    pub(crate) fn uuid(&self) -> Option<Uuid> {
        self.0.parse().ok()
    }

    /// The id as a part of a key, which has a limited length: another text becomes its hash.
    fn part_of_key(&self) -> String {
        let hash = || hex(&sha256([self.0.as_bytes()]));
        self.uuid().map_or_else(hash, |id| id.to_string())
    }
}

impl From<String> for EntityId {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl Parse for EntityId {
    fn parse(raw: Raw<'_>, at: &Location, issues: &mut Issues) -> Option<Self> {
        let text = String::parse(raw, at, issues)?;
        let id = Uuid::try_parse(&text.to_ascii_lowercase());
        Some(Self(id.map_or(text, |id| id.to_string())))
    }
}

impl Schema for EntityId {
    fn schema() -> Value {
        String::schema()
    }
}

impl FilterValue for EntityId {
    type Asked = Self;

    fn text(&self) -> Option<String> {
        Some(self.part_of_key())
    }
}

crate::record! {
    /// A link between a tag and an entity, once for each two.
    pub struct Link(LinkId): listed("LINK" spread, pointers Link::of_both) {
        /// Identifier of the record that has the tag.
        fixed(sparse filter) entity_id: EntityId,
        /// Kind of record that has the tag.
        fixed(filter) entity_type: EntityType,
        /// The tag.
        fixed(filter) tag_id: TagId => Tag,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// User who made the link; null if it is not known.
        own created_by_id: Option<UserId> = None,
    }
}

impl Link {
    /// The pointers by which the links of an entity and the links of a tag are found. Each pair of entity and tag has
    /// one link.
    fn of_both(&self, tenant: &Tenant) -> Vec<Key> {
        let (kind, entity) = (self.entity_type, self.entity_id.part_of_key());
        let of_tag = tag_links(self.tag_id);
        vec![
            Key::of(tenant, entity_links(kind, &entity), self.tag_id),
            Key::of(tenant, of_tag, format_args!("{}#{entity}", kind.as_str())),
        ]
    }
}

/// The partition of the pointers to the links of a tag.
pub(crate) fn tag_links(tag: TagId) -> String {
    format!("TAG_LINKS#{tag}")
}

/// The partition of the pointers to the links of an entity.
pub(crate) fn entity_links(entity_type: EntityType, entity: &str) -> String {
    format!("ENTITY_LINKS#{}#{entity}", entity_type.as_str())
}
