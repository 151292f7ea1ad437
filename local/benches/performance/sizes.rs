//! The size of each function's upload: its zip, deflated as by `sam package`.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::Result;
use crate::bench::{Bench, Function};
use crate::figures::{Figures, Must, Row, Unit, figure};

pub const SECTION: &str = "Zip of a function";
/// The most bytes of a function.
const MOST: f64 = 3_500_000.0;
/// The same for a function that also has an HTTP client for other servers than AWS, or all time zones.
const MOST_WITH_MORE: f64 = 4_000_000.0;
/// A text that occurs in a binary with all time zones.
const ZONES: &str = "Antarctica/";
/// The folder of a crate, which occurs in a binary with such a client: in the paths of its panics.
const CLIENT: &str = "/reqwest-";
/// The functions that react to every kind of record, while no caller waits for an answer.
const REACTS: [&str; 2] = ["record-changed", "redrive"];
/// The bytes of a zip in addition to the deflated ones: two headers with the file's name, and the end of the directory.
const FRAME: usize = 30 + 46 + 22 + 2 * "bootstrap".len();

pub fn measure(bench: &Bench, figures: &mut Figures) -> Result<()> {
    let naive = zip(&bench.naive_binary())?;
    for Function { name, .. } in bench.functions()? {
        let binary = bench.binary(&name);
        let bytes = std::fs::read(&binary)?;
        let text = String::from_utf8_lossy(&bytes);
        let client = text.contains(CLIENT);
        let more = client || text.contains(ZONES) || REACTS.contains(&name.as_str());
        let most = if more { MOST_WITH_MORE } else { MOST };
        let subject = if client { format!("{name}, with an HTTP client of its own") } else { name };
        let row = Row::new(SECTION, subject, zip(&binary)?, Unit::Bytes).compared_with("naive", naive);
        figures.push(row.must(Must::AtMost(most)));
    }
    Ok(())
}

/// The size in bytes of a zip with only the file at `path`.
fn zip(path: &Path) -> Result<f64> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&std::fs::read(path)?)?;
    Ok(figure((encoder.finish()?.len() + FRAME) as u64))
}
