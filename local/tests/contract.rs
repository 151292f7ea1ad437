//! Compares the files that repeat the route table with it, and checks rules of the workspace.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use local::functions::{Described, describe};
use local::template::{Template, TemplateRoute};
use regex_automata::meta::Regex;
use repository::functions::{Function, functions};
use repository::{camel_case, names_in, packages, read, root, snake_case};
use shared::reactions;
use shared::request::route::Route;
use shared::routes;

use crate::support::fixture::kind;
use crate::support::generated::{generated, generated_between};
use crate::support::template::TEMPLATE;

fn names() -> impl Iterator<Item = &'static str> {
    routes::ALL.iter().map(|route| route.name)
}

/// The names of the functions of this kind.
fn functions_of(kind: &str) -> Vec<String> {
    functions().into_iter().filter(|function| function.kind == kind).map(|function| function.name).collect()
}

#[test]
fn the_template_has_every_route() {
    let declared: BTreeSet<TemplateRoute> =
        Template::read_once(&root().join("template.yaml")).unwrap().routes.into_iter().collect();
    let wanted = routes::every_path().map(|(route, path)| TemplateRoute {
        function: route.name.into(),
        method: route.method.into(),
        path: path.trim_end_matches('/').into(),
    });
    assert_eq!(declared, wanted.collect());
}

#[test]
fn the_template_has_the_events_of_each_function() {
    let template = Template::read_once(&root().join("template.yaml")).unwrap();
    let sources: BTreeSet<_> = template.sources.into_iter().map(|source| source.function).collect();
    assert_eq!(sources, functions_of("StreamConsumer").into_iter().collect(), "the functions on the stream");
    let scheduled: BTreeSet<_> = template.schedules.into_iter().map(|schedule| schedule.function).collect();
    // An operator's task in the package `background` also has a schedule, or is notified of new objects.
    let scheduled: BTreeSet<_> = scheduled.into_iter().chain(template.notified_of_objects).collect();
    let ticks = |function: &Function| {
        let is_task = function.kind == "OperatorTask" && function.package == "background";
        is_task || read(&function.file()).contains("async fn tick(")
    };
    let wanted = functions().into_iter().filter(ticks).map(|function| function.name).collect();
    assert_eq!(scheduled, wanted, "the functions on a schedule, and the one that is notified of new objects");
}

#[test]
fn the_template_builds_each_function_from_its_folder() {
    for Function { name, package, .. } in &functions() {
        let function = &TEMPLATE["Resources"][format!("{}Function", camel_case(name))];
        assert_eq!(function["Properties"]["CodeUri"], format!("functions/{package}"), "{name}");
        assert_eq!(function["Metadata"]["BuildProperties"]["Binary"], *name);
    }
}

#[test]
fn each_package_of_functions_is_generated() {
    for (path, text) in packages::files() {
        generated(&path, &text);
    }
    let functions = functions();
    let packages: BTreeSet<_> = functions.iter().map(|function| function.package.clone()).collect();
    assert_eq!(names_in("functions"), packages);
    for package in &packages {
        let of_package: Vec<_> = functions.iter().filter(|function| function.package == *package).collect();
        let folder = format!("functions/{package}");
        let binaries = of_package.iter().map(|function| format!("{}.rs", function.name)).collect();
        assert_eq!(names_in(&format!("{folder}/src/bin")), binaries, "{folder} has a binary of no function");
        let with_file = of_package.iter().filter(|function| function.plain().is_none());
        let mut sources: BTreeSet<_> = with_file.map(|function| format!("{}.rs", snake_case(&function.name))).collect();
        sources.extend((!sources.is_empty()).then(|| "lib.rs".to_owned()));
        sources.insert("bin".into());
        assert_eq!(names_in(&format!("{folder}/src")), sources, "{folder} has a file of no function");
    }
    for (function, route) in functions.iter().zip(routes::every()).filter(|(function, _)| function.plain().is_none()) {
        let (file, source) = (function.file(), read(&function.file()));
        let head = format!("//! `{} {}`: ", route.method, route.path);
        assert!(source.starts_with(&head), "{file} should begin with {head}");
    }
}

