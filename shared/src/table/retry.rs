//! Decides which failures of a call are retried, and how long to wait before the next attempt.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::operation::transact_write_items::TransactWriteItemsError;

use crate::table::error::TableError;
use crate::values::cause::chain;

/// How long a request retries after conflicts with others. It stays well below the 29 seconds that API Gateway waits.
pub const PATIENCE: Duration = Duration::from_secs(10);
/// The limit of the wait between two attempts: the first one, and the largest.
const PAUSES: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(160));

/// Whether the write of a single item met a transaction on that item. The SDK does not retry this by itself.
pub(super) fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code() == Some("TransactionConflictException")
}

/// The result of a failed call for the request.
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

/// Waits between attempts: each wait is a random part of a growing limit, so that two callers that began together
/// wait differently. After a second the limit shrinks again, so that a caller that has waited long goes before a new
/// one.
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

    /// Waits; returns false if no time is left for another attempt.
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

/// Records whether an attempt of a call ended without an answer: it may have been executed, or may still be.
#[derive(Debug, Clone, Default)]
pub(crate) struct LostAnswer(Arc<Noted>);

#[derive(Debug, Default)]
struct Noted {
    happened: AtomicBool,
    in_progress: AtomicBool,
}

impl LostAnswer {
    /// Whether an answer of any call with this recorder was lost.
    pub(crate) fn happened(&self) -> bool {
        self.0.happened.load(Ordering::Relaxed)
    }

    /// Whether the last answer reported that a transaction is still in progress: one of an attempt whose answer was
    /// lost.
    pub(super) fn is_in_progress(&self) -> bool {
        self.0.in_progress.load(Ordering::Relaxed)
    }

    /// The error of a delete that found nothing: if an answer was lost, it is unknown who removed the item.
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
        // An operation error is an answer: the database reported that it did nothing. After any other error the result
        // is unknown.
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
