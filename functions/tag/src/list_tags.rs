//! `GET /api/v1/tag/list`: a page of the tags.

use shared::prelude::*;

pub type ListTags = List<Tag>;
