//! `DELETE /api/v1/tag/{tag_id}`: deletes a tag and its links.

use shared::prelude::*;

pub type DeleteTag = Delete<Tag>;
