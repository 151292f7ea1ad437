//! The table's stream: passes changes to each function that reads it, by the rules of its event source.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dynoxide::Database;
use embedded_dynamodb::stream;
use futures_util::future::join_all;
use serde_json::{Value, json};
use shared::table::change::DYNAMODB;
use shared::table::keys::{Key, PK, SK};
use shared::values::time::Timestamp;
use tokio::task::JoinSet;
use tokio::time::sleep;

use crate::Trouble;
use crate::bucket::FAILED_RECORDS_BUCKET;
use crate::database::{self, TABLE_NAME};
use crate::destination::Destination;
use crate::event_source::{Mapping, StreamFaults};
use crate::lambda::{Freeze, Function};
use crate::template::Template;
use crate::traces::Traces;

/// The most rounds in which the stream has new changes until it is drained. Even the largest cascade needs fewer.
const MOST_ROUNDS: usize = 2000;

/// The time between two polls of a stream by Lambda.
const POLL: Duration = Duration::from_millis(250);

/// The stream, and the position of each function on it.
pub struct Stream {
    readers: Vec<Arc<Reader>>,
    expired: Expired,
}

/// The keys of items that expired. In the stream, their removals have DynamoDB itself as their author.
type Expired = Arc<Mutex<HashSet<Key>>>;

struct Reader {
    database: Database,
    mapping: Arc<Mapping>,
    /// The iterator of the next read; `None` before the first one.
    place: Mutex<Option<String>>,
    expired: Expired,
    traces: Arc<Traces>,
}

impl Stream {
    /// The stream of `database`, with the readers of `template`; `function` finds them by their names. Batches that
    /// they give up go to `destination`, if the template says so. `traces` keeps the last changes.
    ///
    /// # Errors
    /// [`Trouble`] where there is no such function.
    pub fn new(
        database: &Database,
        template: &Template,
        destination: Option<&Destination>,
        traces: &Arc<Traces>,
        function: impl Fn(&str) -> Result<Function, Trouble>,
    ) -> Result<Self, Trouble> {
        let expired = Expired::default();
        let readers = template.sources.iter().map(|source| {
            let destination = destination.filter(|_| source.destination.as_deref() == Some(FAILED_RECORDS_BUCKET));
            let mapping = Mapping::new(source.clone(), function(&source.function)?);
            let mapping = Arc::new(mapping.with_destination(destination.cloned()));
            let (database, expired, traces) = (database.clone(), Arc::clone(&expired), Arc::clone(traces));
            Ok(Arc::new(Reader { database, mapping, place: Mutex::default(), expired, traces }))
        });
        Ok(Self { readers: readers.collect::<Result<_, _>>()?, expired })
    }

    /// Passes on all changes until none is left, including the changes that the functions make. May be called while
    /// [`Self::run`] runs.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read, or where the functions react to changes with ever more changes.
    pub async fn drain(&self) -> Result<(), Trouble> {
        while self.drain_readers(|_| true).await? {}
        Ok(())
    }

