//! The rate limit of a key: a token bucket in the table, which the processes of all functions share by leases.
//!
//! A process that sees few requests of a key decides alone ([`share`]), at no cost. `docs/adr/0026-limits-per-key.md`
//! has the bound.

pub mod headers;
pub mod share;

use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};

use lru::LruCache;

use crate::request::caller::Caller;
use crate::request::error::{Error, Result};
use crate::request::limit::share::{Decision, SECOND, Share, capacity, interval};
use crate::table::keys::rate;
use crate::table::store::Store;
use crate::table::tokens::{Taken, Withdrawal};
use crate::values::id::ApiKeyId;
use crate::values::time::Timestamp;

/// The keys whose shares a process remembers. The least recently used one is forgotten first, and then starts from
/// zero.
const REMEMBERED: NonZeroUsize = NonZeroUsize::new(1024).unwrap();

/// The shares that this process has of the limits of keys.
#[derive(Debug)]
pub struct Limiter(Mutex<LruCache<ApiKeyId, Share>>);

impl Default for Limiter {
    fn default() -> Self {
        Self(Mutex::new(LruCache::new(REMEMBERED)))
    }
}

impl Limiter {
    /// Admits or refuses a request of `caller` at `now`. If the bucket does not answer, the request is admitted, and a
    /// metric counts the line in the log.
    ///
    /// # Errors
    /// [`Error::RateLimited`].
    pub async fn admit(&self, store: &Store, caller: &Caller, now: Timestamp) -> Result<()> {
        let nanos = now.unix_millis() * (SECOND / 1000);
        match self.of(caller, |share| share.decide(nanos)) {
            Decision::Admitted => Ok(()),
            Decision::Refused { until } => Err(refusal(caller, until - nanos)),
            // Boxed, so that requests without a lease use less memory.
            Decision::Ask(tokens) => Box::pin(self.lease(store, caller, tokens, nanos)).await,
        }
    }

    async fn lease(&self, store: &Store, caller: &Caller, mut tokens: u32, now: i64) -> Result<()> {
        let (key, limits) = (rate(caller.key, caller.limits), caller.limits);
        let mut again = false;
        loop {
            let withdrawal = Withdrawal {
                now,
                cost: interval(limits) * i64::from(tokens),
                capacity: capacity(limits),
                seems_full: self.of(caller, |share| share.seems_full(now)),
            };
            let decision = match store.withdraw(&key, &withdrawal).await {
                Ok(Taken { full_at, granted: true }) => self.of(caller, |share| share.granted(tokens, full_at, now)),
                Ok(Taken { full_at, .. }) => self.of(caller, |share| share.refused(tokens, full_at, now, again)),
                Err(error) => {
                    tracing::error!(key = %caller.key, cause = %error, "limit not checked");
                    self.of(caller, |share| share.failed(now))
                }
            };
            match decision {
                Decision::Admitted => return Ok(()),
                Decision::Refused { until } => return Err(refusal(caller, until - now)),
                Decision::Ask(fewer) => (tokens, again) = (fewer, true),
            }
        }
    }

    /// The share of the caller's key. It starts from zero when the limits have changed.
    fn of<T>(&self, caller: &Caller, then: impl FnOnce(&mut Share) -> T) -> T {
        let mut shares = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let share = shares.get_or_insert_mut(caller.key, || Share::new(caller.limits));
        if share.limits() != caller.limits {
            *share = Share::new(caller.limits);
        }
        then(share)
    }
}

/// The refusal of a request that may be sent again after `wait`.
fn refusal(caller: &Caller, wait: i64) -> Error {
    let seconds = ((wait + SECOND - 1) / SECOND).max(1);
    Error::RateLimited { key: caller.key, limits: caller.limits, seconds }
}
