//! How large each function is when it is uploaded: its zip, deflated as `sam package` does it.

use std::io::Write as _;
use std::path::Path;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use crate::Result;
use crate::bench::{Bench, Function};
use crate::figures::{Figures, Must, Row, Unit, figure};

pub const SECTION: &str = "Zip of a function";
/// Bytes that a function may have.
const MOST: f64 = 3_300_000.0;
/// The same, of a function that also has an HTTP client for others than AWS, or all time zones.
const MOST_WITH_MORE: f64 = 3_900_000.0;
/// What stands in a binary with all time zones.
const ZONES: &str = "Antarctica/";
/// The folder of a crate, which stands in the binary where there is such a client: in the paths that its panics would tell.
const CLIENT: &str = "/reqwest-";
/// The functions that react to every kind of record, where nobody waits for an answer.
const REACTS: [&str; 2] = ["record-changed", "redrive"];
/// What a zip has beside the deflated bytes: two headers with the file's name, and the end of the directory.
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
        let row = Row::new(SECTION, subject, zip(&binary)?, Unit::Bytes).beside("naive", naive);
        figures.push(row.must(Must::AtMost(most)));
    }
    Ok(())
}

/// Bytes of a zip that has the file at `path` alone.
fn zip(path: &Path) -> Result<f64> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&std::fs::read(path)?)?;
    Ok(figure((encoder.finish()?.len() + FRAME) as u64))
}