    /// Passes on all changes to one function only.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub async fn drain_for(&self, function: &str) -> Result<(), Trouble> {
        self.drain_readers(|name| name == function).await.map(drop)
    }

    /// Whether one of these readers found a change.
    async fn drain_readers(&self, wanted: impl Fn(&str) -> bool) -> Result<bool, Trouble> {
        let readers = self.readers.iter().filter(|reader| wanted(reader.mapping.name()));
        join_all(readers.map(|reader| reader.drain())).await.into_iter().try_fold(false, |any, found| Ok(any | found?))
    }

    /// Passes on changes as they come, until `stop` resolves. The next [`Self::run`] or [`Self::drain`] repeats work
    /// that was stopped.
    pub async fn run(self: Arc<Self>, stop: impl Future<Output = ()>) {
        let mut tasks = JoinSet::new();
        for reader in &self.readers {
            tasks.spawn(Arc::clone(reader).poll());
            for lane in 0..reader.mapping.lanes() {
                tasks.spawn(Arc::clone(&reader.mapping).attend(lane));
            }
        }
        stop.await;
        tasks.shutdown().await;
    }

    /// Removes items whose TTL has passed, as [`database::expire`] does.
    ///
    /// # Errors
    /// [`Trouble`] of the database.
    pub fn expire(
        &self,
        database: &Database,
        now: Timestamp,
        chosen: impl FnMut(&Key) -> bool,
    ) -> Result<usize, Trouble> {
        // The readers wait for this lock before they pass records on: by then the set has the keys of all these
        // removals.
        let mut expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        let removed = database::expire(database, now, chosen)?;
        let count = removed.len();
        expired.extend(removed);
        Ok(count)
    }

    /// Sets the faults between the stream and each function on it.
    pub fn set_faults(&self, faults: &StreamFaults) {
        for reader in &self.readers {
            reader.mapping.set_faults(faults.clone());
        }
    }

    /// Sets the freeze alone.
    pub fn set_freeze(&self, freeze: &Freeze) {
        for reader in &self.readers {
            reader.mapping.set_freeze(freeze.clone());
        }
    }

    /// For the key of each item, how many times a change of it was passed to a function again.
    pub fn repeats(&self) -> HashMap<String, usize> {
        let mut all = HashMap::new();
        for (key, times) in self.readers.iter().flat_map(|reader| reader.mapping.repeats()) {
            *all.entry(key).or_default() += times;
        }
        all
    }

    /// All changes since the table was created or copied, whether they were passed on or not.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub fn changes(database: &Database) -> Result<Vec<Value>, Trouble> {
        let mut all = Vec::new();
        Self::each_change(database, |change| all.push(change))?;
        Ok(all)
    }

    /// Passes all these changes to `see`, one after another. Unlike [`Self::changes`], it keeps only a few of them in
    /// memory.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub fn each_change(database: &Database, mut see: impl FnMut(Value)) -> Result<(), Trouble> {
        let mut place = stream::beginning(database, TABLE_NAME).map_err(trouble)?;
        while let Some(iterator) = place {
            let (records, next) = stream::read(database, &iterator).map_err(trouble)?;
            place = next.filter(|_| !records.is_empty());
            records.into_iter().for_each(&mut see);
        }
        Ok(())
    }

    /// The records that were given up, after too many attempts or too much time.
    pub fn given_up(&self) -> Vec<Value> {
        self.readers.iter().flat_map(|reader| reader.mapping.given_up()).collect()
    }
}

impl Reader {
    /// Reads the next records. Returns false if there are none.
    fn advance(&self) -> Result<bool, Trouble> {
        // Both steps are under one lock, so that the mapping gets every record once and in order.
        let mut place = self.place.lock().unwrap_or_else(PoisonError::into_inner);
        let iterator = match place.take() {
            Some(iterator) => iterator,
            None => match stream::beginning(&self.database, TABLE_NAME).map_err(trouble)? {
                Some(iterator) => iterator,
                None => return Ok(false),
            },
        };
        *place = Some(iterator.clone());
        let (mut records, next) = stream::read(&self.database, &iterator).map_err(trouble)?;
        *place = next;
        let any = !records.is_empty();
        let expired = self.expired.lock().unwrap_or_else(PoisonError::into_inner);
        for record in records.iter_mut().filter(|record| record["eventName"] == "REMOVE") {
            let text = |name: &str| record["dynamodb"]["Keys"][name]["S"].as_str().unwrap_or_default().to_owned();
            if expired.contains(&Key { pk: text(PK), sk: text(SK) }) {
                record["userIdentity"] = json!({"type": "Service", "principalId": DYNAMODB});
            }
        }
        drop(expired);
        self.traces.reported(&records);
        self.mapping.take(records);
        Ok(any)
    }

