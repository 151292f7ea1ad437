//! The headers that tell a caller of the limits of its key.

use crate::values::limits::Limits;

/// The name of the header that says what the limit is.
pub const POLICY: &str = "ratelimit-policy";
/// The name of the header that says what is left of it.
pub const REMAINING: &str = "ratelimit";

/// The limit, as a structured field of `draft-ietf-httpapi-ratelimit-headers`: so many requests in so many seconds.
pub fn policy(limits: Limits) -> String {
    format!(r#""key";q={};w={}"#, limits.burst, limits.window())
}

/// That nothing is left of it for so many seconds.
pub fn nothing_left(seconds: i64) -> String {
    format!(r#""key";r=0;t={seconds}"#)
}
