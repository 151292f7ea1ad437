//! API keys: their form, their stored record, and the caller of a valid key.

mod limits;
mod storage;
mod usage;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use serde::Serialize;

pub use limits::ShownApiKey;
pub use storage::StoredApiKey;
pub(crate) use usage::note_use;

use crate::input::schema::{Schema, Value, extended, titled};
use crate::input::{Location, Patch, member};
use crate::request::error::{Error, Result};
use crate::request::scope::KeyScope;
use crate::values::hash::{hex, sha256};
use crate::values::id::{ApiKeyId, OrgId, UserId};
use crate::values::limits::Burst;
use crate::values::limits::Limits;
use crate::values::limits::RequestsPerSecond;
use crate::values::secret::Secret;
use crate::values::text::Name;
use crate::values::time::Timestamp;

/// The prefix of every key.
pub const PREFIX: &str = "in-";
/// The characters after the prefix: 32 bytes in URL-safe base64 without padding.
const SECRET_LENGTH: usize = 43;

/// A well-formed key, which may be unknown. `Debug` shows its prefix only.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

/// SHA-256 of a key, in hexadecimal. The database has the hash, not the key.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyHash(String);

impl ApiKey {
    /// `text` as a key, if its prefix, length and alphabet are right.
    pub fn parse(text: &str) -> Option<Self> {
        let secret = text.strip_prefix(PREFIX)?;
        let fits = secret.len() == SECRET_LENGTH
            && secret.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        fits.then(|| Self(text.to_owned()))
    }

    /// The key with these bytes as its secret.
    pub fn of_secret(secret: [u8; 32]) -> Self {
        Self(format!("{PREFIX}{}", URL_SAFE_NO_PAD.encode(secret)))
    }

    /// The part of the key that may be shown.
    pub fn display_prefix(&self) -> &str {
        &self.0[..PREFIX.len() + 4]
    }

    /// The whole key, to show it once to its owner.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// The hash by which the database finds it.
    pub fn hash(&self) -> KeyHash {
        KeyHash(hex(&sha256([self.0.as_bytes()])))
    }
}

impl std::fmt::Debug for ApiKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "ApiKey({}…)", self.display_prefix())
    }
}

