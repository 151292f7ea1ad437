//! The entire service in one process, for `cargo local` and the tests: gateway, functions, embedded DynamoDB and S3, payment provider.
//!
//! - [`template`] reads `template.yaml`, so that table and routes are what would be deployed.
//! - [`database`] serves the embedded DynamoDB, to which the SDK in this process comes by [`embedded_dynamodb`], which counts the units of partitions; [`bucket`] the embedded S3, [`gateway`] the API, [`payment_provider`] stands in for the provider.
//! - [`stream`] passes changes of the table to the functions on its stream, by the rules of Lambda in [`event_source`] and
//!   [`event_filter`]; what they give up goes to the [`destination`]. [`schedule`] invokes the functions on a schedule. [`lambda`] is one invocation of either.
//! - [`roles`] refuses what the role of a function does not allow, as IAM does.
//! - [`metric_filter`] tells which log lines CloudWatch counts, [`prices`] what calls and an idle stack cost.
//! - [`demo`] loads the demo set. [`faults`] makes the database fail on purpose, [`in_progress`] holds transactions that are in progress, [`receiver`] is a
//!   customer's server that can fail, and [`fault_run`] uses all at once and checks what arrives.
//! - [`inbox`] receives what the demo set sends, and verifies it. [`console`] shows that, the requests of the [`journal`] with their [`calls`] of the
//!   database, and the records by the [`api`].
//! - [`plain`] says what an operation without a file is. [`openapi`] makes the document of the API, [`collections`] the requests to try it with.
//! - [`replay`] sends recorded requests to a deployed service, and compares its answers.

pub mod api;
pub mod bucket;
pub mod calls;
pub mod collections;
pub mod console;
pub mod database;
pub mod demo;
pub mod destination;
pub mod event_filter;
pub mod event_source;
pub mod fault_run;
pub mod faults;
pub mod functions;
pub mod gateway;
pub mod in_progress;
pub mod inbox;
pub mod journal;
pub mod lambda;
pub mod metric_filter;
pub mod openapi;
pub mod payment_provider;
pub mod plain;
pub mod prices;
pub mod receiver;
pub mod replay;
pub mod roles;
pub mod schedule;
pub mod stream;
pub mod template;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::SharedHttpClient;
use shared::network::address::Reach;
use shared::network::{Network, SystemLookup};
use shared::request::authentication::KeyCache;
use shared::request::config::{Config, TABLE_ATTEMPT};
use shared::request::context::Service;
use shared::request::limit::Limiter;
use shared::runtime::http_client;
use shared::table::keys::Key;
use shared::table::retry::PATIENCE;
use shared::table::store::Store;
use shared::values::id::Ids;
use shared::values::limits::Limits;
use shared::values::time::Clock;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use dynoxide::Database;
use embedded_dynamodb::Embedded;
use embedded_dynamodb::partitions::Partitions;

use crate::api::Api;
use crate::bucket::Folder;
use crate::console::Console;
use crate::database::Data;
use crate::demo::Demo;
use crate::destination::Destination;
use crate::faults::Faults;
use crate::gateway::{Answer, Call, Gateway};
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::payment_provider::ProviderStandIn;
use crate::roles::{Permit, Roles};
use crate::schedule::Schedules;
use crate::stream::Stream;
use crate::template::Template;

/// Why the stack cannot start or continue, in one line for its user.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);

