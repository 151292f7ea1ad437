//! The share that one process has in the limit of a key. The process decides most requests alone; for the others, the
//! share says how many tokens to take from the bucket in the table, which all processes have in common.
//!
//! The code is pure: every time comes from outside, in nanoseconds since 1970, so that the interval of the fastest rate
//! is exact enough.

use crate::values::limits::Limits;

/// A second.
pub const SECOND: i64 = 1_000_000_000;
/// How long the tokens of a lease may be used.
const LEASE: i64 = SECOND;
/// How long a process waits before it asks again: after a lease has failed, and after it was refused because the bucket
/// was empty.
const PAUSE: i64 = SECOND;
/// The part of its limits that a process may use without counting: a hundredth.
const UNCOUNTED: u32 = 100;

/// The share of one process in the limit of one key.
///
/// It has two states. *Calm*: up to a hundredth of burst and rate, nothing is counted. Above that, it is *counted*:
/// every request needs a token, and the process takes the tokens from the bucket in leases, each with as many as it
/// needs in a second. The first lease also includes the requests admitted before. The share is calm again when its
/// requests were below the threshold for as long as uncounted requests are remembered.
#[derive(Debug, Clone)]
pub struct Share {
    limits: Limits,
    /// When the last request that counts for the threshold will be forgotten.
    forgotten_at: i64,
    counted: bool,
    /// Requests that were admitted without a token; the next lease includes them.
    owed: u32,
    lease: LeasedTokens,
    /// The time until which no token is available.
    refused_until: i64,
    /// The time until which requests pass uncounted, because a lease has failed.
    unchecked_until: i64,
    /// When the bucket in the table will be full again, according to its last answer.
    full_at: Option<i64>,
}

/// The tokens that a process has taken and has left.
#[derive(Debug, Clone, Copy, Default)]
struct LeasedTokens {
    /// The number of requests for which it was taken.
    size: u32,
    left: u32,
    until: i64,
}

/// The decision about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Admitted.
    Admitted,
    /// Refused, and so is every other request until that time.
    Refused {
        /// The time of the next useful attempt.
        until: i64,
    },
    /// The process must take so many tokens from the bucket.
    Ask(u32),
}

/// The time in which one token is refilled.
pub fn interval(limits: Limits) -> i64 {
    SECOND / i64::from(limits.requests_per_second)
}

/// The time in which an empty bucket is full again.
pub fn capacity(limits: Limits) -> i64 {
    interval(limits) * i64::from(limits.burst)
}

impl Share {
    /// The share of a process that has seen no request yet.
    pub const fn new(limits: Limits) -> Self {
        Self {
            limits,
            forgotten_at: 0,
            counted: false,
            owed: 0,
            lease: LeasedTokens { size: 0, left: 0, until: 0 },
            refused_until: 0,
            unchecked_until: 0,
            full_at: None,
        }
    }

    /// The limits of which it is a share.
    pub const fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether the bucket seems full at `now`, according to its last answer; without an answer it seems full.
    pub fn seems_full(&self, now: i64) -> bool {
        self.full_at.is_none_or(|full_at| full_at <= now)
    }

    /// Decides about a request at `now`.
    pub fn decide(&mut self, now: i64) -> Decision {
        if self.is_calm(now) {
            return Decision::Admitted;
        }
        if now < self.refused_until {
            return Decision::Refused { until: self.refused_until };
        }
        if now < self.unchecked_until {
            return Decision::Admitted;
        }
        if now < self.lease.until && self.lease.left > 0 {
            self.lease.left -= 1;
            return Decision::Admitted;
        }
        let wanted = self.wanted(now);
        // The rest of a lease that has just ended is still used; the rest of an older one may belong to others by now.
        if now >= self.lease.until + LEASE {
            self.lease.left = 0;
        }
        let tokens = (wanted + self.owed).saturating_sub(self.lease.left);
        if tokens > 0 {
            return Decision::Ask(tokens.min(self.limits.burst));
        }
        // There are enough tokens. The surplus is given up; otherwise a process could keep it for long.
        self.lease.left = wanted;
        self.renewed(now)
    }

