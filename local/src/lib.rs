//! The entire service in one process: gateway, functions, embedded DynamoDB, payment provider. What `cargo local` runs, and the tests.
//!
//! - [`template`] reads `template.yaml`, so that table and routes are what would be deployed.
//! - [`database`] serves the embedded DynamoDB, [`gateway`] the API, [`payment_provider`] stands in for the provider.
//! - [`stream`] hands changes of the table to the functions on its stream, by Lambda's rules.
//! - [`demo`] loads the demo set, [`faults`] makes the database misbehave on purpose.

pub mod database;
pub mod demo;
pub mod endpoints;
pub mod faults;
pub mod gateway;
pub mod payment_provider;
pub mod prices;
pub mod stream;
pub mod template;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use shared::auth::KeyCache;
use shared::config::Config;
use shared::context::{Clock, Ids, Service};
use shared::table::store::Store;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use dynoxide::Database;

use crate::database::Data;
use crate::faults::Faults;
use crate::gateway::{Answer, Call, Gateway};
use crate::payment_provider::PaymentProvider;
use crate::stream::Stream;
use crate::template::Template;

/// What keeps the stack from starting, in one line for whoever started it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Trouble(pub String);

/// How the stack is to be.
#[derive(Debug)]
pub struct Settings {
    /// The template.
    pub template: PathBuf,
    /// The demo set; none leaves the table empty.
    pub demo: Option<PathBuf>,
    /// Where the database is kept.
    pub data: Data,
    /// Whether changes are written to the table's stream. Each then costs a look at all that came before.
    pub stream: bool,
    /// Where the gateway listens.
    pub gateway: SocketAddr,
    /// Where DynamoDB listens.
    pub dynamodb: SocketAddr,
    /// Where the payment provider's stand-in listens.
    pub payment_provider: SocketAddr,
    /// Where the event of each request is written to.
    pub record: Option<PathBuf>,
    /// Whether a line about each request is printed.
    pub log: bool,
    /// The time.
    pub clock: Clock,
    /// Fresh ids of records.
    pub ids: Ids,
    /// What goes wrong between the SDK and the database.
    pub faults: Faults,
    /// How long an attempt of a call may take.
    pub attempt: Duration,
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
            payment_provider: any,
            record: None,
            log: false,
            clock: Clock::System,
            ids: Ids::Random,
            faults: Faults::default(),
            attempt: Duration::from_secs(1),
        }
    }
}

/// The running service.
pub struct Stack {
    /// Where the API answers, without `/api/v1`.
    pub url: String,
    /// Where DynamoDB answers.
    pub dynamodb_url: String,
    /// The gateway, for calls without a socket.
    pub gateway: Arc<Gateway>,
    /// The table's stream, and the functions on it.
    pub stream: Arc<Stream>,
    /// The database itself.
    pub database: Database,
    /// The SDK, without faults.
    pub client: Client,
    /// The stand-in for the payment provider.
    pub payment_provider: PaymentProvider,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Stack {
    /// Starts everything.
    ///
    /// # Errors
    /// [`Trouble`] names what is in the way: a taken port, an unreadable file, a broken template.
    pub async fn start(settings: Settings) -> Result<Self, Trouble> {
        let mut template = Template::read(&settings.template)?;
        if !settings.stream {
            template.without_stream();
        }
        let demo = settings.demo.as_deref().map(demo::Demo::read).transpose()?;
        let gateway_listener = listen(settings.gateway, "--port").await?;
        let dynamodb_listener = listen(settings.dynamodb, "--dynamodb-port").await?;
        let provider_listener = listen(settings.payment_provider, "--payment-port").await?;
        let (url, dynamodb_url) = (address(&gateway_listener)?, address(&dynamodb_listener)?);
        let database = database::open(&settings.data, &template)?;

        let stop = watch::Sender::new(false);
        let stopped = |mut stop: watch::Receiver<bool>| async move {
            // The sender's end is as good a reason to stop as its word.
            let _ = stop.wait_for(|stop| *stop).await;
        };
        let payment_provider = PaymentProvider::default();
        let config = Config {
            table_name: database::TABLE_NAME.to_owned(),
            payment_api_base: address(&provider_listener)?,
            cors_allow_origin: None,
            api_base_url: Some(url.clone()),
        };
        let client = database::client(&dynamodb_url, None, Duration::from_secs(30));
        let mut tasks = vec![
            database::serve(dynamodb_listener, database.clone(), stopped(stop.subscribe())),
            payment_provider.serve(provider_listener),
        ];
        if let Some(demo) = demo {
            demo.load(&Store::new(client.clone(), config.table_name.clone())).await?;
        }
        let faulty = database::client(&dynamodb_url, Some(settings.faults.http_client()), settings.attempt);
        let service = Service {
            store: Store::new(faulty, config.table_name.clone()),
            config,
            clock: settings.clock,
            ids: settings.ids.clone(),
            keys: KeyCache::default(),
        };
        // The gateway's own ids are its own: they must not move those of the records.
        let request_ids = if matches!(settings.ids, Ids::Random) { Ids::Random } else { Ids::counted() };
        let gateway = Arc::new(Gateway::new(&template, service, request_ids, settings.record, settings.log)?);
        let stream = Arc::new(Stream::new(database.clone(), &template)?);
        let serving = Arc::clone(&gateway).serve(gateway_listener, stopped(stop.subscribe()));
        tasks.push(tokio::spawn(async move {
            if let Err(trouble) = serving.await {
                eprintln!("{trouble}");
            }
        }));
        Ok(Self { url, dynamodb_url, gateway, stream, database, client, payment_provider, stop, tasks })
    }

    /// Answers `call` as the gateway would, without a socket.
    pub async fn answer(&self, call: &Call) -> Answer {
        self.gateway.answer(call).await
    }

    /// Has the functions on the stream see all that has changed.
    ///
    /// # Errors
    /// [`Trouble`] where the stream cannot be read.
    pub async fn settle(&self) -> Result<(), Trouble> {
        self.stream.drain(&self.gateway.service).await
    }

    /// Stops listening, lets what is under way finish, for a moment at most, and ends.
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

/// `option` is the command line's that chooses the port.
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
