//! The stack: everything that one process serves, started and stopped together.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::SharedHttpClient;
use dynoxide::Database;
use embedded_dynamodb::Embedded;
use embedded_dynamodb::partitions::Partitions;
use shared::network::address::Reach;
use shared::network::lanes::LaneTime;
use shared::network::{Network, SystemLookup};
use shared::request::authentication::KeyCache;
use shared::request::config::{Config, TABLE_ATTEMPT};
use shared::request::context::Service;
use shared::request::limit::Limiter;
use shared::runtime::http_client;
use shared::sealing::Secrets;
use shared::table::keys::Key;
use shared::table::quota::Quotas;
use shared::table::retry::PATIENCE;
use shared::table::store::Store;
use shared::values::id::Ids;
use shared::values::limits::Limits;
use shared::values::time::Clock;
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::api::Api;
use crate::bucket::Folder;
use crate::console::Console;
use crate::database::Data;
use crate::demo::Demo;
use crate::destination::Destination;
use crate::faults::Faults;
use crate::gateway::Gateway;
use crate::http::{Answer, Call};
use crate::inbox::Inbox;
use crate::journal::Journal;
use crate::kms::LocalKms;
use crate::new_objects::{NewObjects, Notified};
use crate::payment_provider::ProviderStandIn;
use crate::port::Port;
use crate::roles::{Permit, Roles};
use crate::schedule::Schedules;
use crate::stream::Stream;
use crate::template::Template;
use crate::{Trouble, bucket, calls, console, database, gateway, kms, schedule};

/// The settings of the stack.
#[derive(Debug)]
pub struct Settings {
    /// The template.
    pub template: PathBuf,
    /// The demo set; `None` leaves the table empty.
    pub demo: Option<PathBuf>,
    /// The place of the database; the objects of the buckets are kept next to it.
    pub data: Data,
    /// Whether changes are written to the table's stream.
    pub stream: bool,
    /// The address of the gateway.
    pub gateway: SocketAddr,
    /// The address of DynamoDB.
    pub dynamodb: SocketAddr,
    /// The address of S3.
    pub s3: SocketAddr,
    /// The address of KMS.
    pub kms: SocketAddr,
    /// The address of the payment provider's stand-in.
    pub payment_provider: SocketAddr,
    /// The folder for the event of each request.
    pub record: Option<PathBuf>,
    /// Whether a user watches: a line about each request is printed, and its calls are recorded for the console.
    pub log: bool,
    /// The time.
    pub clock: Clock,
    /// Fresh ids of records.
    pub ids: Ids,
    /// The faults between the SDK and the database.
    pub faults: Faults,
    /// The time limit of an attempt to call the database.
    pub attempt: Duration,
    /// How long a request retries after conflicts with others.
    pub patience: Duration,
    /// The rate limit of a widget, per second.
    pub sends_per_second: u32,
    /// The limits of each organisation.
    pub quotas: Quotas,
    /// The limits of a key without limits of its own.
    pub key_limits: Limits,
    /// For how many days an entry of the audit list is kept; 0 if there is no list.
    pub audit_days: u32,
    /// The web origin whose pages may read the answers.
    pub cors_allow_origin: Option<String>,
    /// The addresses to which events may be sent.
    pub network: Network,
    /// Whether each function is a process of its own, without the memory of others.
    pub processes: bool,
    /// The most batches of the stream that a function processes at the same time; `None` if the template decides.
    pub lanes: Option<usize>,
    /// The largest difference between the clocks of these processes, in milliseconds.
    pub clocks_apart: i64,
    /// The function that is called with every request and its answer.
    pub look: Option<gateway::Look>,
    /// The function that decides in place of the functions' roles.
    pub permit: Option<Permit>,
    /// The count of the units that the functions take of each partition of the table.
    pub partitions: Partitions,
}

