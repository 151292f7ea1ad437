//! What a handler may touch: the caller, the table, the clock, ids, the configuration. Nothing else.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use ring::hmac;
use ring::rand::SecureRandom as _;
use uuid::Uuid;

use crate::bucket::Bucket;
use crate::bucket::kept::KeptObjects;
use crate::delivery::network::Network;
use crate::records::claim::MARKED;
use crate::records::declaration::Declared;
use crate::request::authentication::KeyCache;
use crate::request::error::{Error, Location, Result};
use crate::request::limit::Limiter;
use crate::request::tenant::Tenant;
use crate::runtime::config::Config;
use crate::table::Table;
use crate::table::keys::Fingerprint;
use crate::table::rows::NewRow;
use crate::table::store::Store;
use crate::values::id::uuid_v7;
use crate::values::time::Timestamp;

/// The service: what lives as long as the process.
#[derive(Debug)]
pub struct Service {
    /// The configuration.
    pub config: Config,
    /// The calls of the table, without an organisation.
    pub store: Store,
    /// The bucket of the files.
    pub bucket: Bucket,
    /// What the functions on the table's stream gave up.
    pub failed_records: KeptObjects,
    /// The time.
    pub clock: Clock,
    /// Fresh ids.
    pub ids: Ids,
    /// The keys that were seen recently.
    pub keys: KeyCache,
    /// What this process has of the limits of keys.
    pub limiter: Limiter,
    /// The network that events are sent to.
    pub network: Network,
}

impl Service {
    /// The same service in another process, which remembers nothing yet.
    #[must_use]
    pub fn in_another_process(&self) -> Self {
        Self {
            config: self.config.clone(),
            store: self.store.in_another_process(),
            bucket: self.bucket.clone(),
            failed_records: self.failed_records.clone(),
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            keys: KeyCache::default(),
            limiter: Limiter::default(),
            network: self.network.clone(),
        }
    }
}

/// The context: what lives as long as a request.
#[derive(Debug)]
pub struct Context<'a> {
    /// The caller's organisation.
    pub tenant: Tenant,
    /// The table of the caller's organisation.
    pub table: Table,
    /// Where the API answers, up to and without `/api/v1`.
    pub base_url: String,
    /// The service of this process.
    pub service: &'a Service,
    clock: Clock,
    ids: Ids,
}

impl<'a> Context<'a> {
    /// The context of a request that is executed once.
    pub fn new(tenant: Tenant, table: Table, base_url: String, service: &'a Service) -> Self {
        Self { tenant, table, base_url, service, clock: service.clock.clone(), ids: service.ids.clone() }
    }

    /// The context of a request with an idempotency key, which may be executed again: with the same time and the same ids.
    #[must_use]
    pub(crate) fn repeatable(self, started_at: Timestamp, seed: Seed) -> Self {
        Self { clock: Clock::at(started_at), ids: Ids::Seeded(seed), ..self }
    }
}

