//! The table's stream to the functions on it, by Lambda's rules: filters, batches, retries, bisection, partial failures, age.
//!
//! The rules are read from the template's event sources, so that what happens here is what happens when deployed.

use dynoxide::Database;
use serde_json::{Value, json};
use shared::context::{Clock, Service};
use shared::stream::{Consumer, StreamEvent};
use tokio::sync::Mutex;

use crate::template::{EventSource, Template};
use crate::{Trouble, database, endpoints};

/// The most records that are read at once.
const READ_LIMIT: usize = 1000;

/// The stream, and how far each function on it has read.
pub struct Stream {
    database: Database,
    readers: Mutex<Vec<Reader>>,
}

struct Reader {
    source: EventSource,
    consumer: &'static Consumer,
    /// Sequence number of the last record that was read.
    position: Option<String>,
    /// Where Lambda would send what it gave up.
    given_up: Vec<Value>,
}

impl Stream {
    /// The stream of `database`, with the readers that `template` has.
    ///
    /// # Errors
    /// [`Trouble`] where the template has a function on the stream that is not built.
    pub fn new(database: Database, template: &Template) -> Result<Self, Trouble> {
        let reader = |source: &EventSource| {
            let consumer = endpoints::CONSUMERS.iter().find(|consumer| consumer.name == source.function);
            let missing =
                || Trouble(format!("the template's function {} is not built into this program", source.function));
            let consumer = consumer.ok_or_else(missing)?;
            Ok(Reader { source: source.clone(), consumer, position: None, given_up: Vec::new() })
        };
        let readers = template.sources.iter().map(reader).collect::<Result<_, _>>()?;
        Ok(Self { database, readers: Mutex::new(readers) })
    }

    /// Hands over all that has changed, until nothing is left; what the functions change in turn included.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub async fn drain(&self, service: &Service) -> Result<(), Trouble> {
        let mut readers = self.readers.lock().await;
        loop {
            let mut quiet = true;
            for reader in readers.iter_mut() {
                quiet &= !reader.advance(&self.database, service).await?;
            }
            if quiet {
                return Ok(());
            }
        }
    }

    /// What was given up, for good: the records of each batch that ran out of attempts or of time.
    pub async fn given_up(&self) -> Vec<Value> {
        self.readers.lock().await.iter().flat_map(|reader| reader.given_up.clone()).collect()
    }
}

impl Reader {
    /// Reads on and hands over; false where there was nothing new.
    async fn advance(&mut self, database: &Database, service: &Service) -> Result<bool, Trouble> {
        let records =
            read(database, self.position.as_deref()).map_err(|error| Trouble(format!("the stream: {error}")))?;
        let Some(last) = records.last() else { return Ok(false) };
        self.position = last["dynamodb"]["SequenceNumber"].as_str().map(str::to_owned);
        let wanted: Vec<Value> = records.into_iter().filter(|record| self.source.lets_through(record)).collect();
        for batch in wanted.chunks(self.source.batch_size) {
            self.deliver(batch, service).await;
        }
        Ok(true)
    }

    /// Hands over a batch until it is handled or given up. What was handled before a failure does not come again; of the rest, where the
    /// source says so, each half goes its own way.
    async fn deliver(&mut self, batch: &[Value], service: &Service) {
        let mut parts = vec![(batch.to_vec(), 0)];
        while let Some((mut part, attempts)) = parts.pop() {
            let too_old = |record: &Value| age(record) > self.source.max_age_seconds;
            let (expired, fresh): (Vec<_>, Vec<_>) = part.drain(..).partition(too_old);
            self.given_up.extend(expired);
            let Some(failed_at) = self.invoke(&fresh, service).await else { continue };
            let rest = fresh[failed_at..].to_vec();
            if attempts >= self.source.max_retries {
                self.given_up.extend(rest);
            } else if self.source.bisects && rest.len() > 1 {
                let second = rest[rest.len().div_ceil(2)..].to_vec();
                let first = rest[..rest.len().div_ceil(2)].to_vec();
                parts.push((second, attempts + 1));
                parts.push((first, attempts + 1));
            } else {
                parts.push((rest, attempts + 1));
            }
        }
    }

