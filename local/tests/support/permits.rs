//! Records the calls of functions in tests, and compares them with the roles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::{LazyLock, Mutex, PoisonError};

use local::roles::{Roles, WRITES};
use local::template::Template;
use repository::root;
use shared::table::keys::RATE;

use crate::support::generated::generating;
use crate::support::sweep;

/// The permissions of each function's role. With `cargo generate`, also the recorded calls of the last run.
pub fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let mut allowed = Roles::of(&template(), None).unwrap().allowed().clone();
    if generating() {
        for (function, permission) in recorded().calls {
            allowed.entry(function).or_default().insert(permission);
        }
    }
    completed(allowed)
}

/// A permission to write, as its action and the partition keys that it is for: `dynamodb:PutItem` and `ORG#*`.
pub fn write_of(permission: &str) -> Option<(&str, &str)> {
    permission.split_once(' ').filter(|(action, _)| WRITES.contains(action))
}

/// Completes the writes of each function: its role allows all of its actions on all of its partition keys, because AWS
/// does not say whether a condition sees the key of one action of a transaction or the keys of all of them. No
/// transaction takes tokens. A write without partition keys is left out: it would allow every item.
pub fn completed(mut of_functions: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let tokens = format!("{RATE}*");
    for permissions in of_functions.values_mut() {
        permissions.retain(|permission| !WRITES.contains(&permission.as_str()));
        let writes = permissions.iter().filter_map(|permission| write_of(permission));
        let (actions, patterns): (Vec<_>, Vec<_>) = writes.filter(|(_, pattern)| *pattern != tokens).unzip();
        let every = |action| patterns.iter().map(move |pattern| format!("{action} {pattern}"));
        let all: Vec<_> = actions.iter().flat_map(every).collect();
        permissions.extend(all);
    }
    of_functions
}

pub fn template() -> Template {
    Template::read_once(&root().join("template.yaml")).unwrap()
}

/// Records every call of a function, and allows it if the role allows it or `cargo generate` writes the roles.
pub fn permit(function: &str, permission: &str, allowed: bool) -> bool {
    static SEEN: Mutex<BTreeSet<(String, String)>> = Mutex::new(BTreeSet::new());
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    if seen.insert((function.to_owned(), permission.to_owned())) {
        let _ = recorded();
        let first = seen.len() == 1;
        let file = OpenOptions::new().create(true).write(true).append(!first).truncate(first).open(record());
        writeln!(file.unwrap(), "{}\t{function}\t{permission}\t{allowed}", run()).unwrap();
        if !allowed {
            eprintln!("{function} may not call {permission}: cargo generate writes the roles");
        }
    }
    allowed || generating()
}

/// The file with the calls of the last run.
fn record() -> PathBuf {
    // A copy of the workspace may have the same build folder, and has other functions.
    root().join("target/calls")
}

/// The name of this run. Only a run of all tests with all their cases shows that a permission is unused.
fn run() -> &'static str {
    if std::env::args().count() == 1 && sweep::takes_all() { "all" } else { "some" }
}

/// The calls of a run.
#[derive(Debug, Default, Clone)]
pub struct Recorded {
    /// Whether all tests ran, with all their cases.
    pub whole: bool,
    /// Each function with the permissions that it needed.
    pub calls: BTreeSet<(String, String)>,
    /// The calls that the role refused.
    pub refused: BTreeSet<(String, String)>,
}

/// The calls of the run before this one.
pub fn recorded() -> Recorded {
    static RECORDED: LazyLock<Recorded> = LazyLock::new(|| {
        let mut recorded = Recorded::default();
        for line in std::fs::read_to_string(record()).unwrap_or_default().lines() {
            let [run, function, permission, allowed] = line.split('\t').collect::<Vec<_>>()[..] else { continue };
            recorded.whole = run == "all";
            let call = (function.to_owned(), permission.to_owned());
            if allowed == "false" {
                recorded.refused.insert(call.clone());
            }
            recorded.calls.insert(call);
        }
        recorded
    });
    RECORDED.clone()
}
