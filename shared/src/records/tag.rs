//! Tags, and the links between tags and other records.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::input::schema::{Schema, Value};
use crate::input::{Issues, Location, Parse, Raw};
use crate::records::assistant::Assistant;
use crate::records::campaign::Campaign;
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::datasource::Datasource;
use crate::records::form::Form;
use crate::records::intent::Intent;
use crate::records::widget::Widget;
use crate::table::cascade::{Links, Owned, Owner, Step, links};
use crate::table::declaration::{Declared as _, Reference};
use crate::table::filters::FilterValue;
use crate::table::keys::Key;
use crate::table::stored::{Listed, Stored, reference};
use crate::values::id::{Id, LinkId, TagId, UserId};
use crate::values::json::JsonObject;
use crate::values::tenant::Tenant;
use crate::values::time::Timestamp;

crate::record! {
    /// A label for other records.
    pub struct Tag(TagId): listed("TAG") {
        /// Name.
        input name: String,
        /// CSS colour.
        input color_code: Option<String> = None,
        /// What it is for.
        input description: Option<String> = None,
        /// Free-form.
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

/// The id of a tagged entity. Text that is no UUID names nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EntityId(String);

impl EntityId {
    fn uuid(&self) -> Option<Uuid> {
        self.0.parse().ok()
    }

    /// The id as a part of a key, which has a limit: other text by its hash.
    fn part_of_key(&self) -> String {
        let hash = || crate::hex(ring::digest::digest(&ring::digest::SHA256, self.0.as_bytes()).as_ref());
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
        /// Identifier of the tagged entity.
        fixed(sparse filter) entity_id: EntityId,
        /// What the entity is.
        fixed(filter) entity_type: EntityType,
        /// The tag.
        fixed(filter) tag_id: TagId => Tag,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// Who made it.
        own created_by_id: Option<UserId> = None,
    }
}

impl Link {
    /// The pointers by which the links of an entity and those of a tag are found. There is one for each two.
    fn of_both(&self, tenant: &Tenant) -> Vec<Key> {
        let (kind, entity) = (self.entity_type, self.entity_id.part_of_key());
        let of_tag = <Self as Links<Tag>>::partition(self.tag_id.0);
        vec![
            Key::of(tenant, entity_links(kind, &entity), self.tag_id),
            Key::of(tenant, of_tag, format_args!("{}#{entity}", kind.as_str())),
        ]
    }

    /// The entity, which must be there.
    pub fn entity(&self, tenant: &Tenant) -> Vec<Reference> {
        fn of<R: Stored<Id: Id>>(tenant: &Tenant, id: Uuid) -> Option<Reference> {
            reference::<R, R::Id>(tenant, "entity_id", &id.into())
        }
        // No record has the nil id.
        let id = self.entity_id.uuid().unwrap_or_default();
        let entity = match self.entity_type {
            EntityType::Widget => of::<Widget>(tenant, id),
            EntityType::Assistant => of::<Assistant>(tenant, id),
            EntityType::Contact => of::<Contact>(tenant, id),
            EntityType::Conversation => of::<Conversation>(tenant, id),
            EntityType::Campaign => of::<Campaign>(tenant, id),
            EntityType::Datasource => of::<Datasource>(tenant, id),
            EntityType::Form => of::<Form>(tenant, id),
            EntityType::Intent => of::<Intent>(tenant, id),
        };
        entity.into_iter().collect()
    }
}

/// A record that tags can be linked to.
trait Tagged: Listed {
    /// What the links call it.
    const ENTITY: EntityType;
}

macro_rules! tagged {
    ($($Entity:ident)*) => {
        $(impl Tagged for $Entity {
            const ENTITY: EntityType = EntityType::$Entity;
        })*
    };
}

tagged! { Widget Assistant Contact Conversation Campaign Datasource Form Intent }

impl Links<Tag> for Link {
    fn partition(tag: Uuid) -> String {
        format!("TAG_LINKS#{tag}")
    }
}

impl<E: Tagged> Links<E> for Link {
    fn partition(entity: Uuid) -> String {
        entity_links(E::ENTITY, &entity.to_string())
    }
}

impl Owner for Tag {
    const STEPS: &'static [Step] = &[links::<Link, Self>];
}

impl Owned for Link {
    fn owners(&self, tenant: &Tenant) -> Vec<Reference> {
        // An entity that is named by other text was never there.
        let entity = if self.entity_id.uuid().is_some() { self.entity(tenant) } else { Vec::new() };
        self.references(tenant).into_iter().chain(entity).collect()
    }
}

/// The partition of the pointers to the links of an entity.
fn entity_links(entity_type: EntityType, entity: &str) -> String {
    format!("ENTITY_LINKS#{}#{entity}", entity_type.as_str())
}