impl KeyHash {
    /// The hash with the hexadecimal digits `text`.
    pub const fn from_hex(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Display for KeyHash {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

crate::choice! {
    /// What a key may do.
    pub enum Role {
        /// Everything, with the keys of the organisation and the list of what its keys did.
        Admin = "admin",
        /// Everything else.
        Full = "full",
        /// Lists and reads.
        ReadOnly = "read_only",
    }
}

crate::object! {
    /// The stored form of a key.
    pub struct ApiKeyRecord {
        /// Identifier, which names the key without showing it.
        pub id: ApiKeyId,
        /// The organisation of the key.
        pub org_id: OrgId,
        /// The part of the key that may be shown.
        pub prefix: String,
        /// What people read.
        pub name: Name,
        /// What it may do.
        pub role: Role,
        /// When it was made.
        pub created_at: Timestamp,
        /// When it expires; null where it does not.
        pub expires_at: Option<Timestamp>,
        /// When it was revoked; null where it was not.
        pub revoked_at: Option<Timestamp>,
        /// Requests a second, on average; null where the default of the deployment holds.
        pub requests_per_second: Option<RequestsPerSecond>,
        /// Requests at once; null where the default of the deployment holds.
        pub burst: Option<Burst>,
        /// What it may do within its role; null where that is everything.
        pub scopes: Option<Vec<KeyScope>>,
        /// The user for whom it works; null where it is for none. The user may be deleted by now.
        pub user_id: Option<UserId>,
        /// True if its answers leave out each member that is null.
        #[serde(default)]
        pub omit_nulls: bool,
    }
}

crate::input! {
    /// The input of issue-api-key.
    pub struct NewApiKey {
        /// The organisation of the key; a new one if none is named.
        pub org_id: Option<OrgId> = None,
        /// What people read.
        pub name: Name,
        /// What it may do.
        pub role: Role = Role::Full,
        /// When it expires; null where it does not.
        pub expires_at: Option<Timestamp> = None,
        /// Requests a second, on average; null where the default of the deployment holds.
        pub requests_per_second: Option<RequestsPerSecond> = None,
        /// Requests at once; null where the default of the deployment holds.
        pub burst: Option<Burst> = None,
        /// True if its answers leave out each member that is null.
        pub omit_nulls: bool = false,
    }
}

/// The input of update-api-key. What is absent stays as it is. A limit that is null is the default of the deployment.
#[derive(Debug)]
pub struct ApiKeyChanges {
    /// The organisation of the key.
    pub org_id: OrgId,
    /// The key.
    pub id: ApiKeyId,
    /// Requests a second, on average.
    pub requests_per_second: Patch<RequestsPerSecond>,
    /// Requests at once.
    pub burst: Patch<Burst>,
    /// Whether its answers leave out each member that is null.
    pub omit_nulls: Patch<bool>,
}

/// The answer of issue-api-key, with the key itself, which is shown only here.
#[derive(Debug, Serialize)]
pub struct IssuedApiKey {
    /// The key. It is not stored.
    pub api_key: Secret,
    /// The part of its record that operators see.
    #[serde(flatten)]
    pub key: ShownApiKey,
}

impl Schema for IssuedApiKey {
    fn schema() -> Value {
        let key = member::<Secret>("api_key", true, "The key. It is kept nowhere.");
        titled(extended(ShownApiKey::schema(), vec![key]), "IssuedApiKey", "A key that was issued just now.")
    }
}

impl ApiKeyRecord {
    /// The record of a new `key`.
    ///
    /// # Errors
    /// [`Error::Invalid`] where it would expire in the past, or where its limits do not fit together.
    pub fn new(
        id: ApiKeyId,
        org_id: OrgId,
        key: &ApiKey,
        new: NewApiKey,
        default: Limits,
        now: Timestamp,
    ) -> Result<Self> {
        require_future(new.expires_at, now)?;
        let record = Self {
            id,
            org_id,
            prefix: key.display_prefix().to_owned(),
            name: new.name,
            role: new.role,
            created_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            requests_per_second: new.requests_per_second,
            burst: new.burst,
            scopes: None,
            user_id: None,
            omit_nulls: new.omit_nulls,
        };
        record.require_limits(default)?;
        Ok(record)
    }

    /// The record of a `key` that replaces this one at `now`: it may do the same, and is valid for as long as this one was
    /// meant to be.
    #[must_use]
    pub fn successor(&self, id: ApiKeyId, key: &ApiKey, now: Timestamp) -> Self {
        let valid_for = |end: Timestamp| end.unix_millis() - self.created_at.unix_millis();
        let end = |span| Timestamp::checked_from_unix_millis(now.unix_millis() + span).unwrap_or(Timestamp::MAX);
        let expires_at = self.expires_at.map(|at| end(valid_for(at)));
        Self { id, prefix: key.display_prefix().to_owned(), created_at: now, expires_at, ..self.clone() }
    }

    /// The same key, which is valid until `until` at the latest.
    #[must_use]
    pub fn ending(self, until: Timestamp) -> Self {
        let expires_at = self.expires_at.map_or(until, |end| end.min(until));
        Self { expires_at: Some(expires_at), ..self }
    }

    /// Whether the key is valid at `now`.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// Refuses an end in the past.
///
/// # Errors
/// [`Error::Invalid`] at `expires_at`.
pub fn require_future(expires_at: Option<Timestamp>, now: Timestamp) -> Result<()> {
    if expires_at.is_some_and(|end| end <= now) {
        let at = Location::body().name("expires_at");
        return Err(Error::invalid(at.issue("value_error", "Value error, expires_at should be in the future")));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_its_prefix_and_43_characters() {
        let key = ApiKey::of_secret([7; 32]);
        assert_eq!(ApiKey::parse(key.expose()), Some(key.clone()));
        assert_eq!(key.expose().len(), 46);
        for wrong in ["", "in-", &key.expose()[1..], &key.expose()[..45], &format!("{}A", key.expose()), "in-é"] {
            assert_eq!(ApiKey::parse(wrong), None, "{wrong}");
        }
        let padded = key.expose().replace('B', "=");
        assert_ne!(padded, key.expose());
        assert_eq!(ApiKey::parse(&padded), None);
    }

    #[test]
    fn debug_does_not_show_a_key() {
        let key = ApiKey::of_secret([7; 32]);
        assert_eq!(format!("{key:?}"), "ApiKey(in-BwcH…)");
    }
}
