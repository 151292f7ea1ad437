//! `POST /api/v1/tag`: makes a tag.

use shared::prelude::*;

pub type CreateTag = Create<Tag>;
