//! Every environment variable that the functions read, once, at their start.

use lambda_runtime::tracing::level_filters::LevelFilter;

/// What the environment says.
#[derive(Debug, Clone)]
pub struct Config {
    /// `TABLE_NAME`: the DynamoDB table.
    pub table_name: String,
    /// `PAYMENT_API_BASE`: base address of the payment provider, without a trailing slash.
    pub payment_api_base: String,
    /// `CORS_ALLOW_ORIGIN`: whose pages may read the answers; unset, nobody's.
    pub cors_allow_origin: Option<String>,
    /// `API_BASE_URL`: where the API answers, without a trailing slash and without `/api/v1`. Unset, the gateway's own word counts.
    pub api_base_url: Option<String>,
}

/// How lines are logged, as Lambda's own settings of the function say.
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
        let level = variable("AWS_LAMBDA_LOG_LEVEL").unwrap_or_default();
        Self {
            // `FATAL` is the one level that Lambda has and `tracing` has not.
            level: level.parse().unwrap_or(if level == "FATAL" { LevelFilter::ERROR } else { LevelFilter::INFO }),
            json: variable("AWS_LAMBDA_LOG_FORMAT").is_some_and(|format| format.eq_ignore_ascii_case("json")),
        }
    }
}

/// A variable that must be set is not.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is not set")]
pub struct Unset(&'static str);

impl Config {
    /// Reads the environment.
    ///
    /// # Errors
    /// [`Unset`] names the variable that is missing.
    pub fn from_env() -> Result<Self, Unset> {
        Ok(Self {
            table_name: required("TABLE_NAME")?,
            payment_api_base: required("PAYMENT_API_BASE")?,
            cors_allow_origin: variable("CORS_ALLOW_ORIGIN"),
            api_base_url: variable("API_BASE_URL"),
        })
    }
}

fn required(name: &'static str) -> Result<String, Unset> {
    variable(name).ok_or(Unset(name))
}

fn variable(name: &str) -> Option<String> {
    #[expect(clippy::disallowed_methods, reason = "the one place that reads the environment")]
    let value = std::env::var(name);
    value.ok().map(|value| value.trim_end_matches('/').to_owned()).filter(|value| !value.is_empty())
}
