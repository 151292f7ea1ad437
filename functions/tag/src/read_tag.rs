//! `GET /api/v1/tag/{tag_id}`: one tag.

use shared::prelude::*;

pub type ReadTag = Read<Tag>;
