//! `cargo run --package local --bin replay`: checks whether a deployed service gives the expected answers.

use std::process::ExitCode;

use clap::Parser;
use local::replay::{ReplayOptions, run};

/// Sends recorded requests to a deployed service and compares its answers: every function with a route is called.
///
/// The answers are compared with those of an empty local stack. No record of the service is touched: the ids in the requests are ids that
/// nobody has. Without --read-only a few records are made, by the functions that create.
#[derive(Debug, Parser)]
#[command(name = "replay")]
struct Arguments {
    /// The address of the service, as the stack's output `BaseUrl` has it
    #[arg(long, value_name = "URL")]
    base_url: String,
    /// A key with the role `admin`, best of an organisation without other users
    #[arg(long, value_name = "KEY")]
    api_key: String,
    /// Send only what changes nothing
    #[arg(long, conflicts_with = "against")]
    read_only: bool,
    /// Compare with the answers of this address. Both services have to hold the demo set, whose records are changed and deleted
    #[arg(long, value_name = "URL")]
    against: Option<String>,
    /// The address that the service tells its callers, where it is not the base URL: the parameter `ApiBaseUrl`
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Send only the calls whose names begin so; may be repeated
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Do not send the calls whose names begin so; may be repeated
    #[arg(long, value_name = "NAME")]
    skip: Vec<String>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let Arguments { base_url, api_key, read_only, against, public_url, only, skip } = Arguments::parse();
    let options =
        ReplayOptions { root: repository::root(), base_url, api_key, public_url, against, read_only, only, skip };
    match run(&options, |number, of, name| eprintln!("{number} of {of}: {name}")).await {
        Ok(report) if report.holds() => {
            println!("{report}\nThe service answers as it should.");
            ExitCode::SUCCESS
        }
        Ok(report) => {
            println!("{report}\nThe service does NOT answer as it should.");
            ExitCode::FAILURE
        }
        Err(trouble) => {
            eprintln!("replay: {trouble}");
            ExitCode::from(2)
        }
    }
}
