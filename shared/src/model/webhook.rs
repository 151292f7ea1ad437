//! Webhooks: where an organisation wants its events sent.

use crate::model::id::WebhookId;
use crate::model::time::Timestamp;

crate::record! {
    /// A webhook endpoint. Its secret is not part of what is printed.
    pub struct Webhook {
        /// Identifier.
        pub id: WebhookId,
        /// Address that events are sent to.
        pub endpoint: String,
        /// What people read.
        pub name: Option<String>,
        /// Whether events are sent.
        pub enabled: bool,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}
