//! `cargo generate` writes everything that follows from the declarations, from the tables of routes and reactions, and from what the tests call.
//!
//! The tests make what is generated and compare it with the files. Only here they write it: `GENERATE` names the file in which they list what they
//! have written. One file may follow from another one, so they run until nothing is left to write.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use clap::Parser;
use local::Trouble;

/// The tests that write.
const WRITERS: &[&str] = &[
    "agency::receive_payment_event",
    "alarms::the_page",
    "contract::",
    "cost::the_table",
    "events::every_event",
    "journey::",
    "mcp::",
    "openapi::",
    "operations::",
    "permissions::",
    "states::",
    "stored::",
    "table::",
    "template::",
];
/// The test that takes out of the roles what no test calls. It needs a run of all tests before.
const ROLES: [&str; 2] = ["--ignored", "roles_allow"];
/// The most rounds: a new record takes three.
const ROUNDS: usize = 6;

/// Writes packages, binaries, the template, the API document, recorded events and pages, and the roles from all calls of all tests
#[derive(Debug, Parser)]
#[command(name = "cargo generate", bin_name = "cargo generate")]
struct Arguments {
    /// Run the tests that write, and no others: the roles get what these call, and nothing is taken out of them
    #[arg(long)]
    quick: bool,
    /// Of the tests that write, run those with these names only
    #[arg(requires = "quick")]
    tests: Vec<String>,
}

fn main() -> ExitCode {
    let Arguments { quick, tests } = Arguments::parse();
    let writers = if tests.is_empty() { WRITERS.iter().map(|test| (*test).to_owned()).collect() } else { tests };
    let generator = Generator { root: Path::new(env!("CARGO_MANIFEST_DIR")).join(".."), writers };
    match generator.generate(quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("generate: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// What a run of tests did.
struct Run {
    passed: bool,
    /// The files that it has written.
    written: Vec<String>,
}

struct Generator {
    /// The checkout.
    root: PathBuf,
    /// The tests that write.
    writers: Vec<String>,
}

impl Generator {
    fn generate(&self, is_quick: bool) -> Result<(), Trouble> {
        self.until_nothing_is_written()?;
        if is_quick {
            return Ok(());
        }
        let all = self.test(&[])?;
        let roles = self.test(&ROLES.map(str::to_owned))?;
        if !all.written.is_empty() || !roles.written.is_empty() {
            return self.until_nothing_is_written();
        }
        if all.passed && roles.passed {
            Ok(())
        } else {
            Err(Trouble("a test fails, and nothing is left to write".into()))
        }
    }

    fn until_nothing_is_written(&self) -> Result<(), Trouble> {
        for _ in 0..ROUNDS {
            let Run { passed, written } = self.test(&self.writers)?;
            if written.is_empty() {
                if !passed {
                    println!(
                        "nothing is left to write; what a test still misses has to be written by hand, or measured"
                    );
                }
                return Ok(());
            }
            for file in written {
                println!("wrote {file}");
            }
        }
        Err(Trouble(format!("after {ROUNDS} rounds there is still something to write")))
    }

    /// Runs these tests, which write.
    fn test(&self, tests: &[String]) -> Result<Run, Trouble> {
        let failed = |error: std::io::Error| Trouble(format!("cargo test: {error}"));
        let list = std::env::temp_dir().join(format!("generated-{}", std::process::id()));
        std::fs::write(&list, "").map_err(failed)?;
        let mut command = Command::new("cargo");
        // What the cargo of this program has set is of another package. Build scripts look at it: all that depends on them would be compiled once more.
        let of_cargo = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_cargo)) {
            command.env_remove(name);
        }
        command.args(["test", "--package", "local", "--test", "stack", "--"]).args(tests).current_dir(&self.root);
        // All cases: what a function calls in any of them, its role allows.
        let passed = command.env("GENERATE", &list).env("SWEEP", "all").status().map_err(failed)?.success();
        let mut written: Vec<String> =
            std::fs::read_to_string(&list).map_err(failed)?.lines().map(str::to_owned).collect();
        written.sort();
        written.dedup();
        std::fs::remove_file(&list).map_err(failed)?;
        Ok(Run { passed, written })
    }
}
