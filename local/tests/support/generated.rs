//! Compares generated files with their wanted text; `cargo generate` writes them.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write as _;

use repository::{between, read, root, update};

/// Compares a file with its wanted text, or writes the file if `cargo generate` runs the tests.
pub fn generated(path: &str, wanted: &str) {
    if generating() {
        return write(path, wanted);
    }
    let is = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(is == wanted, "{path} is not up to date: cargo generate writes it\n{}", difference(&is, wanted));
}

/// Writes a file that has another text, and adds its path to the list that `cargo generate` reads.
pub fn write(path: &str, text: &str) {
    if update(path, text).unwrap() {
        let list = OpenOptions::new().append(true).open(list_of_written().unwrap());
        writeln!(list.unwrap(), "{path}").unwrap();
    }
}

/// Does the same for the part of a file between two lines.
pub fn generated_between(path: &str, marks: (&str, &str), wanted: &str) {
    generated(path, &between(&read(path), marks, wanted));
}

/// Asserts that a file has each of these lines. A run that takes a tenth of the cases cannot know the other lines.
pub fn generated_in_part(path: &str, lines: &str) {
    let is = read(path);
    for wanted in lines.lines() {
        assert!(is.lines().any(|line| line == wanted), "{path} has no line {wanted}: cargo generate writes it");
    }
}

/// Whether `cargo generate` runs the tests.
pub fn generating() -> bool {
    list_of_written().is_some()
}

/// The file in which `cargo generate` expects the paths of the written files.
#[expect(clippy::disallowed_methods, reason = "a switch of the tests only")]
fn list_of_written() -> Option<OsString> {
    std::env::var_os("GENERATE")
}

fn difference(is: &str, wanted: &str) -> String {
    let (is, wanted): (Vec<_>, Vec<_>) = (is.lines().collect(), wanted.lines().collect());
    let line = (0..is.len().max(wanted.len())).find(|line| is.get(*line) != wanted.get(*line)).unwrap_or_default();
    format!("line {}\n  is:     {:?}\n  should: {:?}", line + 1, is.get(line), wanted.get(line))
}