/// The settings of the stack.
#[derive(Debug)]
pub struct Settings {
    /// The template.
    pub template: PathBuf,
    /// The demo set; `None` leaves the table empty.
    pub demo: Option<PathBuf>,
    /// Where the database is kept, and the objects of the buckets beside it.
    pub data: Data,
    /// Whether changes are written to the table's stream.
    pub stream: bool,
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Where DynamoDB listens.
    pub dynamodb: SocketAddr,
    /// Where S3 listens.
    pub s3: SocketAddr,
    /// Where the payment provider's stand-in listens.
    pub payment_provider: SocketAddr,
    /// Where the event of each request is written to.
    pub record: Option<PathBuf>,
    /// Whether somebody watches: a line about each request is printed, and its calls are recorded for the console.
    pub log: bool,
    /// The time.
    pub clock: Clock,
    /// Fresh ids of records.
    pub ids: Ids,
    /// The faults between the SDK and the database.
    pub faults: Faults,
    /// The time limit of an attempt to call the database.
    pub attempt: Duration,
    /// How long a request tries again what others do at the same moment.
    pub patience: Duration,
    /// The rate limit of a widget, per second.
    pub sends_per_second: u32,
    /// The limits of a key that has none of its own.
    pub key_limits: Limits,
    /// The web origin whose pages may read the answers.
    pub cors_allow_origin: Option<String>,
    /// Where events may be sent.
    pub network: Network,
    /// Whether each function is a process of its own, which knows nothing of what others remember.
    pub processes: bool,
    /// The most batches of the stream that a function works on at the same time; none where the template decides.
    pub lanes: Option<usize>,
    /// How far the clocks of these processes are apart at most, in milliseconds.
    pub clocks_apart: i64,
    /// What looks at every request with its answer.
    pub look: Option<gateway::Look>,
    /// What decides in the place of the functions' roles.
    pub permit: Option<Permit>,
    /// The count of what the functions take of each partition of the table.
    pub partitions: Partitions,
}

impl Settings {
    /// The service as the checkout at `root` has it, in memory, on free ports.
    pub fn of(root: &Path) -> Self {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            template: root.join("template.yaml"),
            demo: Some(root.join("local/demo.yaml")),
            data: Data::Memory,
            stream: true,
            gateway: any,
            dynamodb: any,
            s3: any,
            payment_provider: any,
            record: None,
            log: false,
            clock: Clock::System,
            ids: Ids::Random,
            faults: Faults::default(),
            attempt: TABLE_ATTEMPT,
            patience: PATIENCE,
            sends_per_second: 10,
            // Beyond what this machine can do. A clock that stands still gives no token back, and tests send many requests.
            key_limits: Limits::new(10_000, 1_000_000),
            cors_allow_origin: None,
            // A user of the local stack has a receiver on this machine. Only the local stack may send events there.
            network: Network::new(Reach::Loopback, Arc::new(SystemLookup), Duration::from_secs(15)),
            processes: false,
            lanes: None,
            clocks_apart: 0,
            look: None,
            permit: None,
            partitions: Partitions::default(),
        }
    }
}

impl Settings {
    /// The template, as far as these settings follow it.
    fn template(&self) -> Result<Template, Trouble> {
        let mut template = template_at(&self.template)?;
        if !self.stream {
            template.without_stream();
        }
        if let Some(most) = self.lanes {
            template.limit_lanes(most);
        }
        Ok(template)
    }

    /// What the SDK's requests to `database` go through.
    fn http_client(&self, database: &Embedded, roles: &Roles) -> SharedHttpClient {
        let connector = self.faults.connector(roles.connector(database.connector()));
        http_client::client(if self.log { calls::connector(connector) } else { connector })
    }

    /// What the functions are told of the stack, whose gateway answers at `url`.
    fn config(&self, url: &str, payment_api_base: String, demo: Option<&Demo>) -> Config {
        Config {
            table_name: database::TABLE_NAME.to_owned(),
            files_bucket: bucket::BUCKET_NAME.to_owned(),
            failed_records_bucket: bucket::FAILED_RECORDS_NAME.to_owned(),
            payment_api_base,
            sends_per_second: self.sends_per_second,
            key_limits: self.key_limits,
            cors_allow_origin: self.cors_allow_origin.clone(),
            api_base_url: Some(url.to_owned()),
            ssl_cert_file: None,
            table_attempt: self.attempt,
            demo_key: demo.and_then(Demo::full_key).map(str::to_owned),
        }
    }
}

