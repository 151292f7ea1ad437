//! Who calls, as the API key says.

use crate::request::api_key::Role;
use crate::values::id::ApiKeyId;
use crate::values::limits::Limits;
use crate::values::tenant::Tenant;

/// Who calls.
#[derive(Debug, Clone, Copy)]
pub struct Caller {
    /// The organisation of the key.
    pub tenant: Tenant,
    /// What the key may do.
    pub role: Role,
    /// The key.
    pub key: ApiKeyId,
    /// How much the callers of the key may send.
    pub limits: Limits,
}
