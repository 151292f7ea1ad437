//! Which failures of a call are worth another attempt, and how long to wait before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;

use crate::table::error::TableError;
use crate::values::cause::chain;

/// How long a request tries again what others do at the same moment. It stays well below the 29 seconds that API Gateway waits.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The longest wait between two attempts, at first and later.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(160));

/// A transaction is at work on the item of a single write. The SDK does not try again by itself.
pub(super) fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code() == Some("TransactionConflictException")
}

/// What a failed call means for the request.
pub(super) fn failure<E, R>(error: &SdkError<E, R>) -> TableError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
    R: std::fmt::Debug + 'static,
{
    const BUSY: [&str; 8] = [
        "InternalServerError",
        "LimitExceededException",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ServiceUnavailable",
        "ThrottlingException",
        "TransactionConflictException",
        "TransactionInProgressException",
    ];
    let text = chain(error);
    match error {
        SdkError::ServiceError(service) if service.err().code().is_some_and(|code| !BUSY.contains(&code)) => {
            TableError::Broken(text)
        }
        SdkError::ConstructionFailure(_) => TableError::Broken(text),
        _ => TableError::Unavailable(text),
    }
}

/// Waits between attempts, longer each time, and never as long as another caller that began at the same moment. After a second they become
/// shorter again: whoever has waited long goes before whoever comes now.
#[derive(Debug)]
pub(crate) struct Backoff {
    most: Duration,
    begun: Instant,
    patience: Duration,
}

impl Backoff {
    /// Waits that end `patience` after the request has begun.
    pub(super) const fn new(begun: Instant, patience: Duration) -> Self {
        Self { most: PAUSES.0, begun, patience }
    }

    /// Whether no time is left for another attempt.
    pub(crate) fn is_over(&self) -> bool {
        self.begun.elapsed() >= self.patience
    }

    /// Waits; false where no time is left for another attempt.
    pub(crate) async fn wait(&mut self) -> bool {
        let age = self.begun.elapsed();
        let wait = self.most.div_f64(age.as_secs_f64().max(1.0)).mul_f64(fastrand::f64());
        if age + wait >= self.patience {
            return false;
        }
        self.most = PAUSES.1.min(self.most * 2);
        tokio::time::sleep(wait).await;
        true
    }

    /// Waits for another attempt, after others have changed `what` since it was read.
    ///
    /// # Errors
    /// [`TableError::Unavailable`] where no time is left.
    pub(crate) async fn again(&mut self, what: &str) -> Result<(), TableError> {
        let is_in_time = self.wait().await;
        is_in_time.then_some(()).ok_or_else(|| TableError::Unavailable(format!("others kept changing {what}")))
    }
}

/// Notes whether an attempt of a call ended without an answer, so that it may have done its work unseen, or may yet do it.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostAnswer(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    happened: AtomicBool,
    in_progress: AtomicBool,
}

impl LostAnswer {
    /// Whether an answer was lost, of any call that this was given to.
    pub(crate) fn happened(&self) -> bool {
        self.0.happened.load(Ordering::Relaxed)
    }

    /// Whether the last answer told that a transaction is still in progress: of an attempt whose answer was lost.
    pub(super) fn is_in_progress(&self) -> bool {
        self.0.in_progress.load(Ordering::Relaxed)
    }

    /// What a delete comes to that has found nothing: where an answer was lost, nobody can tell who removed it.
    pub(crate) fn missing(&self) -> TableError {
        if self.happened() {
            TableError::Unavailable("the answer to a delete was lost".into())
        } else {
            TableError::Missing
        }
    }
}

impl Intercept for LostAnswer {
    fn name(&self) -> &'static str {
        "LostAnswer"
    }

    fn read_after_attempt(
        &self,
        context: &FinalizerInterceptorContextRef<'_>,
        _: &RuntimeComponents,
        _: &mut ConfigBag,
    ) -> Result<(), BoxError> {
        let failed = context.output_or_error().and_then(Result::err);
        let refused = failed.and_then(|error| error.as_operation_error());
        let refused = refused.and_then(|error| error.downcast_ref::<TransactWriteItemsError>());
        let in_progress = refused.is_some_and(|error| error.code() == Some("TransactionInProgressException"));
        // An operation error is an answer: the database said that it did nothing. Everything else leaves it open.
        let answered = failed.is_none_or(|error| {
            error.as_operation_error().is_some()
                && context.response().is_some_and(|response| !response.status().is_server_error())
        });
        if answered {
            self.0.in_progress.store(in_progress, Ordering::Relaxed);
        }
        self.0.happened.fetch_or(!answered || in_progress, Ordering::Relaxed);
        Ok(())
    }
}