/// REST APIs of the gateway allow one variable at a position of a path: `/a/{id}` and `/a/{a_id}` cannot both exist.
#[test]
fn each_position_of_a_path_has_one_variable() {
    let mut variables: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (_, path) in routes::every_path() {
        for (at, _) in path.match_indices("/{") {
            let end = path[at..].find('}').unwrap() + at;
            variables.entry(&path[..at]).or_default().insert(&path[at + 2..end]);
        }
    }
    let several: BTreeMap<_, _> = variables.into_iter().filter(|(_, names)| names.len() > 1).collect();
    assert!(several.is_empty(), "{several:?}");
}

#[test]
fn a_handler_has_at_most_thirty_lines() {
    for function in functions().iter().filter(|function| ["Operation", "SignedOperation"].contains(&function.kind)) {
        let (name, source) = (&function.name, read(&function.file()));
        // An alias has no handler.
        let Some(body) = source.split("async fn handle").nth(1) else { continue };
        let lines = body.lines().take_while(|line| *line != "    }").count();
        assert!(lines <= 30, "the handler of {name} has {lines} lines: the rest belongs in shared::records");
    }
}

#[test]
fn the_local_stack_has_every_operation() {
    let constant = |operation: &Described| operation.handler.route;
    assert_eq!(local::functions::OPERATIONS.iter().map(constant).collect::<Vec<&Route>>(), routes::ALL);
    assert_eq!(local::functions::SIGNED.iter().map(constant).collect::<Vec<&Route>>(), routes::SIGNED);
}

#[test]
fn the_api_document_has_the_route_table() {
    let mut table = String::from("\n| Operation | Method | Path |\n| --- | --- | --- |\n");
    for (function, route) in functions().iter().zip(routes::every()) {
        let Route { name, method, .. } = route;
        let paths: Vec<_> = route.paths().map(|path| format!("`{path}`")).collect();
        table += &format!("| [`{name}`](../{}) | {method} | {} |\n", function.file(), paths.join(" or "));
    }
    generated_between("docs/API.md", ("<!-- routes -->\n", "\n<!-- /routes -->"), &table);
}

/// The diagram of the README shows the path of a request and an event, with the functions in the order of the tables.
#[test]
fn the_readme_shows_the_path_of_a_request_and_an_event() {
    let names = |names: Vec<&str>| names.join("<br>");
    let mut records: Vec<(&str, usize)> = Vec::new();
    for Route { record, .. } in routes::ALL {
        match records.iter_mut().find(|(known, _)| known == record) {
            Some((_, count)) => *count += 1,
            None => records.push((record, 1)),
        }
    }
    records.sort_unstable();
    let counts: Vec<_> = records.iter().map(|(record, count)| format!("{record} {count}")).collect();
    let operations: Vec<_> = counts.chunks(3).map(|three| three.join(", ")).collect();
    let mut reactions: Vec<_> = reactions::ALL.iter().map(|reaction| reaction.name).collect();
    reactions.dedup();
    let [changed, sender] = local::functions::CONSUMERS else { panic!("another function reads the stream") };
    let signed = names(routes::SIGNED.iter().map(|route| route.name).collect());
    let documents = names(local::functions::DOCUMENTS.iter().map(|document| document.route.name).collect());
    let tools = names(local::functions::SERVERS.iter().map(|server| server.route.name).collect());
    let scheduled = names(local::functions::SCHEDULED.iter().map(|scheduled| scheduled.name).collect());
    let (redrive, tasks): (Vec<&str>, Vec<&str>) =
        local::functions::TASKS.iter().map(|task| task.name).partition(|name| *name == "redrive");
    let (redrive, tasks) = (names(redrive), names(tasks));
    let flow = format!(
        r#"
```mermaid
flowchart LR
  caller([caller]) --> gateway[API Gateway]
  agent([agent]) --> gateway
  gateway --> operations["{total} operations, a function each:<br>{operations}"]
  provider([payment provider]) -- signed events --> gateway
  gateway --> signed["{signed}"] --> table
  gateway --> documents["{documents}"]
  gateway --> tools["{tools}"] -- one call each --> gateway
  operations --> table[(table)]
  operations --> bucket[(bucket)]
  operator([operator]) --> tasks["{tasks}"] --> table
  table -- stream --> changed["{changed}:<br>{reactions}"] --> table
  table -- stream --> sender["{sender}"] -- signed events --> servers([customers' servers])
  minute([every minute]) --> scheduled["{scheduled}"] --> table
  changed -- given up --> kept[(failed records)]
  sender -- given up --> kept
  minutes([every five minutes]) --> redrive["{redrive}"]
  operator --> redrive
  kept --> redrive -- reactions once more --> table
```
"#,
        total = routes::ALL.len(),
        operations = operations.join("<br>"),
        changed = changed.name,
        reactions = names(reactions),
        sender = sender.name,
    );
    generated_between("README.md", ("<!-- flow -->", "<!-- /flow -->"), &flow);
}

