//! The organisation whose records may be touched. Without one no key of the table can be built.

use crate::records::api_key::{ApiKeyRecord, Role};
use crate::values::id::OrgId;

/// The organisation whose records a request may touch.
///
/// There is no public constructor but [`Tenant::operator`]: handlers get theirs from the key, functions on the stream from what changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant(OrgId);

impl Tenant {
    /// The organisation that a key opens. Whether the key is good is for [`auth`](crate::request::authentication) to say.
    pub(crate) const fn of_key(record: &ApiKeyRecord) -> Self {
        Self(record.org_id)
    }

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
