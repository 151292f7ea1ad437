//! The resources of a handler: the caller's organisation, its table, the clock, ids, and the service of the process.

use uuid::Uuid;

use crate::bucket::Bucket;
use crate::bucket::kept::KeptObjects;
use crate::input::Location;
use crate::network::Network;
use crate::network::lanes::LaneTime;
use crate::network::own::OwnAddresses;
use crate::request::authentication::KeyCache;
use crate::request::caller::Caller;
use crate::request::claim::MARKED;
use crate::request::config::Config;
use crate::request::error::{Error, Result};
use crate::request::http::HttpRequest;
use crate::request::limit::Limiter;
use crate::request::route::Route;
use crate::table::declaration::Declared;
use crate::table::keys::Fingerprint;
use crate::table::quota::QuotaUse;
use crate::table::rows::NewRow;
use crate::table::store::Store;
use crate::table::{Table, TableError};
use crate::values::id::Seed;
use crate::values::id::{Ids, OrgId, UserId};
use crate::values::tenant::Tenant;
use crate::values::time::Clock;
use crate::values::time::Timestamp;

/// The service: everything that lives as long as the process.
#[derive(Debug)]
pub struct Service {
    /// The configuration.
    pub config: Config,
    /// The calls of the table, without an organisation.
    pub store: Store,
    /// The bucket of the files.
    pub bucket: Bucket,
    /// The batches that the functions on the table's stream gave up.
    pub failed_records: KeptObjects,
    /// The time.
    pub clock: Clock,
    /// Fresh ids.
    pub ids: Ids,
    /// The keys that were seen recently.
    pub keys: KeyCache,
    /// This process's share of the limits of keys.
    pub limiter: Limiter,
    /// How long each organisation has made the stream wait.
    pub lanes: LaneTime,
    /// The network to which events are sent.
    pub network: Network,
}

impl Service {
    /// The same service in another process, with empty caches.
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
            lanes: LaneTime::default(),
            network: self.network.clone(),
        }
    }
}

impl Service {
    /// What an organisation that an operator names has of each quota.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn quota_uses(&self, org: OrgId) -> Result<Vec<QuotaUse>, TableError> {
        #[expect(clippy::disallowed_methods, reason = "an operator names the organisation, and nothing is written")]
        let table = Table::new(self.store.clone(), Tenant::operator(org));
        table.quota_uses(self.clock.now()).await
    }
}

/// The context: everything that lives as long as a request.
#[derive(Debug)]
pub struct Context<'a> {
    /// The caller's organisation.
    pub tenant: Tenant,
    /// The table of the caller's organisation.
    pub table: Table,
    /// The address of the API, without `/api/v1`.
    pub base_url: String,
    /// The service of this process.
    pub service: &'a Service,
    /// Who has sent the request with a key.
    caller: Option<Caller>,
    /// Whether the caller may not change the record of the operation.
    is_reader: bool,
    /// The addresses of this API that the request shows.
    own: OwnAddresses,
    clock: Clock,
    ids: Ids,
}

impl<'a> Context<'a> {
    /// The context of a request that is executed once.
    pub fn new(tenant: Tenant, table: Table, base_url: String, service: &'a Service) -> Self {
        let (clock, ids) = (service.clock.clone(), service.ids.clone());
        let own = OwnAddresses::default();
        Self { tenant, table, base_url, service, caller: None, is_reader: false, own, clock, ids }
    }

    /// The same for a `caller` of `route`, whose `request` shows addresses of this API.
    #[must_use]
    pub(crate) fn called_by(self, caller: Caller, route: &Route, request: &HttpRequest) -> Self {
        let own = OwnAddresses { base_urls: vec![request.base_url.clone()], api_id: request.api_id.clone() };
        Self { is_reader: !caller.may_change(route.record), caller: Some(caller), own, ..self }
    }

    /// The context of a request with an idempotency key, which may be executed again: with the same time and the same
    /// ids.
    #[must_use]
    pub(crate) fn repeatable(self, started_at: Timestamp, seed: Seed) -> Self {
        Self { clock: Clock::at(started_at), ids: Ids::Seeded(seed), ..self }
    }
}

impl Context<'_> {
    /// The caller, by whose key the request was sent.
    ///
    /// # Errors
    /// [`Error::Internal`] where the request has no key.
    pub fn caller(&self) -> Result<&Caller> {
        self.caller.as_ref().ok_or_else(|| Error::Internal("a request without a key".into()))
    }

    /// The user for whom the caller's key works, if it has one.
    pub fn user(&self) -> Option<UserId> {
        self.caller.as_ref()?.user
    }

    /// The time. With an idempotency key it is always the time at which the first attempt began.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// A new id of any type. With an idempotency key the n-th id is the same in every attempt of the request.
    pub fn new_id<Id: From<Uuid>>(&self) -> Id {
        self.ids.fresh(self.now()).into()
    }

    /// A new id that no other attempt of the request has: for staged items, which another attempt must not
    /// overwrite.
    pub fn new_attempt<Id: From<Uuid>>(&self) -> Id {
        self.service.ids.fresh(self.now()).into()
    }

    /// 32 random bytes for a secret. With an idempotency key they are the same in every attempt of the request.
    ///
    /// # Errors
    /// [`Error::Internal`] where the machine has no random bytes.
    pub fn secret(&self) -> Result<[u8; 32]> {
        Ok(self.ids.secret()?)
    }

    /// The origin of a write: the id under which its marker is found, if the request may be executed more than once.
    /// `Some(id)` with an idempotency key, `None` without.
    ///
    /// A write that must happen only once, such as an append to a list, puts a marker under this id in the same
    /// transaction, on condition that there is none. If there is one, an earlier attempt of the same request has made
    /// the write. Markers are needed for [`MARKED`] seconds.
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

    /// How a repeat of this request is recognised: by the idempotency key, for as long as the key is kept; without a
    /// key by `fingerprint`, for `seconds`.
    pub fn recognised_by(&self, fingerprint: Fingerprint, seconds: i64) -> Recognition {
        match &self.ids {
            Ids::Seeded(seed) => {
                Recognition { fingerprint: seed.derive("recognised by", &fingerprint), seconds: MARKED, keyed: true }
            }
            _ => Recognition { fingerprint, seconds, keyed: false },
        }
    }

    /// `record` as the caller may see it.
    pub fn shown<R: Declared>(&self, record: R) -> R {
        let record = record.shown();
        if self.is_reader { record.for_reader() } else { record }
    }

    /// Refuses addresses to which events must not be sent, each in a field of the body.
    ///
    /// # Errors
    /// [`Error::Invalid`].
    pub async fn require_public(&self, addresses: &[(&'static str, &str)]) -> Result<()> {
        for (field, address) in addresses {
            let checked = self.service.network.check(address, &self.own).await;
            let at = Location::body().name(*field);
            checked.map(drop).map_err(|refused| Error::invalid(at.issue(refused.kind(), refused.to_string())))?;
        }
        Ok(())
    }
}

/// How a repeat of a request is recognised.
#[derive(Debug, Clone, Copy)]
pub struct Recognition {
    /// The value that all requests which count as one have in common.
    pub fingerprint: Fingerprint,
    /// For how many seconds they count as one.
    pub seconds: i64,
    /// Whether they are recognised by an idempotency key, and not by their content.
    pub keyed: bool,
}
