//! Runs a function under Lambda: sets up logging, configuration and clients, and serves events.

use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig};
use aws_sdk_dynamodb::config::{ProvideCredentials, SharedHttpClient};
use lambda_http::request::LambdaRequest;
pub use lambda_runtime::tracing;
use lambda_runtime::tracing::level_filters::LevelFilter;
use lambda_runtime::tracing::subscriber::filter::{FilterFn, filter_fn};
use lambda_runtime::tracing::subscriber::fmt::MakeWriter;
use lambda_runtime::tracing::subscriber::layer::SubscriberExt as _;
use lambda_runtime::tracing::subscriber::util::SubscriberInitExt as _;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use crate::bucket::Bucket;
use crate::bucket::kept::KeptObjects;
use crate::mcp::Server;
use crate::network::Network;
use crate::network::lanes::LaneTime;
use crate::request::authentication::KeyCache;
use crate::request::config::{Config, Logging};
use crate::request::context::Service;
use crate::request::event::EventContext;
use crate::request::http::HttpRequest;
use crate::request::limit::Limiter;
use crate::request::pipeline::Handler;
use crate::runtime::document::{Library, Published};
use crate::runtime::http_client;
use crate::runtime::operator::Task;
use crate::runtime::schedule::Scheduled;
use crate::runtime::stream::{BatchOrTick, BatchOutcome, Consumer, StreamEvent};
use crate::sealing::{Kms, Secrets};
use crate::table::store::Store;
use crate::values::id::Ids;
use crate::values::time::Clock;

/// Why a function cannot start.
pub type Fatal = lambda_runtime::Error;

/// Serves `handler` until Lambda ends the process.
///
/// # Errors
/// The reason why it cannot start.
pub fn run(handler: Handler) -> Result<(), Fatal> {
    serve(service(Network::public()), &async move |service: &Service, event: LambdaEvent<LambdaRequest>| {
        let request = HttpRequest::from_event(event.payload, &event.context.request_id);
        Ok::<_, Fatal>(handler.answer(service, &request).await)
    })
}

/// Serves the tools of `server` until Lambda ends the process.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_server(server: Server) -> Result<(), Fatal> {
    serve(service(Network::public()), &async move |service: &Service, event: LambdaEvent<LambdaRequest>| {
        let request = HttpRequest::from_event(event.payload, &event.context.request_id);
        Ok::<_, Fatal>(server.answer(service, &request).await)
    })
}

/// Serves `document` until Lambda ends the process. It needs no client.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_document(document: Published) -> Result<(), Fatal> {
    let library = async { Ok(Library::new(Config::from_env()?)) };
    serve(library, &async move |library: &Library, event: LambdaEvent<LambdaRequest>| {
        let request = HttpRequest::from_event(event.payload, &event.context.request_id);
        Ok::<_, Fatal>(library.answer(&document, &request))
    })
}

/// Serves `task` until Lambda ends the process.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_task(task: Task) -> Result<(), Fatal> {
    serve(service(Network::public()), &async move |service: &Service, event: LambdaEvent<Box<RawValue>>| {
        let answer = task.invoke(service, event.payload.get().as_bytes()).await;
        let answer = answer
            .map_err(|refusal| Diagnostic { error_type: refusal.kind.to_owned(), error_message: refusal.message })?;
        Ok::<_, Diagnostic>(RawValue::from_string(answer).unwrap_or_default())
    })
}

/// Serves `consumer` until Lambda ends the process: batches of the stream, and the ticks of its schedule if it has one.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_consumer(consumer: Consumer) -> Result<(), Fatal> {
    run_consumer_in(Network::public(), consumer)
}

/// The same, with events sent through `network`: a benchmark has its receivers on its own machine.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_consumer_in(network: Network, consumer: Consumer) -> Result<(), Fatal> {
    serve(service(network), &async move |service: &Service, event: LambdaEvent<BatchOrTick>| {
        let cx = EventContext { service };
        match event.payload.records {
            Some(records) => Ok(consumer.handle(&cx, &StreamEvent { records }).await),
            None => consumer.tick(&cx).await.map(|()| BatchOutcome::default()).map_err(Fatal::from),
        }
    })
}

/// Serves `scheduled` until Lambda ends the process.
///
/// # Errors
/// The reason why it cannot start.
pub fn run_scheduled(scheduled: Scheduled) -> Result<(), Fatal> {
    serve(service(Network::public()), &async move |service: &Service, _: LambdaEvent<IgnoredAny>| {
        scheduled.tick(&EventContext { service }).await.map_err(Fatal::from)
    })
}

