//! The organisation whose records code may touch. Without a [`Tenant`] no key of the table can be built.

use uuid::Uuid;

use crate::values::id::OrgId;

/// The organisation whose records a request may touch.
///
/// The only public constructor is [`Tenant::operator`]. Handlers get their tenant from the API key, or for a signed
/// request from the pointer to its sender, whose signature is checked. Functions on the stream get it from the changed
/// item, and a function that gets the event of a new object gets it from the key of the object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tenant(OrgId);

impl Tenant {
    /// The organisation of a key. [`authentication`](crate::request::authentication) checks the key first.
    pub(crate) const fn of_key(org: OrgId) -> Self {
        Self(org)
    }

    /// The organisation that an operator names, for code that runs without an API key, such as loading the demo set.
    /// `clippy.toml` forbids other uses.
    pub const fn operator(org: OrgId) -> Self {
        Self(org)
    }

    /// The organisation whose item has the partition key `pk`, for reactions to a change of that item.
    pub(crate) fn of_partition_key(pk: &str) -> Option<Self> {
        let org = pk.strip_prefix("ORG#")?.split('#').next()?;
        org.parse().ok().map(|org| Self(OrgId(org)))
    }

    /// The organisation to which the pointer with this sort key leads, for requests without a key. The signature is
    /// compared with the one of this organisation's secret before any other record of the organisation is used.
    pub(crate) fn of_pointer(sort_key: &str) -> Option<Self> {
        Self::of_partition_key(sort_key)
    }

    /// The organisation of the object with this key, and the id of the object's record, for a function that the bucket
    /// reports new objects. The keys of objects come from [`ObjectKey`](crate::bucket::ObjectKey).
    pub(crate) fn of_object(key: &str) -> Option<(Self, Uuid)> {
        let (org, id) = key.split_once('/')?;
        Some((Self(OrgId(org.parse().ok()?)), id.parse().ok()?))
    }

    /// An organisation that does not exist: for the same calls if there is no organisation.
    pub(crate) const fn nonexistent() -> Self {
        Self(OrgId(Uuid::nil()))
    }

    /// The organisation.
    pub const fn org(&self) -> OrgId {
        self.0
    }
}
