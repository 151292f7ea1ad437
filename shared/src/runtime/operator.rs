//! Functions without a route: tasks of an operator, who invokes them with an IAM permission instead of an API key.

use std::pin::Pin;

use serde::Serialize;

use crate::input::schema::Schema;
use crate::input::{Input, Issue, Source, settle};
use crate::request::context::Service;
use crate::request::error::{Error, Result};

/// One task of an operator.
pub trait OperatorTask: Sized + 'static {
    /// Kebab-case name: package, binary, folder.
    const NAME: &'static str;
    /// Its input.
    type Input: Input;
    /// Its output.
    type Output: Serialize + Schema + Send;

    /// The handler.
    fn run(cx: &OperatorContext<'_>, input: Self::Input) -> impl Future<Output = Result<Self::Output>> + Send;
}

/// The context of a task.
#[derive(Debug)]
pub struct OperatorContext<'a> {
    /// The service of this process. Its table belongs to no organisation.
    pub service: &'a Service,
}

/// A task without its type.
#[derive(Debug, Clone, Copy)]
pub struct Task {
    /// Kebab-case name.
    pub name: &'static str,
    run: Run,
}

type Run = for<'a> fn(&'a OperatorContext<'a>, &'a [u8]) -> Pin<Box<dyn Future<Output = Result<String>> + Send + 'a>>;

/// The failure that the invoker gets: each invalid field with its issue.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// `missing`, `enum`, `not_found` and so on, of the first issue.
    pub kind: &'static str,
    /// One line.
    pub message: String,
}

impl Task {
    /// `T`, without its type.
    pub const fn of<T: OperatorTask>() -> Self {
        Self {
            name: T::NAME,
            run: |cx, payload| {
                Box::pin(async move {
                    let mut issues = Vec::new();
                    let source = Source::body(Some(payload)).map_err(Error::invalid)?;
                    let input = T::Input::read(&source, &mut issues);
                    let output = T::run(cx, settle(input, issues)?).await?;
                    serde_json::to_string(&output).map_err(|error| Error::Internal(error.to_string()))
                })
            },
        }
    }

    /// Runs the task with the JSON object `payload`.
    ///
    /// # Errors
    /// [`Refusal`].
    pub async fn invoke(&self, service: &Service, payload: &[u8]) -> Result<String, Refusal> {
        let cx = OperatorContext { service };
        let result = (self.run)(&cx, payload).await;
        tracing::info!(task = self.name, cause = result.as_ref().err().map(ToString::to_string), "task");
        result.map_err(|error| {
            let detail = error.detail().detail;
            let line = |issue: &Issue| format!("{}: {}", issue.loc.field().unwrap_or("input"), issue.msg);
            Refusal {
                kind: detail.first().map_or("internal_error", |issue| issue.kind),
                message: detail.iter().map(line).collect::<Vec<_>>().join("; "),
            }
        })
    }
}