impl Settings {
    /// The service of the checkout at `root`, in memory, on free ports.
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
            kms: any,
            payment_provider: any,
            record: None,
            log: false,
            clock: Clock::System,
            ids: Ids::Random,
            faults: Faults::default(),
            attempt: TABLE_ATTEMPT,
            patience: PATIENCE,
            sends_per_second: 10,
            quotas: Quotas::default(),
            // Higher than this machine can reach. A clock that stands still refills no token, and tests send many
            // requests.
            key_limits: Limits::new(10_000, 1_000_000),
            audit_days: 400,
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
    /// The template, changed according to these settings.
    fn template(&self) -> Result<Template, Trouble> {
        let mut template = Template::read_once(&self.template)?;
        if !self.stream {
            template.without_stream();
        }
        if let Some(most) = self.lanes {
            template.limit_lanes(most);
        }
        Ok(template)
    }

    /// The layers between the SDK and `database`.
    fn http_client(&self, database: &Embedded, roles: &Roles) -> SharedHttpClient {
        let connector = self.faults.connector(roles.connector(database.connector()));
        http_client::client(if self.log { calls::connector(connector) } else { connector })
    }

    /// The configuration of the functions for this stack.
    fn config(&self, urls: &Urls, demo: Option<&Demo>) -> Config {
        Config {
            table_name: database::TABLE_NAME.to_owned(),
            files_bucket: bucket::BUCKET_NAME.to_owned(),
            failed_records_bucket: bucket::FAILED_RECORDS_NAME.to_owned(),
            secrets_key: Some(kms::KEY.to_owned()),
            payment_api_base: urls.payment_provider.clone(),
            sends_per_second: self.sends_per_second,
            quotas: self.quotas,
            key_limits: self.key_limits,
            audit_days: self.audit_days,
            cors_allow_origin: self.cors_allow_origin.clone(),
            api_base_url: Some(urls.gateway.clone()),
            ssl_cert_file: None,
            table_attempt: self.attempt,
            demo_key: demo.and_then(Demo::admin_key).map(str::to_owned),
        }
    }

    /// The service of the functions; its calls go through the faults and the roles.
    fn service(&self, config: Config, urls: &Urls, database: &Embedded, roles: &Roles, kms: &LocalKms) -> Service {
        let client = database::client(&urls.dynamodb, self.http_client(database, roles), self.attempt);
        let to_bucket = self.faults.connector(roles.connector(bucket::connector()));
        let network = self.network.clone().of_service(config.api_base_url.as_deref());
        // The faults are those of the database: their plans count its calls.
        let secrets = Secrets::new(Some(kms::client(&urls.kms, roles.connector(kms.connector()))));
        let store = Store::new(client, config.table_name.clone()).sealing(secrets);
        Service {
            store: store.with_patience(self.patience).with_quotas(config.quotas),
            bucket: bucket::client(&urls.s3, to_bucket.clone()),
            failed_records: bucket::failed_records(&urls.s3, to_bucket),
            config,
            clock: self.clock.clone(),
            ids: self.ids.clone(),
            keys: KeyCache::default(),
            limiter: Limiter::default(),
            lanes: LaneTime::default(),
            network,
        }
    }

    /// The gateway of `template`, in front of `service`.
    fn gateway(
        &self,
        template: &Template,
        service: Service,
        roles: Roles,
        journal: &Arc<Journal>,
    ) -> Result<Gateway, Trouble> {
        // The gateway takes its ids from a source of its own, so that the ids of records stay the same for any number
        // of requests.
        let ids = if matches!(self.ids, Ids::Random) { Ids::Random } else { Ids::counted() };
        let gateway = Gateway::new(template, service, ids, Arc::clone(journal), self.record.clone(), self.log)?;
        let gateway = gateway.with_roles(roles).looked_at_by(self.look);
        Ok(if self.processes { gateway.with_processes(self.clocks_apart) } else { gateway })
    }
}

