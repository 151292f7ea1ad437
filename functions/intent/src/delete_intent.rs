//! `DELETE /api/v1/intent/{intent_id}`: deletes an intent and its links to assistants and tags.

use shared::prelude::*;

pub type DeleteIntent = Delete<Intent>;
