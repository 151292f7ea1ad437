//! `POST /api/v1/intent`: creates an intent. Link it to the assistants that are to look for it.

use shared::prelude::*;

pub type CreateIntent = Create<Intent>;
