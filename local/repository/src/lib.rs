//! The files of this repository: its functions, and the packages that follow from the route table.
//!
//! It does not depend on the functions, nor on the service on this machine: `cargo generate` writes their packages
//! before it compiles them.
//!
//! - [`functions`] lists the functions. [`plain`] describes the operations that have no file.
//! - [`packages`] has the wanted text of each file of a package.

pub mod functions;
pub mod packages;
pub mod plain;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The folder of the checkout.
pub fn root() -> PathBuf {
    // Two folders up from this package, without `..`.
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap_or(Path::new("/")).to_owned()
}

/// The text of the file at `path` in the checkout.
///
/// # Panics
/// Where it cannot be read.
pub fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Writes `text` to the file at `path` in the checkout, if the file has another text. Returns whether it did.
pub fn update(path: &str, text: &str) -> std::io::Result<bool> {
    let file = root().join(path);
    if std::fs::read_to_string(&file).is_ok_and(|is| is == text) {
        return Ok(false);
    }
    // The rename keeps other readers from half a file.
    let whole = file.with_extension("new");
    file.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    std::fs::write(&whole, text)?;
    std::fs::rename(&whole, &file)?;
    Ok(true)
}

/// The names of the entries of `folder` in the checkout.
///
/// # Panics
/// Where it cannot be read.
pub fn names_in(folder: &str) -> BTreeSet<String> {
    let name = |entry: std::io::Result<std::fs::DirEntry>| Ok(entry?.file_name().to_string_lossy().into_owned());
    let names = std::fs::read_dir(root().join(folder)).and_then(|entries| entries.map(name).collect());
    names.unwrap_or_else(|error| panic!("{folder}: {error}"))
}

/// The text before, between and after two marks; the marks themselves belong to the outer parts.
///
/// # Panics
/// Where `text` has no such marks.
pub fn around(text: &str, (begin, end): (&str, &str)) -> (String, String, String) {
    let start = text.find(begin).unwrap_or_else(|| panic!("there is no line {begin}")) + begin.len();
    let stop = start + text[start..].find(end).unwrap_or_else(|| panic!("there is no line {end} after {begin}"));
    (text[..start].to_owned(), text[start..stop].to_owned(), text[stop..].to_owned())
}

/// `text` with `wanted` in place of what is between two marks.
///
/// # Panics
/// Where `text` has no such marks.
pub fn between(text: &str, marks: (&str, &str), wanted: &str) -> String {
    let (before, _, after) = around(text, marks);
    format!("{before}\n{wanted}{after}")
}

/// `delete-tag` as `DeleteTag`.
pub fn camel_case(kebab: &str) -> String {
    let capital = |word: &str| word.get(..1).unwrap_or_default().to_uppercase() + word.get(1..).unwrap_or_default();
    kebab.split('-').map(capital).collect()
}

/// `delete-tag` as `delete_tag`.
pub fn snake_case(kebab: &str) -> String {
    kebab.replace('-', "_")
}
