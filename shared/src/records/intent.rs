//! Intents: the wishes of a person that an assistant recognises.

use crate::values::id::IntentId;
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// An intent.
    pub struct Intent(IntentId): listed("INTENT") {
        /// What people read.
        input name: String,
        /// What it recognises.
        input description: Option<String> = None,
        /// Free-form.
        input attributes: JsonObject = JsonObject::default(),
        /// Whether the assistant looks for it.
        input is_active: bool = true,
        /// `user`, or another word that the caller chose.
        input intent_type: String = "user".to_owned(),
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
    }
}