/// Sets everything up, makes the state of this process with `start`, and calls `handle` with it for each event.
fn serve<S, E, R, X>(
    start: impl Future<Output = Result<S, Fatal>>,
    handle: &impl AsyncFn(&S, LambdaEvent<E>) -> Result<R, X>,
) -> Result<(), Fatal>
where
    E: DeserializeOwned,
    R: Serialize,
    X: Into<Diagnostic> + std::fmt::Debug,
{
    log();
    // Lambda sends one request at a time, so more threads would only cost memory and time at the start.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let state = &start.await?;
        // Boxed: each layer of the runtime would copy the whole future.
        lambda_runtime::run(service_fn(|event: LambdaEvent<E>| Box::pin(handle(state, event)))).await
    })
}

/// Logs lines of JSON or text to standard output. The runtime's own subscriber does the same, but adds an unused filter
/// language, with a regular expression engine, to every binary.
fn log() {
    let Logging { level, json } = Logging::from_env();
    if json {
        json_lines(level, std::io::stdout).init();
    } else {
        let lines = tracing::subscriber::fmt().with_target(false).without_time().with_ansi(false);
        lines.with_max_level(level).finish().with(own_details()).init();
    }
}

/// Lets lines and spans below `INFO` pass only if they are this crate's own; no function logs by itself. Other crates
/// write whole events and calls at these levels, with keys, secrets and bodies.
fn own_details() -> FilterFn {
    filter_fn(|about| {
        *about.level() <= tracing::Level::INFO || about.target().split("::").next() == Some(env!("CARGO_CRATE_NAME"))
    })
}

/// Writes each line as one JSON object to `writer`: `level`, `fields` with the line's `message` among them, and `span`.
pub fn json_lines<W>(level: LevelFilter, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing::subscriber::fmt().with_target(false).without_time().with_ansi(false).with_max_level(level);
    lines.json().with_span_list(false).with_writer(writer).finish().with(own_details())
}

/// The service of this process, with an open connection to the table.
async fn service(network: Network) -> Result<Service, Fatal> {
    let config = Config::from_env()?;
    let connector = http_client::connector(http_client::amazon_roots()?);
    let sdk = sdk_config(http_client::client(connector.clone()), config.table_attempt).await;
    let key = config.secrets_key.as_deref();
    let kms = key.map(|key| Kms::new(&sdk, key, connector.clone(), config.table_attempt));
    let store = Store::new(aws_sdk_dynamodb::Client::new(&sdk), config.table_name.clone());
    let store = store.with_quotas(config.quotas).sealing(Secrets::new(kms));
    // Initialisation has the full processor, and no caller waits for it, so the connection is opened here. If this
    // fails, the first request opens the connection and reports its own failure.
    if let Err(error) = store.warm_up().await {
        tracing::warn!(%error, "the table did not answer during initialisation");
    }
    let network = network.trusting(config.ssl_cert_file.clone()).of_service(config.api_base_url.as_deref());
    let failed_records = Bucket::new(&sdk, &config.failed_records_bucket, connector.clone(), BUCKET_ATTEMPT);
    Ok(Service {
        bucket: Bucket::new(&sdk, &config.files_bucket, connector, BUCKET_ATTEMPT),
        failed_records: KeptObjects::new(failed_records),
        config,
        store,
        clock: Clock::System,
        ids: Ids::Random,
        keys: KeyCache::default(),
        limiter: Limiter::default(),
        lanes: LaneTime::default(),
        network,
    })
}

/// The time limit of an attempt to reach a bucket: the largest object that a function sends has some megabytes.
const BUCKET_ATTEMPT: Duration = Duration::from_secs(5);

/// The SDK, with region, credentials and endpoint from the usual AWS settings. Its time limits are shorter than those
/// of the functions: `attempt` for one attempt, and three times as long for all attempts together.
pub async fn sdk_config(http_client: SharedHttpClient, attempt: Duration) -> SdkConfig {
    // The time limit of an attempt includes connecting.
    let timeouts = TimeoutConfig::builder().operation_attempt_timeout(attempt).operation_timeout(3 * attempt).build();
    let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http_client)
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(3));
    // Lambda passes credentials in the environment. Setting up the other sources would cost time at every start.
    let environment = EnvironmentVariableCredentialsProvider::new();
    let config = match environment.provide_credentials().await {
        Ok(_) => config.credentials_provider(environment),
        Err(_) => config,
    };
    config.load().await
}
