//! A running call of the database: its share of the connections, and its record in the meter.

use std::sync::Arc;

use tokio::sync::{Semaphore, SemaphorePermit};

use crate::table::meter::{Meter, Unit};

/// The most calls at the same time, each with a connection of its own. At a few milliseconds per call, this is more
/// than the processor of a function can handle, and a small part of its 1,024 descriptors.
const AT_ONCE: usize = 64;

/// The bound on the calls of this process. Clones share it.
///
/// The SDK's time limits begin when a call has its share: a call that waits for others of its own process must not time
/// out.
#[derive(Debug, Clone)]
pub(super) struct Calls(Arc<Semaphore>);

/// A running call.
pub(super) struct UnderWay<'a> {
    meter: &'a Meter,
    depth: u32,
    _share: Option<SemaphorePermit<'a>>,
}

impl Default for Calls {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

impl Calls {
    /// Waits for a share, and counts the beginning of the call.
    pub(super) async fn begin<'a>(&'a self, meter: &'a Meter) -> UnderWay<'a> {
        // The semaphore is never closed.
        let share = self.0.acquire().await.ok();
        UnderWay { meter, depth: meter.begin(), _share: share }
    }
}

impl UnderWay<'_> {
    /// Counts the end of the call, which consumed `units`, and gives its share to the next one.
    pub(super) fn end(self, unit: Unit, units: f64) {
        self.meter.end(self.depth, unit, units);
    }
}
