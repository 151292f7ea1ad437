//! The distribution of the instructions of a start and of a warm call: callgrind's profile of binaries with symbols,
//! added up by crates.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::Result;
use crate::bench::{Bench, lambda_build_of};
use crate::calls::invoke;
use crate::figures::{Figures, Series};

/// The function whose start is profiled.
const FUNCTION: &str = "delete-tag";
/// The name of its chart.
pub const CHART: &str = "start";
/// The function of which a warm call is profiled.
const CALLED: &str = "create-assistant";
/// The name of its chart.
pub const CALL_CHART: &str = "call";
/// Calls before the counted ones, and counted calls.
const WARM: usize = 6;
const COUNTED: usize = 20;
/// The crates, recognised by the beginnings of the names of their functions. The standard library, the allocator and
/// the C library are missing here: their instructions count for their caller.
const GROUPS: [(&str, &[&str]); 8] = [
    ("TLS: certificates, ring, rustls", &["rustls", "rustls_pki_types", "webpki", "ring", "hyper_rustls"]),
    ("AWS: configuration", &["aws_config", "aws_runtime", "aws_types", "aws_credential_types"]),
    (
        "AWS: client",
        &[
            "aws_sdk_dynamodb",
            "aws_smithy_async",
            "aws_smithy_http",
            "aws_smithy_http_client",
            "aws_smithy_json",
            "aws_smithy_observability",
            "aws_smithy_runtime",
            "aws_smithy_runtime_api",
            "aws_smithy_types",
        ],
    ),
    ("AWS: signature", &["aws_sigv4", "hmac", "sha2"]),
    ("Sockets and HTTP: tokio, hyper", &["hyper", "hyper_util", "http", "httparse", "tower", "tokio", "mio"]),
    ("Lambda's runtime", &["lambda_runtime", "lambda_runtime_api_client", "lambda_http"]),
    ("Logging", &["tracing", "tracing_core", "tracing_subscriber", "tracing_serde", "sharded_slab"]),
    ("Our own", &["shared", "tag", "assistant"]),
];
/// The group of the dynamic loader.
const LOADER: &str = "Dynamic loader";
/// The group of instructions without a caller in any other group.
const REST: &str = "Everything else";

pub async fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let start = profile(bench, &build(bench, FUNCTION)?, FUNCTION, 0).await?;
    let called = build(bench, CALLED)?;
    let before: HashMap<_, _> = profile(bench, &called, CALLED, WARM).await?.into_iter().collect();
    let after = profile(bench, &called, CALLED, WARM + COUNTED).await?;
    #[expect(clippy::cast_precision_loss, reason = "some calls")]
    let of_call = |(name, count): (&'static str, f64)| {
        (name, (count - before.get(name).copied().unwrap_or_default()) / COUNTED as f64)
    };
    let mut call: Vec<(&str, f64)> = after.into_iter().map(of_call).collect();
    call.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    for (chart, groups) in [(CHART, start), (CALL_CHART, call)] {
        for (name, count) in groups.into_iter().filter(|(_, count)| *count >= 1.0) {
            figures.series.push(Series { chart: chart.into(), name: name.to_owned(), points: vec![(0.0, count)] });
        }
    }
    Ok(())
}

/// Instructions of each group, for a process that starts and answers so many calls.
async fn profile(bench: &Bench, binary: &Path, function: &str, calls: usize) -> Result<Vec<(&'static str, f64)>> {
    let stack = bench.stack().await?;
    let mut process = bench.program(function, &stack).running(binary).counted(&bench.scratch).start().await?;
    let event = bench.event(function)?;
    for _ in 0..calls {
        invoke(&mut process, &event).await?;
    }
    let profile = Profile::read(&process.end_with_profile().await?)?;
    stack.stop().await;
    Ok(profile.by_group())
}

/// Builds the function with its symbols. A wrapper of the compiler does it, because another profile would build every
/// dependency again.
fn build(bench: &Bench, function: &str) -> Result<PathBuf> {
    let (wrapper, folder) = (bench.scratch.join("unstripped"), bench.scratch.join("unstripped.lambda"));
    std::fs::write(&wrapper, "#!/bin/sh\nexec \"$@\" -C strip=none\n")?;
    std::fs::set_permissions(&wrapper, std::fs::Permissions::from_mode(0o755))?;
    let mut command = lambda_build_of(&bench.root, &["--bin", function])?;
    command.arg("--lambda-dir").arg(&folder).env("RUSTC_WORKSPACE_WRAPPER", &wrapper);
    if !command.status()?.success() {
        return Err("cargo lambda build failed".into());
    }
    Ok(folder.join(function).join("bootstrap"))
}

