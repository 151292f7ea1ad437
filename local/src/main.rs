//! `cargo local`: the entire service on this machine.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use local::database::Data;
use local::demo::Demo;
use local::{Settings, Stack, Trouble, echo, inbox};
use shared::values::limits::Limits;
use shared::values::time::Clock;

/// Runs the entire service in one process, with a demo set to try it on.
#[derive(Debug, Parser)]
#[command(name = "cargo local", bin_name = "cargo local", version, args_override_self = true)]
struct Arguments {
    /// Port of the API
    #[arg(long, default_value_t = 3000)]
    port: u16,
    /// Address that the API listens on
    #[arg(long, default_value = "127.0.0.1")]
    listen: IpAddr,
    /// Port of DynamoDB, for any AWS client
    #[arg(long, default_value_t = 8000)]
    dynamodb_port: u16,
    /// Port of S3, for any AWS client
    #[arg(long, default_value_t = 9000)]
    s3_port: u16,
    /// Port of KMS, for any AWS client
    #[arg(long, default_value_t = 9001)]
    kms_port: u16,
    /// Port of the payment provider's stand-in
    #[arg(long, default_value_t = 3001)]
    payment_port: u16,
    /// Origin whose pages may call the API, or `*` for all [default: only the pages of `cargo local`]
    #[arg(long, value_name = "ORIGIN")]
    cors_allow_origin: Option<String>,
    /// Keep the database in this file, and the objects of S3 in a folder beside it [default: in memory]
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Leave the webhooks of the demo set as they are, instead of pointing them and its connectors at the inbox
    #[arg(long)]
    no_inbox: bool,
    /// Leave the messages of users without an answer, instead of repeating them
    #[arg(long)]
    no_runtime: bool,
    /// Run no function on its schedule, so that nothing happens because time passes
    #[arg(long)]
    no_schedules: bool,
    /// Write the event of each request to this folder
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// Requests a second with a key that has no limit of its own
    #[arg(long, value_name = "COUNT", default_value_t = 10_000)]
    key_requests_per_second: u32,
    /// Requests at once with a key that has no limit of its own
    #[arg(long, value_name = "COUNT", default_value_t = 1_000_000)]
    key_burst: u32,
    /// Load this demo set
    #[arg(long, value_name = "FILE", default_value = "local/demo.yaml")]
    demo: PathBuf,
    /// Read this template
    #[arg(long, value_name = "FILE", default_value = "template.yaml")]
    template: PathBuf,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Trouble(error.to_string())),
    };
    match runtime.block_on(run(arguments)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => fail(&trouble),
    }
}

fn fail(trouble: &Trouble) -> ExitCode {
    eprintln!("cargo local: {trouble}");
    ExitCode::from(2)
}

async fn run(arguments: Arguments) -> Result<(), Trouble> {
    let settings = Settings {
        template: from_root(arguments.template),
        demo: Some(from_root(arguments.demo)),
        data: arguments.data.map_or(Data::Memory, Data::File),
        gateway: SocketAddr::from((arguments.listen, arguments.port)),
        dynamodb: SocketAddr::from((arguments.listen, arguments.dynamodb_port)),
        s3: SocketAddr::from((arguments.listen, arguments.s3_port)),
        kms: SocketAddr::from((arguments.listen, arguments.kms_port)),
        payment_provider: SocketAddr::from((arguments.listen, arguments.payment_port)),
        record: arguments.record,
        log: true,
        clock: Clock::Ahead(Arc::default()),
        cors_allow_origin: arguments.cors_allow_origin,
        key_limits: Limits::new(arguments.key_requests_per_second, arguments.key_burst),
        ..Settings::of(Path::new("."))
    };
    let demo = settings.demo.as_deref().map(Demo::read).transpose()?;
    let stack = Stack::start(settings).await?;
    if !arguments.no_inbox {
        inbox::connect(&stack.url, &stack.api).await?;
    }
    echo::connect(&stack.url, &stack.api, !arguments.no_runtime).await?;
    if !arguments.no_runtime {
        tokio::spawn(echo::run(Arc::clone(&stack.inbox), stack.api.clone(), stack.journal.changes()));
    }
    // The first poll sets up the handler: whoever reads the greeting may interrupt at once.
    let mut interrupt = pin!(tokio::signal::ctrl_c());
    let interrupted = futures_util::poll!(interrupt.as_mut());
    introduce(&stack, demo.as_ref());
    let background = if arguments.no_schedules { stack.following() } else { stack.background() };
    if interrupted.is_pending() {
        interrupt.await.map_err(|error| Trouble(error.to_string()))?;
    }
    println!("stopping");
    background.stop().await;
    stack.stop().await;
    Ok(())
}

/// `cargo local` works from every folder of the checkout: a path that does not exist is searched from the root of the
/// checkout.
fn from_root(path: PathBuf) -> PathBuf {
    let in_checkout = repository::root().join(&path);
    if !path.exists() && in_checkout.exists() { in_checkout } else { path }
}

/// The next steps for the user, in a few lines.
fn introduce(stack: &Stack, demo: Option<&Demo>) {
    println!("API       {}/api/v1", stack.url);
    println!("Console   {}/", stack.url);
    println!("Page      {}{}", stack.url, shared::routes::READ_DOCS.path);
    println!("DynamoDB  {} (table {}, any region and credentials)", stack.dynamodb_url, local::database::TABLE_NAME);
    let key = local::bucket::ACCESS_KEY;
    println!("S3        {} (bucket {}, key and secret: {key})", stack.s3_url, local::bucket::BUCKET_NAME);
    println!("KMS       {} (key {})", stack.kms_url, local::kms::KEY);
    println!("Payments  {} (stand-in for the payment provider)", stack.payment_url);
    for organisation in demo.iter().flat_map(|demo| &demo.organisations) {
        let keys: Vec<_> = organisation.keys.iter().map(|key| format!("{} {}", key.role(), key.key)).collect();
        println!("{:9} {}", organisation.name, keys.join("  "));
    }
    if let Some(key) = demo.and_then(Demo::admin_key) {
        println!("Try it    curl -H 'Authorization: Bearer {key}' '{}/api/v1/user/get_agent_list/?size=2'", stack.url);
    }
}
