//! From an API key to a caller. Nothing else can make a [`Tenant`], and without one no key of the table can be built.

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::context::Service;
use crate::error::{Error, Result};
use crate::event::HttpRequest;
use crate::model::api_key::{ApiKey, ApiKeyRecord, KeyHash, Role};
use crate::model::id::OrgId;
use crate::model::time::Timestamp;
use crate::table::store::Store;

/// Seconds for which a warm function trusts a good key without asking again: as long can a revoked key live on.
const TRUST_GOOD: i64 = 30;
/// Seconds for which a bad key is refused without asking again.
const TRUST_BAD: i64 = 5;
/// Keys remembered per process; the least recently used one makes room.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The organisation whose records a request may touch.
///
/// There is no public constructor but [`Tenant::operator`]: handlers get theirs from the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant(OrgId);

impl Tenant {
    /// The organisation that an operator names: for what runs without a key, such as loading the demo set. `clippy.toml` forbids it
    /// elsewhere.
    pub const fn operator(org: OrgId) -> Self {
        Self(org)
    }

    /// The organisation whose item has the partition key `pk`: for what follows from a change that the organisation itself has made.
    pub(crate) fn of_partition_key(pk: &str) -> Option<Self> {
        let org = pk.strip_prefix("ORG#")?.split('#').next()?;
        org.parse().ok().map(|org| Self(OrgId(org)))
    }

    /// The organisation.
    pub const fn org(&self) -> OrgId {
        self.0
    }
}

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The organisation of the key.
    pub tenant: Tenant,
    /// What the key may do.
    pub role: Role,
}

/// What is remembered of the keys seen lately: their hashes, never the keys.
#[derive(Debug)]
pub struct KeyCache(Mutex<LruCache<KeyHash, Remembered>>);

#[derive(Debug, Clone)]
struct Remembered {
    record: Option<ApiKeyRecord>,
    until: Timestamp,
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
        let trust = if record.as_ref().is_some_and(|record| record.is_valid(now)) { TRUST_GOOD } else { TRUST_BAD };
        let remembered = Remembered { record, until: now.plus_seconds(trust) };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).put(hash, remembered);
    }
}

/// The caller whose key `request` carries: in the query, or else as a bearer token.
///
/// # Errors
/// [`Error::MissingKey`], [`Error::InvalidKey`], or what the table reports.
pub async fn authenticate(service: &Service, store: &Store, request: &HttpRequest) -> Result<Caller> {
    let sent = request.query("api_key").or_else(|| bearer(request)).filter(|key| !key.is_empty());
    let key = ApiKey::parse(sent.ok_or(Error::MissingKey)?).ok_or(Error::InvalidKey)?;
    let (hash, now) = (key.hash(), service.clock.now());
    let record = if let Some(remembered) = service.keys.get(&hash, now) {
        remembered.record
    } else {
        let record = store.api_key(&hash).await?;
        service.keys.put(hash, record.clone(), now);
        record
    };
    let record = record.filter(|record| record.is_valid(now)).ok_or(Error::InvalidKey)?;
    Ok(Caller { tenant: Tenant(record.org_id), role: record.role })
}

fn bearer(request: &HttpRequest) -> Option<&str> {
    let (scheme, token) = request.authorization.as_deref()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}
