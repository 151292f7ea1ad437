//! Records the calls of functions in tests, and compares them with the roles.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{LazyLock, Mutex, PoisonError};

use local::roles::Roles;
use local::template::Template;
use shared::table::keys::RATE;

use crate::support::fixture::root;
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
    simplified(allowed)
}

/// Removes the permission for token buckets from functions that may change every item.
pub fn simplified(mut of_functions: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    for permissions in of_functions.values_mut().filter(|permissions| permissions.contains("dynamodb:UpdateItem")) {
        permissions.remove(&format!("dynamodb:UpdateItem {RATE}*"));
    }
    of_functions
}

pub fn template() -> Template {
    Template::read(&root().join("template.yaml")).unwrap()
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
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls")
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
