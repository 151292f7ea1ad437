//! `GET /api/v1/tag/{tag_id}`: a tag.

use shared::prelude::*;

pub type ReadTag = Read<Tag>;
