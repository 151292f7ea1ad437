//! Tests of the imports between modules of `shared`, of `local` and of the tests: they have an order and few circles.

use repository::{read, root};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The most files that may import each other in a circle.
const LARGEST_CIRCLE: usize = 3;

/// What each module imports, by path without `crate`. Tests and comments are left out.
type Imports = BTreeMap<String, BTreeSet<String>>;

/// The modules in `folder`, such as `table::keys`, with what they import.
fn imports(folder: &str) -> Imports {
    fn walk(folder: &Path, module: &str, imports: &mut Imports) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            let inner = if module.is_empty() { name.to_owned() } else { format!("{module}::{name}") };
            if path.is_dir() {
                walk(&path, &inner, imports);
            } else if inner != "lib" && path.extension().is_some_and(|extension| extension == "rs") {
                let source = std::fs::read_to_string(&path).unwrap();
                let code = source.split("#[cfg(test)]").next().unwrap();
                let code: String = code.lines().filter(|line| !line.trim_start().starts_with("//")).collect();
                imports.insert(inner.clone(), imported(&code, &inner));
            }
        }
    }
    let mut all = Imports::new();
    walk(&root().join(folder), "", &mut all);
    all
}

/// The paths in `code`, the code of `module`: in its `use` statements and everywhere else.
fn imported(code: &str, module: &str) -> BTreeSet<String> {
    let parent = module.rsplit_once("::").map_or("", |(parent, _)| parent);
    let mut paths = BTreeSet::new();
    for (start, base) in [("crate::", ""), ("super::", parent)] {
        for (at, _) in code.match_indices(start) {
            // `$crate` in a macro is for the code that uses the macro.
            if !code[..at].ends_with('$') {
                leaves(&code[at + start.len()..], base.to_owned(), &mut paths);
            }
        }
    }
    paths
}

/// Adds the paths with which `code` begins, behind `before`: one, or several in braces. Returns what follows them.
fn leaves<'a>(code: &'a str, mut before: String, paths: &mut BTreeSet<String>) -> &'a str {
    let mut rest = code.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            rest = inner.trim_start();
            while !rest.starts_with('}') {
                rest = leaves(rest, before.clone(), paths).trim_start_matches([',', ' ']);
            }
            return &rest[1..];
        }
        let end = rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, behind) = rest.split_at(end);
        if !before.is_empty() {
            before.push_str("::");
        }
        before.push_str(name);
        let Some(more) = behind.strip_prefix("::") else {
            paths.insert(before.trim_end_matches("::self").to_owned());
            let renamed = behind.strip_prefix(" as ").map(|name| name.trim_start_matches(|c| !",};".contains(c)));
            return renamed.unwrap_or(behind);
        };
        rest = more;
    }
}

/// The module in which `path` ends.
fn module_of<'a>(path: &'a str, modules: &Imports) -> Option<&'a str> {
    let mut path = path;
    while !modules.contains_key(path) {
        path = path.rsplit_once("::")?.0;
    }
    Some(path)
}

/// The modules that each one in `folder` imports from.
fn edges(folder: &str) -> Imports {
    let all = imports(folder);
    let of = |module: &String, paths: &BTreeSet<String>| {
        let used = paths.iter().filter_map(|path| module_of(path, &all)).filter(|used| *used != module.as_str());
        (module.clone(), used.map(str::to_owned).collect())
    };
    all.iter().map(|(module, paths)| of(module, paths)).collect()
}

/// All modules that each one imports from, directly or through others. A module in a circle reaches itself.
fn reached(edges: &Imports) -> Imports {
    let from = |module: &String| {
        let (mut reached, mut next) = (BTreeSet::new(), vec![module]);
        while let Some(module) = next.pop() {
            next.extend(edges[module].iter().filter(|used| reached.insert((*used).clone())));
        }
        (module.clone(), reached)
    };
    edges.keys().map(from).collect()
}

#[test]
fn no_room_imports_from_a_later_one() {
    let page = read("shared/src/lib.rs");
    let rooms: Vec<&str> = page
        .lines()
        .filter_map(|line| line.strip_prefix("//! - ")?.trim_start_matches('[').strip_prefix('`')?.split('`').next())
        .collect();
    let declared =
        page.lines().filter_map(|line| line.trim_start_matches("pub ").strip_prefix("mod ")?.strip_suffix(';'));
    assert_eq!(rooms.iter().copied().collect::<BTreeSet<_>>(), declared.collect());
    let room = |module: &str| {
        let name = module.split("::").next().unwrap();
        rooms.iter().position(|room| *room == name).unwrap()
    };
    let edges = edges("shared/src");
    let upward: Vec<String> = edges
        .iter()
        .flat_map(|(module, used)| used.iter().map(move |used| (module, used)))
        .filter(|(module, used)| room(used) > room(module))
        .map(|(module, used)| format!("{module} imports {used}"))
        .collect();
    assert_eq!(upward, Vec::<String>::new());
    assert!(edges.values().map(BTreeSet::len).sum::<usize>() > 500, "the imports are found");
}

#[test]
fn a_circle_of_files_has_at_most_three() {
    let reached = reached(&edges("shared/src"));
    for (module, used) in &reached {
        let circle: Vec<_> = used.iter().filter(|other| reached[*other].contains(module)).collect();
        assert!(circle.len() <= LARGEST_CIRCLE, "{circle:?}");
    }
    assert!(reached.values().any(|reached| reached.contains("table::keys")));
}

/// A module is a file of `local/src` with the folder of its name.
#[test]
fn no_modules_of_the_local_stack_form_a_circle() {
    let name = |module: &String| module.split("::").next().unwrap().to_owned();
    let mut modules = Imports::new();
    for (module, used) in edges("local/src") {
        let module = name(&module);
        let used = used.iter().map(name).filter(|used| *used != module).collect::<Vec<_>>();
        modules.entry(module).or_default().extend(used);
    }
    let in_circles: Vec<_> = reached(&modules).into_iter().filter(|(module, used)| used.contains(module)).collect();
    assert_eq!(in_circles, []);
    assert!(modules["stack"].contains("gateway"), "the imports are found");
}

/// Code that several tests share is in files without tests.
#[test]
fn no_test_imports_from_a_file_with_tests() {
    let edges = edges("local/tests");
    let has_tests = |module: &String| {
        let source = read(&format!("local/tests/{}.rs", module.replace("::", "/")));
        ["#[test]", "#[tokio::test"].iter().any(|mark| source.lines().any(|line| line.starts_with(mark)))
    };
    let imported: BTreeSet<_> = edges.values().flatten().collect();
    let with_tests: Vec<_> = imported.iter().filter(|module| has_tests(module)).collect();
    assert_eq!(with_tests, Vec::<&&String>::new());
    assert!(edges.len() > imported.len() && imported.len() > 10, "the imports are found");
}
