//! `GET /api/v1/assistant`: a page of the assistants; the query can filter them by type.

use shared::prelude::*;

pub type ListAssistants = List<Assistant>;