    async fn drain(&self) -> Result<bool, Trouble> {
        for round in 0..MOST_ROUNDS {
            let news = self.advance()?;
            // Even without new records: a run that was stopped may have left some.
            self.mapping.work_off().await;
            if !news {
                return Ok(round > 0);
            }
        }
        Err(Trouble(format!("{} answers changes by changes without an end", self.mapping.name())))
    }

    async fn poll(self: Arc<Self>) {
        loop {
            match self.advance() {
                Ok(true) => tokio::task::yield_now().await,
                Ok(false) => sleep(POLL).await,
                Err(trouble) => {
                    eprintln!("{}: {trouble}", self.mapping.name());
                    sleep(POLL).await;
                }
            }
        }
    }
}

fn trouble(error: impl std::fmt::Display) -> Trouble {
    Trouble(format!("the stream: {error}"))
}

#[cfg(test)]
mod tests {
    use std::sync::MutexGuard;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::{Barrier, Notify};
    use tokio::time::timeout;

    use super::*;
    use crate::database::{Data, open};

    /// Two functions: `copy` on the items that begin with A, and `see` on all.
    const TEMPLATE: &str = r#"
Resources:
  Table:
    Type: AWS::DynamoDB::Table
    Properties:
      AttributeDefinitions: [{AttributeName: pk, AttributeType: S}]
      KeySchema: [{AttributeName: pk, KeyType: HASH}]
      BillingMode: PAY_PER_REQUEST
      StreamSpecification: {StreamViewType: NEW_AND_OLD_IMAGES}
  CopyFunction:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Changed:
          Type: DynamoDB
          Properties:
            BatchSize: 10
            MaximumRetryAttempts: 3
            MaximumRecordAgeInSeconds: 3600
            FilterCriteria: {Filters: [{Pattern: '{"dynamodb":{"Keys":{"pk":{"S":[{"prefix":"A"}]}}}}'}]}
  SeeFunction:
    Type: AWS::Serverless::Function
    Properties:
      Events:
        Changed:
          Type: DynamoDB
          Properties: {BatchSize: 100, MaximumRetryAttempts: 3, MaximumRecordAgeInSeconds: 3600}
"#;

    struct Setting {
        database: Database,
        stream: Arc<Stream>,
        seen: Arc<Mutex<Vec<String>>>,
    }

    fn put(database: &Database, pk: &str) {
        let item = json!({"TableName": TABLE_NAME, "Item": {"pk": {"S": pk}}});
        database.put_item(serde_json::from_value(item).unwrap()).unwrap();
    }

    fn keys(payload: &str) -> Vec<String> {
        let event: Value = serde_json::from_str(payload).unwrap();
        let key = |record: &Value| record["dynamodb"]["Keys"]["pk"]["S"].as_str().unwrap().to_owned();
        event["Records"].as_array().unwrap().iter().map(key).collect()
    }

    /// `copy` makes a B of each A, and `see` notes what it sees.
    fn setting() -> Setting {
        let template = Template::parse(TEMPLATE).unwrap();
        let (database, seen) = (open(&Data::Memory, &template).unwrap(), Arc::<Mutex<Vec<String>>>::default());
        let stream = Stream::new(&database, &template, None, &Arc::default(), |name| {
            let (name, database, seen) = (name.to_owned(), database.clone(), Arc::clone(&seen));
            Ok(Arc::new(move |payload: String| {
                match &name[..] {
                    "copy" => keys(&payload).iter().for_each(|key| put(&database, &key.replace('A', "B"))),
                    _ => noted(&seen).extend(keys(&payload)),
                }
                Box::pin(std::future::ready(Ok("null".into())))
            }))
        });
        Setting { database, stream: Arc::new(stream.unwrap()), seen }
    }

