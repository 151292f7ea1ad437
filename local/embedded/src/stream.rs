//! Reads the changes of a table from its stream, and makes the event that passes them on.

use dynoxide::Database;
use dynoxide::errors::Result;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{internal, invalid};

/// The most records in one read.
const READ_LIMIT: usize = 1000;

/// The next records, and the iterator after them.
///
/// # Errors
/// That of the database: there is no such iterator.
pub fn read(database: &Database, iterator: &str) -> Result<(Vec<Value>, Option<String>)> {
    let answer = database.get_records(from(json!({"ShardIterator": iterator, "Limit": READ_LIMIT}))?)?;
    let records = answer.records.into_iter().map(serde_json::to_value).collect::<std::result::Result<_, _>>();
    Ok((records.map_err(|error| internal(&error))?, answer.next_shard_iterator))
}

/// An iterator at the oldest record of `table`; `None` if the table has no stream.
///
/// # Errors
/// That of the database.
pub fn beginning(database: &Database, table: &str) -> Result<Option<String>> {
    let streams = database.list_streams(from(json!({"TableName": table}))?)?;
    let Some(stream) = streams.streams.first() else { return Ok(None) };
    let description = database.describe_stream(from(json!({"StreamArn": stream.stream_arn}))?)?;
    let Some(shard) = description.stream_description.shards.first() else { return Ok(None) };
    let wanted =
        json!({"StreamArn": stream.stream_arn, "ShardId": shard.shard_id, "ShardIteratorType": "TRIM_HORIZON"});
    Ok(database.get_shard_iterator(from(wanted)?)?.shard_iterator)
}

/// The event of a function on the stream, with these records.
pub fn event(records: &[Value]) -> String {
    json!({"Records": records}).to_string()
}

fn from<T: DeserializeOwned>(request: Value) -> Result<T> {
    serde_json::from_value(request).map_err(|error| invalid(&error))
}
