//! Webhooks: where an organisation wants its events sent, and the secrets that sign them.

use serde::{Deserialize, Serialize};

use crate::records::declaration::{Declared, Patch};
use crate::request::error::{Error, Location, Result};
use crate::request::input::member;
use crate::values::id::WebhookId;
use crate::values::schema::{Schema, Value, extended};
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

crate::record! {
    /// A webhook: where an organisation wants its events sent.
    pub struct Webhook(WebhookId): listed("WEBHOOK") {
        /// Address that events are sent to.
        input endpoint: String,
        /// Name.
        input name: Option<String> = None,
        /// Whether events are sent. To enable it forgets why it was disabled.
        input enabled: bool = true,
        /// Why it was disabled, where its owner has not done it.
        own disabled_reason: Option<DisabledReason> = None,
        /// When that was.
        own disabled_at: Option<Timestamp> = None,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// What signs its events, the newest first.
        hidden secrets: Vec<SigningSecret> = Vec::new(),
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
        extended(Webhook::schema(), vec![secret])
    }
}

impl Webhook {
    /// With its first secret.
    #[must_use]
    pub fn with_secret(self, secret: Secret) -> Self {
        Self { secrets: vec![SigningSecret { secret, expires_at: None }], ..self }
    }

    /// Refuses what only a webhook does that is enabled.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is not.
    pub fn require_enabled(&self) -> Result<()> {
        let at = Location::path().name("webhook_id");
        let (kind, message) = ("webhook_disabled", "The webhook is disabled");
        if self.enabled { Ok(()) } else { Err(Error::Conflict { at, kind, message }) }
    }

    /// Makes the changes of an update. Who sets `enabled` has decided anew: why it was disabled is forgotten.
    pub fn update(&mut self, changes: &<Self as Declared>::Changes, now: Timestamp) {
        self.apply(changes);
        if changes.enabled != Patch::Absent {
            (self.disabled_reason, self.disabled_at) = (None, None);
        }
        self.touch(now);
    }

    /// Gives it a new secret. The one that it replaces signs beside it for a day, unless it is replaced over and over.
    pub fn rotate(&mut self, secret: &Secret, now: Timestamp) {
        if self.secrets.iter().any(|known| known.secret == *secret) {
            return;
        }
        let until = now.plus_seconds(ROTATION);
        self.secrets.retain(|old| old.expires_at.is_none_or(|expires| now < expires));
        for old in &mut self.secrets {
            old.expires_at.get_or_insert(until);
        }
        self.secrets.insert(0, SigningSecret { secret: secret.clone(), expires_at: None });
        self.secrets.truncate(MOST_SECRETS);
        self.touch(now);
    }

    /// Disables it without its owner's doing.
    pub fn disable(&mut self, reason: DisabledReason, now: Timestamp) {
        (self.enabled, self.disabled_reason, self.disabled_at) = (false, Some(reason), Some(now));
        self.touch(now);
    }

    /// The secrets that sign at `now`.
    pub fn signing(&self, now: Timestamp) -> Vec<&Secret> {
        let valid = self.secrets.iter().filter(|secret| secret.expires_at.is_none_or(|expires| now < expires));
        valid.map(|secret| &secret.secret).collect()
    }
}
