//! Writes `docs/PERFORMANCE.md`: charts first, then one line for each measure. The stored file has every figure.

use std::fmt::Write as _;
use std::path::Path;

use crate::figures::{Figures, Must, Row, shown};
use crate::kept::Kept;
use crate::{Result, charts};

/// The width of a line of the page.
const WIDTH: usize = 120;

const HEAD: &str = "\
# Performance

This page says how fast the service is, and which bounds it keeps. `cargo performance` writes it. It measures the
release binaries as they would be deployed, on one machine and not on AWS Lambda.

A figure may have a *reference*, with which it is compared, and a *bound*, within which it must be. A reference comes
from the same run, unless `cargo performance --count` has counted the function again since. Calls, units and bytes are
the same on every run. Instructions are within one percent on the same machine. Seconds vary.
";

const REPEAT: &str = "
## How to repeat it

```sh
cargo performance                # all of it: writes this page, its charts, and docs/performance.json
cargo performance start lists    # some of it: all other figures stay as they are
cargo performance --new          # functions without figures: all other figures stay as they are
cargo performance --check        # fails where an instruction count of docs/performance.json rose by more than 3 %
cargo performance --render       # measures nothing: writes page and charts from docs/performance.json
```

The functions run under a runtime API of the harness's own, against the embedded database of `cargo local`. Callgrind
(`apt-get install valgrind`) counts the instructions of several starts and of several warm calls, each by itself. The
figure is their median. Four programs in [`local/benches`](../local/benches) are for comparison:

- *hello* answers a constant, without the SDK. *Naive* is a simple first version in Rust, with every default.
- *Bare* is a `lambda_http` handler that makes the same SDK calls as an operation, and answers the same body as a
  constant. It has no key, no validation, no envelope and no log line. The SDK alone reads the database's answers.
- The *twin* is the same in Python: FastAPI, Mangum and boto3.

The bare handler may take more: pages are [read without the SDK](adr/0014-pages-are-read-from-the-wire.md). The first
call makes one more, for the key. Timed measures have no [limits of a partition](adr/0032-partitions-are-counted.md).
";

/// Writes the page and its charts.
pub fn write(root: &Path, kept: &Kept) -> Result<()> {
    let figures = &kept.figures;
    let drawn = charts::write(&root.join("docs/performance"), figures)?;
    let mut page = format!("{HEAD}\n");
    for (name, title) in drawn {
        writeln!(page, "![{title}](performance/{name}.svg)")?;
    }
    let missed = figures.rows.iter().filter(|row| !row.holds()).count();
    let bound = figures.rows.iter().filter(|row| row.must.is_some()).count();
    let verdict = match missed {
        0 => "all of them are".to_owned(),
        1 => "**one is not**".to_owned(),
        missed => format!("**{missed} are not**"),
    };
    page += "\n## In short\n\n";
    page += &wrapped(
        &format!(
            "For each measure, this list shows the figure that is nearest to its bound, or beyond it. Where a section has \
             bounds, figures without a bound or a reference are left out. \
             [`performance.json`](performance.json) has all {} figures, one on each line, also those of every function. \
             {bound} of them have to be within a bound: {verdict}.",
            figures.rows.len(),
        ),
        "",
    );
    page += "\n";
    let mut section = "";
    for measure in measures(figures) {
        let row = worst(&measure);
        let has_bounds = figures.rows.iter().any(|other| other.section == row.section && other.must.is_some());
        if has_bounds && row.must.is_none() && row.reference.is_none() {
            continue;
        }
        if row.section != section {
            writeln!(page, "- **{}**", row.section)?;
            section = &row.section;
        }
        page += &wrapped(&format!("  - {}", sentence(row)), "    ");
    }
    page += REPEAT;
    page += "\n## The machine\n\n| Part | Here |\n| --- | --- |\n";
    for (name, value) in &kept.machine {
        writeln!(page, "| {name} | {value} |")?;
    }
    Ok(std::fs::write(root.join("docs/PERFORMANCE.md"), page)?)
}

/// `text` in lines of limited width; the lines after the first begin with `indent`.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut line) = (String::new(), String::new());
    for (number, word) in text.split(' ').enumerate() {
        if line.chars().count() + 1 + word.chars().count() > WIDTH {
            lines += &format!("{line}\n");
            line = format!("{indent}{word}");
        } else {
            line += if number == 0 { "" } else { " " };
            line += word;
        }
    }
    lines + &line + "\n"
}

/// A figure with its reference, its bound, and whether it is within the bound.
fn sentence(row: &Row) -> String {
    let [figure, reference, bound, verdict] = cells(row);
    let reference = if reference.is_empty() { reference } else { format!("; reference: {reference}") };
    let bound = if bound.is_empty() { bound } else { format!("; bound: {bound}, {verdict}") };
    // A number and this sign stay on one line.
    format!("{}: {figure}{reference}{bound}", row.subject).replace(" ×", "\u{a0}×")
}

/// All figures, a line each, for the person who runs the measures.
pub fn text(figures: &Figures) -> String {
    let lines = figures.rows.iter().map(|row| format!("{}: {}\n", row.section, sentence(row)));
    let series = figures.series.iter().map(|series| format!("{} {}: {:?}\n", series.chart, series.name, series.points));
    lines.chain(series).collect()
}

/// The rows of each section with the same unit, in the order of the sections.
fn measures(figures: &Figures) -> Vec<Vec<&Row>> {
    let mut measures: Vec<Vec<&Row>> = Vec::new();
    for row in &figures.rows {
        let same = |rows: &&mut Vec<&Row>| rows[0].section == row.section && rows[0].unit == row.unit;
        match measures.iter_mut().find(same) {
            Some(rows) => rows.push(row),
            None => measures.push(vec![row]),
        }
    }
    measures
}

/// Among rows with a bound, the one that is nearest to its bound or furthest beyond it; otherwise the largest.
fn worst<'a>(rows: &[&'a Row]) -> &'a Row {
    let asked = rows.iter().any(|row| row.must.is_some());
    let strain = |row: &Row| match row.must {
        Some(Must::AtMost(most)) => row.value / most,
        Some(Must::AtLeast(least)) => least / row.value,
        Some(Must::Exactly(value)) if row.holds() => value,
        Some(Must::Exactly(_)) => f64::INFINITY,
        None if asked => f64::NEG_INFINITY,
        None => row.value,
    };
    rows[1..].iter().fold(rows[0], |worst, row| if strain(row) >= strain(worst) { row } else { worst })
}

/// Figure, reference, bound, and whether the figure is within the bound.
fn cells(row: &Row) -> [String; 4] {
    let reference = row.reference.as_ref().map(|(name, value)| format!("{} ({name})", shown(*value, row.unit)));
    let bound = row.must.map(|must| match must {
        Must::AtMost(most) => format!("at most {}", shown(most, row.unit)),
        Must::AtLeast(least) => format!("at least {}", shown(least, row.unit)),
        Must::Exactly(value) => format!("exactly {}", shown(value, row.unit)),
    });
    let mut figure = shown(row.value, row.unit);
    if !row.holds() && bound.as_ref().is_some_and(|bound| bound.ends_with(&figure)) {
        // Rounded, the figure would look as if it were within the bound.
        figure += &format!(" ({})", row.value);
    }
    let verdict = row.must.map(|_| if row.holds() { "kept" } else { "**missed**" });
    [figure, reference.unwrap_or_default(), bound.unwrap_or_default(), verdict.unwrap_or_default().to_owned()]
}
