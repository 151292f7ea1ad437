//! What the functions log.

use std::io;
use std::sync::{Arc, Mutex};

use shared::runtime::lambda::tracing::dispatcher::DefaultGuard;
use shared::runtime::lambda::tracing::subscriber::fmt::{self, MakeWriter};
use shared::runtime::lambda::tracing::subscriber::util::SubscriberInitExt;
use shared::runtime::lambda::tracing::{Dispatch, Level, Subscriber};

/// Whatever is logged by this thread while it is listened to.
#[derive(Clone, Default)]
pub struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    /// Listens from now on, for as long as what is returned is kept.
    pub fn listen(&self, level: Level) -> impl Sized {
        listening(|| fmt::fmt().with_max_level(level).with_writer(self.clone()).finish())
    }

    /// What was logged.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

/// Has `subscriber` get what this thread logs, for as long as what is returned is kept.
pub fn listening<S: Subscriber + Send + Sync + 'static>(subscriber: impl Fn() -> S) -> (DefaultGuard, Dispatch) {
    // Of a single one, whatever thread comes to a line first decides for all whether it is wanted: there have to be two.
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