/// The tests of an operation are in the folder of its record. The matrices cover a plain operation.
#[test]
fn tests_mirror_the_functions() {
    let folders = names_in("local/tests").into_iter().filter(|name| root().join("local/tests").join(name).is_dir());
    // The folder `support` belongs to no record.
    let folders = folders.filter(|name| name != "support");
    let files = |folder: &String| -> BTreeSet<String> {
        let names = names_in(&format!("local/tests/{folder}")).into_iter();
        names.filter_map(|name| name.strip_suffix(".rs").map(str::to_owned)).collect()
    };
    let tested: BTreeMap<_, _> = folders.map(|folder| (folder.clone(), files(&folder))).collect();
    let mut modules = String::new();
    for (record, operations) in tested.iter().filter(|(_, operations)| !operations.is_empty()) {
        let of_record = routes::ALL.iter().chain(routes::SIGNED).filter(|route| snake_case(route.record) == *record);
        let known: BTreeSet<_> = of_record.map(|route| snake_case(route.name)).collect();
        assert!(operations.is_subset(&known), "local/tests/{record} has tests of no operation: {operations:?}");
        let lines: String = operations.iter().map(|operation| format!("    mod {operation};\n")).collect();
        modules += &format!("mod {record} {{\n{lines}}}\n");
    }
    assert!(!modules.is_empty());
    let marks = ("`cargo generate` writes this list.", "// The end of that list.");
    generated_between("local/tests/stack.rs", marks, &modules);
}

#[test]
fn every_operation_describes_itself() {
    for Described { handler, .. } in local::functions::OPERATIONS.iter().chain(local::functions::SIGNED) {
        let (route, description) = (handler.route, describe(handler.route.name));
        let parameters: BTreeSet<_> = route.parameters().collect();
        let described: BTreeSet<_> =
            description.path["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, parameters, "{}: the operation reads other parameters than its route has", route.name);
        assert_eq!(description.reply["required"], serde_json::json!(["message", "meta", "data"]));
        assert!(description.reply["properties"]["data"]["properties"].is_object(), "{}", route.name);
    }
}

/// The paths of every file and folder below `folder`, relative to the workspace.
fn paths_below(folder: &str) -> Vec<String> {
    let paths = names_in(folder).into_iter().map(|name| format!("{folder}/{name}"));
    let with_inner = |path: String| {
        let inner = if root().join(&path).is_dir() { paths_below(&path) } else { Vec::new() };
        [inner, vec![path]].concat()
    };
    paths.flat_map(with_inner).collect()
}

fn is_rust(path: &String) -> bool {
    Path::new(path).extension().is_some_and(|extension| extension == "rs")
}

/// The Rust files below these folders, each with its text up to its tests.
fn code_of(folders: &[&str]) -> Vec<(String, String)> {
    let paths = folders.iter().flat_map(|folder| paths_below(folder));
    let rust = paths.filter(is_rust);
    let without_tests = |text: &str| text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
    rust.map(|path| (path.clone(), without_tests(&read(&path)))).collect()
}

/// Every type name of the workspace has one meaning.
#[test]
fn each_type_name_is_declared_once() {
    let mut names: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, code) in code_of(&["shared/src", "shared/record/src", "functions", "local/src", "local/repository/src"])
    {
        // A program uses its names alone.
        if path.contains("/bin/") || path.ends_with("/main.rs") {
            continue;
        }
        for line in code.lines().map(str::trim_start) {
            let line =
                line.strip_prefix("pub").map_or(line, |rest| rest.split_once(' ').map_or(rest, |(_, rest)| rest));
            let rest = ["struct ", "enum ", "trait "].iter().find_map(|kind| line.strip_prefix(kind));
            let name = rest.unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap();
            if !name.is_empty() {
                names.entry(name.to_owned()).or_default().push(path.clone());
            }
        }
    }
    let twice: BTreeMap<_, _> = names.into_iter().filter(|(_, files)| files.len() > 1).collect();
    assert!(twice.is_empty(), "{twice:#?}");
}

