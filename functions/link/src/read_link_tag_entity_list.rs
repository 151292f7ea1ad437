//! `GET /api/v1/link_tag_entity/list`: a page of the links between tags and records, oldest first. `tag_id`, `entity_type` and `entity_id` select some of them.

use shared::prelude::*;

pub type ReadLinkTagEntityList = List<Link>;
