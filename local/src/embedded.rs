//! The SDK's way to the embedded DynamoDB in the same process: its requests and answers as they are, without a socket between them.
//!
//! Whoever is in another process uses the address at which [`database::serve`](crate::database::serve) answers.

use aws_sdk_dynamodb::config::SharedHttpClient;
use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use dynoxide::errors::{DynoxideError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shared::runtime::http_client;
use tokio::task::yield_now;

/// The HTTP client with which the SDK reaches `database`.
pub fn http_client(database: &Database) -> SharedHttpClient {
    http_client::client(connector(database))
}

/// What sends the requests of that client.
pub fn connector(database: &Database) -> SharedHttpConnector {
    SharedHttpConnector::new(EmbeddedConnector(database.clone()))
}

struct EmbeddedConnector(Database);

impl std::fmt::Debug for EmbeddedConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EmbeddedConnector")
    }
}

impl HttpConnector for EmbeddedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let database = self.0.clone();
        HttpConnectorFuture::new(async move {
            // A request and its answer take time: what runs at the same time goes on meanwhile, and may come first.
            yield_now().await;
            let action = request.headers().get("x-amz-target").and_then(|target| target.rsplit('.').next());
            let body = request.body().bytes().ok_or_else(|| ConnectorError::user("a body that is a stream".into()))?;
            let (status, text) = match answer(&database, action.unwrap_or_default(), body) {
                Ok(text) => (200, text),
                Err(error) => (error.status_code(), error.to_json()),
            };
            yield_now().await;
            let status = StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(text)))
        })
    }
}

/// The database's answer to `action`: those that the service, the demo set and the tests use.
fn answer(database: &Database, action: &str, body: &[u8]) -> Result<String> {
    match action {
        "BatchGetItem" => text(&database.batch_get_item(request(body)?)?),
        "BatchWriteItem" => text(&database.batch_write_item(request(body)?)?),
        "DeleteTable" => text(&database.delete_table(request(body)?)?),
        "DeleteItem" => text(&database.delete_item(request(body)?)?),
        "GetItem" => text(&database.get_item(request(body)?)?),
        "PutItem" => text(&database.put_item(request(body)?)?),
        "Query" => text(&database.query(request(body)?)?),
        "Scan" => text(&database.scan(request(body)?)?),
        "TransactGetItems" => text(&database.transact_get_items(request(body)?)?),
        "TransactWriteItems" => text(&database.transact_write_items(request(body)?)?),
        "UpdateItem" => text(&database.update_item(request(body)?)?),
        other => Err(DynoxideError::ValidationException(format!("{other} is not embedded"))),
    }
}

fn request<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| DynoxideError::ValidationException(error.to_string()))
}

fn text(answer: &impl Serialize) -> Result<String> {
    serde_json::to_string(answer).map_err(|error| DynoxideError::InternalServerError(error.to_string()))
}
