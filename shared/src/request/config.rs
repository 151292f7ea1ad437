//! Reads every environment variable of the functions, once, at their start.

use std::path::PathBuf;
use std::time::Duration;

use lambda_runtime::tracing::level_filters::LevelFilter;

use crate::table::quota::Quotas;
use crate::values::limits::Limits;

/// The time limit of an attempt to reach the table, if none is set.
pub const TABLE_ATTEMPT: Duration = Duration::from_secs(1);

/// The configuration.
#[derive(Debug, Clone)]
pub struct Config {
    /// `TABLE_NAME`: the DynamoDB table.
    pub table_name: String,
    /// `FILES_BUCKET`: the bucket of the files of data sources.
    pub files_bucket: String,
    /// `FAILED_RECORDS_BUCKET`: the bucket of the batches that the functions on the table's stream gave up.
    pub failed_records_bucket: String,
    /// `SECRETS_KEY`: the key of KMS that encrypts the data keys of secrets. Without it secrets are neither stored nor read.
    pub secrets_key: Option<String>,
    /// `PAYMENT_API_BASE`: base address of the payment provider, without a trailing slash.
    pub payment_api_base: String,
    /// `SENDS_PER_SECOND`: the rate limit of a widget.
    pub sends_per_second: u32,
    /// `QUOTAS`: the limits of each organisation.
    pub quotas: Quotas,
    /// `KEY_REQUESTS_PER_SECOND`, `KEY_BURST`: the limits of a key without limits of its own.
    pub key_limits: Limits,
    /// `AUDIT_DAYS`: for how many days an entry of the audit list is kept; 0 if there is no list.
    pub audit_days: u32,
    /// `CORS_ALLOW_ORIGIN`: the web origin whose pages may read the answers. If it is not set, no page may.
    pub cors_allow_origin: Option<String>,
    /// `API_BASE_URL`: the address of the API, without a trailing slash and without `/api/v1`. If it is not set, the
    /// gateway's event has it.
    pub api_base_url: Option<String>,
    /// `SSL_CERT_FILE`: a file with the certificates of private authorities, as PEM. Receivers of events may use them
    /// as well as the public ones.
    pub ssl_cert_file: Option<PathBuf>,
    /// `TABLE_ATTEMPT_SECONDS`: the time limit of an attempt to reach the table. If it is not set, [`TABLE_ATTEMPT`].
    pub table_attempt: Duration,
    /// The key that is filled in on the page of the API. Only `cargo local` sets it; no environment variable does.
    pub demo_key: Option<String>,
}

/// The log settings, from Lambda's own settings of the function.
#[derive(Debug, Clone, Copy)]
pub struct Logging {
    /// `AWS_LAMBDA_LOG_LEVEL`: the least severe line that is written.
    pub level: LevelFilter,
    /// `AWS_LAMBDA_LOG_FORMAT` is `JSON`.
    pub json: bool,
}

impl Logging {
    /// Reads the environment.
    pub fn from_env() -> Self {
        Self {
            level: variable("AWS_LAMBDA_LOG_LEVEL").map_or(LevelFilter::INFO, |level| level_of(&level)),
            json: variable("AWS_LAMBDA_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json")),
        }
    }
}

/// The level that Lambda calls `name`. `tracing` has no `FATAL`, so this is its error level.
fn level_of(name: &str) -> LevelFilter {
    if name == "FATAL" { LevelFilter::ERROR } else { name.parse().unwrap_or(LevelFilter::INFO) }
}

/// A required variable is missing or has an invalid value.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set as it must be")]
pub struct Unset(&'static str);

impl Config {
    /// The rate limit of a widget, per second. It is at least one; otherwise campaigns would never end.
    pub fn rate(&self) -> u32 {
        self.sends_per_second.max(1)
    }

    /// The headers that allow pages of another origin to read an answer with its headers: otherwise `Retry-After` and
    /// the headers of the limits are hidden from them. With a proxy integration, the function adds these headers,
    /// because the gateway adds none.
    pub fn cors_headers(&self) -> impl Iterator<Item = (&'static str, String)> {
        let headers = |origin: &String| {
            [("access-control-allow-origin", origin.clone()), ("access-control-expose-headers", "*".to_owned())]
        };
        self.cors_allow_origin.iter().flat_map(headers)
    }

    /// Reads the environment.
    ///
    /// # Errors
    /// [`Unset`] names the variable that is missing.
    pub fn from_env() -> Result<Self, Unset> {
        Ok(Self {
            table_name: required("TABLE_NAME")?,
            files_bucket: required("FILES_BUCKET")?,
            failed_records_bucket: required("FAILED_RECORDS_BUCKET")?,
            secrets_key: variable("SECRETS_KEY"),
            payment_api_base: required("PAYMENT_API_BASE")?,
            sends_per_second: number("SENDS_PER_SECOND")?,
            quotas: required("QUOTAS")?.parse().map_err(|_| Unset("QUOTAS"))?,
            key_limits: Limits::new(number("KEY_REQUESTS_PER_SECOND")?, number("KEY_BURST")?),
            audit_days: number("AUDIT_DAYS")?,
            cors_allow_origin: variable("CORS_ALLOW_ORIGIN"),
            api_base_url: variable("API_BASE_URL"),
            ssl_cert_file: variable("SSL_CERT_FILE").map(PathBuf::from),
            table_attempt: seconds("TABLE_ATTEMPT_SECONDS")?.unwrap_or(TABLE_ATTEMPT),
            demo_key: None,
        })
    }
}

fn required(name: &'static str) -> Result<String, Unset> {
    variable(name).ok_or(Unset(name))
}

fn number(name: &'static str) -> Result<u32, Unset> {
    required(name)?.parse().map_err(|_| Unset(name))
}

fn seconds(name: &'static str) -> Result<Option<Duration>, Unset> {
    variable(name).map(|_| Ok(Duration::from_secs(number(name)?.into()))).transpose()
}

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    let value = std::env::var(name);
    value.ok().map(|value| value.trim_end_matches('/').to_owned()).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_log_level_becomes_info() {
        for (name, wanted) in [
            ("TRACE", LevelFilter::TRACE),
            ("DEBUG", LevelFilter::DEBUG),
            ("INFO", LevelFilter::INFO),
            ("WARN", LevelFilter::WARN),
            ("ERROR", LevelFilter::ERROR),
            ("FATAL", LevelFilter::ERROR),
            ("loud", LevelFilter::INFO),
        ] {
            assert_eq!(level_of(name), wanted, "{name}");
        }
    }
}
