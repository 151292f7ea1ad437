//! Runs a handler under Lambda: the one place where logging, configuration and clients are set up.

use std::time::Duration;

use aws_config::environment::EnvironmentVariableCredentialsProvider;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, SdkConfig, retry::RetryConfig};
use aws_sdk_dynamodb::config::ProvideCredentials;
use lambda_http::request::LambdaRequest;
pub use lambda_runtime::tracing;
use lambda_runtime::tracing::level_filters::LevelFilter;
use lambda_runtime::tracing::subscriber::fmt::MakeWriter;
use lambda_runtime::tracing::subscriber::util::SubscriberInitExt as _;
use lambda_runtime::{Diagnostic, LambdaEvent, service_fn};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;

use crate::delivery::network::Network;
use crate::request::authentication::KeyCache;
use crate::request::context::{Clock, Ids, Service};
use crate::request::http::HttpRequest;
use crate::request::pipeline::Handler;
use crate::runtime::config::{Config, Logging};
use crate::runtime::http_client;
use crate::runtime::operator::Task;
use crate::runtime::schedule::{EventContext, Scheduled};
use crate::runtime::stream::{BatchOrTick, BatchOutcome, Consumer, StreamEvent};
use crate::table::store::Store;

/// What keeps a function from starting at all.
pub type Fatal = lambda_runtime::Error;

/// Serves `handler` until Lambda ends the process.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run(handler: Handler) -> Result<(), Fatal> {
    serve(&async move |service: &Service, event: LambdaEvent<LambdaRequest>| {
        let request = HttpRequest::from_event(event.payload, &event.context.request_id);
        Ok::<_, Fatal>(handler.answer(service, &request).await)
    })
}

/// Serves `task` until Lambda ends the process.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_task(task: Task) -> Result<(), Fatal> {
    serve(&async move |service: &Service, event: LambdaEvent<Box<RawValue>>| {
        let answer = task.invoke(service, event.payload.get().as_bytes()).await;
        let answer = answer
            .map_err(|refusal| Diagnostic { error_type: refusal.kind.to_owned(), error_message: refusal.message })?;
        Ok::<_, Diagnostic>(RawValue::from_string(answer).unwrap_or_default())
    })
}

/// Serves `consumer` until Lambda ends the process: batches of the stream, and the ticks of its schedule where it has one.
///
/// # Errors
/// Whatever keeps it from starting.
pub fn run_consumer(consumer: Consumer) -> Result<(), Fatal> {
    serve(&async move |service: &Service, event: LambdaEvent<BatchOrTick>| {
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
/// Whatever keeps it from starting.
pub fn run_scheduled(scheduled: Scheduled) -> Result<(), Fatal> {
    serve(&async move |service: &Service, _: LambdaEvent<IgnoredAny>| {
        scheduled.tick(&EventContext { service }).await.map_err(Fatal::from)
    })
}

/// Sets everything up, and has `handle` answer each event.
fn serve<E, R, X>(handle: &impl AsyncFn(&Service, LambdaEvent<E>) -> Result<R, X>) -> Result<(), Fatal>
where
    E: DeserializeOwned,
    R: Serialize,
    X: Into<Diagnostic> + std::fmt::Debug,
{
    log();
    // One request at a time is all that Lambda sends; more threads would only cost memory and start-up.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let service = &start().await?;
        // In a box: the runtime's layers hand the future on, and each would copy all of it.
        lambda_runtime::run(service_fn(|event: LambdaEvent<E>| Box::pin(handle(service, event)))).await
    })
}

/// Lines of JSON or text on standard output. The runtime's own subscriber would do the same with a filter language that nobody here
/// speaks, and a regular expression engine for it in every binary.
fn log() {
    let Logging { level, json } = Logging::from_env();
    if json {
        json_lines(level, std::io::stdout).init();
    } else {
        tracing::subscriber::fmt().with_target(false).without_time().with_ansi(false).with_max_level(level).init();
    }
}

/// Writes each line as one JSON object to `writer`: `level`, `fields` with the line's `message` among them, and `span`.
pub fn json_lines<W>(level: LevelFilter, writer: W) -> impl tracing::Subscriber + Send + Sync
where
    W: for<'writer> MakeWriter<'writer> + Send + Sync + 'static,
{
    let lines = tracing::subscriber::fmt().with_target(false).without_time().with_ansi(false).with_max_level(level);
    lines.json().with_span_list(false).with_writer(writer).finish()
}

/// The service of this process, with its connection to the table already open.
async fn start() -> Result<Service, Fatal> {
    let config = Config::from_env()?;
    let store = Store::new(aws_sdk_dynamodb::Client::new(&sdk_config().await?), config.table_name.clone());
    // Initialisation has the full processor and is not waited for; a connection opened here is one that no caller waits for. Where it
    // fails, the first request tries again and answers for itself.
    if let Err(error) = store.warm_up().await {
        tracing::warn!(%error, "the table did not answer during initialisation");
    }
    Ok(Service {
        config,
        store,
        clock: Clock::System,
        ids: Ids::Random,
        keys: KeyCache::default(),
        network: Network::public(),
    })
}

/// Region, credentials and endpoint as every AWS tool finds them; time limits below the functions' own.
///
/// # Errors
/// Where the trust store cannot be read.
pub async fn sdk_config() -> Result<SdkConfig, Fatal> {
    // An attempt's limit holds for its connection as well.
    let timeouts = TimeoutConfig::builder()
        .operation_attempt_timeout(Duration::from_secs(1))
        .operation_timeout(Duration::from_secs(3))
        .build();
    let config = aws_config::defaults(BehaviorVersion::v2026_01_12())
        .http_client(http_client::client(http_client::amazon_roots()?))
        .timeout_config(timeouts)
        .retry_config(RetryConfig::standard().with_max_attempts(3));
    // Lambda hands credentials over in the environment. To set up all the other places where some may lie would be work at
    // every start for nothing.
    let environment = EnvironmentVariableCredentialsProvider::new();
    let config = match environment.provide_credentials().await {
        Ok(_) => config.credentials_provider(environment),
        Err(_) => config,
    };
    Ok(config.load().await)
}
