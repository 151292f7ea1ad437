//! Tags, and the links between tags and other records.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::records::assistant::Assistant;
use crate::records::campaign::Campaign;
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::datasource::Datasource;
use crate::records::declaration::Reference;
use crate::records::form::Form;
use crate::records::intent::Intent;
use crate::records::widget::Widget;
use crate::request::error::{Issues, Location};
use crate::request::input::{Parse, Raw};
use crate::request::tenant::Tenant;
use crate::table::filters::FilterValue;
use crate::table::keys::Key;
use crate::table::rows::REMOVE_LIMIT;
use crate::table::store::{Item, key_of, made_id};
use crate::table::stored::{Stored, reference};
use crate::table::{Table, TableError};
use crate::values::id::{Id, LinkId, TagId, UserId};
use crate::values::json::JsonObject;
use crate::values::schema::{Schema, Value};
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
    pub struct Link(LinkId): listed("LINK", pointers Link::of_its_tag) {
        /// Identifier of the tagged entity.
        fixed(filter) entity_id: EntityId,
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
    /// The pointer by which the links of a tag are found. There is one for each entity.
    fn of_its_tag(&self, tenant: &Tenant) -> Vec<Key> {
        let entity = format_args!("{}#{}", self.entity_type.as_str(), self.entity_id.part_of_key()).to_string();
        vec![Key::of(tenant, tag_links(self.tag_id), entity)]
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

/// The partition of the pointers to the links of a tag, so that one query finds them.
fn tag_links(tag: TagId) -> String {
    format!("TAG_LINKS#{tag}")
}

/// The link that a pointer item leads to, and the pointer's key.
fn pointer(item: &Item) -> Option<(LinkId, Key)> {
    Some((LinkId(made_id(item).ok()?), key_of(item)?))
}

impl Table {
    /// Removes all links of a tag from the link list, some at a time. It is idempotent.
    ///
    /// # Errors
    /// [`TableError`]: some links may be left. The next call continues with them.
    pub async fn remove_links_of(&self, tag: TagId) -> Result<(), TableError> {
        loop {
            // It comes before every word for an entity.
            let first = Key::of(&self.tenant, tag_links(tag), "#");
            let pointers = self.store.query(&first.pk, &first.sk, Some(REMOVE_LIMIT)).await?;
            let (ids, keys): (Vec<LinkId>, Vec<Key>) = pointers.iter().filter_map(pointer).unzip();
            if ids.is_empty() {
                return Ok(());
            }
            match self.remove_all::<Link>((), &ids, &keys).await {
                Err(TableError::Missing) => {}
                result => {
                    result?;
                    continue;
                }
            }
            // Another request has removed one of the links. So each is removed alone; of the missing one, only its pointer.
            for (id, key) in ids.iter().zip(&keys) {
                match self.remove_all::<Link>((), &[*id], std::slice::from_ref(key)).await {
                    Err(TableError::Missing) => match self.store.delete(key).await {
                        Ok(_) | Err(TableError::Missing) => {}
                        Err(error) => return Err(error),
                    },
                    result => result?,
                }
            }
        }
    }
}