impl Context<'_> {
    /// The time. With an idempotency key it is always the time at which the first execution began.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new id of any type. With an idempotency key the n-th id is the same in every execution of the request.
    pub fn new_id<Id: From<Uuid>>(&self) -> Id {
        self.ids.fresh(self.now()).into()
    }

    /// A new id that no other execution of the request has: for staged items, which another execution must not overwrite.
    pub fn new_attempt<Id: From<Uuid>>(&self) -> Id {
        self.service.ids.fresh(self.now()).into()
    }

    /// 32 random bytes for a secret. With an idempotency key they are the same in every execution of the request.
    ///
    /// # Errors
    /// [`Error::Internal`] where the machine has no random bytes.
    pub fn secret(&self) -> Result<[u8; 32]> {
        self.ids.secret()
    }

    /// The origin of a write: the id under which its marker is found, where the request may be executed more than once. `Some(id)` with
    /// an idempotency key, `None` without.
    ///
    /// A write that must not be done twice, such as an append to a list, puts a marker under this id in the same transaction, on
    /// condition that there is none. If there is one, an earlier execution of the same request has done the write. Markers are
    /// needed for [`MARKED`] seconds.
    pub fn origin(&self, id: Uuid) -> Option<Uuid> {
        matches!(self.ids, Ids::Seeded(_)).then_some(id)
    }

    /// A new row of the list of `of`.
    pub fn new_row<Of>(&self, of: Of) -> NewRow<Of> {
        let id: Uuid = self.new_id();
        NewRow { of, id, origin: self.origin(id), now: self.now() }
    }

    /// The record of the body `new`, with `id`, for the caller's organisation.
    pub fn begun<R: Declared>(&self, new: R, id: impl Into<Uuid>) -> R {
        new.begun(id.into(), self.tenant.org(), Uuid::nil(), self.now())
    }

    /// How a repeat of this request is recognised: by the idempotency key, for as long as it is kept; without a key by `fingerprint`, for
    /// `seconds`.
    pub fn recognised_by(&self, fingerprint: Fingerprint, seconds: i64) -> Recognition {
        match &self.ids {
            Ids::Seeded(seed) => {
                Recognition { fingerprint: seed.derive("recognised by", &fingerprint), seconds: MARKED, keyed: true }
            }
            _ => Recognition { fingerprint, seconds, keyed: false },
        }
    }

    /// Refuses addresses to which events must not be sent, each in a field of the body.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub async fn require_public(&self, addresses: &[(&'static str, &str)]) -> Result<()> {
        for (field, address) in addresses {
            let checked = self.service.network.check(address).await;
            let at = Location::body().name(*field);
            checked.map(drop).map_err(|refused| Error::invalid(at.issue(refused.kind(), refused.to_string())))?;
        }
        Ok(())
    }
}

/// How a repeat of a request is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Recognition {
    /// The same for all requests that count as one.
    pub fingerprint: Fingerprint,
    /// For how many seconds they do.
    pub seconds: i64,
    /// Whether an idempotency key says that they are one, and not what they ask for.
    pub keyed: bool,
}

/// The source of the time.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine.
    System,
    /// A test sets it, in milliseconds since 1970 began.
    Manual(Arc<AtomicI64>),
    /// The same, as an environment has it whose clock is so many milliseconds ahead.
    Skewed(Arc<AtomicI64>, i64),
    /// The machine, and so many milliseconds more: whoever tries the service on a machine of their own skips time.
    Ahead(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that shows the same time until it is set.
    pub fn at(time: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(time.unix_millis())))
    }

    /// A manual clock as an environment has it whose clock is so many milliseconds ahead; the machine's as it is.
    #[must_use]
    pub fn ahead_by(&self, millis: i64) -> Self {
        match self {
            Self::Manual(time) => Self::Skewed(Arc::clone(time), millis),
            other => other.clone(),
        }
    }

    /// Sets a manual clock; does nothing to the machine's.
    pub fn set(&self, time: Timestamp) {
        if let Self::Manual(millis) = self {
            millis.store(time.unix_millis(), Ordering::SeqCst);
        }
    }

    /// Lets so much time pass at once; does nothing to the machine's clock.
    pub fn skip(&self, time: Duration) {
        if let Self::Manual(millis) | Self::Ahead(millis) = self {
            millis.fetch_add(i64::try_from(time.as_millis()).unwrap_or_default(), Ordering::SeqCst);
        }
    }

    /// Waits until `time`. A manual clock does not wait; it is set to `time`.
    pub async fn sleep_until(&self, time: Timestamp) {
        match self {
            Self::System | Self::Ahead(_) => {
                let wait = time.unix_millis() - self.now().unix_millis();
                tokio::time::sleep(Duration::from_millis(u64::try_from(wait).unwrap_or_default())).await;
            }
            Self::Manual(millis) => {
                millis.fetch_max(time.unix_millis(), Ordering::SeqCst);
            }
            Self::Skewed(millis, ahead) => {
                millis.fetch_max(time.unix_millis() - ahead, Ordering::SeqCst);
            }
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
            Self::System => Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis()),
            Self::Manual(millis) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst)),
            Self::Skewed(millis, ahead) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst) + ahead),
            Self::Ahead(millis) => {
                Timestamp::from_unix_millis(Self::System.now().unix_millis() + millis.load(Ordering::SeqCst))
            }
        }
    }
}

