//! `DELETE /api/v1/link_tag_entity/{link_tag_entity_id}`: removes a link between a tag and an entity.

use shared::prelude::*;

pub type DeleteLinkTagEntity = Delete<Link>;
