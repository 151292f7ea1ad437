//! Holds what the service is built from to its lock files, and writes the bill of materials of the deployed binaries.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use repository::{names_in, read, root};
use serde_json::{Value, json};

use crate::support::generated::generated;

/// The processors that the template can name.
const TARGETS: [&str; 2] = ["aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"];

/// How the bill names the service itself.
const SERVICE: &str = "service";

/// A crate of the registry in the tree of dependencies.
struct Crate {
    name: String,
    version: String,
    licence: String,
    repository: String,
}

/// All crates by their package URL, and which of them each one uses.
type Tree = (BTreeMap<String, Crate>, BTreeMap<String, BTreeSet<String>>);

/// What cargo says about the binaries of the functions. A macro runs while they are compiled, and is in none of them.
fn tree() -> Tree {
    let mut command = Command::new(env!("CARGO"));
    command.args(["tree", "--locked", "--edges", "normal,no-proc-macro", "--prefix", "depth"]);
    command.args(["--format", "|{p}|{l}|{r}"]).current_dir(root());
    command.args(TARGETS.iter().flat_map(|target| ["--target", target]));
    for package in names_in("functions") {
        command.args(["--package", &package]);
    }
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (mut crates, mut uses): Tree = (BTreeMap::new(), BTreeMap::new());
    let mut path: Vec<String> = Vec::new();
    for line in String::from_utf8(output.stdout).unwrap().lines().filter(|line| !line.is_empty()) {
        let parts: Vec<_> = line.trim_end_matches(" (*)").split('|').collect();
        let [depth, package, licence, repository] = parts[..] else { panic!("not a package: {line}") };
        let (name, version) = package.split_once(" v").unwrap();
        let own = version.contains(" (");
        let address = if own { SERVICE.into() } else { format!("pkg:cargo/{name}@{}", version.replace('+', "%2B")) };
        path.truncate(depth.parse().unwrap());
        uses.entry(address.clone()).or_default();
        if let Some(user) = path.last().filter(|user| **user != address) {
            uses.get_mut(user).unwrap().insert(address.clone());
        }
        path.push(address.clone());
        if !own {
            let [name, version, repository] = [name, version, repository].map(str::to_owned);
            // Some crates still write an alternative as cargo once did.
            crates.insert(address, Crate { name, version, licence: licence.replace('/', " OR "), repository });
        }
    }
    (crates, uses)
}

/// The digests of Cargo.lock, by name and version.
fn digests() -> BTreeMap<(String, String), String> {
    let lock = read("Cargo.lock");
    let packages = lock.split("[[package]]").skip(1).filter_map(|package| {
        let field = |name: &str| {
            let mut lines = package.lines();
            Some(lines.find_map(|line| line.strip_prefix(&format!("{name} = \"")))?.trim_end_matches('"').to_owned())
        };
        Some(((field("name")?, field("version")?), field("checksum")?))
    });
    packages.collect()
}

#[test]
fn the_bill_of_materials_lists_the_crates_of_the_binaries() {
    let ((crates, uses), digests) = (tree(), digests());
    assert!(crates.len() > 100, "{} crates", crates.len());
    let components = crates.iter().map(|(address, listed)| {
        let digest = &digests[&(listed.name.clone(), listed.version.clone())];
        let mut component = json!({
            "type": "library", "bom-ref": address, "purl": address, "name": listed.name, "version": listed.version,
            "hashes": [{"alg": "SHA-256", "content": digest}], "licenses": [{"expression": listed.licence}],
        });
        if !listed.repository.is_empty() {
            component["externalReferences"] = json!([{"type": "vcs", "url": listed.repository}]);
        }
        component
    });
    let document: Value = serde_json::from_str(&read("openapi.json")).unwrap();
    let info = &document["info"];
    let bill = json!({
        "bomFormat": "CycloneDX", "specVersion": "1.6", "version": 1,
        "metadata": {"component": {
            "type": "application", "bom-ref": SERVICE, "name": info["title"], "version": env!("CARGO_PKG_VERSION"),
        }},
        "components": components.collect::<Vec<_>>(),
        "dependencies": uses.iter().map(|(user, used)| json!({"ref": user, "dependsOn": used})).collect::<Vec<_>>(),
    });
    generated("docs/sbom.cdx.json", &format!("{}\n", serde_json::to_string_pretty(&bill).unwrap()));
}

/// The words of each cargo call in a script, without `cargo`. An alias counts as what it stands for.
fn cargo_calls(script: &str, aliases: &str) -> Vec<String> {
    let script = script.replace("\\\n", " ");
    let lines = script.lines().map(str::trim).filter(|line| !line.starts_with('#'));
    let commands = lines.flat_map(|line| line.split(['|', '&', ';', '(']));
    let calls = commands.filter_map(|command| {
        let words: Vec<_> = command.split_whitespace().collect();
        let (_, called) = words.split_at(words.iter().position(|word| *word == "cargo")? + 1);
        let alias = aliases.lines().find_map(|line| line.strip_prefix(&format!("{} = \"", called.first()?)));
        Some([alias.unwrap_or_default(), &called.join(" ")].join(" "))
    });
    calls.collect()
}