    /// Invokes the function; the index of the first record that it did not handle, if any.
    async fn invoke(&self, records: &[Value], service: &Service) -> Option<usize> {
        if records.is_empty() {
            return None;
        }
        // Through text, as Lambda would: what cannot be read fails as a whole.
        let event = json!({"Records": records}).to_string();
        let Ok(event) = serde_json::from_str::<StreamEvent>(&event) else { return Some(0) };
        let outcome = self.consumer.handle(service, &event).await;
        let failed = outcome.batch_item_failures.first()?;
        records.iter().position(|record| record["dynamodb"]["SequenceNumber"] == failed.item_identifier.as_str())
    }
}

impl EventSource {
    /// Whether one of the filters fits `record`; without filters all do.
    pub fn lets_through(&self, record: &Value) -> bool {
        self.filters.is_empty() || self.filters.iter().any(|filter| fits(filter, record))
    }
}

/// Event filtering: an object's members all fit, and of an array one does. Of the operators, those that the template uses.
fn fits(filter: &Value, value: &Value) -> bool {
    match filter {
        Value::Object(members) => members.iter().all(|(name, filter)| fits(filter, &value[name])),
        Value::Array(rules) => rules.iter().any(|rule| match rule.as_object() {
            None => rule == value,
            Some(operator) => operator.iter().all(|(name, wanted)| match name.as_str() {
                "prefix" => value.as_str().zip(wanted.as_str()).is_some_and(|(text, prefix)| text.starts_with(prefix)),
                "exists" => value.is_null() != (*wanted == json!(true)),
                _ => false,
            }),
        }),
        _ => false,
    }
}

/// Seconds since the change.
fn age(record: &Value) -> i64 {
    let created = record["dynamodb"]["ApproximateCreationDateTime"].as_f64().unwrap_or_default();
    #[expect(clippy::cast_possible_truncation, reason = "seconds since 1970 fit")]
    let created = created as i64;
    Clock::System.now().unix_seconds() - created
}

fn read(database: &Database, after: Option<&str>) -> Result<Vec<Value>, String> {
    let text = |error: dynoxide::DynoxideError| error.to_string();
    let streams = database.list_streams(from(json!({"TableName": database::TABLE_NAME}))?).map_err(text)?;
    let Some(stream) = streams.streams.first() else { return Ok(Vec::new()) };
    let description = database.describe_stream(from(json!({"StreamArn": stream.stream_arn}))?).map_err(text)?;
    let Some(shard) = description.stream_description.shards.first() else { return Ok(Vec::new()) };
    let kind = if after.is_some() { "AFTER_SEQUENCE_NUMBER" } else { "TRIM_HORIZON" };
    let mut wanted = json!({"StreamArn": stream.stream_arn, "ShardId": shard.shard_id, "ShardIteratorType": kind});
    if let Some(after) = after {
        wanted["SequenceNumber"] = after.into();
    }
    let iterator = database.get_shard_iterator(from(wanted)?).map_err(text)?.shard_iterator;
    let records = database.get_records(from(json!({"ShardIterator": iterator, "Limit": READ_LIMIT}))?).map_err(text)?;
    let records = serde_json::to_value(records.records).map_err(|error| error.to_string())?;
    Ok(if let Value::Array(records) = records { records } else { Vec::new() })
}

fn from<T: serde::de::DeserializeOwned>(value: Value) -> Result<T, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_fit_as_lambda_s_do() {
        let record = json!({"eventName": "REMOVE", "dynamodb": {"Keys": {"sk": {"S": "TAG"}}}});
        for (filter, wanted) in [
            (json!({"eventName": ["REMOVE"]}), true),
            (json!({"eventName": ["INSERT", "REMOVE"]}), true),
            (json!({"eventName": ["INSERT"]}), false),
            (json!({"eventName": ["REMOVE"], "dynamodb": {"Keys": {"sk": {"S": ["TAG"]}}}}), true),
            (json!({"eventName": ["REMOVE"], "dynamodb": {"Keys": {"sk": {"S": ["FORM"]}}}}), false),
            (json!({"dynamodb": {"Keys": {"sk": {"S": [{"prefix": "TA"}]}}}}), true),
            (json!({"dynamodb": {"NewImage": {"status": [{"exists": false}]}}}), true),
            (json!({"dynamodb": {"NewImage": {"status": [{"exists": true}]}}}), false),
        ] {
            assert_eq!(fits(&filter, &record), wanted, "{filter}");
        }
    }
}
