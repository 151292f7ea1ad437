//! `DELETE /api/v1/tag/multiple`: deletes up to 500 tags, each as `delete-tag` does. The answer has a result for each.

use shared::prelude::*;

pub type DeleteTags = DeleteMany<Tag>;
