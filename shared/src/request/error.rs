//! Every failure of a request, as one enum with one match for the status.
//!
//! A variant has the information that a caller may see. Information for operators only is a *cause*, which is logged
//! and never sent.

use std::borrow::Cow;

use serde::Serialize;

use crate::bucket::BucketError;
use crate::input::Issue;
use crate::input::Issues;
use crate::input::Location;
use crate::request::limit::headers;
use crate::sealing::SealingError;
use crate::table::TableError;
use crate::table::error::NotChanged;
use crate::table::plan_limits::Exceeded;
use crate::table::quota::{Quota, Reached};
use crate::values::id::ApiKeyId;
use crate::values::id::NoRandomBytes;
use crate::values::limits::Limits;

/// The result of a handler and of the functions that it calls.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No key, or an empty one.
    #[error("no API key")]
    MissingKey,
    /// The query and the header have different keys.
    #[error("different API keys")]
    DifferentKeys,
    /// The key is in the query, at an endpoint that takes keys in the header only.
    #[error("API key in the query")]
    KeyInQuery,
    /// A malformed, unknown, expired or revoked key. The answer does not say which.
    #[error("invalid API key")]
    InvalidKey,
    /// The signature is missing, wrong or too old, or there is no secret to check it. The answer does not say which.
    #[error("invalid signature")]
    InvalidSignature(&'static str),
    /// The key is valid, but lacks the permission.
    #[error("forbidden")]
    Forbidden(Location, Cow<'static, str>),
    /// No such route, or no such record in the caller's organisation.
    #[error("not found")]
    NotFound(Location),
    /// The path does not support this method; only POST is supported.
    #[error("method not allowed")]
    MethodNotAllowed,
    /// The state of a record forbids it.
    #[error("conflict: {kind}")]
    Conflict {
        /// The input that names the record.
        at: Location,
        /// A short code of the cause, for programs.
        kind: &'static str,
        /// A sentence for people.
        message: &'static str,
    },
    /// The organisation has as much of something as its quota allows.
    #[error("quota reached: {0}")]
    QuotaReached(Reached),
    /// The user of the key has used up what the billing plan allows.
    #[error("quota exceeded: {0}")]
    QuotaExceeded(Exceeded),
    /// The body has more bytes than its route allows.
    #[error("body larger than {0} bytes")]
    TooLarge(usize),
    /// The input is not valid; every issue is listed.
    #[error("invalid input")]
    Invalid(Issues),
    /// The idempotency key was used with another request before.
    #[error("idempotency key reused")]
    IdempotencyKeyReused,
    /// The first request with this idempotency key is still being executed.
    #[error("idempotency key in use")]
    IdempotencyKeyInUse,
    /// The callers of a key send more than its limits allow.
    #[error("rate limited: key {key}")]
    RateLimited {
        /// The key, for the log.
        key: ApiKeyId,
        /// Its limits.
        limits: Limits,
        /// The seconds after which a retry may succeed.
        seconds: i64,
    },
    /// The database did not answer in time, or throttled, after all retries.
    #[error("unavailable: {0}")]
    Unavailable(String),
    /// The payment provider failed or refused.
    #[error("payment provider: {0}")]
    PaymentProvider(String),
    /// A defect of the service.
    #[error("internal: {0}")]
    Internal(String),
}

/// The body of every failure.
#[derive(Debug, Serialize)]
pub struct Detail {
    /// At least one issue.
    pub detail: Issues,
}

impl Error {
    /// The HTTP status of this failure.
    pub const fn status(&self) -> u16 {
        match self {
            Self::MissingKey
            | Self::DifferentKeys
            | Self::KeyInQuery
            | Self::InvalidKey
            | Self::InvalidSignature(_) => 401,
            Self::QuotaExceeded(_) => 402,
            Self::Forbidden(..) => 403,
            Self::NotFound(_) => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict { .. } | Self::QuotaReached(_) | Self::IdempotencyKeyInUse => 409,
            Self::TooLarge(_) => 413,
            Self::Invalid(_) | Self::IdempotencyKeyReused => 422,
            Self::RateLimited { .. } => 429,
            Self::Internal(_) => 500,
            Self::PaymentProvider(_) => 502,
            Self::Unavailable(_) => 503,
        }
    }

    /// The headers of this failure.
    pub fn headers(&self) -> Vec<(&'static str, String)> {
        match self {
            Self::MissingKey | Self::DifferentKeys | Self::KeyInQuery | Self::InvalidKey => {
                vec![("www-authenticate", "Bearer".to_owned())]
            }
            Self::InvalidSignature(_) => vec![("www-authenticate", "Signature".to_owned())],
            Self::MethodNotAllowed => vec![("allow", "POST".to_owned())],
            Self::Unavailable(_) | Self::IdempotencyKeyInUse => vec![("retry-after", "1".to_owned())],
            Self::RateLimited { limits, seconds, .. } => vec![
                ("retry-after", seconds.to_string()),
                (headers::REMAINING, headers::nothing_left(*seconds)),
                (headers::POLICY, headers::policy(*limits)),
            ],
            _ => Vec::new(),
        }
    }

    /// The body of the failure, without the cause.
    pub fn detail(self) -> Detail {
        let key = || Location::query().name("api_key");
        let idempotency_key = || Location::header("idempotency-key");
        let nowhere = Location::nowhere();
        let issue = match self {
            Self::Invalid(detail) => return Detail { detail },
            Self::MissingKey => key().issue("missing", "Field required"),
            Self::DifferentKeys => key().issue(
                "different_api_keys",
                "The query and the header Authorization have different API keys: send one, in the header",
            ),
            Self::KeyInQuery => {
                key().issue("api_key_in_query", "Send the API key in the header Authorization, as a bearer token")
            }
            Self::InvalidKey => key().issue("invalid_api_key", "Invalid API key"),
            Self::InvalidSignature(header) => Location::header(header).issue("invalid_signature", "Invalid signature"),
            Self::Forbidden(at, message) => at.issue("forbidden", message),
            Self::NotFound(at) => at.issue("not_found", "Not found"),
            Self::MethodNotAllowed => Location::path().issue("method_not_allowed", "Method Not Allowed"),
            Self::Conflict { at, kind, message } => at.issue(kind, message),
            Self::QuotaReached(reached) => made_in(reached.quota).issue("quota_reached", reached.to_string()),
            Self::QuotaExceeded(exceeded) => Location::body().issue("quota_exceeded", exceeded.to_string()),
            Self::TooLarge(limit) => {
                Location::body().issue("payload_too_large", format!("Body should have at most {limit} bytes"))
            }
            Self::IdempotencyKeyReused => {
                idempotency_key().issue("idempotency_key_reused", "The idempotency key was used for another request")
            }
            Self::IdempotencyKeyInUse => idempotency_key()
                .issue("idempotency_key_in_use", "The first request with this idempotency key is still running"),
            Self::RateLimited { limits: Limits { requests_per_second, burst }, seconds, .. } => {
                let wait = if seconds == 1 { "1 second".to_owned() } else { format!("{seconds} seconds") };
                let msg = format!(
                    "The API key allows {requests_per_second} requests a second, and {burst} at once. Try again in {wait}"
                );
                nowhere.issue("rate_limited", msg)
            }
            Self::Unavailable(_) => nowhere.issue("unavailable", "The service is busy, try again shortly"),
            Self::PaymentProvider(_) => {
                nowhere.issue("payment_provider_error", "The payment provider failed or refused the request")
            }
            Self::Internal(_) => nowhere.issue("internal_error", "Internal server error"),
        };
        Detail { detail: vec![issue] }
    }

    /// A single validation issue.
    pub fn invalid(issue: Issue) -> Self {
        Self::Invalid(vec![issue])
    }

    /// The body's field `name` names a record that does not exist.
    pub fn unknown_in_body(name: &'static str) -> Self {
        Self::invalid(Location::body().name(name).issue("not_found", "Not found"))
    }

    /// The request names another organisation than the one of the key.
    pub fn other_organisation(at: Location) -> Self {
        Self::Forbidden(at, "The API key belongs to another organisation".into())
    }
}

impl From<TableError> for Error {
    fn from(error: TableError) -> Self {
        match error {
            TableError::Unavailable(cause) => Self::Unavailable(cause),
            TableError::Missing => Self::Internal("a missing record that no handler expected".into()),
            TableError::Unknown(field) => Self::unknown_in_body(field),
            TableError::Taken { field, kind } => {
                Self::Conflict { at: Location::body().name(field), kind, message: "Another record has this value" }
            }
            TableError::QuotaReached(reached) => Self::QuotaReached(reached),
            TableError::Exceeded(exceeded) => Self::QuotaExceeded(exceeded),
            TableError::Broken(cause) => Self::Internal(cause),
        }
    }
}

/// The input of the request that reaches a quota: the body of a new record, or the path of a command.
fn made_in(quota: Quota) -> Location {
    match quota {
        Quota::Webhooks
        | Quota::Widgets
        | Quota::Files
        | Quota::FileBytes
        | Quota::CustomFields
        | Quota::CustomFieldFilters
        | Quota::RunningExports => Location::body(),
        Quota::RunningCampaigns | Quota::SendsADay => Location::path(),
    }
}

impl From<Issues> for Error {
    fn from(issues: Issues) -> Self {
        Self::Invalid(issues)
    }
}

impl From<BucketError> for Error {
    fn from(error: BucketError) -> Self {
        match error {
            BucketError::Unavailable(cause) => Self::Unavailable(cause),
            BucketError::Broken(cause) => Self::Internal(cause),
        }
    }
}

impl From<SealingError> for Error {
    fn from(error: SealingError) -> Self {
        TableError::from(error).into()
    }
}

impl From<NoRandomBytes> for Error {
    fn from(error: NoRandomBytes) -> Self {
        Self::Internal(error.to_string())
    }
}

/// Turns a missing record into 404 or 422, depending on the place where the request names it.
pub trait OnMissing<T> {
    /// 404 at the path parameter `name`.
    ///
    /// # Errors
    /// [`Error::NotFound`] where the record is missing, and the other errors of the table.
    fn on_missing(self, name: &'static str) -> Result<T>;

    /// 404 at the path parameter `name`, and 404 at another parameter if that one names the missing record.
    ///
    /// # Errors
    /// [`Error::NotFound`] where a record is missing, and the other errors of the table.
    fn on_missing_in_path(self, name: &'static str) -> Result<T>;

    /// 422 `not_found` at the field `name` of the body.
    ///
    /// # Errors
    /// [`Error::Invalid`] where the record is missing, and the other errors of the table.
    fn on_missing_in_body(self, name: &'static str) -> Result<T>;
}

impl<T, E: Missing> OnMissing<T> for Result<T, E> {
    fn on_missing(self, name: &'static str) -> Result<T> {
        self.map_err(|error| error.or(|error| in_path(error, name)))
    }

    fn on_missing_in_path(self, name: &'static str) -> Result<T> {
        self.map_err(|error| {
            error.or(|error| match error {
                TableError::Unknown(parameter) => Error::NotFound(Location::path().name(parameter)),
                other => in_path(other, name),
            })
        })
    }

    fn on_missing_in_body(self, name: &'static str) -> Result<T> {
        self.map_err(|error| {
            error.or(|error| match error {
                TableError::Missing => Error::unknown_in_body(name),
                other => other.into(),
            })
        })
    }
}

fn in_path(error: TableError, name: &'static str) -> Error {
    match error {
        TableError::Missing => Error::NotFound(Location::path().name(name)),
        other => other.into(),
    }
}

/// A failure that may be one of the table.
pub trait Missing {
    /// The error itself, or the result of `table` for an error of the table.
    fn or(self, table: impl FnOnce(TableError) -> Error) -> Error;
}

impl Missing for TableError {
    fn or(self, table: impl FnOnce(TableError) -> Error) -> Error {
        table(self)
    }
}

/// The function that decides about a change may refuse it with an error of its own.
impl<E: Into<Error>> Missing for NotChanged<E> {
    fn or(self, table: impl FnOnce(TableError) -> Error) -> Error {
        match self {
            Self::Refused(refused) => refused.into(),
            Self::Failed(error) => table(error),
        }
    }
}
