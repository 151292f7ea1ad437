//! The parts of the first build, the cost of another function in a build, and the time from an edit of a handler to a
//! passing test.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Instant, SystemTime};

use serde::Deserialize;

use crate::Result;
use crate::bench::{Bench, Function, cargo, lambda_build};
use crate::figures::{Figures, Must, Row, Unit};

const SECTION: &str = "Building";
/// The section of the first build, which is a measure by itself.
const FIRST: &str = "The first build";
/// The handler that is edited, and its test.
const EDITED: &str = "redeliver";
const TEST: &str = "delivery::redeliver";
/// One function of so many is built again: functions with lists take twice the time of others.
const FURTHER: usize = 10;
/// Seconds of processor time that a further function may take.
const MOST_CPU: f64 = 3.0;
/// Seconds from an edit to a passing test.
const MOST_EDIT: f64 = 10.0;
/// Seconds until `cargo local` is built from nothing, with downloaded crates.
const MOST_FIRST: f64 = 240.0;
/// The purposes of the crates of the first build, by the beginnings of their names; the others are counted together.
const PARTS: [(&str, &[&str]); 4] = [
    ("the SDK with HTTP and TLS", &["aws-", "hyper", "rustls", "ring", "h2", "http", "tower", "tokio"]),
    ("the embedded DynamoDB", &["dynoxide", "libsqlite3", "rusqlite"]),
    ("the embedded S3", &["s3s", "quick-xml", "nom"]),
    ("our own code", &["shared", "local"]),
];
/// Ticks per second of the kernel's processor accounts, on every Linux.
const TICKS: f64 = 100.0;

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let functions = bench.functions()?;
    let edited = functions.iter().find(|function| function.name == EDITED).ok_or("the edited function is gone")?;
    let some: Vec<&Function> = functions.iter().step_by(FURTHER).collect();
    let none = cpu_of(|| run(lambda_build(&bench.root)?))?;
    for function in &some {
        touch(&function.package.join("src/bin").join(format!("{}.rs", function.name)))?;
    }
    let with_some = cpu_of(|| run(lambda_build(&bench.root)?))?;
    #[expect(clippy::cast_precision_loss, reason = "a handful")]
    let each = (with_some - none) / some.len() as f64;
    let subject = "a further function, processor time of a release build (the mean of every tenth function)";
    figures.rows.push(Row::new(SECTION, subject, each, Unit::Seconds).must(Must::AtMost(MOST_CPU)));

    let source = edited.package.join("src/lib.rs");
    // Parts that still have to be built must not count for an edit.
    edit_to_test(bench)?;
    touch(&source)?;
    let first = edit_to_test(bench)?;
    touch(&source)?;
    let edit = first.min(edit_to_test(bench)?);
    let subject = "an edited handler to its passing test, wall time (the lesser of two)";
    figures.rows.push(Row::new(SECTION, subject, edit, Unit::Seconds).must(Must::AtMost(MOST_EDIT)));
    Ok(())
}

/// The time of the first build, and its distribution over the parts.
pub fn measure_first(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let target = bench.scratch.join("first-build");
    let mut command = cargo();
    command.args(["build", "--package", "local", "--bin", "local", "--timings"]).current_dir(&bench.root);
    command.env("CARGO_TARGET_DIR", &target);
    let begun = Instant::now();
    run(command)?;
    let seconds = begun.elapsed().as_secs_f64();
    let functions = bench.functions()?.into_iter();
    let functions: Vec<_> =
        functions.filter_map(|function| function.package.file_name()?.to_str().map(str::to_owned)).collect();
    let parts = parts(&target, &functions)?;
    let all: f64 = parts.values().sum();
    let made_of: Vec<_> =
        parts.iter().map(|(part, seconds)| format!("{part} {:.0} %", seconds / all * 100.0)).collect();
    let subject = format!("`cargo local` from nothing, wall time; of its work: {}", made_of.join(", "));
    figures.rows.push(Row::new(FIRST, subject, seconds, Unit::Seconds).must(Must::AtMost(MOST_FIRST)));
    std::fs::remove_dir_all(&target)?;
    Ok(())
}

/// The seconds that the compiler took for each part of the build in `target`, from cargo's own report.
fn parts(target: &Path, functions: &[String]) -> Result<BTreeMap<&'static str, f64>> {
    #[derive(Deserialize)]
    struct Timed {
        name: String,
        duration: f64,
    }
    let report = std::fs::read_to_string(target.join("cargo-timings/cargo-timing.html"))?;
    let (_, data) = report.split_once("const UNIT_DATA = ").ok_or("the report of cargo is of another form")?;
    let mut parts = BTreeMap::new();
    let units =
        serde_json::Deserializer::from_str(data).into_iter::<Vec<Timed>>().next().ok_or("an empty report")??;
    for Timed { name, duration } in units {
        let is_of = |(_, begins): &&(_, &[&str])| begins.iter().any(|begin| name.starts_with(begin));
        let part = match PARTS.iter().find(is_of) {
            _ if functions.contains(&name) => "our own code",
            Some((part, _)) => part,
            None => "everything else",
        };
        *parts.entry(part).or_default() += duration;
    }
    Ok(parts)
}

/// Makes cargo treat a source as edited, without a change of its bytes.
fn touch(source: &Path) -> Result<()> {
    #[expect(clippy::disallowed_methods, reason = "a file's time is the machine's")]
    let now = SystemTime::now();
    Ok(std::fs::File::options().append(true).open(source)?.set_modified(now)?)
}

/// Seconds until the edited handler's test has passed.
fn edit_to_test(bench: &Bench) -> Result<f64> {
    let mut command = cargo();
    command.args(["test", "--package", "local", "--test", "stack", "--", TEST]).current_dir(&bench.root);
    let begun = Instant::now();
    let output = run(command)?;
    let seconds = begun.elapsed().as_secs_f64();
    let said = String::from_utf8_lossy(&output.stdout);
    if said.contains("running 0 tests") {
        return Err(format!("there is no test {TEST}").into());
    }
    Ok(seconds)
}

/// Seconds of processor time of the programs that `work` starts and waits for.
fn cpu_of<T>(work: impl FnOnce() -> Result<T>) -> Result<f64> {
    let before = waited_for()?;
    work()?;
    Ok(waited_for()? - before)
}

/// Seconds of processor time of all programs that this one has started and waited for, including their own children.
fn waited_for() -> Result<f64> {
    let text = std::fs::read_to_string("/proc/self/stat")?;
    // The name of the program, in parentheses, may contain spaces; the fields after it do not.
    let (_, fields) = text.rsplit_once(") ").ok_or("/proc/self/stat is of another form")?;
    let ticks: Vec<f64> = fields.split(' ').skip(13).take(2).map(str::parse).collect::<std::result::Result<_, _>>()?;
    Ok(ticks.iter().sum::<f64>() / TICKS)
}

/// Runs `command`, and shows its output only if it fails.
fn run(mut command: Command) -> Result<Output> {
    let output = command.output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    Ok(output)
}
