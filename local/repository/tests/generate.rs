//! `cargo generate` writes every file that follows from declarations, tables of routes or reactions, or calls of tests.
//!
//! First it writes the packages of the functions, because the tests cannot be compiled without them. The tests compare
//! the wanted text of all other files with the files. Under this program they also write it, and list the written files
//! in the file `GENERATE`. One file may follow from another, so they run until no file changes.

use std::process::{Command, ExitCode};

use clap::Parser;

/// Why it cannot go on, in one line.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Stopped(String);

/// The tests that write.
const WRITERS: &[&str] = &[
    "agency::receive_payment_event",
    "alarms::the_operations_page",
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
/// The test that removes unused permissions from the roles. It needs a run of all tests before.
const ROLES: [&str; 2] = ["--ignored", "roles_allow"];
/// The most rounds: a new record takes three.
const ROUNDS: usize = 6;

/// Writes packages, binaries, the template, the API document, recorded events and pages, and the roles from all calls of all tests
#[derive(Debug, Parser)]
#[command(name = "cargo generate", bin_name = "cargo generate")]
struct Arguments {
    /// Run only the tests that write: the roles get the calls of these tests, and lose no permission
    #[arg(long)]
    quick: bool,
    /// Run only the writing tests with these names
    #[arg(requires = "quick")]
    tests: Vec<String>,
}

fn main() -> ExitCode {
    let Arguments { quick, tests } = Arguments::parse();
    // The crate `repository` panics if the file of a function is missing. This hook prints only its message, which names
    // the file. The default hook would also print a line of this repository's code, which the reader need not change.
    std::panic::set_hook(Box::new(|info| eprintln!("generate: {}", info.payload_as_str().unwrap_or("it panics"))));
    let writers = if tests.is_empty() { WRITERS.iter().map(|test| (*test).to_owned()).collect() } else { tests };
    let generator = Generator { writers };
    match generator.generate(quick) {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("generate: {trouble}");
            ExitCode::FAILURE
        }
    }
}

/// The result of a run of tests.
struct Run {
    passed: bool,
    /// The files that it has written.
    written: Vec<String>,
}

/// Writes the packages of the functions.
fn write_packages() -> Result<(), Stopped> {
    for (path, wanted) in repository::packages::files() {
        if repository::update(&path, &wanted).map_err(|error| Stopped(format!("{path}: {error}")))? {
            println!("wrote {path}");
        }
    }
    Ok(())
}

struct Generator {
    /// The tests that write.
    writers: Vec<String>,
}

impl Generator {
    fn generate(&self, is_quick: bool) -> Result<(), Stopped> {
        write_packages()?;
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
            Err(Stopped("a test fails, and no file is left to write".into()))
        }
    }

    fn until_nothing_is_written(&self) -> Result<(), Stopped> {
        for _ in 0..ROUNDS {
            let Run { passed, written } = self.test(&self.writers)?;
            if written.is_empty() {
                if !passed {
                    println!(
                        "no file is left to write; a test that still fails needs a change by hand, or a measurement"
                    );
                }
                return Ok(());
            }
            for file in written {
                println!("wrote {file}");
            }
        }
        Err(Stopped(format!("after {ROUNDS} rounds a file still changes")))
    }

    /// Runs these tests, which write.
    fn test(&self, tests: &[String]) -> Result<Run, Stopped> {
        let failed = |error: std::io::Error| Stopped(format!("cargo test: {error}"));
        let list = std::env::temp_dir().join(format!("generated-{}", std::process::id()));
        std::fs::write(&list, "").map_err(failed)?;
        let mut command = Command::new("cargo");
        // The variables of this program's cargo would make build scripts and their dependents compile again.
        let of_cargo = |name: &str| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_");
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(of_cargo)) {
            command.env_remove(name);
        }
        command
            .args(["test", "--package", "local", "--test", "stack", "--"])
            .args(tests)
            .current_dir(repository::root());
        // The tests take all cases, because a role allows the calls of every case.
        let passed = command.env("GENERATE", &list).env("SWEEP", "all").status().map_err(failed)?.success();
        let mut written: Vec<String> =
            std::fs::read_to_string(&list).map_err(failed)?.lines().map(str::to_owned).collect();
        written.sort();
        written.dedup();
        std::fs::remove_file(&list).map_err(failed)?;
        Ok(Run { passed, written })
    }
}
