//! Webhooks: the addresses to which an organisation's events are sent, and the secrets that sign the events.

pub mod recovery;
pub mod subscription;

use serde::{Deserialize, Serialize};

use crate::input::bounded::UpTo;
use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Location, Patch, member};
use crate::records::webhook::subscription::EventPattern;
use crate::request::error::{Error, Result};
use crate::table::declaration::Declared;
use crate::table::quota::{Amounts, Quota};
use crate::values::hash::{hex, sha256};
use crate::values::id::{AssistantId, WebhookId, WidgetId};
use crate::values::secret::{FoundSecret, HoldsSecrets, Secret, StoredSecret};
use crate::values::text::Name;
use crate::values::time::Timestamp;

/// Seconds for which a replaced secret still signs together with the new one.
const ROTATION: i64 = 86_400;
/// The most secrets that sign at the same time: one header contains all signatures, and one item all secrets.
const MOST_SECRETS: usize = 10;

crate::choice! {
    /// Why the service has disabled a webhook.
    pub enum DisabledReason {
        /// It answered 410.
        Gone = "gone",
        /// All attempts failed for five days.
        Failing = "failing",
    }
}

crate::record! {
    /// A webhook: an address that an organisation's events are sent to.
    pub struct Webhook(WebhookId): listed("WEBHOOK", counted Webhook::uses_of_quotas) {
        /// HTTPS address of the server that gets the events. Empty: nothing is sent, and the events are only in the log.
        input(address) endpoint: String = String::new(),
        /// Name of the webhook, for those who manage it.
        input name: Option<Name> = None,
        /// True to send events. Setting it clears `disabled_reason`.
        input enabled: bool = true,
        /// The events that it gets: types such as `contact.created`, `contact.*` for all of one kind, or `*` for all. Empty: the events of conversations, captured forms and captured intents, except for assistants that name a webhook themselves.
        input events: UpTo<100, EventPattern> = UpTo::default(),
        /// True to send with each message of a user what is needed to answer it: `message.created` then has `data.context`.
        input context: bool = false,
        /// Only events of these assistants; empty for all.
        input assistant_ids: UpTo<100, AssistantId> = UpTo::default(),
        /// Only events of these widgets; empty for all.
        input widget_ids: UpTo<100, WidgetId> = UpTo::default(),
        /// Why the service disabled the webhook; null if it did not.
        own disabled_reason: Option<DisabledReason> = None,
        /// Time at which the service disabled the webhook; null if it did not.
        own disabled_at: Option<Timestamp> = None,
        /// When it was made.
        created created_at: Timestamp,
        /// When it last changed.
        updated updated_at: Timestamp,
        /// The secrets that sign its events, the newest first.
        hidden(sealed) secrets: Vec<SigningSecret> = Vec::new(),
    }
}

/// A secret that signs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SigningSecret {
    /// `whsec_` and base64.
    pub secret: StoredSecret,
    /// When it stops signing; `None` for the newest.
    pub expires_at: Option<Timestamp>,
}

impl HoldsSecrets for SigningSecret {
    fn secrets<'a>(&'a mut self, found: &mut Vec<FoundSecret<'a>>) {
        found.push(FoundSecret { secret: &mut self.secret, shown: |secret| Some(fingerprint(secret)) });
    }
}

/// By this a repeated request recognises the secret that its first attempt has sealed. It reveals nothing: a secret has 32
/// random bytes.
fn fingerprint(secret: &str) -> String {
    hex(&sha256([secret.as_bytes()])[..8])
}

impl SigningSecret {
    /// The list of a first secret.
    pub fn first(secret: Secret) -> Vec<Self> {
        vec![Self { secret: secret.into(), expires_at: None }]
    }

    /// Whether it is `secret`.
    pub fn is(&self, secret: &Secret) -> bool {
        match &self.secret {
            StoredSecret::Open(known) => known == secret,
            StoredSecret::Sealed(sealed) => sealed.shown == fingerprint(secret.expose()),
        }
    }

    /// Puts `secret` before the `others`, unless it is there already. The replaced one also signs for a day, unless newer
    /// secrets push it out of the list before that. Returns whether the list has changed.
    pub fn rotate(others: &mut Vec<Self>, secret: &Secret, now: Timestamp) -> bool {
        if others.iter().any(|known| known.is(secret)) {
            return false;
        }
        let until = now.plus_seconds(ROTATION);
        others.retain(|old| old.expires_at.is_none_or(|expires| now < expires));
        for old in others.iter_mut() {
            old.expires_at.get_or_insert(until);
        }
        others.insert(0, Self { secret: secret.clone().into(), expires_at: None });
        others.truncate(MOST_SECRETS);
        true
    }

    /// The ones of `secrets`, which are open, that sign at `now`.
    pub fn signing(secrets: &[Self], now: Timestamp) -> Vec<&Secret> {
        let valid = secrets.iter().filter(|secret| secret.expires_at.is_none_or(|expires| now < expires));
        valid.filter_map(|secret| secret.secret.open()).collect()
    }
}

/// A webhook with its newest secret. Only the answer to the request that creates a secret contains it.
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
        let secret = member::<Secret>("secret", true, "Signs what is sent. It is answered this once.");
        titled(extended(Webhook::schema(), vec![secret]), "WebhookWithSecret", "A webhook with its newest secret.")
    }
}

impl Webhook {
    fn uses_of_quotas(_: &Self) -> Amounts {
        vec![(Quota::Webhooks, 1)]
    }

    /// This webhook with its first secret.
    #[must_use]
    pub fn with_secret(self, secret: Secret) -> Self {
        Self { secrets: SigningSecret::first(secret), ..self }
    }

    /// Checks that events are sent to it.
    ///
    /// # Errors
    /// [`Error::Conflict`] where it is disabled, or has no endpoint.
    pub fn require_deliveries(&self) -> Result<()> {
        let (kind, message) = match (self.enabled, self.endpoint.is_empty()) {
            (true, false) => return Ok(()),
            (false, _) => ("webhook_disabled", "The webhook is disabled"),
            (true, true) => ("webhook_without_endpoint", "The webhook has no endpoint"),
        };
        Err(Error::Conflict { at: Location::path().name("webhook_id"), kind, message })
    }

    /// Applies an update. Setting `enabled` clears the reason for which it was disabled.
    pub fn update(&mut self, changes: &<Self as Declared>::Changes, now: Timestamp) {
        self.apply(changes);
        if changes.enabled != Patch::Absent {
            (self.disabled_reason, self.disabled_at) = (None, None);
        }
        self.touch(now);
    }

    /// Gives it a new secret. The replaced one also signs for a day.
    pub fn rotate(&mut self, secret: &Secret, now: Timestamp) {
        if SigningSecret::rotate(&mut self.secrets, secret, now) {
            self.touch(now);
        }
    }

    /// Disables it for a reason that the service found at the address `endpoint`. If it has another address by now,
    /// nothing changes.
    pub fn disable(&mut self, endpoint: &str, reason: DisabledReason, now: Timestamp) {
        if self.endpoint != endpoint {
            return;
        }
        (self.enabled, self.disabled_reason, self.disabled_at) = (false, Some(reason), Some(now));
        self.touch(now);
    }

    /// The secrets that sign at `now`, if they are open.
    pub fn signing(&self, now: Timestamp) -> Vec<&Secret> {
        SigningSecret::signing(&self.secrets, now)
    }
}