/// The ports of the stack.
struct Ports {
    gateway: Port,
    dynamodb: Port,
    s3: Port,
    kms: Port,
    payment_provider: Port,
}

/// The address of each port.
struct Urls {
    gateway: String,
    dynamodb: String,
    s3: String,
    kms: String,
    payment_provider: String,
}

impl Ports {
    async fn open(settings: &Settings) -> Result<Self, Trouble> {
        let gateway = Port::open(settings.gateway, "--port").await?;
        Ok(Self {
            gateway: gateway.allowing(settings.cors_allow_origin.clone()),
            dynamodb: Port::open(settings.dynamodb, "--dynamodb-port").await?,
            s3: Port::open(settings.s3, "--s3-port").await?,
            kms: Port::open(settings.kms, "--kms-port").await?,
            payment_provider: Port::open(settings.payment_provider, "--payment-port").await?,
        })
    }

    fn urls(&self) -> Urls {
        Urls {
            gateway: self.gateway.url.clone(),
            dynamodb: self.dynamodb.url.clone(),
            s3: self.s3.url.clone(),
            kms: self.kms.url.clone(),
            payment_provider: self.payment_provider.url.clone(),
        }
    }
}

/// The running service.
pub struct Stack {
    /// The address of the API, without `/api/v1`.
    pub url: String,
    /// The address of DynamoDB.
    pub dynamodb_url: String,
    /// The address of S3.
    pub s3_url: String,
    /// The address of KMS.
    pub kms_url: String,
    /// The address of the payment provider's stand-in.
    pub payment_url: String,
    /// The objects of the buckets.
    pub objects: Folder,
    /// The gateway, for calls without a socket.
    pub gateway: Arc<Gateway>,
    /// The table's stream, and the functions on it.
    pub stream: Arc<Stream>,
    /// The functions that have a schedule.
    pub schedules: Arc<Schedules>,
    /// The function that is notified of new objects.
    pub notified: Arc<Notified>,
    /// The database itself.
    pub database: Database,
    /// The database as functions reach it: their calls are counted by partition.
    pub embedded: Embedded,
    /// The SDK, without faults.
    pub client: Client,
    /// The keys of secrets.
    pub kms: LocalKms,
    /// The API, with the keys of the demo set.
    pub api: Api,
    /// The requests that were answered.
    pub journal: Arc<Journal>,
    /// A receiver for the demo set's events.
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
        let ports = Ports::open(&settings).await?;
        let urls = ports.urls();
        let database = database::open(&settings.data, &template)?;
        let objects = Folder::next_to(&settings.data)?;
        let (stop, payment_provider) = (watch::Sender::new(false), ProviderStandIn::new(settings.clock.clone()));
        let (kms, new_objects) = (LocalKms::default(), NewObjects::new(settings.clock.clone()));
        let tasks = vec![
            ports.dynamodb.serve(database::router(&database), stopped(&stop)),
            ports.s3.serve(bucket::router(&objects, new_objects.clone())?, stopped(&stop)),
            ports.kms.serve(kms.router(), stopped(&stop)),
            ports.payment_provider.serve(payment_provider.router(), stopped(&stop)),
        ];
        let config = settings.config(&urls, demo.as_ref());
        let connector = http_client::client(embedded_dynamodb::connector(&database));
        let client = database::client(&urls.dynamodb, connector, Duration::from_secs(30));
        let store = Store::new(client.clone(), config.table_name.clone()).sealing(kms.secrets());
        let journal = Arc::new(Journal::default());
        let organisations = demo.iter().flat_map(|demo| &demo.organisations).map(|organisation| organisation.org_id);
        let inbox = Inbox::new(store.clone(), settings.clock.clone(), organisations.collect(), Arc::clone(&journal));
        if let Some(demo) = &demo {
            // Boxed: otherwise each caller that starts a stack would contain the memory for all loaded data.
            Box::pin(demo.load(&template, &store, &urls.s3, config.clone())).await?;
            new_objects.clear();
        }
        let embedded = Embedded::new(&database, &settings.partitions);
        let roles = Roles::of(&template, settings.permit)?;
        let service = settings.service(config, &urls, &embedded, &roles, &kms);
        let gateway = Arc::new(settings.gateway(&template, service, roles, &journal)?);
        // Lambda's own calls are subject neither to the faults nor to the roles of the functions.
        let failed_records = bucket::failed_records(&urls.s3, bucket::connector());
        let destination = Destination::new(failed_records, settings.clock.clone());
        let function = |name: &str| gateway.event_function(name);
        let mut stack = Self {
            stream: Arc::new(Stream::new(&database, &template, Some(&destination), &journal.traces, function)?),
            schedules: Arc::new(Schedules::new(&template, function)?),
            notified: Arc::new(Notified::of(&template, function, new_objects, destination.clone())?),
            api: Api::new(Arc::clone(&gateway), demo.map_or_else(Vec::new, |demo| demo.with_keys())),
            url: urls.gateway,
            dynamodb_url: urls.dynamodb,
            s3_url: urls.s3,
            kms_url: urls.kms,
            payment_url: urls.payment_provider,
            objects,
            gateway,
            database,
            embedded,
            client,
            kms,
            journal,
            inbox: Arc::new(inbox),
            payment_provider,
            stop,
            tasks,
        };
        stack.serve(ports.gateway, stack.console(store, settings.clock, settings.log));
        Ok(stack)
    }

    /// The table without faults and without the roles of functions.
    pub fn store(&self) -> Store {
        Store::new(self.client.clone(), database::TABLE_NAME.to_owned()).sealing(self.kms.secrets())
    }

    /// The console of this stack.
    fn console(&self, store: Store, clock: Clock, watched: bool) -> Console {
        Console {
            url: self.url.clone(),
            api: self.api.clone(),
            journal: Arc::clone(&self.journal),
            inbox: Arc::clone(&self.inbox),
            store,
            client: self.client.clone(),
            payment_provider: self.payment_provider.clone(),
            clock,
            schedules: Arc::clone(&self.schedules),
            skips: console::Skips::default(),
            samples: console::Samples::default(),
            watched,
            totals: console::Totals::default(),
            names_are_known: tokio::sync::OnceCell::new(),
        }
    }

    /// Serves the API, and next to it the inbox and `console`.
    fn serve(&mut self, port: Port, console: Console) {
        let other_routes = Arc::clone(&self.inbox).router().merge(console.router());
        let router = Arc::clone(&self.gateway).router().merge(other_routes);
        self.tasks.push(port.serve(router, stopped(&self.stop)));
    }

    /// Answers `call` as the gateway would, without a socket.
    pub async fn answer(&self, call: &Call) -> Answer {
        self.gateway.answer(call).await
    }

    /// Passes all new objects on, and passes all changes to the functions on the stream.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub async fn settle(&self) -> Result<(), Trouble> {
        self.notified.drain().await?;
        self.stream.drain().await
    }

    /// Removes the items of `chosen` keys whose TTL has passed, as DynamoDB does at an arbitrary time after it.
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

    /// Runs the functions on the stream and the one that is notified of new objects in the background, until the
    /// returned guard is dropped. The functions on schedules do not run.
    #[must_use]
    pub fn following(&self) -> Background {
        let mut tasks = JoinSet::new();
        tasks.spawn(Arc::clone(&self.stream).run(std::future::pending()));
        tasks.spawn(Arc::clone(&self.notified).run());
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

/// Resolves when `stop` becomes true, or is dropped.
fn stopped(stop: &watch::Sender<bool>) -> impl Future<Output = ()> + Send + use<> {
    let mut stop = stop.subscribe();
    async move {
        let _ = stop.wait_for(|stop| *stop).await;
    }
}
