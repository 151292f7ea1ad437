//! Authentication: finds the caller of a request by its API key.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::request::api_key::{ApiKey, ApiKeyRecord, KeyHash, note_use};
use crate::request::caller::Caller;
use crate::request::context::Service;
use crate::request::error::{Error, Result};
use crate::request::http::HttpRequest;
use crate::table::store::Store;
use crate::values::tenant::Tenant;
use crate::values::time::{Day, Timestamp};

/// Seconds for which a process knows a key without another read. A revoked key may work for as long, and a new key may
/// be refused for as long.
const KNOWN: i64 = 5;
/// The keys that a process remembers. The least recently used one is forgotten first.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The keys that were seen recently, by their hashes: the keys themselves are not kept.
#[derive(Debug)]
pub struct KeyCache(Mutex<LruCache<KeyHash, Remembered>>);

#[derive(Debug, Clone)]
struct Remembered {
    record: Option<ApiKeyRecord>,
    until: Timestamp,
    /// The last day on which this process has noted a use of the key.
    noted: Option<Day>,
}

impl Default for KeyCache {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl KeyCache {
    fn get(&self, hash: &KeyHash, now: Timestamp) -> Option<Remembered> {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get(hash).filter(|remembered| now < remembered.until).cloned()
    }

    fn put(&self, hash: KeyHash, record: Option<ApiKeyRecord>, now: Timestamp) {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let noted = cache.peek(&hash).and_then(|known| known.noted);
        cache.put(hash, Remembered { record, until: now.plus_seconds(KNOWN), noted });
    }

    /// Whether a use of the key is still to be noted for `day`. The next call for the same day says no.
    fn is_first_of(&self, day: Day, hash: &KeyHash) -> bool {
        let mut cache = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        cache.get_mut(hash).is_some_and(|known| known.noted.replace(day) != Some(day))
    }
}

/// The caller who has sent the key `sent`.
///
/// # Errors
/// [`Error::InvalidKey`], or an error of the table.
pub async fn authenticate(service: &Service, store: &Store, sent: &str, now: Timestamp) -> Result<Caller> {
    let keys = &service.keys;
    let key = ApiKey::parse(sent).ok_or(Error::InvalidKey)?;
    let hash = key.hash();
    let (record, noted) = if let Some(remembered) = keys.get(&hash, now) {
        (remembered.record, remembered.noted)
    } else {
        // Boxed, so that requests with a known key use less memory.
        let record = Box::pin(store.api_key(&hash)).await?;
        keys.put(hash.clone(), record.clone(), now);
        (record, None)
    };
    let record = record.filter(|record| record.is_valid(now)).ok_or(Error::InvalidKey)?;
    let limits = record.limits(service.config.key_limits);
    let ApiKeyRecord { id: key, org_id, role, scopes, user_id: user, omit_nulls, .. } = record;
    let caller = Caller { tenant: Tenant::of_key(org_id), role, key, limits, scopes, user, omit_nulls };
    if noted != Some(now.day()) && keys.is_first_of(now.day(), &hash) {
        // Boxed for the same reason. A failure is no reason to refuse the caller: another process notes the use.
        if let Err(error) = Box::pin(note_use(store, &caller.tenant, key, now)).await {
            tracing::warn!(%key, cause = %error, "the use of the key was not noted");
        }
    }
    Ok(caller)
}

/// The key in `request`, valid or invalid: in its header or in its query. If both have one, it must be the same.
///
/// # Errors
/// [`Error::MissingKey`], or [`Error::DifferentKeys`].
pub fn sent_key(request: &HttpRequest) -> Result<&str> {
    match (bearer(request), in_query(request)) {
        (Some(header), Some(query)) if header != query => Err(Error::DifferentKeys),
        (header, query) => header.or(query).ok_or(Error::MissingKey),
    }
}

/// The key in the header of `request`, valid or invalid, for an endpoint that takes no key in the query.
///
/// # Errors
/// [`Error::KeyInQuery`], or [`Error::MissingKey`].
pub fn header_key(request: &HttpRequest) -> Result<&str> {
    if in_query(request).is_some() {
        return Err(Error::KeyInQuery);
    }
    bearer(request).ok_or(Error::MissingKey)
}

/// An empty parameter is no key.
fn in_query(request: &HttpRequest) -> Option<&str> {
    request.query("api_key").filter(|key| !key.is_empty())
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let (scheme, token) = request.authorization.as_deref()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim()).filter(|token| !token.is_empty())
}
