//! The wanted text of the files that follow from the list of functions.

use std::collections::BTreeSet;

use crate::functions::{Function, functions};
use crate::{between, camel_case, read, snake_case};

/// The path of each file in the checkout, and its wanted text.
///
/// # Panics
/// Where a file of the checkout cannot be read, or lacks the marks around its generated part.
pub fn files() -> Vec<(String, String)> {
    let functions = functions();
    let packages: BTreeSet<&str> = functions.iter().map(|function| function.package.as_str()).collect();
    let of_packages = packages.iter().flat_map(|package| {
        let of_package: Vec<_> = functions.iter().filter(|function| function.package == *package).collect();
        files_of(package, &of_package)
    });
    let of_all = [
        ("Cargo.toml", members(&packages)),
        ("local/Cargo.toml", dependencies(&functions)),
        (LISTS, lists(&functions)),
    ];
    of_packages.chain(of_all.map(|(path, text)| (path.to_owned(), text))).collect()
}

/// The files of a package with these functions.
fn files_of(package: &str, functions: &[&Function]) -> Vec<(String, String)> {
    let folder = format!("functions/{package}");
    let with_file = functions.iter().filter(|function| function.plain().is_none());
    let modules: BTreeSet<_> = with_file.map(|function| snake_case(&function.name)).collect();
    let mut files = vec![(format!("{folder}/Cargo.toml"), manifest(package, functions))];
    if !modules.is_empty() {
        files.push((format!("{folder}/src/lib.rs"), library(package, &modules)));
    }
    files.extend(functions.iter().map(|of| (format!("{folder}/src/bin/{}.rs", of.name), of.main())));
    files
}

/// The manifest of a package with these functions.
fn manifest(package: &str, functions: &[&Function]) -> String {
    let mut manifest = format!(
        "# Written by `cargo generate`.\n[package]\nname = \"{package}\"\nversion.workspace = true\nedition.workspace = true\n\
         rust-version.workspace = true\nlicense.workspace = true\npublish.workspace = true\nautobins = false\n\n"
    );
    if functions.iter().any(|function| function.plain().is_none()) {
        manifest += "[lib]\ndoctest = false\ntest = false\n\n";
    }
    manifest += "[lints]\nworkspace = true\n\n[dependencies]\nshared.workspace = true\n";
    if package == "document" {
        // The dependencies of the page of the API, and of its build script.
        manifest += "base64.workspace = true\nring.workspace = true\n\n[build-dependencies]\nbase64.workspace = true\n\
                     flate2.workspace = true\nscalar_api_reference.workspace = true\nsha2.workspace = true\n";
    }
    for Function { name, .. } in functions {
        manifest += &format!("\n[[bin]]\nname = \"{name}\"\npath = \"src/bin/{name}.rs\"\ndoc = false\ntest = false\n");
    }
    manifest
}

/// The library of a package with these files.
fn library(package: &str, modules: &BTreeSet<String>) -> String {
    let of_what = match package {
        "document" => "What anybody may read.".to_owned(),
        "mcp" => "What serves the operations to agents.".to_owned(),
        "operator" => "What an operator invokes.".to_owned(),
        "background" => "What runs without a request.".to_owned(),
        record => format!("The operations of the record `{record}`."),
    };
    let line = |module: &String| format!("mod {module};\n");
    let export = |module: &String| format!("pub use {module}::{};\n", camel_case(&module.replace('_', "-")));
    let (lines, exports): (String, String) = (modules.iter().map(line).collect(), modules.iter().map(export).collect());
    format!("//! {of_what} Written by `cargo generate`.\n\n{lines}\n{exports}")
}

/// The manifest of the workspace: its members.
fn members(packages: &BTreeSet<&str>) -> String {
    let members: String = packages.iter().map(|name| format!("    \"functions/{name}\",\n")).collect();
    let lists = [
        "    \"local/benches/sender\",",
        "default-members = [\n    \"shared\",\n    \"shared/record\",\n    \"local\",\n    \"local/repository\",",
    ];
    lists.into_iter().fold(read("Cargo.toml"), |text, before| between(&text, (before, "]"), &members))
}

/// The manifest of the service on this machine: the packages whose functions have code of their own.
fn dependencies(functions: &[Function]) -> String {
    let with_file = functions.iter().filter(|function| function.plain().is_none());
    let libraries: BTreeSet<_> = with_file.map(|function| &function.package).collect();
    let dependencies: String =
        libraries.into_iter().map(|name| format!("{name} = {{ path = \"../functions/{name}\" }}\n")).collect();
    between(&read("local/Cargo.toml"), ("`cargo generate` writes them.", "\n[dev-dependencies]"), &dependencies)
}

/// The file with the lists of functions of the service on this machine.
const LISTS: &str = "local/src/functions.rs";

/// These lists.
fn lists(functions: &[Function]) -> String {
    let lists = [
        ("Operation", "OPERATIONS: &[Described]"),
        ("SignedOperation", "SIGNED: &[Described]"),
        ("Document", "DOCUMENTS: &[Published]"),
        ("ToolServer", "SERVERS: &[Server]"),
        ("OperatorTask", "TASKS: &[Task]"),
        ("StreamConsumer", "CONSUMERS: &[Consumer]"),
        ("ScheduledTask", "SCHEDULED: &[Scheduled]"),
    ];
    lists.into_iter().fold(read(LISTS), |text, (kind, list)| {
        let of_kind = functions.iter().filter(|function| function.kind == kind);
        let entry = |function: &Function| function.handler().replacen("Handler", "Described", 1);
        let lines: String = of_kind.map(|function| format!("    {},\n", entry(function))).collect();
        between(&text, (&format!("pub const {list} = &["), "];"), &lines)
    })
}
