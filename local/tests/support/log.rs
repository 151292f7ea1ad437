//! Collects the log of the functions.

use std::io;
use std::sync::{Arc, Mutex};

use shared::runtime::lambda::tracing::dispatcher::DefaultGuard;
use shared::runtime::lambda::tracing::subscriber::fmt::{self, MakeWriter};
use shared::runtime::lambda::tracing::subscriber::util::SubscriberInitExt;
use shared::runtime::lambda::tracing::{Dispatch, Level, Subscriber};

/// The log of this thread while a guard of `listen` exists.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Collects the log until the returned guard is dropped.
    pub fn listen(&self, level: Level) -> impl Sized {
        listening(|| fmt::fmt().with_max_level(level).with_writer(self.clone()).finish())
    }

    /// The collected text.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Sends the log of this thread to `subscriber` until the returned guard is dropped.
pub fn listening<S: Subscriber + Send + Sync + 'static>(subscriber: impl Fn() -> S) -> (DefaultGuard, Dispatch) {
    // With one subscriber, `tracing` caches the interest of the first thread for all threads. Two prevent this.
    let second = Dispatch::new(subscriber());
    (SubscriberInitExt::set_default(subscriber()), second)
}

impl io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
