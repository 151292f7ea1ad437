//! Claims: that an idempotency key has been used, for what, and how far that has come.

use serde::{Deserialize, Serialize};

use aws_sdk_dynamodb::types::AttributeValue;

use crate::table::store::{from_item, number, values};
use crate::table::transaction::Cancelled;
use crate::table::{Fingerprint, Table, TableError};
use crate::values::bytes::Bytes;
use crate::values::time::Timestamp;

/// Seconds after which a key may be used for another request.
pub const KEPT: i64 = 24 * 60 * 60;
/// Seconds for which marks of a keyed request must be kept: as long as it may be carried out again, and until that has ended for sure.
pub const MARKED: i64 = KEPT + 60 * 60;

/// That a key has been used, for what, and how far that has come.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// SHA-256 of the request.
    pub fingerprint: Bytes,
    /// What the ids of the execution are made of, the first one's and every further one's.
    pub nonce: Bytes,
    /// Which execution has it: random, another one with each.
    pub holder: Bytes,
    /// When the first execution began; it stays the time of the further ones.
    pub started_at: Timestamp,
    /// When the holder is dead, if it has not answered.
    pub lease_until: Timestamp,
    /// The answer, once there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Bytes>,
    /// Seconds since 1970 began, after which the key is as good as new.
    pub ttl: i64,
}

crate::single!(Claim, Fingerprint, |key| format_args!("IDEMPOTENCY#{}", crate::hex(&key)), "IDEMPOTENCY");

impl Table {
    /// Puts `claim` at `key` where none is, or one that has had its time; returns the one that is in the way.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn claim(&self, key: Fingerprint, claim: &Claim, now: Timestamp) -> Result<Option<Claim>, TableError> {
        let (condition, values) =
            ("attribute_not_exists(pk) OR #ttl <= :now", values([(":now", number(now.unix_seconds()))]));
        match self.store.put_if(&self.item(key, claim)?, condition, &values).await {
            Ok(()) => Ok(None),
            Err(Cancelled::Condition(_, Some(other))) => from_item(other).map(Some),
            Err(cancelled) => Err(cancelled.into()),
        }
    }

    /// Puts `claim` in the place of one that `holder` holds; false where that one is no longer there.
    ///
    /// # Errors
    /// [`TableError`].
    pub async fn replace_claim(&self, key: Fingerprint, claim: &Claim, holder: &Bytes) -> Result<bool, TableError> {
        let values = values([(":holder", AttributeValue::B(holder.expose().into()))]);
        match self.store.put_if(&self.item(key, claim)?, "holder = :holder", &values).await {
            Ok(()) => Ok(true),
            // Where an attempt's answer was lost, what is in the way may be this very claim.
            Err(Cancelled::Condition(_, stood)) => {
                Ok(stood.map(from_item::<Claim>).transpose()?.as_ref() == Some(claim))
            }
            Err(cancelled) => Err(cancelled.into()),
        }
    }
}
