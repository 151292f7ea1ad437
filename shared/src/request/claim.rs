//! Claims: the request that uses an idempotency key, and its answer.

use serde::{Deserialize, Serialize};

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::error::Cancelled;
use crate::table::expression::Condition;
use crate::table::item::from_item;
use crate::table::{Fingerprint, Table, TableError};
use crate::values::bytes::Bytes;
use crate::values::hash::hex;
use crate::values::time::Timestamp;

/// Seconds after which another request may use the key.
pub const KEPT: i64 = 24 * 60 * 60;
/// Seconds for which the markers of a keyed request are kept: as long as the request may be executed again, and until
/// that attempt has ended.
pub const MARKED: i64 = KEPT + 60 * 60;

/// The claim of an idempotency key: its request, the attempt that owns it, and the answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// SHA-256 of the request.
    pub fingerprint: Bytes,
    /// The seed of the ids, the same for every attempt.
    pub nonce: Bytes,
    /// The attempt that owns the claim: random bytes of its own.
    pub holder: Bytes,
    /// When the first attempt began. Every further attempt has the same time.
    pub started_at: Timestamp,
    /// When the lease of the holder expires.
    pub lease_until: Timestamp,
    /// The answer, encrypted; `None` until there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Bytes>,
    /// When it expires, in seconds since 1970: after that, another request may use the key.
    pub ttl: i64,
}

crate::single!(Claim, Fingerprint, |key| format_args!("IDEMPOTENCY#{}", hex(&key)), "IDEMPOTENCY");

/// Puts `claim` at `key` if there is no claim, or only an expired one. Otherwise returns the existing claim.
///
/// # Errors
/// [`TableError`].
pub async fn take(table: &Table, key: Fingerprint, claim: &Claim, now: Timestamp) -> Result<Option<Claim>, TableError> {
    match table.store.put_if(&table.item(key, claim)?, &Condition::absent_or_expired(now)).await {
        Ok(()) => Ok(None),
        Err(Cancelled::Condition((), Some(other))) => from_item(other).map(Some),
        Err(cancelled) => Err(cancelled.into()),
    }
}

/// Replaces the claim of `holder` with `claim`. Returns false if `holder` no longer owns it.
///
/// # Errors
/// [`TableError`].
pub async fn replace(table: &Table, key: Fingerprint, claim: &Claim, holder: &Bytes) -> Result<bool, TableError> {
    let still = Condition::of("holder = :holder", [(":holder", AttributeValue::B(holder.expose().into()))]);
    match table.store.put_if(&table.item(key, claim)?, &still).await {
        Ok(()) => Ok(true),
        // If the answer to the call was lost, the existing claim may be this one.
        Err(Cancelled::Condition((), existing)) => {
            Ok(existing.map(from_item::<Claim>).transpose()?.as_ref() == Some(claim))
        }
        Err(cancelled) => Err(cancelled.into()),
    }
}
