//! One list per fact: what repeats the route table is generated from it or compared with it. `UPDATE=1 cargo test` writes what is generated.

use std::collections::BTreeSet;
use std::path::Path;

use local::template::{Template, TemplateRoute, camel_case};
use shared::operation::Endpoint;
use shared::routes::{self, Route};

use crate::fixture::{kind, root};

/// Compares a file with what it should be, or makes it so where `UPDATE` is set.
pub fn generated(path: &str, wanted: &str) {
    let file = root().join(path);
    let is = std::fs::read_to_string(&file).unwrap_or_default();
    if is != wanted && updating() {
        std::fs::write(&file, wanted).unwrap();
    } else {
        assert!(is == wanted, "{path} is not up to date: UPDATE=1 cargo test writes it\n{}", difference(&is, wanted));
    }
}

/// The same for the part of a file between two lines.
pub fn generated_between(path: &str, (begin, end): (&str, &str), wanted: &str) {
    let text = read(path);
    let start = text.find(begin).unwrap_or_else(|| panic!("{path} has no line {begin}")) + begin.len();
    let stop = start + text[start..].find(end).unwrap_or_else(|| panic!("{path} has no line {end}"));
    generated(path, &format!("{}\n{wanted}{}", &text[..start], &text[stop..]));
}

#[expect(clippy::disallowed_methods, reason = "the tests' own switch, which no function reads")]
pub fn updating() -> bool {
    std::env::var_os("UPDATE").is_some()
}

