//! `DELETE /api/v1/tag/{tag_id}`: removes a tag.

use shared::prelude::*;

pub type DeleteTag = Delete<Tag>;
