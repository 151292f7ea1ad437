//! Tags, and the links between tags and other records.

use crate::request::tenant::Tenant;
use crate::table::keys::Key;
use crate::table::rows::REMOVE_LIMIT;
use crate::table::store::{Item, key_of, made_id};
use crate::table::{Table, TableError};
use crate::values::id::{LinkId, TagId, UserId, ordinal};
use crate::values::json::JsonObject;
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

crate::record! {
    /// A link between a tag and an entity.
    pub struct Link(LinkId): listed("LINK", pointers Link::of_its_tag) {
        /// Identifier of the tagged entity.
        fixed entity_id: String,
        /// What the entity is.
        fixed entity_type: EntityType,
        /// The tag.
        fixed tag_id: TagId => Tag,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// Who made it.
        own created_by_id: Option<UserId> = None,
    }
}

impl Link {
    /// The pointer by which the links of a tag are found.
    fn of_its_tag(&self, tenant: &Tenant) -> Vec<Key> {
        vec![tag_link(tenant, self.tag_id, ordinal(self.id.0))]
    }
}

/// The key of a pointer to a link. A tag's pointers share a partition, so that one query finds them.
fn tag_link(tenant: &Tenant, tag: TagId, ordinal: u32) -> Key {
    Key::of(tenant, format_args!("TAG_LINKS#{tag}"), format_args!("{ordinal:010}"))
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
            let first = tag_link(&self.tenant, tag, 0);
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