fn difference(is: &str, wanted: &str) -> String {
    let (is, wanted): (Vec<_>, Vec<_>) = (is.lines().collect(), wanted.lines().collect());
    let line = (0..is.len().max(wanted.len())).find(|line| is.get(*line) != wanted.get(*line)).unwrap_or_default();
    format!("line {}\n  is:     {:?}\n  should: {:?}", line + 1, is.get(line), wanted.get(line))
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The names of what is in `folder`.
pub fn names_in(folder: &str) -> BTreeSet<String> {
    let entries = std::fs::read_dir(root().join(folder)).unwrap_or_else(|error| panic!("{folder}: {error}"));
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

fn names() -> impl Iterator<Item = &'static str> {
    routes::ALL.iter().map(|route| route.name)
}

/// The packages of functions without a route whose `main` runs a thing of this kind.
fn packages_of(kind: &str) -> Vec<String> {
    let runs =
        |package: &String| read(&format!("functions/{package}/src/main.rs")).contains(&format!("({kind}::of::<"));
    names_in("functions").into_iter().filter(runs).collect()
}

#[test]
fn the_template_has_the_routes() {
    let declared: BTreeSet<TemplateRoute> =
        Template::read(&root().join("template.yaml")).unwrap().routes.into_iter().collect();
    let wanted = routes::ALL.iter().map(|route| TemplateRoute {
        function: route.name.into(),
        method: route.method.into(),
        path: route.path.into(),
    });
    assert_eq!(declared, wanted.collect());
}

#[test]
fn the_template_has_the_events_of_each_function() {
    let template = Template::read(&root().join("template.yaml")).unwrap();
    let sources: BTreeSet<_> = template.sources.into_iter().map(|source| source.function).collect();
    assert_eq!(sources, packages_of("Consumer").into_iter().collect(), "the functions on the stream");
    let scheduled: BTreeSet<_> = template.schedules.into_iter().map(|schedule| schedule.function).collect();
    let ticks = |name: &String| read(&format!("functions/{name}/src/lib.rs")).contains("async fn tick(");
    let wanted = names_in("functions").into_iter().filter(ticks).collect();
    assert_eq!(scheduled, wanted, "the functions on a schedule");
}

#[test]
fn the_template_builds_each_function_from_its_folder() {
    let template = read("template.yaml");
    for name in &names_in("functions") {
        let id = format!("  {}Function:\n", camel_case(name));
        let block = template.split(&id).nth(1).unwrap_or_else(|| panic!("the template has no {}", id.trim()));
        let block = block
            .split("\n  ")
            .take_while(|line| line.starts_with(' ') || line.is_empty())
            .collect::<Vec<_>>()
            .join("\n");
        assert!(format!("    {block}").contains(&format!("CodeUri: functions/{name}")), "{name}: its CodeUri\n{block}");
    }
}

#[test]
fn there_is_a_package_for_each_route_and_each_is_made_alike() {
    let packages = names_in("functions");
    assert!(names().all(|name| packages.contains(name)), "a route has no package");
    let (tasks, consumers, scheduled) = (packages_of("Task"), packages_of("Consumer"), packages_of("Scheduled"));
    assert_eq!(local::endpoints::TASKS.iter().map(|task| task.name).collect::<Vec<_>>(), tasks);
    assert_eq!(local::endpoints::CONSUMERS.iter().map(|consumer| consumer.name).collect::<Vec<_>>(), consumers);
    assert_eq!(local::endpoints::SCHEDULED.iter().map(|task| task.name).collect::<Vec<_>>(), scheduled);
    assert_eq!(
        packages.len(),
        names().count() + tasks.len() + consumers.len() + scheduled.len(),
        "a package runs none of the four kinds"
    );
    let pattern = |name: &str, text: &str| {
        text.replace(name, "{name}").replace(&name.replace('-', "_"), "{name}").replace(&camel_case(name), "{Type}")
    };
    let operations = names().map(str::to_owned).collect::<Vec<_>>();
    let alike = [
        ("Cargo.toml", &packages.into_iter().collect()),
        ("src/main.rs", &operations),
        ("src/main.rs", &tasks),
        ("src/main.rs", &consumers),
        ("src/main.rs", &scheduled),
    ];
    for (file, names) in alike {
        let of = |name: &String| pattern(name, &read(&format!("functions/{name}/{file}")));
        for name in names {
            assert_eq!(of(name), of(&names[0]), "functions/{name}/{file} differs from its likes by more than the name");
        }
    }
    for route in routes::ALL {
        let source = read(&format!("functions/{}/src/lib.rs", route.name));
        let head = format!("//! `{} {}`: ", route.method, route.path);
        assert!(source.starts_with(&head), "functions/{}/src/lib.rs should begin with {head}", route.name);
        assert!(source.contains(&format!("impl Operation for {} {{", camel_case(route.name))), "{}", route.name);
    }
}

#[test]
fn a_handler_fits_thirty_lines() {
    for name in names() {
        let source = read(&format!("functions/{name}/src/lib.rs"));
        let body = source.split("async fn handle").nth(1).unwrap_or_else(|| panic!("{name} has no handler"));
        let lines = body.lines().take_while(|line| *line != "    }").count();
        assert!(lines <= 30, "the handler of {name} has {lines} lines: the rest belongs in shared::model");
    }
}

#[test]
fn the_endpoints_are_those_of_the_route_table() {
    let (tasks, consumers, scheduled) = (packages_of("Task"), packages_of("Consumer"), packages_of("Scheduled"));
    let packages = names().map(str::to_owned).chain([&tasks, &consumers, &scheduled].into_iter().flatten().cloned());
    let dependencies: String =
        packages.map(|name| format!("{name} = {{ path = \"../functions/{name}\" }}\n")).collect();
    let marks = ("`UPDATE=1 cargo test` writes them.", "\n[dev-dependencies]");
    generated_between("local/Cargo.toml", marks, &dependencies);
    let line =
        |kind: &str, name: &str| format!("    {kind}::of::<{}::{}>(),\n", name.replace('-', "_"), camel_case(name));
    let endpoints: String = names().map(|name| line("Endpoint", name)).collect();
    generated_between("local/src/endpoints.rs", ("pub const ALL: &[Endpoint] = &[", "];"), &endpoints);
    let tasks: String = tasks.iter().map(|name| line("Task", name)).collect();
    generated_between("local/src/endpoints.rs", ("pub const TASKS: &[Task] = &[", "];"), &tasks);
    let consumers: String = consumers.iter().map(|name| line("Consumer", name)).collect();
    generated_between("local/src/endpoints.rs", ("pub const CONSUMERS: &[Consumer] = &[", "];"), &consumers);
    let scheduled: String = scheduled.iter().map(|name| line("Scheduled", name)).collect();
    generated_between("local/src/endpoints.rs", ("pub const SCHEDULED: &[Scheduled] = &[", "];"), &scheduled);
    let constant = |endpoint: &Endpoint| endpoint.route;
    assert_eq!(local::endpoints::ALL.iter().map(constant).collect::<Vec<&Route>>(), routes::ALL);
}

#[test]
fn the_readme_has_the_route_table() {
    let mut table = String::from("\n| Operation | Method | Path |\n| --- | --- | --- |\n");
    for route in routes::ALL {
        let Route { name, method, path, .. } = route;
        table += &format!("| [`{name}`](functions/{name}/src/lib.rs) | {method} | `{path}` |\n");
    }
    generated_between("README.md", ("<!-- routes -->\n", "\n<!-- /routes -->"), &table);
}

#[test]
fn tests_mirror_the_functions() {
    let wanted: BTreeSet<_> = names().map(|name| format!("{}.rs", name.replace('-', "_"))).collect();
    assert_eq!(names_in("local/tests/routes"), wanted);
}

#[test]
fn every_operation_describes_itself() {
    for endpoint in local::endpoints::ALL {
        let description = endpoint.describe();
        let parameters: BTreeSet<_> = endpoint.route.parameters().collect();
        let described: BTreeSet<_> =
            description.path["properties"].as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(described, parameters, "{}: the path it reads is not that of its route", endpoint.route.name);
        assert_eq!(description.reply["required"], serde_json::json!(["message", "meta", "data"]));
        assert!(description.reply["properties"]["data"]["properties"].is_object(), "{}", endpoint.route.name);
    }
}

#[test]
fn no_file_name_says_nothing() {
    fn walk(folder: &Path) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let stem = path.file_stem().unwrap().to_str().unwrap();
            assert!(!["utils", "util", "helpers", "helper", "misc", "common"].contains(&stem), "{}", path.display());
            if path.is_dir() {
                walk(&path);
            }
        }
    }
    for folder in ["shared", "functions", "local"] {
        walk(&root().join(folder));
    }
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