/// A reader can read a file in one sitting; its tests do not count.
#[test]
fn no_file_has_more_than_five_hundred_lines() {
    for (path, code) in
        code_of(&["shared/src", "shared/record/src", "functions", "local/src", "local/repository/src", "local/benches"])
    {
        let lines = code.lines().count();
        assert!(lines <= 500, "{path} has {lines} lines");
    }
}

#[test]
fn no_file_has_a_name_without_meaning() {
    for path in ["shared", "functions", "local"].into_iter().flat_map(paths_below) {
        let stem = Path::new(&path).file_stem().unwrap().to_str().unwrap();
        assert!(!["utils", "util", "helpers", "helper", "misc", "common"].contains(&stem), "{path}");
    }
}

/// The names of all tests, with their files.
fn tests() -> Vec<(String, String)> {
    let name = Regex::new(r"#\[(?:tokio::)?test[^\n]*\](?:\s*#\[[^\n]*\])*\s*(?:async )?fn (\w+)").unwrap();
    let rust = ["shared", "functions", "local"].into_iter().flat_map(paths_below).filter(is_rust);
    let in_file = |path: String| {
        let code = read(&path);
        let found = name.captures_iter(&code).map(|found| code[found.get_group(1).unwrap().range()].to_owned());
        found.map(|test| (test, path.clone())).collect::<Vec<_>>()
    };
    rust.flat_map(in_file).collect()
}

/// Each row about a promise in `docs/SECURITY.md` names tests, or says that it is not held.
#[test]
fn the_security_page_names_existing_tests() {
    let tests: BTreeSet<String> = tests().into_iter().map(|(test, _)| test).collect();
    let page = read("docs/SECURITY.md");
    let tables = page.split("\n\n").filter(|part| part.lines().next().is_some_and(|head| head.contains("| Shown by")));
    let mut named = BTreeSet::new();
    for row in tables.flat_map(|table| table.lines().skip(2)) {
        let words = row.split('`').skip(1).step_by(2).filter(|word| word.matches('_').count() > 2);
        let words: BTreeSet<String> = words.map(str::to_owned).collect();
        let unknown: Vec<_> = words.difference(&tests).collect();
        assert!(unknown.is_empty(), "{unknown:?} in {row}");
        let needs_none =
            ["| not held |", "| partly | Logs", "(#how-dependencies-"].iter().any(|mark| row.contains(mark));
        assert_eq!(words.is_empty(), needs_none, "{row}");
        named.extend(words);
    }
    assert!(named.len() > 60, "only {} tests are named", named.len());
}

/// The name of a test says subject, verb and result. A name that begins with a clause needs a second reading.
#[test]
fn each_test_name_begins_with_its_subject_and_is_short() {
    let clauses =
        ["what", "who", "whoever", "whatever", "wherever", "however", "where", "those", "nobody", "whichever"];
    let tests = tests();
    for (test, path) in &tests {
        assert!(!clauses.contains(&test.split('_').next().unwrap()), "{path}: {test}");
        assert!(test.len() <= 66, "{path}: {test}");
    }
    assert!(tests.len() > 700, "only {} tests were found", tests.len());
}

