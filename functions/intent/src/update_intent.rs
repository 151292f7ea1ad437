//! `PUT /api/v1/intent/{intent_id}`: changes an intent; absent fields keep their values.

use shared::prelude::*;

pub type UpdateIntent = Update<Intent>;
