//! The part of Lambda: runs each invocation of a function as a task of its own, which may fail, panic or die.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use serde_json::{Value, json};
use tokio::task::JoinSet;

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

    /// As Lambda tells its invoker.
    pub fn to_json(&self) -> Value {
        json!({"errorType": self.kind, "errorMessage": self.message})
    }
}

/// Invokes `function`. Dropping the future ends it. With a lifetime, its process dies after so many polls: before, between or after its
/// calls.
///
/// # Errors
/// [`Failed`]: the function returned an error, panicked, or died.
pub async fn invoke(function: &Function, payload: String, lifetime: Option<u32>) -> Result<String, Failed> {
    let invocation = function(payload);
    let mut process = JoinSet::new();
    process.spawn(mortal(invocation, lifetime));
    match process.join_next().await {
        Some(Ok(answer)) => answer,
        Some(Err(error)) if error.is_panic() => Err(Failed::new("Runtime.ExitError", "it panicked")),
        Some(Err(_)) | None => Err(Failed::new("Runtime.ExitError", "it was ended")),
    }
}

async fn mortal(invocation: Invocation, lifetime: Option<u32>) -> Result<String, Failed> {
    let mut invocation = pin!(invocation);
    let mut woken = 0;
    std::future::poll_fn(|context| {
        woken += 1;
        match invocation.as_mut().poll(context) {
            Poll::Pending if lifetime.is_some_and(|lifetime| woken >= lifetime) => {
                Poll::Ready(Err(Failed::new("Runtime.ExitError", "its process died")))
            }
            outcome => outcome,
        }
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
    async fn an_invocation_answers_fails_panics_or_dies() {
        let echo = function(Ok, 3);
        assert_eq!(invoke(&echo, "x".into(), None).await, Ok("x".into()));
        assert_eq!(invoke(&echo, "x".into(), Some(4)).await, Ok("x".into()));
        let died = invoke(&echo, "x".into(), Some(3)).await.unwrap_err();
        assert_eq!(died.message, "its process died");
        let failing = function(|_| Err(Failed::new("Error", "no")), 0);
        assert_eq!(invoke(&failing, String::new(), None).await, Err(Failed::new("Error", "no")));
        let panicking = function(|_| panic!("as the test wants it"), 0);
        assert_eq!(invoke(&panicking, String::new(), None).await.unwrap_err().message, "it panicked");
    }
}
