//! Intents: what an assistant recognises that a person wants.

use crate::values::id::IntentId;
use crate::values::json::JsonObject;
use crate::values::time::Timestamp;

crate::record! {
    /// An intent.
    pub struct Intent {
        /// Identifier.
        pub id: IntentId,
        /// What people read.
        pub name: Option<String>,
        /// What it recognises.
        pub description: Option<String>,
        /// Free-form.
        pub attributes: JsonObject,
        /// Whether it is looked for.
        pub is_active: bool,
        /// `user`, or a word of the caller's.
        pub intent_type: String,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}
