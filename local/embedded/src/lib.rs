//! Connects the SDK with the embedded DynamoDB in the same process: requests and answers are unchanged, but need no
//! socket.
//!
//! It is a package of its own, so that the conversion of requests and answers to text and back can be optimised: all
//! tests wait for it.
//!
//! - [`partitions`] counts the units that calls take of each partition, and enforces DynamoDB's limit of a partition
//!   if it is switched on.
//! - [`permissions`] has the permissions of IAM that a call needs.
//! - [`stream`] reads the changes of the table.

mod capacity;
mod counted;
pub mod partitions;
pub mod permissions;
pub mod stream;

use std::sync::{Arc, Mutex, OnceLock};

use aws_smithy_runtime_api::client::http::{HttpConnector, HttpConnectorFuture, SharedHttpConnector};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::http::StatusCode;
use aws_smithy_types::body::SdkBody;
use dynoxide::Database;
use dynoxide::errors::{DynoxideError, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::yield_now;

use crate::capacity::Schema;
use crate::counted::Refused;
use crate::partitions::Partitions;

/// A connector that sends the SDK's requests to `database`.
pub fn connector(database: &Database) -> SharedHttpConnector {
    Embedded::new(database, &Partitions::default()).connector()
}

/// The database, with the count of its partitions. Clones share both.
#[derive(Clone)]
pub struct Embedded {
    database: Database,
    partitions: Partitions,
    schema: Arc<OnceLock<Schema>>,
    /// A counted call holds this lock: any difference between the items before and after it comes from this call.
    turn: Arc<Mutex<()>>,
}

impl Embedded {
    /// `database`, with `partitions` as the count of its units.
    pub fn new(database: &Database, partitions: &Partitions) -> Self {
        Self {
            database: database.clone(),
            partitions: partitions.clone(),
            schema: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// The count of its partitions.
    pub const fn partitions(&self) -> &Partitions {
        &self.partitions
    }

    /// A connector that sends the SDK's requests to it.
    pub fn connector(&self) -> SharedHttpConnector {
        SharedHttpConnector::new(EmbeddedConnector(self.clone()))
    }

    /// Status and body of its answer to a call of `action`, such as `PutItem`.
    pub fn answer(&self, action: &str, body: &[u8]) -> (u16, String) {
        let answered = if self.partitions.are_counted() {
            self.counted(action, body)
        } else {
            answer(&self.database, action, body).map_err(Refused::from)
        };
        match answered {
            Ok(text) => (200, text),
            Err(Refused::Database(error)) => (error.status_code(), error.to_json()),
            Err(Refused::Throttled(body)) => (400, body.to_string()),
        }
    }
}

struct EmbeddedConnector(Embedded);

impl std::fmt::Debug for EmbeddedConnector {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("EmbeddedConnector")
    }
}

impl HttpConnector for EmbeddedConnector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let embedded = self.0.clone();
        HttpConnectorFuture::new(async move {
            // On a network, a request and its answer take time: concurrent tasks continue meanwhile, and may come
            // first.
            yield_now().await;
            let action = request.headers().get("x-amz-target").and_then(|target| target.rsplit('.').next());
            let body = request.body().bytes().ok_or_else(|| ConnectorError::user("a body that is a stream".into()))?;
            let (status, text) = embedded.answer(action.unwrap_or_default(), body);
            yield_now().await;
            let status = StatusCode::try_from(status).map_err(|error| ConnectorError::other(error.into(), None))?;
            Ok(HttpResponse::new(status, SdkBody::from(text)))
        })
    }
}

/// The database's answer to `action`. A user's tools may call actions that the service does not use.
fn answer(database: &Database, action: &str, body: &[u8]) -> Result<String> {
    match action {
        "BatchExecuteStatement" => text(&database.batch_execute_statement(request(body)?)?),
        "BatchGetItem" => text(&database.batch_get_item(request(body)?)?),
        "BatchWriteItem" => text(&database.batch_write_item(request(body)?)?),
        "CreateTable" => text(&database.create_table(request(body)?)?),
        "DeleteItem" => text(&database.delete_item(request(body)?)?),
        "DeleteTable" => text(&database.delete_table(request(body)?)?),
        "DescribeStream" => text(&database.describe_stream(request(body)?)?),
        "DescribeTable" => text(&database.describe_table(request(body)?)?),
        "DescribeTimeToLive" => text(&database.describe_time_to_live(request(body)?)?),
        "ExecuteStatement" => text(&database.execute_statement(request(body)?)?),
        "ExecuteTransaction" => text(&database.execute_transaction(request(body)?)?),
        "GetItem" => text(&database.get_item(request(body)?)?),
        "GetRecords" => text(&database.get_records(request(body)?)?),
        "GetShardIterator" => text(&database.get_shard_iterator(request(body)?)?),
        "ListStreams" => text(&database.list_streams(request(body)?)?),
        "ListTables" => text(&database.list_tables(request(body)?)?),
        "ListTagsOfResource" => text(&database.list_tags_of_resource(request(body)?)?),
        "PutItem" => text(&database.put_item(request(body)?)?),
        "Query" => text(&database.query(request(body)?)?),
        "Scan" => text(&database.scan(request(body)?)?),
        "TagResource" => text(&database.tag_resource(request(body)?)?),
        "TransactGetItems" => text(&database.transact_get_items(request(body)?)?),
        "TransactWriteItems" => text(&database.transact_write_items(request(body)?)?),
        "UntagResource" => text(&database.untag_resource(request(body)?)?),
        "UpdateItem" => text(&database.update_item(request(body)?)?),
        "UpdateTable" => text(&database.update_table(request(body)?)?),
        "UpdateTimeToLive" => text(&database.update_time_to_live(request(body)?)?),
        other => Err(DynoxideError::ValidationException(format!("{other} is no action of the embedded database"))),
    }
}

fn request<T: DeserializeOwned>(body: &[u8]) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| invalid(&error))
}

fn text(answer: &impl Serialize) -> Result<String> {
    serde_json::to_string(answer).map_err(|error| internal(&error))
}

fn invalid(error: &serde_json::Error) -> DynoxideError {
    DynoxideError::ValidationException(error.to_string())
}

fn internal(error: &serde_json::Error) -> DynoxideError {
    DynoxideError::InternalServerError(error.to_string())
}
