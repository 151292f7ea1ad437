//! `GET /api/v1/assistant`: a page of the organisation's assistants, oldest first. `assistant_type` selects those of one type.

use shared::prelude::*;

pub type ListAssistants = List<Assistant>;
