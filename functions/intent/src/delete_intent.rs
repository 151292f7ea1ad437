//! `DELETE /api/v1/intent/{intent_id}`: removes an intent.

use shared::prelude::*;

pub type DeleteIntent = Delete<Intent>;
