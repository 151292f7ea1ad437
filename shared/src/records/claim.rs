//! Claims: that an idempotency key has been used, for what, and how far that has come.

use serde::{Deserialize, Serialize};

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
