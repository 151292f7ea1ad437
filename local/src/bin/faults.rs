//! `cargo faults`: closes conversations and sends campaigns while all kinds of faults happen.

use std::process::ExitCode;

use clap::Parser;
use local::fault_run::{FaultRunOptions, run};

/// A run spends a quarter of its time on allocations, and its threads would wait for each other in the C library's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Closes conversations and sends campaigns while endpoints, database, stream and functions fail, and looks whether everything arrives.
#[derive(Debug, Parser)]
struct Arguments {
    /// What the plan and the dice are made of [default: another one each time]
    #[arg(long)]
    seed: Option<u64>,
    /// Conversations that are closed
    #[arg(long)]
    conversations: Option<usize>,
    /// Contacts of campaigns
    #[arg(long)]
    contacts: Option<usize>,
    /// Conversations closed in a second
    #[arg(long)]
    pace: Option<u32>,
    /// On a busy machine: how many times longer everything may take
    #[arg(long, default_value_t = 1)]
    slower: u32,
    /// The short form that `cargo test` runs, without measurements
    #[arg(long)]
    quick: bool,
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let seed = arguments.seed.unwrap_or_else(|| fastrand::u64(0..1_000_000));
    let root = repository::root();
    let usual = if arguments.quick { FaultRunOptions::short(&root, seed) } else { FaultRunOptions::full(&root, seed) };
    let options = FaultRunOptions {
        conversations: arguments.conversations.unwrap_or(usual.conversations),
        contacts: arguments.contacts.unwrap_or(usual.contacts),
        pace: arguments.pace.unwrap_or(usual.pace),
        ..usual
    };
    let options = options.slower(arguments.slower);
    println!("{} conversations, {} contacts, seed {seed}", options.conversations, options.contacts);
    match run(&options, |act, took| println!("{:7.1} s  {act}", took.as_secs_f64())).await {
        Ok(report) => {
            print!("\n{report}");
            if report.holds() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(trouble) => {
            eprintln!("faults, seed {seed}: {trouble}");
            ExitCode::from(2)
        }
    }
}
