//! The role of Lambda: runs each invocation of a function as a task of its own, which may fail, panic or crash.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::Duration;

use serde_json::{Value, json};
use shared::values::time::Clock;
use tokio::task::JoinSet;
use tokio::time::sleep;

/// A function, from JSON to JSON.
pub type Function = Arc<dyn Fn(String) -> Invocation + Send + Sync>;

/// The future of one invocation.
pub type Invocation = Pin<Box<dyn Future<Output = Result<String, Failed>> + Send>>;

/// Why an invocation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {message}")]
pub struct Failed {
    /// The kind of error.
    pub kind: String,
    /// One line.
    pub message: String,
}

impl Failed {
    /// A failure of this kind.
    pub fn new(kind: &str, message: impl std::fmt::Display) -> Self {
        Self { kind: kind.to_owned(), message: format!("{message}") }
    }

    /// The error in the form in which Lambda returns it.
    pub fn to_json(&self) -> Value {
        json!({"errorType": self.kind, "errorMessage": self.message})
    }
}

/// The fate of the process of an invocation, after so many polls: before, between or after its calls. By default it
/// survives.
#[derive(Debug, Clone, Default)]
pub struct Fate {
    /// It crashes after so many polls.
    pub dies: Option<u32>,
    /// It is frozen after so many polls, while everything else continues.
    pub freezes: Option<(u32, Freeze)>,
}

/// A freeze of a process: it lasts until so much time of this clock has passed.
#[derive(Debug, Clone)]
pub struct Freeze {
    /// How long it lasts.
    pub time: Duration,
    /// The clock that measures this time. It may advance faster or slower than real time.
    pub clock: Clock,
}

impl Freeze {
    /// Resolves when the time has passed.
    async fn pass(self) {
        let end = self.clock.now().unix_millis() + i64::try_from(self.time.as_millis()).unwrap_or(i64::MAX / 2);
        while self.clock.now().unix_millis() < end {
            sleep(GLANCE).await;
        }
    }
}

/// The time between two looks at the clock of a freeze.
const GLANCE: Duration = Duration::from_millis(5);

/// Invokes `function`, whose process has this fate. Dropping the future ends it.
///
/// # Errors
/// [`Failed`]: the function returned an error, panicked, or crashed.
pub async fn invoke(function: &Function, payload: String, fate: Fate) -> Result<String, Failed> {
    let invocation = function(payload);
    let mut process = JoinSet::new();
    process.spawn(with_fate(invocation, fate));
    match process.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) if error.is_panic() => Err(Failed::new("Runtime.ExitError", "it panicked")),
        Some(Err(_)) | None => Err(Failed::new("Runtime.ExitError", "it was ended")),
    }
}

async fn with_fate(invocation: Invocation, fate: Fate) -> Result<String, Failed> {
    let mut invocation = pin!(invocation);
    let mut woken = 0;
    let mut frozen: Option<Pin<Box<dyn Future<Output = ()> + Send>>> = None;
    std::future::poll_fn(|context| {
        if let Some(pause) = &mut frozen {
            ready!(pause.as_mut().poll(context));
            frozen = None;
        }
        woken += 1;
        let outcome = invocation.as_mut().poll(context);
        if outcome.is_pending() && fate.dies.is_some_and(|polls| woken >= polls) {
            return Poll::Ready(Err(Failed::new("Runtime.ExitError", "its process died")));
        }
        if let Some((_, freeze)) = fate.freezes.as_ref().filter(|(polls, _)| outcome.is_pending() && woken == *polls) {
            // A task that is woken in the meantime stays frozen.
            let mut pause = Box::pin(freeze.clone().pass());
            if pause.as_mut().poll(context).is_pending() {
                frozen = Some(pause);
            }
        }
        outcome
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    fn function(of: impl Fn(String) -> Result<String, Failed> + Clone + Send + Sync + 'static, wakes: u32) -> Function {
        Arc::new(move |payload| {
            let of = of.clone();
            Box::pin(async move {
                for _ in 0..wakes {
                    tokio::task::yield_now().await;
                }
                of(payload)
            })
        })
    }

    #[tokio::test]
    async fn an_invocation_reports_the_fate_of_its_function() {
        let echo = function(Ok, 3);
        let mortal = |polls| Fate { dies: Some(polls), ..Fate::default() };
        assert_eq!(invoke(&echo, "x".into(), Fate::default()).await, Ok("x".into()));
        assert_eq!(invoke(&echo, "x".into(), mortal(4)).await, Ok("x".into()));
        let died = invoke(&echo, "x".into(), mortal(3)).await.unwrap_err();
        assert_eq!(died.message, "its process died");
        let freeze = Freeze { time: Duration::from_millis(30), clock: Clock::System };
        let freezes = Fate { freezes: Some((2, freeze)), ..Fate::default() };
        let begun = std::time::Instant::now();
        assert_eq!(invoke(&echo, "x".into(), freezes).await, Ok("x".into()));
        assert!(begun.elapsed() >= Duration::from_millis(30));
        let failing = function(|_| Err(Failed::new("Error", "no")), 0);
        assert_eq!(invoke(&failing, String::new(), Fate::default()).await, Err(Failed::new("Error", "no")));
        let panicking = function(|_| panic!("as the test wants it"), 0);
        assert_eq!(invoke(&panicking, String::new(), Fate::default()).await.unwrap_err().message, "it panicked");
    }
}
