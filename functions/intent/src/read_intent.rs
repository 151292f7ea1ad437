//! `GET /api/v1/intent/{intent_id}`: an intent.

use shared::prelude::*;

pub type ReadIntent = Read<Intent>;
