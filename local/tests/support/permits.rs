//! What the functions may call, and what the tests have called.

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

/// What each function's role allows, and in a run that writes also what the tests of the run before have called.
pub fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let mut allowed = Roles::of(&template(), None).unwrap().allowed().clone();
    if generating() {
        for (function, permission) in recorded().calls {
            allowed.entry(function).or_default().insert(permission);
        }
    }
    simplified(allowed)
}

/// Who may change every item may change those of the token buckets as well.
pub fn simplified(mut of_functions: BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    for permissions in of_functions.values_mut().filter(|permissions| permissions.contains("dynamodb:UpdateItem")) {
        permissions.remove(&format!("dynamodb:UpdateItem {RATE}*"));
    }
    of_functions
}

pub fn template() -> Template {
    Template::read(&root().join("template.yaml")).unwrap()
}

/// Decides about every call of a function in all tests, and records it: what the role does not allow is refused, unless the run writes the roles.
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

/// Where the calls of the last run are kept.
fn record() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("calls")
}

/// What this run is called: only one of all tests with all their cases tells that something is not called.
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
    /// Those of them that its role did not allow.
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
