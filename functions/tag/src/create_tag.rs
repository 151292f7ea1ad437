//! `POST /api/v1/tag`: creates a tag. Put it on records with `create-link-tag-entity`.

use shared::prelude::*;

pub type CreateTag = Create<Tag>;
