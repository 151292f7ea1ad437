//! `DELETE /api/v1/link_tag_entity/{link_tag_entity_id}`: deletes the link between a tag and a record. Both stay.

use shared::prelude::*;

pub type DeleteLinkTagEntity = Delete<Link>;