/// Callgrind's profile: the cost of each function itself, and the total cost of each one's calls of another.
#[derive(Debug, Default)]
struct Profile {
    functions: HashMap<String, Function>,
    /// By callee and caller.
    calls: HashMap<String, HashMap<String, f64>>,
}

#[derive(Debug, Default)]
struct Function {
    group: Option<&'static str>,
    own: f64,
}

impl Profile {
    /// Reads callgrind's text. Names of objects and functions are written out at their first occurrence, and are
    /// numbers after that.
    fn read(text: &str) -> Result<Self> {
        let mut profile = Self::default();
        let (mut objects, mut names) = (HashMap::new(), HashMap::new());
        let (mut object, mut function, mut callee) = (String::new(), String::new(), None);
        for line in text.lines() {
            if let Some(reference) = line.strip_prefix("ob=") {
                object = resolve(&mut objects, reference).1;
            } else if let Some(reference) = line.strip_prefix("cob=") {
                resolve(&mut objects, reference);
            } else if let Some(reference) = line.strip_prefix("fn=") {
                let (id, name) = resolve(&mut names, reference);
                let group = if object.contains("/ld-linux") { Some(LOADER) } else { group(&name) };
                profile.functions.entry(id.clone()).or_default().group = group;
                function = id;
            } else if let Some(reference) = line.strip_prefix("cfn=") {
                callee = Some(resolve(&mut names, reference).0);
            } else if line.starts_with(|first: char| first.is_ascii_digit() || "+-*".contains(first)) {
                let cost: f64 = line.split(' ').nth(1).unwrap_or_default().parse()?;
                match callee.take() {
                    Some(callee) => {
                        *profile.calls.entry(callee).or_default().entry(function.clone()).or_default() += cost;
                    }
                    None => profile.functions.entry(function.clone()).or_default().own += cost,
                }
            }
        }
        Ok(profile)
    }

    /// Instructions of each group, the largest first. The cost of a function without a group is charged to its callers,
    /// in proportion to the cost of their calls, and on to their callers until one has a group.
    fn by_group(&self) -> Vec<(&'static str, f64)> {
        /// More than the length of any chain of callers, except for recursion, of which nearly nothing is left by then.
        const ROUNDS: usize = 200;
        let mut groups: HashMap<&'static str, f64> = HashMap::new();
        let mut charged: HashMap<&str, f64> =
            self.functions.iter().map(|(id, function)| (&**id, function.own)).collect();
        for _ in 0..ROUNDS {
            let mut next: HashMap<&str, f64> = HashMap::new();
            for (id, cost) in charged {
                let callers = self.calls.get(id);
                let group = self.functions.get(id).and_then(|function| function.group);
                match (group, callers) {
                    (Some(group), _) => *groups.entry(group).or_default() += cost,
                    (None, None) => *groups.entry(REST).or_default() += cost,
                    (None, Some(callers)) => {
                        let all: f64 = callers.values().sum();
                        for (caller, part) in callers {
                            *next.entry(caller).or_default() += cost * part / all;
                        }
                    }
                }
            }
            charged = next;
        }
        *groups.entry(REST).or_default() += charged.values().sum::<f64>();
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        groups
    }
}

/// The number and the name that `(7) name` defines, or to which `(7)` refers.
fn resolve(names: &mut HashMap<String, String>, reference: &str) -> (String, String) {
    let (id, name) = reference.split_once(' ').unwrap_or((reference, ""));
    if !name.is_empty() {
        names.insert(id.to_owned(), name.to_owned());
    }
    (id.to_owned(), names.get(id).cloned().unwrap_or_default())
}

/// The group of a function: the one of the first crate in its name that belongs to a group, so that a list of a crate's
/// values counts for that crate.
fn group(name: &str) -> Option<&'static str> {
    let words =
        name.split("::").map(|part| part.rsplit(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap_or(part));
    let owner = |word: &str| GROUPS.iter().find(|(_, crates)| crates.contains(&word)).map(|(group, _)| *group);
    // The last part is a function's name, not a crate's.
    let count = name.matches("::").count();
    words.take(count).find_map(owner).or_else(|| name.starts_with("ring_core_").then_some(GROUPS[0].0))
}
