//! `PUT /api/v1/tag/{tag_id}`: changes a tag. Absent fields keep their values.

use shared::prelude::*;

pub type UpdateTag = Update<Tag>;