/// The source of the random part of ids.
#[derive(Debug, Clone)]
pub enum Ids {
    /// The machine.
    Random,
    /// A counter, so that a test knows the next id.
    Counted(Arc<AtomicU64>),
    /// A secret: the same secret gives the same ids.
    Seeded(Seed),
    /// Whoever makes a record that is to have a certain id: each id is this one.
    Given(Arc<Mutex<Uuid>>),
}

/// A secret, and how many ids were derived from it. `Debug` does not show it.
#[derive(Debug, Clone)]
pub struct Seed {
    key: hmac::Key,
    next: Arc<AtomicU64>,
}

impl Seed {
    /// The seed of `secret`.
    pub fn new(secret: &[u8; 32]) -> Self {
        Self { key: hmac::Key::new(hmac::HMAC_SHA256, secret), next: Arc::default() }
    }

    /// The bytes that are derived from the secret for one `purpose` and `input`.
    fn derive(&self, purpose: &str, input: &[u8]) -> [u8; 32] {
        let mut derived = [0; 32];
        derived.copy_from_slice(hmac::sign(&self.key, &[purpose.as_bytes(), &[0], input].concat()).as_ref());
        derived
    }

    /// Other bytes each time.
    fn next(&self, purpose: &str) -> [u8; 32] {
        self.derive(purpose, &self.next.fetch_add(1, Ordering::SeqCst).to_be_bytes())
    }
}

impl Ids {
    /// Ids whose random part counts 0, 1, 2 and so on in its upper half. The lower half is left to ordinals.
    pub fn counted() -> Self {
        Self::Counted(Arc::default())
    }

    /// The secret of a new key.
    ///
    /// # Errors
    /// [`Error::Internal`] where the machine has no random bytes.
    pub fn secret(&self) -> Result<[u8; 32]> {
        let mut secret = [0; 32];
        match self {
            Self::Random | Self::Given(_) => ring::rand::SystemRandom::new()
                .fill(&mut secret)
                .map_err(|_| Error::Internal("no random bytes".into()))?,
            Self::Counted(next) => secret[..8].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()),
            Self::Seeded(seed) => secret = seed.next("secret"),
        }
        Ok(secret)
    }

    /// A UUID of version 7 for `now`.
    pub fn fresh(&self, now: Timestamp) -> Uuid {
        let mut tail = [0; 10];
        match self {
            Self::Random => tail.copy_from_slice(&Uuid::now_v7().as_bytes()[6..]),
            Self::Counted(next) => {
                tail[2..6].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()[4..]);
            }
            Self::Seeded(seed) => tail.copy_from_slice(&seed.next("id")[..10]),
            Self::Given(id) => return *id.lock().unwrap_or_else(PoisonError::into_inner),
        }
        uuid_v7(now, tail)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::values::id::with_ordinal;

    #[test]
    fn a_seed_always_gives_the_same_ids_and_secrets_all_different() {
        let now = Timestamp::from_unix_millis(1_700_000_000_000);
        let made = |secret: [u8; 32]| {
            let ids = Ids::Seeded(Seed::new(&secret));
            let uuids: Vec<_> = (0..100).map(|_| ids.fresh(now)).collect();
            (uuids, ids.secret().unwrap(), ids.secret().unwrap())
        };
        let (uuids, first, second) = made([1; 32]);
        assert_eq!(made([1; 32]), (uuids.clone(), first, second));
        assert_ne!(first, second);
        // The last 32 bits belong to an ordinal, so ids must differ before them.
        let mut distinct: Vec<_> = uuids.iter().map(|id| with_ordinal(*id, 0)).collect();
        assert!(distinct.iter().all(|id| id.get_version_num() == 7));
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 100);
        let (others, other, _) = made([2; 32]);
        assert!(other != first && others.iter().all(|id| !uuids.contains(id)));
    }

    #[test]
    fn debug_does_not_show_a_seed() {
        assert!(!format!("{:?}", Seed::new(&[171; 32])).contains("171"));
    }
}
