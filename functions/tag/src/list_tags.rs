//! `GET /api/v1/tag/list`: a page of the organisation's tags, oldest first.

use shared::prelude::*;

pub type ListTags = List<Tag>;
