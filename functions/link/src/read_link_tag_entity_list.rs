//! `GET /api/v1/link_tag_entity/list`: a page of the links between tags and records, oldest first. Use it to find the
//! records with a tag, or the tags of a record. `tag_id`, `entity_type` and `entity_id` select some of them.

use shared::prelude::*;

pub type ReadLinkTagEntityList = List<Link>;
