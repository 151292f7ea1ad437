//! `GET /api/v1/intent/list`: a page of the intents.

use shared::prelude::*;

pub type ListIntents = List<Intent>;