    /// The requested `tokens` were taken: the bucket is full again at `full_at`.
    pub fn granted(&mut self, tokens: u32, full_at: i64, now: i64) -> Decision {
        self.full_at = Some(full_at);
        self.lease.left += tokens;
        // The first token is for the request that waits.
        let settled = self.owed.min(self.lease.left - 1);
        self.owed -= settled;
        self.lease.left -= settled;
        self.renewed(now)
    }

    /// The requested `tokens` are not available: the bucket is full again at `full_at`. The process asks for fewer if
    /// the bucket has some, but only once, as others may ask too.
    pub fn refused(&mut self, tokens: u32, full_at: i64, now: i64, again: bool) -> Decision {
        self.full_at = Some(full_at);
        let (interval, capacity) = (interval(self.limits), capacity(self.limits));
        let there = (now + capacity - full_at) / interval;
        let there = u32::try_from(there).unwrap_or_default().min(tokens - 1);
        if there > 0 && !again {
            return Decision::Ask(there);
        }
        if self.lease.left > 0 {
            return self.renewed(now);
        }
        self.lease = LeasedTokens::default();
        // At most half of the burst is refilled in the meantime, so the bucket cannot overflow while the processes
        // wait.
        self.refused_until = (full_at + interval - capacity).max(now + PAUSE.min(capacity / 2));
        Decision::Refused { until: self.refused_until }
    }

    /// The bucket did not answer: requests pass.
    pub fn failed(&mut self, now: i64) -> Decision {
        self.unchecked_until = now + PAUSE;
        Decision::Admitted
    }

    /// Counts a request for the threshold. Returns whether the process is below it.
    fn is_calm(&mut self, now: i64) -> bool {
        let most = i64::from(self.limits.burst / UNCOUNTED);
        let each = interval(self.limits) * i64::from(UNCOUNTED);
        let level = (self.forgotten_at - now).max(0);
        if level == 0 {
            self.counted = false;
        }
        if !self.counted && level + each > most * each {
            self.counted = true;
            self.owed = u32::try_from((level + each - 1) / each).unwrap_or_default();
        }
        self.forgotten_at = now + (level + each).min(most * each);
        !self.counted
    }

    /// The number of requests for the next lease: the requests of a second, estimated from the last lease.
    fn wanted(&self, now: i64) -> u32 {
        let LeasedTokens { size, left, until } = self.lease;
        if size == 0 || now >= until + LEASE {
            return 1;
        }
        if now >= until {
            return (size - left).max(1);
        }
        // The lease was used up before its end.
        let lasted = (now - (until - LEASE)).max(1);
        let rate = (i64::from(size) * LEASE + lasted - 1) / lasted;
        u32::try_from(rate).unwrap_or(u32::MAX).min(size * 2).min(self.limits.requests_per_second)
    }

