//! `PUT /api/v1/tag/{tag_id}`: changes a tag; absent fields keep their values.

use shared::prelude::*;

pub type UpdateTag = Update<Tag>;