#[test]
fn every_cargo_call_of_the_checks_keeps_the_lock_file() {
    let aliases = read(".cargo/config.toml");
    // A check in Python leaves the folder `__pycache__`.
    let files = names_in(".ci").into_iter().filter(|name| root().join(".ci").join(name).is_file());
    let scripts = files.map(|name| (read(&format!(".ci/{name}")), name));
    let scripts = scripts.filter(|(script, _)| script.starts_with("#!/usr/bin/env bash"));
    let calls: Vec<_> = scripts
        .flat_map(|(script, name)| cargo_calls(&script, &aliases).into_iter().map(move |call| format!("{name}:{call}")))
        .collect();
    assert!(calls.len() >= 10, "{calls:?}");
    // `cargo fmt` reads no dependency, and has no such option.
    let free = calls.iter().filter(|call| !call.contains(": fmt ") && !call.split(' ').any(|word| word == "--locked"));
    assert_eq!(free.collect::<Vec<_>>(), Vec::<&String>::new(), "without --locked");
}

/// The packages of a list for pip, with the lines of each.
fn packages(list: &str) -> BTreeMap<String, String> {
    let list = list.replace("\\\n", " ");
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let packages = lines.map(|line| {
        let (name, rest) = line.split_once("==").unwrap_or_else(|| panic!("no version: {line}"));
        let version = rest.split_whitespace().next().unwrap();
        let name = name.split('[').next().unwrap().to_lowercase();
        (format!("{name}=={version}"), line.to_owned())
    });
    packages.collect()
}

#[test]
fn every_python_package_is_pinned_with_its_digest() {
    for folder in [".ci", "local/benches/twin"] {
        let wanted = packages(&read(&format!("{folder}/requirements.in")));
        let pinned = packages(&read(&format!("{folder}/requirements.txt")));
        let missing: Vec<_> = wanted.keys().filter(|package| !pinned.contains_key(*package)).collect();
        assert!(pinned.len() > wanted.len() && missing.is_empty(), "{folder}: .ci/renew adds {missing:?}");
        for (package, lines) in pinned {
            assert!(lines.contains(" --hash=sha256:") && !lines.contains("://"), "{folder}: {package}");
        }
    }
}

#[test]
fn every_npm_package_is_pinned_with_its_digest() {
    let [wanted, lock]: [Value; 2] =
        ["package.json", "package-lock.json"].map(|name| serde_json::from_str(&read(&format!(".ci/{name}"))).unwrap());
    let packages = lock["packages"].as_object().unwrap();
    for kind in ["dependencies", "optionalDependencies"] {
        assert_eq!(packages[""][kind], wanted[kind], ".ci/renew writes package-lock.json");
    }
    let pinned: Vec<_> = packages.iter().filter(|(path, _)| !path.is_empty()).collect();
    assert!(pinned.len() > 100, "{} packages", pinned.len());
    for (path, package) in pinned {
        assert!(package["integrity"].as_str().is_some_and(|digest| digest.starts_with("sha512-")), "{path}");
        assert_eq!(package.get("resolved"), None, "{path}: an address is a matter of each machine");
    }
}

#[test]
fn every_action_of_the_workflows_is_pinned_by_its_digest() {
    let workflows = names_in(".github/workflows").into_iter().map(|name| read(&format!(".github/workflows/{name}")));
    let workflows: String = workflows.collect();
    let uses = workflows.lines().filter_map(|line| line.trim().trim_start_matches("- ").strip_prefix("uses: "));
    let (own, others): (Vec<_>, Vec<_>) = uses.partition(|action| action.starts_with("./"));
    assert!(own.len() == 1 && others.len() >= 4, "{own:?} {others:?}");
    for action in others {
        let digest = action.split_once('@').and_then(|(_, rest)| rest.split_once(" # v")).map(|(digest, _)| digest);
        assert!(digest.is_some_and(|digest| digest.len() == 40), "{action}");
    }
}

#[test]
fn the_workspace_has_the_one_version() {
    let version = env!("CARGO_PKG_VERSION");
    for package in names_in("functions").into_iter().map(|name| format!("functions/{name}")) {
        assert!(read(&format!("{package}/Cargo.toml")).contains("version.workspace = true"), "{package}");
    }
    let heading = format!("\n## {version} - ");
    assert_eq!(read("CHANGELOG.md").matches(&heading).count(), 1, "CHANGELOG.md has no part for {version}");
    let of_npm: Value = serde_json::from_str(&read("clients/typescript/package.json")).unwrap();
    assert_eq!(of_npm["version"], version);
    assert!(read("clients/python/pyproject.toml").contains(&format!("\nversion = \"{version}\"\n")));
}
