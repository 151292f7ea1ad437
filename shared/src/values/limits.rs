//! The limits of an API key: how many requests per second its callers may send, and how many at once.

use crate::input::Between;

/// The requests per second that a key may have. With many more, the leases of a key over its limit would be more writes
/// than one item can take.
pub type RequestsPerSecond = Between<1, 1000>;
/// The requests at once that a key may have.
pub type Burst = Between<1, 10_000>;

crate::object! {
    /// What the callers of a key may send. They have a token bucket: it holds `burst` tokens, a request takes one, and `requests_per_second`
    /// come back.
    #[derive(Copy, Eq)]
    pub struct Limits {
        /// Requests a second, on average.
        pub requests_per_second: u32,
        /// Requests at once.
        pub burst: u32,
    }
}

impl Limits {
    /// These limits. Both are at least one, and a burst is at least as large as the requests per second.
    pub const fn new(requests_per_second: u32, burst: u32) -> Self {
        let rate = if requests_per_second == 0 { 1 } else { requests_per_second };
        Self { requests_per_second: rate, burst: if burst < rate { rate } else { burst } }
    }

    /// The seconds in which an empty bucket is full again, rounded up.
    pub const fn window(self) -> u32 {
        self.burst.div_ceil(self.requests_per_second)
    }
}
