//! The caller of a request, according to the API key.

use std::sync::OnceLock;

use crate::input::Location;
use crate::request::api_key::Role;
use crate::request::error::{Error, Result};
use crate::request::route::{Access, Route};
use crate::request::scope::KeyScope;
use crate::values::id::{ApiKeyId, OrgId, UserId};
use crate::values::limits::Limits;
use crate::values::tenant::Tenant;

/// The caller of a request.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The organisation of the key.
    pub tenant: Tenant,
    /// The permissions of the key.
    pub role: Role,
    /// The key.
    pub key: ApiKeyId,
    /// How many requests the callers of the key may send.
    pub limits: Limits,
    /// What the key may do within its role; `None` where that is everything.
    pub scopes: Option<Vec<KeyScope>>,
    /// The user for whom the key works.
    pub user: Option<UserId>,
    /// Whether answers to the key leave out each member that is null.
    pub omit_nulls: bool,
}

impl Caller {
    /// Whether the caller may call `route`.
    pub fn may_call(&self, route: &Route) -> bool {
        route.access.allows(self.role) && self.has(|| route.scope())
    }

    /// Whether the caller may change records of this kind.
    pub fn may_change(&self, record: &str) -> bool {
        self.role != Role::ReadOnly && self.has(|| KeyScope::write(record))
    }

    /// Whether the caller has every scope of a key with `scopes`.
    pub fn may_do_all_of(&self, scopes: Option<&[KeyScope]>) -> bool {
        match scopes {
            None => self.scopes.is_none(),
            Some(scopes) => scopes.iter().all(|scope| self.has(|| scope.clone())),
        }
    }

    /// Refuses a caller that may not call `route`.
    ///
    /// # Errors
    /// [`Error::Forbidden`] says what the key lacks.
    pub fn require(&self, route: &Route) -> Result<()> {
        if self.may_call(route) {
            return Ok(());
        }
        let message = match route.access {
            access if access.allows(self.role) => return self.require_scope(&route.scope()),
            Access::Admin => "Only an API key with the role admin may do this".into(),
            _ => "A read-only API key may not do this".into(),
        };
        Err(Error::Forbidden(Location::query().name("api_key"), message))
    }

    /// Refuses a caller that does not have this scope.
    ///
    /// # Errors
    /// [`Error::Forbidden`] names the scope.
    pub fn require_scope(&self, scope: &KeyScope) -> Result<()> {
        if self.has(|| scope.clone()) {
            return Ok(());
        }
        let message = format!("The API key needs the scope {scope}");
        Err(Error::Forbidden(Location::query().name("api_key"), message.into()))
    }

    fn has(&self, wanted: impl Fn() -> KeyScope) -> bool {
        let Some(scopes) = &self.scopes else { return true };
        let wanted = wanted();
        scopes.iter().any(|scope| scope.covers(&wanted))
    }
}

/// Who has sent a request, for its line in the log and the form of its answer. It is empty until the key or the
/// signature is proven.
#[derive(Debug, Default)]
pub struct Identified(OnceLock<IdentifiedSender>);

#[derive(Debug)]
struct IdentifiedSender {
    key: Option<ApiKeyId>,
    organisation: OrgId,
    omits_nulls: bool,
}

impl Identified {
    /// The request has the key of `caller`.
    pub fn a_key(&self, caller: &Caller) {
        // A request has one sender, so nothing is set twice.
        let _ = self.0.set(IdentifiedSender {
            key: Some(caller.key),
            organisation: caller.tenant.org(),
            omits_nulls: caller.omit_nulls,
        });
    }

    /// The request has a signature of `tenant`, which has no key.
    pub fn a_signature(&self, tenant: Tenant) {
        let _ = self.0.set(IdentifiedSender { key: None, organisation: tenant.org(), omits_nulls: false });
    }

    /// The id of the key.
    pub fn key(&self) -> Option<ApiKeyId> {
        self.0.get().and_then(|sender| sender.key)
    }

    /// The organisation.
    pub fn organisation(&self) -> Option<OrgId> {
        self.0.get().map(|sender| sender.organisation)
    }

    /// Whether the answer leaves out each member that is null.
    pub fn omits_nulls(&self) -> bool {
        self.0.get().is_some_and(|sender| sender.omits_nulls)
    }
}
