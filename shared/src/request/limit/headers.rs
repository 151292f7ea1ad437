//! The headers that show callers the limits of their key.

use crate::values::limits::Limits;

/// The name of the header with the limit.
pub const POLICY: &str = "ratelimit-policy";
/// The name of the header with the remaining requests.
pub const REMAINING: &str = "ratelimit";

/// The limit, as a structured field of `draft-ietf-httpapi-ratelimit-headers`: so many requests in so many seconds.
pub fn policy(limits: Limits) -> String {
    format!(r#""key";q={};w={}"#, limits.burst, limits.window())
}

/// The value for a used-up limit, and the seconds until requests are available again.
pub fn nothing_left(seconds: i64) -> String {
    format!(r#""key";r=0;t={seconds}"#)
}