/// The running service.
pub struct Stack {
    /// Where the API answers, without `/api/v1`.
    pub url: String,
    /// Where DynamoDB answers.
    pub dynamodb_url: String,
    /// Where S3 answers.
    pub s3_url: String,
    /// The objects of the buckets.
    pub objects: Folder,
    /// The gateway, for calls without a socket.
    pub gateway: Arc<Gateway>,
    /// The table's stream, and the functions on it.
    pub stream: Arc<Stream>,
    /// The functions that have a schedule.
    pub schedules: Arc<Schedules>,
    /// The database itself.
    pub database: Database,
    /// The same as functions reach it: their calls are counted by partition.
    pub embedded: Embedded,
    /// The SDK, without faults.
    pub client: Client,
    /// The API, with the keys of the demo set.
    pub api: Api,
    /// The requests that were answered.
    pub journal: Arc<Journal>,
    /// What the demo set's events can be sent to.
    pub inbox: Arc<Inbox>,
    /// The stand-in for the payment provider.
    pub payment_provider: ProviderStandIn,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Stack {
    /// Starts everything.
    ///
    /// # Errors
    /// [`Trouble`] names the cause: a port in use, an unreadable file, a broken template.
    pub async fn start(settings: Settings) -> Result<Self, Trouble> {
        let template = settings.template()?;
        let demo = settings.demo.as_deref().map(Demo::read).transpose()?;
        let gateway_listener = listen(settings.gateway, "--port").await?;
        let dynamodb_listener = listen(settings.dynamodb, "--dynamodb-port").await?;
        let s3_listener = listen(settings.s3, "--s3-port").await?;
        let provider_listener = listen(settings.payment_provider, "--payment-port").await?;
        let (url, dynamodb_url, s3_url) =
            (address(&gateway_listener)?, address(&dynamodb_listener)?, address(&s3_listener)?);
        let database = database::open(&settings.data, &template)?;
        let objects = Folder::beside(&settings.data)?;

        let stop = watch::Sender::new(false);
        let stopped = |mut stop: watch::Receiver<bool>| async move {
            // A dropped sender also means to stop.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        let payment_provider = ProviderStandIn::new(settings.clock.clone());
        let config = settings.config(&url, address(&provider_listener)?, demo.as_ref());
        let connector = http_client::client(embedded_dynamodb::connector(&database));
        let client = database::client(&dynamodb_url, connector, Duration::from_secs(30));
        let mut tasks = vec![
            database::serve(dynamodb_listener, database.clone(), stopped(stop.subscribe())),
            bucket::serve(s3_listener, &objects, stopped(stop.subscribe()))?,
            payment_provider.serve(provider_listener),
        ];
        let journal = Arc::new(Journal::default());
        let organisations = demo.iter().flat_map(|demo| &demo.organisations).map(|organisation| organisation.org_id);
        let store = Store::new(client.clone(), config.table_name.clone());
        let inbox =
            Arc::new(Inbox::new(store.clone(), settings.clock.clone(), organisations.collect(), Arc::clone(&journal)));
        if let Some(demo) = &demo {
            // Boxed: whoever starts a stack would otherwise carry the memory of all that is loaded.
            Box::pin(demo.load(&template, &store, &s3_url, config.clone())).await?;
        }
        let roles = Roles::of(&template, settings.permit)?;
        let embedded = Embedded::new(&database, &settings.partitions);
        let faulty = database::client(&dynamodb_url, settings.http_client(&embedded, &roles), settings.attempt);
        let to_bucket = settings.faults.connector(roles.connector(bucket::connector()));
        let service = Service {
            store: Store::new(faulty, config.table_name.clone()).with_patience(settings.patience),
            bucket: bucket::client(&s3_url, to_bucket.clone()),
            failed_records: bucket::failed_records(&s3_url, to_bucket),
            config,
            clock: settings.clock.clone(),
            ids: settings.ids.clone(),
            keys: KeyCache::default(),
            limiter: Limiter::default(),
            network: settings.network,
        };
        // The gateway has its own source of ids, so that its ids do not change those of the records.
        let request_ids = if matches!(settings.ids, Ids::Random) { Ids::Random } else { Ids::counted() };
        let gateway =
            Gateway::new(&template, service, request_ids, Arc::clone(&journal), settings.record, settings.log)?;
        let gateway = gateway.with_roles(roles).looked_at_by(settings.look);
        let gateway =
            Arc::new(if settings.processes { gateway.with_processes(settings.clocks_apart) } else { gateway });
        // What Lambda itself sends knows neither the faults nor the roles of the functions.
        let failed_records = bucket::failed_records(&s3_url, bucket::connector());
        let destination = Destination::new(failed_records, settings.clock.clone());
        let stream = Stream::new(&database, &template, Some(&destination), |name| gateway.event_function(name))?;
        let stream = Arc::new(stream);
        let schedules = Arc::new(Schedules::new(&template, |name| gateway.event_function(name))?);
        let api = Api::new(Arc::clone(&gateway), demo.as_ref());
        let console = Console {
            url: url.clone(),
            api: api.clone(),
            journal: Arc::clone(&journal),
            inbox: Arc::clone(&inbox),
            store,
            client: client.clone(),
            payment_provider: payment_provider.clone(),
            clock: settings.clock,
            schedules: Arc::clone(&schedules),
            skips: console::Skips::default(),
        };
        let beside = Arc::clone(&inbox).router().merge(console.router());
        let serving = Arc::clone(&gateway).serve(gateway_listener, beside, stopped(stop.subscribe()));
        tasks.push(tokio::spawn(async move {
            if let Err(trouble) = serving.await {
                eprintln!("{trouble}");
            }
        }));
        Ok(Self {
            url,
            dynamodb_url,
            s3_url,
            objects,
            gateway,
            stream,
            schedules,
            database,
            embedded,
            client,
            api,
            journal,
            inbox,
            payment_provider,
            stop,
            tasks,
        })
    }

    /// Answers `call` as the gateway would, without a socket.
    pub async fn answer(&self, call: &Call) -> Answer {
        self.gateway.answer(call).await
    }

    /// Passes all changes to the functions on the stream.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub async fn settle(&self) -> Result<(), Trouble> {
        self.stream.drain().await
    }

    /// Removes the items of `chosen` keys whose TTL has passed, as DynamoDB does at any time after.
    ///
    /// # Errors
    /// [`Trouble`] of the database.
    pub fn expire(&self, chosen: impl FnMut(&Key) -> bool) -> Result<usize, Trouble> {
        self.stream.expire(&self.database, self.gateway.service.clock.now(), chosen)
    }

    /// Invokes `function` as its schedule would.
    ///
    /// # Errors
    /// [`Trouble`] where there is no such function, or the error of the function.
    pub async fn tick(&self, function: &str) -> Result<(), Trouble> {
        let ticked = schedule::tick(&self.gateway.event_function(function)?).await;
        ticked.map_err(|failed| Trouble(format!("{function}: {failed}")))
    }

    /// Invokes all functions with a schedule once, at the same time.
    ///
    /// # Errors
    /// [`Trouble`] names one that failed.
    pub async fn minute(&self) -> Result<(), Trouble> {
        self.schedules.minute().await
    }

    /// Runs the functions on the stream in the background, until the returned guard is dropped. Nothing happens because time passes.
    #[must_use]
    pub fn following(&self) -> Background {
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.stream).run(std::future::pending()));
        Background(tasks)
    }

    /// Runs the functions on the stream and on schedules in the background, until the returned guard is dropped.
    #[must_use]
    pub fn background(&self) -> Background {
        let Background(mut tasks) = self.following();
        tasks.spawn(Arc::clone(&self.schedules).run(std::future::pending()));
        Background(tasks)
    }

    /// Stops listening, waits a moment for running work, and ends.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            let abort = task.abort_handle();
            if tokio::time::timeout(Duration::from_secs(1), task).await.is_err() {
                abort.abort();
            }
        }
    }
}

/// The background tasks. They end when it is dropped.
pub struct Background(JoinSet<()>);

impl Background {
    /// Stops running work, and ends.
    pub async fn stop(mut self) {
        self.0.shutdown().await;
    }
}

/// The template at `path`, which a process reads once: that takes longer than all the rest of a start.
fn template_at(path: &Path) -> Result<Template, Trouble> {
    static READ: Mutex<BTreeMap<PathBuf, Template>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(template) = read.get(path) {
        return Ok(template.clone());
    }
    let template = Template::read(path)?;
    read.insert(path.to_owned(), template.clone());
    Ok(template)
}

/// `option` is the command-line option that chooses the port.
async fn listen(address: SocketAddr, option: &str) -> Result<TcpListener, Trouble> {
    TcpListener::bind(address).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::AddrInUse => {
            Trouble(format!("{address} is taken by another program; {option} chooses another port"))
        }
        _ => Trouble(format!("cannot listen on {address}: {error}")),
    })
}

fn address(listener: &TcpListener) -> Result<String, Trouble> {
    let address = listener.local_addr().map_err(|error| Trouble(error.to_string()))?;
    Ok(format!("http://{address}"))
}
