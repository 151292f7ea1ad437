//! The notifications of the bucket of files: the function that the template names gets each new object.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use shared::values::time::Clock;
use tokio::sync::Notify;

use crate::Trouble;
use crate::destination::Destination;
use crate::lambda::{Fate, Function, invoke};
use crate::template::Template;

/// How often Lambda invokes the function for a new object that it does not handle.
const ATTEMPTS: usize = 3;

/// New objects of which no function was notified yet. Clones share them.
#[derive(Debug, Clone)]
pub struct NewObjects {
    waiting: Arc<Mutex<VecDeque<Value>>>,
    news: Arc<Notify>,
    clock: Clock,
}

impl NewObjects {
    /// None yet. `clock` gives the times at which objects are put.
    pub fn new(clock: Clock) -> Self {
        Self { waiting: Arc::default(), news: Arc::default(), clock }
    }

    /// Adds an object, as the rule of the template passes it on. The rule leaves out empty objects.
    pub fn add(&self, key: &str, size: u64) {
        if size > 0 {
            let object = json!({"key": key, "size_bytes": size, "put_at": self.clock.now()});
            self.lock().push_back(object);
            self.news.notify_one();
        }
    }

    /// Forgets all objects.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, VecDeque<Value>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The function that is notified of new objects.
pub struct Notified {
    name: String,
    function: Function,
    objects: NewObjects,
    destination: Destination,
}

impl Notified {
    /// The function of `template` that is notified of `objects`; `function` finds it by its name. What it gives up goes
    /// to `destination`.
    ///
    /// # Errors
    /// [`Trouble`] where the template has not exactly one.
    pub fn of(
        template: &Template,
        function: impl Fn(&str) -> Result<Function, Trouble>,
        objects: NewObjects,
        destination: Destination,
    ) -> Result<Self, Trouble> {
        let [name] = &template.notified_of_objects[..] else {
            return Err(Trouble("the template has not exactly one function that is notified of new objects".into()));
        };
        Ok(Self { name: name.clone(), function: function(name)?, objects, destination })
    }

    /// Passes on all objects that wait. Lambda would wait for a minute and for two minutes before it repeats an
    /// invocation that failed; here the repeats follow at once.
    ///
    /// # Errors
    /// [`Trouble`] where the destination does not accept what was given up.
    pub async fn drain(&self) -> Result<(), Trouble> {
        loop {
            let Some(object) = self.objects.lock().pop_front() else { return Ok(()) };
            let mut handled = false;
            for _ in 0..ATTEMPTS {
                handled = handled || invoke(&self.function, object.to_string(), Fate::default()).await.is_ok();
            }
            if !handled {
                self.destination.send_event(&self.name, &object).await?;
            }
        }
    }

    /// Invokes `note-upload` for each new object.
    pub async fn run(self: Arc<Self>) {
        loop {
            if let Err(trouble) = self.drain().await {
                eprintln!("{}: {trouble}", self.name);
            }
            self.objects.news.notified().await;
        }
    }
}
