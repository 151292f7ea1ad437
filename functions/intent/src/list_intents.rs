//! `GET /api/v1/intent/list`: a page of the organisation's intents, oldest first.

use shared::prelude::*;

pub type ListIntents = List<Intent>;
