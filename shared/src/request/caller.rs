//! The caller of a request, according to the API key.

use crate::request::api_key::Role;
use crate::values::id::ApiKeyId;
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