    fn noted<T>(seen: &Mutex<T>) -> MutexGuard<'_, T> {
        seen.lock().unwrap()
    }

    #[tokio::test]
    async fn a_drain_delivers_changes_and_their_consequences_once() {
        let Setting { database, stream, seen } = setting();
        let wanted: Vec<String> = (0..2500).map(|number| format!("C{number}")).collect();
        for pk in &wanted {
            put(&database, pk);
        }
        stream.drain().await.unwrap();
        assert_eq!(*noted(&seen), wanted);
        noted(&seen).clear();
        put(&database, "A1");
        stream.drain().await.unwrap();
        assert_eq!(*noted(&seen), ["A1", "B1"]);
        stream.drain().await.unwrap();
        assert_eq!(noted(&seen).len(), 2);
    }

    #[tokio::test]
    async fn a_drain_of_an_endless_chain_of_changes_fails() {
        let template = Template::parse(TEMPLATE).unwrap();
        let database = open(&Data::Memory, &template).unwrap();
        let stream = Stream::new(&database, &template, None, &Arc::default(), |_| {
            let (database, next) = (database.clone(), AtomicUsize::new(0));
            Ok(Arc::new(move |_| {
                put(&database, &format!("A{}", next.fetch_add(1, Ordering::Relaxed)));
                Box::pin(std::future::ready(Ok("null".into())))
            }))
        });
        put(&database, "A");
        let trouble = stream.unwrap().drain_for("copy").await.unwrap_err();
        assert_eq!(trouble.0, "copy answers changes by changes without an end");
    }

    #[tokio::test]
    async fn drain_for_delivers_changes_to_one_function() {
        let Setting { database, stream, seen } = setting();
        put(&database, "A1");
        stream.drain_for("copy").await.unwrap();
        assert_eq!(noted(&seen).len(), 0);
        stream.drain_for("see").await.unwrap();
        assert_eq!(*noted(&seen), ["A1", "B1"]);
    }

    #[tokio::test]
    async fn functions_do_not_wait_for_each_other() {
        let template = Template::parse(TEMPLATE).unwrap();
        let (database, meeting) = (open(&Data::Memory, &template).unwrap(), Arc::new(Barrier::new(2)));
        // Neither ends before both have begun.
        let stream = Stream::new(&database, &template, None, &Arc::default(), |_| {
            let meeting = Arc::clone(&meeting);
            Ok(Arc::new(move |_| {
                let meeting = Arc::clone(&meeting);
                Box::pin(async move {
                    meeting.wait().await;
                    Ok("null".into())
                })
            }))
        });
        put(&database, "A1");
        timeout(Duration::from_mins(1), stream.unwrap().drain()).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn the_background_run_delivers_changes_as_they_come() {
        let Setting { database, stream, seen } = setting();
        put(&database, "A1");
        let enough = async || {
            while noted(&seen).len() < 4 {
                if noted(&seen).len() == 2 {
                    put(&database, "A2");
                }
                sleep(Duration::from_millis(5)).await;
            }
        };
        let stop = Notify::new();
        let watch = async {
            enough().await;
            stop.notify_one();
        };
        let both = async { tokio::join!(Arc::clone(&stream).run(stop.notified()), watch) };
        timeout(Duration::from_mins(1), both).await.unwrap();
        put(&database, "C3");
        stream.drain().await.unwrap();
        let mut all = noted(&seen).clone();
        all.sort();
        all.dedup();
        assert_eq!(all, ["A1", "A2", "B1", "B2", "C3"]);
        assert_eq!(stream.given_up(), Vec::<Value>::new());
    }

    #[tokio::test]
    async fn a_table_without_a_stream_has_no_changes() {
        let mut template = Template::parse(TEMPLATE).unwrap();
        template.without_stream();
        let database = open(&Data::Memory, &template).unwrap();
        let stream =
            Stream::new(&database, &template, None, &Arc::default(), |_| Ok(Arc::new(|_| panic!("it was invoked"))))
                .unwrap();
        put(&database, "A1");
        stream.drain().await.unwrap();
    }
}
