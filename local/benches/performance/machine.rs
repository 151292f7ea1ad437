//! The machine and the programs of a run.

use std::process::Command;

use crate::Result;

/// The name of the processor's model in [`described`].
pub const PROCESSOR: &str = "Processor";

/// The processor's model.
pub fn cpu() -> Result<String> {
    field("/proc/cpuinfo", "model name")
}

/// The machine's properties, line by line.
pub fn described() -> Result<Vec<(String, String)>> {
    let memory: f64 = field("/proc/meminfo", "MemTotal")?.trim_end_matches(" kB").parse()?;
    Ok(vec![
        (PROCESSOR.to_owned(), cpu()?),
        ("Cores".to_owned(), std::thread::available_parallelism()?.to_string()),
        ("Memory".to_owned(), format!("{:.1} GB", memory * 1024.0 / 1e9)),
        ("Kernel".to_owned(), std::fs::read_to_string("/proc/sys/kernel/osrelease")?.trim().to_owned()),
    ])
}

/// The versions of the tools. `path` is the search path for programs.
pub fn versions(path: &std::ffi::OsStr) -> Vec<(String, String)> {
    let programs = [
        ("rustc", ["rustc", "--version"].as_slice()),
        ("valgrind", &["valgrind", "--version"]),
        ("cargo-lambda", &["cargo-lambda", "lambda", "--version"]),
        ("python", &["python3", "--version"]),
    ];
    let version = |command: &[&str]| {
        let output = Command::new(command[0]).args(&command[1..]).env("PATH", path).output().ok()?;
        Some(String::from_utf8_lossy(&output.stdout).lines().next()?.to_owned())
    };
    programs
        .into_iter()
        .map(|(name, command)| (name.to_owned(), version(command).unwrap_or_else(|| "none".into())))
        .collect()
}

/// The first `name: value` of one of the kernel's files.
fn field(path: &str, name: &str) -> Result<String> {
    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = lines.find(|(key, _)| key.trim() == name).ok_or_else(|| format!("{path} has no {name}"))?;
    Ok(value.trim().to_owned())
}
