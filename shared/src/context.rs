//! What a handler may touch: the caller, the table, the clock, ids, the configuration. Nothing else.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use ring::rand::SecureRandom as _;
use uuid::Uuid;

use crate::auth::KeyCache;
use crate::config::Config;
use crate::error::{Error, Location, Result};
use crate::model::id::{OrgId, uuid_v7};
use crate::model::time::Timestamp;
use crate::table::Table;
use crate::table::store::Store;
use crate::tenant::Caller;

/// What lives as long as the process.
#[derive(Debug)]
pub struct Service {
    /// The configuration.
    pub config: Config,
    /// The table, for nobody in particular yet.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Fresh ids.
    pub ids: Ids,
    /// The keys seen lately.
    pub keys: KeyCache,
}

/// What lives as long as a request.
#[derive(Debug)]
pub struct Context<'a> {
    /// Who calls.
    pub caller: Caller,
    /// The caller's part of the table.
    pub table: Table,
    /// Where the API answers, up to and without `/api/v1`.
    pub base_url: String,
    /// The process's own.
    pub service: &'a Service,
}

impl Context<'_> {
    /// The time.
    pub fn now(&self) -> Timestamp {
        self.service.clock.now()
    }

    /// A fresh id, of whatever kind is wanted.
    pub fn new_id<Id: From<Uuid>>(&self) -> Id {
        self.service.ids.fresh(self.now()).into()
    }

    /// The caller's organisation, which a body may repeat but not replace.
    ///
    /// # Errors
    /// [`Error::Forbidden`] at the body's `org_id` where it names another one.
    pub fn own_org(&self, named: Option<OrgId>) -> Result<OrgId> {
        let own = self.caller.tenant.org();
        match named {
            Some(other) if other != own => Err(Error::other_organisation(Location::body().name("org_id"))),
            _ => Ok(own),
        }
    }
}

/// Where the time comes from.
#[derive(Debug, Clone)]
pub enum Clock {
    /// The machine.
    System,
    /// A hand that sets it, in milliseconds since 1970 began.
    Manual(Arc<AtomicI64>),
}

impl Clock {
    /// A clock that stands still until it is set.
    pub fn at(time: Timestamp) -> Self {
        Self::Manual(Arc::new(AtomicI64::new(time.unix_millis())))
    }

    /// Sets a manual clock; the machine's goes its own way.
    pub fn set(&self, time: Timestamp) {
        if let Self::Manual(millis) = self {
            millis.store(time.unix_millis(), Ordering::SeqCst);
        }
    }

    /// The time.
    pub fn now(&self) -> Timestamp {
        match self {
            #[expect(clippy::disallowed_methods, reason = "the one place that asks the machine for the time")]
            Self::System => Timestamp::from_unix_millis(chrono::Utc::now().timestamp_millis()),
            Self::Manual(millis) => Timestamp::from_unix_millis(millis.load(Ordering::SeqCst)),
        }
    }
}

/// Where the random part of ids comes from.
#[derive(Debug, Clone)]
pub enum Ids {
    /// The machine.
    Random,
    /// A count, so that a test knows what comes.
    Counted(Arc<AtomicU64>),
}

impl Ids {
    /// Ids whose random part is 0, 1, 2 and so on, in its upper half; the lower one is left to ordinals.
    pub fn counted() -> Self {
        Self::Counted(Arc::default())
    }

    /// The secret of a new key.
    ///
    /// # Errors
    /// [`Error::Internal`] where the machine has no random bytes to give.
    pub fn secret(&self) -> Result<[u8; 32]> {
        let mut secret = [0; 32];
        match self {
            Self::Random => ring::rand::SystemRandom::new()
                .fill(&mut secret)
                .map_err(|_| Error::Internal("no random bytes".into()))?,
            Self::Counted(next) => secret[..8].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()),
        }
        Ok(secret)
    }

    /// A UUID of version 7 for `now`.
    pub fn fresh(&self, now: Timestamp) -> Uuid {
        match self {
            Self::Random => {
                let random = *Uuid::now_v7().as_bytes();
                let mut tail = [0; 10];
                tail.copy_from_slice(&random[6..]);
                uuid_v7(now, tail)
            }
            Self::Counted(next) => {
                let mut tail = [0; 10];
                tail[2..6].copy_from_slice(&next.fetch_add(1, Ordering::SeqCst).to_be_bytes()[4..]);
                uuid_v7(now, tail)
            }
        }
    }
}
