//! The embedded DynamoDB, with the table as the template describes it, served over loopback to any AWS client.

use std::path::PathBuf;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region, SharedHttpClient};
use dynoxide::Database;
use dynoxide::actions::create_table::CreateTableRequest;
use serde_json::json;
use tokio::net::TcpListener;

use crate::Trouble;
use crate::template::Template;

/// Name of the local table.
pub const TABLE_NAME: &str = "assistants-local";

/// Where the database is kept.
#[derive(Debug, Clone, Default)]
pub enum Data {
    /// In memory, empty at first.
    #[default]
    Memory,
    /// In this file.
    File(PathBuf),
    /// In memory, at first as this file has it.
    CopyOf(PathBuf),
}

/// Opens the database, and makes the table where it is not there yet.
///
/// # Errors
/// [`Trouble`] with the file or the template.
pub fn open(data: &Data, template: &Template) -> Result<Database, Trouble> {
    let (database, file) = match data {
        Data::Memory => (Database::memory(), None),
        Data::File(file) => (Database::new(&file.to_string_lossy()), Some(file)),
        Data::CopyOf(file) => {
            let copy = Database::memory().and_then(|copy| copy.restore_from(&file.to_string_lossy()).map(|()| copy));
            (copy, Some(file))
        }
    };
    let named =
        |error: String| Trouble(file.map_or_else(|| error.clone(), |file| format!("{}: {error}", file.display())));
    let database = database.map_err(|error| named(error.to_string()))?;
    let existing = database.table_count().map_err(|error| named(error.to_string()))?;
    if existing == 0 {
        let mut table = template.table.clone();
        table["TableName"] = TABLE_NAME.into();
        let request: CreateTableRequest = serde_json::from_value(table).map_err(|error| {
            Trouble(format!("the template's table: {}", error.to_string().replace("VALIDATION:", "")))
        })?;
        database.create_table(request).map_err(|error| Trouble(format!("the template's table: {error}")))?;
        if let Some(attribute) = &template.ttl_attribute {
            let specification = json!({"Enabled": true, "AttributeName": attribute});
            let request = json!({"TableName": TABLE_NAME, "TimeToLiveSpecification": specification});
            let request = serde_json::from_value(request).map_err(|error| Trouble(error.to_string()))?;
            database.update_time_to_live(request).map_err(|error| Trouble(format!("the template's table: {error}")))?;
        }
    }
    Ok(database)
}

/// Serves `database` on `listener` until `stop` resolves.
pub fn serve(
    listener: TcpListener,
    database: Database,
    stop: impl Future<Output = ()> + Send + 'static,
) -> tokio::task::JoinHandle<()> {
    tokio::spawn(async move {
        // The listener is open already; what ends the server early ends the process with it.
        let _ = dynoxide::server::serve_with_shutdown(listener, database, stop).await;
    })
}

/// The ordinary SDK, pointed at `url`. Time limits are the functions' own, shorter where a test wants to see them run out.
pub fn client(url: &str, http: Option<SharedHttpClient>, attempt: Duration) -> Client {
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(attempt).operation_timeout(attempt * 3).build();
    let retries = RetryConfig::standard().with_max_attempts(3).with_initial_backoff(Duration::from_millis(5));
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::v2026_01_12())
        .endpoint_url(url)
        .region(Region::new("local"))
        .credentials_provider(Credentials::new("local", "local", None, None, "local"))
        .http_client(http.unwrap_or_else(http_client))
        .timeout_config(timeouts)
        .retry_config(retries)
        .build();
    Client::from_conf(config)
}

/// An HTTP client without TLS: everything is on loopback.
pub fn http_client() -> SharedHttpClient {
    aws_smithy_http_client::Builder::new().build_http()
}