    /// Begins a lease with the available tokens, and takes one for the request.
    fn renewed(&mut self, now: i64) -> Decision {
        self.lease = LeasedTokens { size: self.lease.left, left: self.lease.left - 1, until: now + LEASE };
        Decision::Admitted
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    /// The bucket in the table.
    struct Bucket {
        full_at: i64,
        writes: u32,
    }

    impl Bucket {
        fn answer(&mut self, share: &mut Share, now: i64) -> bool {
            let (interval, capacity) = (interval(share.limits), capacity(share.limits));
            let mut decision = share.decide(now);
            let mut again = false;
            while let Decision::Ask(tokens) = decision {
                self.writes += 1;
                let next = self.full_at.max(now) + interval * i64::from(tokens);
                decision = if next <= now + capacity {
                    self.full_at = next;
                    share.granted(tokens, next, now)
                } else {
                    share.refused(tokens, self.full_at, now, again)
                };
                again = true;
            }
            decision == Decision::Admitted
        }
    }

    #[test]
    fn a_share_below_the_threshold_asks_for_no_tokens() {
        // A hundredth of the burst at once, and a hundredth of the rate for any time.
        let mut share = Share::new(Limits::new(50, 500));
        for request in 0..1000 {
            assert_eq!(share.decide(if request < 5 { 0 } else { request * 2 * SECOND }), Decision::Admitted);
        }
        let mut share = Share::new(Limits::new(50, 500));
        assert!((0..5).all(|_| share.decide(0) == Decision::Admitted));
        assert_eq!(share.decide(0), Decision::Ask(6), "the earlier requests are counted too");
    }

    #[test]
    fn a_burst_below_a_hundred_is_counted_from_the_start() {
        assert_eq!(Share::new(Limits::new(50, 99)).decide(0), Decision::Ask(1));
    }

    #[test]
    fn a_share_stops_asking_after_two_seconds_of_calm() {
        let mut share = Share::new(Limits::new(50, 100));
        assert_eq!(share.decide(0), Decision::Admitted);
        assert_eq!(share.decide(1), Decision::Ask(2));
        assert_eq!(share.granted(2, 1, 1), Decision::Admitted);
        assert_eq!(share.decide(SECOND + 1), Decision::Ask(1));
        assert_eq!(share.granted(1, 1, SECOND + 1), Decision::Admitted);
        // The requests are forgotten after two seconds.
        assert_eq!(share.decide(3 * SECOND + 1), Decision::Admitted);
    }

    #[test]
    fn a_failed_lease_admits_requests_for_a_second() {
        let mut share = Share::new(Limits::new(50, 50));
        assert_eq!(share.decide(0), Decision::Ask(1));
        assert_eq!(share.failed(0), Decision::Admitted);
        assert_eq!(share.decide(SECOND - 1), Decision::Admitted);
        assert_eq!(share.decide(SECOND), Decision::Ask(1));
    }

    #[test]
    fn a_refused_share_asks_again_when_tokens_are_back() {
        let limits = Limits::new(50, 100);
        let mut share = Share::new(Limits { burst: 99, ..limits });
        let empty = capacity(share.limits);
        assert_eq!(share.decide(0), Decision::Ask(1));
        assert_eq!(share.refused(1, empty, 0, false), Decision::Refused { until: empty / 2 });
        assert_eq!(share.decide(empty / 2 - 1), Decision::Refused { until: empty / 2 });
        assert_eq!(share.decide(empty / 2), Decision::Ask(1));
        // A token may take longer than half of the burst.
        let mut slow = Share::new(Limits::new(1, 1));
        assert_eq!(slow.decide(0), Decision::Ask(1));
        assert_eq!(slow.refused(1, SECOND, 0, false), Decision::Refused { until: SECOND });
    }

    #[test]
    fn a_share_takes_the_tokens_that_are_left() {
        let mut share = Share::new(Limits::new(50, 50));
        let (mut now, mut asked) = (0, 1);
        while asked < 16 {
            if let Decision::Ask(tokens) = share.decide(now) {
                asked = tokens;
                share.granted(tokens, now, now);
            }
            now += SECOND / 100;
        }
        while share.decide(now) == Decision::Admitted {}
        let there = capacity(share.limits) + now - 5 * interval(share.limits);
        assert_eq!(share.refused(32, there, now, false), Decision::Ask(5));
        assert_eq!(share.granted(5, there, now), Decision::Admitted);
        assert!((0..4).all(|_| share.decide(now) == Decision::Admitted));
        assert!(matches!(share.decide(now), Decision::Ask(_)));
    }

    #[test]
    fn a_steady_caller_takes_one_lease_a_second() {
        for rate in [1, 5, 20, 45] {
            let (mut share, mut bucket) = (Share::new(Limits::new(50, 100)), Bucket { full_at: 0, writes: 0 });
            for request in 0..rate * 60 {
                assert!(bucket.answer(&mut share, request * SECOND / rate), "{rate} a second");
            }
            assert!(bucket.writes <= 70, "{} writes at {rate} a second", bucket.writes);
        }
    }

    /// The part of its limit that a key is admitted after its burst, and the writes a second. Requests come at random times
    /// to random processes, `times` as many as the limit allows.
    fn simulated(limits: Limits, processes: usize, times: f64, random: &mut fastrand::Rng) -> (f64, f64) {
        const SECONDS: f64 = 30.0;
        let rate = f64::from(limits.requests_per_second);
        let begun = f64::from(limits.window()) + 2.0;
        let (mut shares, mut bucket) = (vec![Share::new(limits); processes], Bucket { full_at: 0, writes: 0 });
        let (mut seconds, mut admitted, mut asked) = (0.0, 0.0, 0.0);
        while seconds < begun + SECONDS {
            seconds -= (1.0 - random.f64()).ln() / (rate * times);
            let now = i64::try_from(Duration::from_secs_f64(seconds).as_nanos()).unwrap();
            let passes = bucket.answer(&mut shares[random.usize(..processes)], now);
            if seconds >= begun {
                asked += 1.0;
                admitted += f64::from(u8::from(passes));
            }
        }
        (admitted / f64::min(asked, rate * SECONDS), f64::from(bucket.writes) / (begun + SECONDS))
    }

    #[test]
    fn processes_that_share_a_limit_admit_a_key_at_it() {
        let mut random = fastrand::Rng::with_seed(1);
        for (rate, burst) in [(5, 10), (20, 20), (50, 50), (50, 100), (200, 400), (1000, 1000)] {
            for processes in [1, 5, 20] {
                let limits = Limits::new(rate, burst);
                for (times, wanted) in [(0.5, 0.98..=1.0), (3.0, 0.9..=1.1), (10.0, 0.9..=1.1)] {
                    let (part, writes) = simulated(limits, processes, times, &mut random);
                    let what =
                        format!("{rate} a second, {burst} at once, {processes} processes, {times} times as many");
                    assert!(wanted.contains(&part), "{what}: {part}");
                    assert!(writes < 1000.0, "{what}: {writes} writes a second");
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        /// Wherever and whenever requests come, no more pass than the limit and the uncounted part. A window that begins
        /// later may also use leases of the two seconds before.
        #[test]
        fn admitted_requests_stay_within_the_bound(
            rate in 1_u32..300,
            more in 0_u32..300,
            requests in prop::collection::vec((0_usize..20, 0_i64..40), 1..3000),
            later in 0_usize..3000,
        ) {
            let limits = Limits::new(rate, rate + more);
            let (mut shares, mut bucket) = (vec![Share::new(limits); 20], Bucket { full_at: 0, writes: 0 });
            let mut now = 1_700_000_000 * SECOND;
            // The start of each window, the requests that passed in it, and its extra allowance.
            let mut windows = vec![(now, 0_u32, 0.0)];
            let mut last = vec![None; shares.len()];
            for (number, (process, millis)) in requests.into_iter().enumerate() {
                now += millis * SECOND / 1000;
                if number == later {
                    windows.push((now, 0, 2.0 * f64::from(rate)));
                }
                let writes = bucket.writes;
                if bucket.answer(&mut shares[process], now) {
                    for (_, passed, _) in &mut windows {
                        *passed += 1;
                    }
                } else if bucket.writes > writes {
                    // A share that the bucket refuses last asked it a second, or half a burst, ago or earlier.
                    let pause = PAUSE.min(capacity(limits) / 2);
                    prop_assert!(last[process].is_none_or(|last| now - last >= pause));
                    last[process] = Some(now);
                }
                for (begun, passed, more) in &windows {
                    let seconds = Duration::from_nanos(u64::try_from(now - begun).unwrap()).as_secs_f64();
                    let counted = f64::from(limits.burst) + f64::from(rate) * seconds + more;
                    let each = f64::from(limits.burst / UNCOUNTED) + f64::from(rate) / 100.0 * seconds;
                    let uncounted = if limits.burst < UNCOUNTED { 0.0 } else { 20.0 * each };
                    // The last part is the token that comes back at this moment.
                    let most = counted + uncounted + 1e-3;
                    prop_assert!(f64::from(*passed) <= most, "{passed} of {counted} and {uncounted} in {seconds} s");
                }
            }
        }

        /// Callers who want less than the limit are never refused, over any number of processes.
        #[test]
        fn a_caller_below_the_limit_is_never_refused(
            rate in 10_u32..300,
            processes in 1_usize..8,
            seed in prop::collection::vec(0_usize..8, 500..1500),
        ) {
            let limits = Limits::new(rate, rate * 2);
            let (mut shares, mut bucket) = (vec![Share::new(limits); processes], Bucket { full_at: 0, writes: 0 });
            // At half of the rate, each request to any process.
            let step = interval(limits) * 2;
            for (request, process) in seed.into_iter().enumerate() {
                let now = i64::try_from(request).unwrap() * step;
                prop_assert!(bucket.answer(&mut shares[process % processes], now));
            }
        }
    }
}
