//! Webhooks: where an organisation wants its events sent, and the secrets that sign them.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::request::error::{Error, Location, Result};
use crate::request::input::member;
use crate::values::id::WebhookId;
use crate::values::schema::{Schema, Value, extended, object};
use crate::values::secret::Secret;
use crate::values::time::Timestamp;

/// Seconds for which a replaced secret goes on signing beside the new one.
const ROTATION: i64 = 86_400;
/// The most secrets that sign at once: a header has to hold a signature of each, and an item all of them.
const MOST_SECRETS: usize = 10;

crate::choice! {
    /// Why a webhook was disabled without its owner's doing.
    pub enum DisabledReason {
        /// It answered 410.
        Gone = "gone",
        /// Nothing arrived there for five days.
        Failing = "failing",
    }
}

crate::input! {
    /// What create-webhook takes.
    pub struct NewWebhook {
        /// Address that events are sent to.
        pub endpoint: String,
        /// What people read.
        pub name: Option<String> = None,
        /// Whether events are sent.
        pub enabled: bool = true,
    }
}

crate::input! {
    /// What update-webhook takes: what is absent stays as it is.
    #[derive(Clone)]
    pub struct WebhookChanges {
        /// Address that events are sent to.
        pub endpoint: Option<String> = None,
        /// What people read.
        pub name: Option<String> = None,
        /// Whether events are sent. Enabling it again forgets why it was disabled.
        pub enabled: Option<bool> = None,
    }
}

crate::record! {
    /// A webhook endpoint. Its secrets are not part of what is printed.
    pub struct Webhook {
        /// Identifier.
        pub id: WebhookId,
        /// Address that events are sent to.
        pub endpoint: String,
        /// What people read.
        pub name: Option<String>,
        /// Whether events are sent.
        pub enabled: bool,
        /// Why it was disabled, where its owner has not done it.
        pub disabled_reason: Option<DisabledReason>,
        /// When that was.
        pub disabled_at: Option<Timestamp>,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

/// A secret that signs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SigningSecret {
    /// `whsec_` and base64.
    pub secret: Secret,
    /// When it ceases to sign; none for the newest.
    pub expires_at: Option<Timestamp>,
}

/// A webhook as the table has it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredWebhook {
    /// Identifier; the webhook's own.
    pub id: WebhookId,
    /// What is printed of it.
    pub webhook: Webhook,
    /// The newest first.
    pub secrets: Vec<SigningSecret>,
    /// How often it has changed.
    pub version: u64,
    /// The request that last changed it.
    pub changed_by: Option<Uuid>,
}

/// A webhook with its newest secret, which is told only when it is made.
#[derive(Debug, Serialize)]
pub struct WebhookWithSecret {
    /// The webhook.
    #[serde(flatten)]
    pub webhook: Webhook,
    /// The secret.
    pub secret: Secret,
}

impl Schema for WebhookWithSecret {
    fn schema() -> Value {
        let secret = member::<Secret>("secret", true, "Signs what is sent. It is told this once.");
        extended(Webhook::schema(), [object(vec![secret])])
    }
}

impl StoredWebhook {
    /// A new webhook.
    pub fn new(id: WebhookId, new: &NewWebhook, secret: Secret, now: Timestamp) -> Self {
        let webhook = Webhook {
            id,
            endpoint: new.endpoint.clone(),
            name: new.name.clone(),
            enabled: new.enabled,
            disabled_reason: None,
            disabled_at: None,
            created_at: now,
            updated_at: now,
        };
        Self { id, webhook, secrets: vec![SigningSecret { secret, expires_at: None }], version: 0, changed_by: None }
    }

    /// Refuses what only a webhook does that is enabled.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is not.
    pub fn require_enabled(&self) -> Result<()> {
        let at = Location::path().name("webhook_id");
        let (kind, message) = ("webhook_disabled", "The webhook is disabled");
        if self.webhook.enabled { Ok(()) } else { Err(Error::Conflict { at, kind, message }) }
    }

    /// With `changes`.
    #[must_use]
    pub fn changed(mut self, changes: WebhookChanges, now: Timestamp) -> Self {
        let webhook = &mut self.webhook;
        if let Some(endpoint) = changes.endpoint {
            webhook.endpoint = endpoint;
        }
        webhook.name = changes.name.or(webhook.name.take());
        if let Some(enabled) = changes.enabled {
            (webhook.enabled, webhook.disabled_reason, webhook.disabled_at) = (enabled, None, None);
        }
        webhook.updated_at = now;
        self
    }

    /// With a new secret; the one it replaces goes on signing for a day, unless it is replaced over and over.
    #[must_use]
    pub fn rotated(mut self, secret: Secret, now: Timestamp) -> Self {
        if self.secrets.iter().any(|known| known.secret == secret) {
            return self;
        }
        let until = now.plus_seconds(ROTATION);
        self.secrets.retain(|old| old.expires_at.is_none_or(|expires| now < expires));
        for old in &mut self.secrets {
            old.expires_at.get_or_insert(until);
        }
        self.secrets.insert(0, SigningSecret { secret, expires_at: None });
        self.secrets.truncate(MOST_SECRETS);
        self.webhook.updated_at = now;
        self
    }

    /// Disabled without its owner's doing.
    #[must_use]
    pub fn disabled(mut self, reason: DisabledReason, now: Timestamp) -> Self {
        let webhook = &mut self.webhook;
        (webhook.enabled, webhook.disabled_reason, webhook.disabled_at) = (false, Some(reason), Some(now));
        webhook.updated_at = now;
        self
    }

    /// The secrets that sign at `now`.
    pub fn signing(&self, now: Timestamp) -> Vec<&Secret> {
        let valid = self.secrets.iter().filter(|secret| secret.expires_at.is_none_or(|expires| now < expires));
        valid.map(|secret| &secret.secret).collect()
    }
}
