//! `GET /api/v1/link_tag_entity/list`: a page of the links between tags and entities.

use shared::prelude::*;

pub type ReadLinkTagEntityList = List<Link>;
