//! The caller of a request, according to the API key.

use std::sync::OnceLock;

use crate::request::api_key::Role;
use crate::values::id::{ApiKeyId, OrgId};
use crate::values::limits::Limits;
use crate::values::tenant::Tenant;

/// The caller of a request.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The organisation of the key.
    pub tenant: Tenant,
    /// The permissions of the key.
    pub role: Role,
    /// The key.
    pub key: ApiKeyId,
    /// How many requests the callers of the key may send.
    pub limits: Limits,
}

/// Who has sent a request, for its line in the log. It is empty until the key or the signature is proven.
#[derive(Debug, Default)]
pub struct Identified(OnceLock<(Option<ApiKeyId>, OrgId)>);

impl Identified {
    /// The request has the key of `caller`.
    pub fn a_key(&self, caller: &Caller) {
        // A request has one sender, so nothing is set twice.
        let _ = self.0.set((Some(caller.key), caller.tenant.org()));
    }

    /// The request has a signature of `tenant`, which has no key.
    pub fn a_signature(&self, tenant: Tenant) {
        let _ = self.0.set((None, tenant.org()));
    }

    /// The id of the key.
    pub fn key(&self) -> Option<ApiKeyId> {
        self.0.get().and_then(|(key, _)| *key)
    }

    /// The organisation.
    pub fn organisation(&self) -> Option<OrgId> {
        self.0.get().map(|(_, organisation)| *organisation)
    }
}
