//! Counts the cost of one request: calls of the database, the longest chain of them, and capacity units.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The cost of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct Cost {
    /// Calls, without the retries of the SDK.
    pub calls: u32,
    /// The longest chain of calls in which each call began after the previous one had ended.
    pub depth: u32,
    /// Read capacity units.
    pub read_units: f64,
    /// Write capacity units.
    pub write_units: f64,
}

/// The counters of a running request. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Meter(Arc<Mutex<Cost>>);

/// The kind of unit that a call consumes.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// Get, query, batch get.
    Read,
    /// Put, update, delete, batch write, transactional write.
    Write,
}

impl Meter {
    /// Counts the beginning of a call. Returns its depth, for [`Meter::end`].
    #[must_use]
    pub fn begin(&self) -> u32 {
        let mut cost = self.lock();
        cost.calls += 1;
        cost.depth + 1
    }

    /// Counts the end of the call with this `depth`, which consumed `units`.
    pub fn end(&self, depth: u32, unit: Unit, units: f64) {
        let mut cost = self.lock();
        cost.depth = cost.depth.max(depth);
        match unit {
            Unit::Read => cost.read_units += units,
            Unit::Write => cost.write_units += units,
        }
    }

    /// The counts so far.
    pub fn cost(&self) -> Cost {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Cost> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrent_calls_count_once_in_the_depth() {
        let meter = Meter::default();
        let (first, second) = (meter.begin(), meter.begin());
        meter.end(first, Unit::Read, 0.5);
        meter.end(second, Unit::Read, 1.0);
        let third = meter.begin();
        meter.end(third, Unit::Write, 2.0);
        assert_eq!(meter.cost(), Cost { calls: 3, depth: 2, read_units: 1.5, write_units: 2.0 });
    }
}