/// The lines of the file of a licence, whose name follows the usage of crates: `Apache-2.0` is in `LICENSE-APACHE`.
fn licence_text(licence: &str) -> Vec<String> {
    let name = licence.split('-').next().unwrap().to_uppercase();
    read(&format!("LICENSE-{name}")).lines().map(|line| line.trim().to_owned()).collect()
}

#[test]
fn each_licence_has_its_text_and_no_other_text_exists() {
    let manifest = read("Cargo.toml");
    let named = manifest.lines().find_map(|line| line.strip_prefix("license = ")).unwrap().trim_matches('"');
    let licences: Vec<_> = named.split(" OR ").collect();
    for licence in &licences {
        let first = match *licence {
            "MIT" => "Permission is hereby granted, free of charge, to any",
            "Apache-2.0" => "TERMS AND CONDITIONS FOR USE, REPRODUCTION, AND DISTRIBUTION",
            other => panic!("this test does not know the text of {other}"),
        };
        let text = licence_text(licence);
        assert!(text.len() > 20 && text.iter().any(|line| line == first), "{licence}");
    }
    let files = names_in("").into_iter().filter(|name| name.starts_with("LICENSE"));
    assert_eq!(files.count(), licences.len());
}

#[test]
fn the_python_of_the_checks_has_at_most_500_lines() {
    let files = names_in(".ci")
        .into_iter()
        .filter(|name| Path::new(name).extension().is_some_and(|extension| extension == "py"));
    let lines: usize = files.map(|name| read(&format!(".ci/{name}")).lines().count()).sum();
    assert!((1..=500).contains(&lines), "{lines} lines: a check without an emulator is written in Rust");
}

#[test]
fn cargo_local_and_cargo_test_compile_the_same_features() {
    let compiled = |arguments: &[&str]| -> BTreeSet<String> {
        let tree = ["tree", "--offline", "--prefix", "none", "--format", "{p} {f}"];
        let output = Command::new(env!("CARGO")).args(tree).args(arguments).current_dir(root()).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| line.trim_end_matches(" (*)").to_owned()).collect()
    };
    let local = compiled(&["--package", "local", "--edges", "normal,build"]);
    let tests = compiled(&["--edges", "normal,build,dev"]);
    let again: Vec<_> = local.difference(&tests).collect();
    assert!(local.len() > 200 && again.is_empty(), "compiled again with other features: {again:?}");
}

#[test]
fn the_page_of_figures_has_at_most_150_lines() {
    let page = read("docs/PERFORMANCE.md");
    assert!(page.lines().count() <= 150, "{} lines", page.lines().count());
    let wide = page.lines().find(|line| line.chars().count() > 120);
    assert_eq!(wide, None);
}

#[test]
fn figures_of_every_function_are_kept() {
    let kept: serde_json::Value = serde_json::from_str(&read("docs/performance.json")).unwrap();
    let rows = kept["rows"].as_array().unwrap();
    let measured = |section: &str| -> BTreeSet<String> {
        // The rows without limits are comparisons.
        let rows = rows.iter().filter(|row| row["section"] == section && !row["must"].is_null());
        rows.map(|row| row["subject"].as_str().unwrap().split([',', ':']).next().unwrap().to_owned()).collect()
    };
    let functions: BTreeSet<_> = functions().into_iter().map(|function| function.name).collect();
    assert_eq!(measured("Process start to first poll"), functions);
    assert_eq!(measured("Zip of a function"), functions);
    assert_eq!(measured("A warm call"), names().map(str::to_owned).collect());
}

#[test]
fn the_demo_set_explains_its_ids() {
    let head = read("local/demo.yaml");
    for (number, name) in
        [(kind::TAG, "tag"), (kind::WIDGET, "widget"), (kind::AGENCY, "agency"), (kind::WEBHOOK, "webhook")]
    {
        assert!(head.contains(&format!("{number:02x} {name}")), "{name}");
    }
}
