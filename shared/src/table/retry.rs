//! Which failures of a call are worth another attempt, and how long to wait before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::config::interceptors::FinalizerInterceptorContextRef;
use aws_sdk_dynamodb::config::{ConfigBag, Intercept, RuntimeComponents};
use aws_sdk_dynamodb::error::{BoxError, ProvideErrorMetadata, SdkError};

use crate::request::error::chain;
use crate::table::TableError;

/// How often a call is attempted that met another transaction, or that left something unprocessed.
const ROUNDS: u32 = 8;

/// Another transaction is at work on the same item, or this one is at work already. The SDK does not try again by itself.
pub(super) fn is_conflict<E: ProvideErrorMetadata, R>(error: &SdkError<E, R>) -> bool {
    error.code().is_some_and(|code| ["TransactionConflictException", "TransactionInProgressException"].contains(&code))
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

/// Waits between the rounds of a call, longer each time, and never as long as another caller that began at the same moment.
#[derive(Debug, Default)]
pub(super) struct Backoff(u32);

impl Backoff {
    /// Waits; false where there were rounds enough.
    pub(super) async fn wait(&mut self) -> bool {
        self.0 += 1;
        if self.0 >= ROUNDS {
            return false;
        }
        let most = Duration::from_millis(10) * 2_u32.pow(self.0);
        tokio::time::sleep(most.mul_f64(fastrand::f64())).await;
        true
    }
}

/// Notes whether an attempt of a call ended without an answer, so that it may have done its work unseen.
#[derive(Debug, Clone, Default)]
pub(super) struct LostAnswer(Arc<AtomicBool>);

impl LostAnswer {
    pub(super) fn happened(&self) -> bool {
        self.0.load(Ordering::Relaxed)
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
        // An operation error is an answer: the database said that it did nothing. Everything else leaves it open.
        let answered = match context.output_or_error() {
            Some(Err(error)) => {
                error.as_operation_error().is_some()
                    && context.response().is_some_and(|response| !response.status().is_server_error())
            }
            _ => true,
        };
        self.0.fetch_or(!answered, Ordering::Relaxed);
        Ok(())
    }
}
