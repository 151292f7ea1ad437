//! The kinds of records to which a tag can be linked, each once.

use uuid::Uuid;

use crate::records::assistant::Assistant;
use crate::records::campaign::Campaign;
use crate::records::contact::Contact;
use crate::records::conversation::Conversation;
use crate::records::datasource::Datasource;
use crate::records::form::Form;
use crate::records::intent::Intent;
use crate::records::tag::{EntityType, Link, Tag, entity_links, tag_links};
use crate::records::widget::Widget;
use crate::table::cascade::Links;
use crate::table::declaration::Reference;
use crate::table::stored::{Listed, Stored, reference};
use crate::values::id::{Id, TagId};
use crate::values::tenant::Tenant;

/// A record to which tags can be linked.
trait Tagged: Listed {
    /// Its name in the links.
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
        tag_links(TagId(tag))
    }
}

impl<E: Tagged> Links<E> for Link {
    fn partition(entity: Uuid) -> String {
        entity_links(E::ENTITY, &entity.to_string())
    }
}

impl Link {
    /// The entity, which must exist.
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
