//! `GET /api/v1/intent/{intent_id}`: one intent.

use shared::prelude::*;

pub type ReadIntent = Read<Intent>;
