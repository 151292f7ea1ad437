//! Instruction counts may fall, but every rise must be noticed: `docs/performance.json` has them, and `--check`
//! compares. It leaves out functions whose binary was already counted; `--count` counts the others thoroughly, and
//! stores their counts and digests.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{Display, Formatter};
use std::process::ExitCode;

use crate::bench::{Bench, Effort, programs};
use crate::figures::thousands;
use crate::figures::{Figures, Row, Unit};
use crate::kept::Kept;
use crate::{Result, calls, machine, start};

/// The sections whose rows are stored, for the service's own functions.
const SECTIONS: [&str; 2] = [start::SECTION, calls::SECTION];
/// The part by which a count may rise before the check fails: more than the usual difference between two runs.
const TOLERANCE: f64 = 0.03;

/// The counts of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counts {
    /// The processor of the run: the C library and ring choose some of their code by it.
    cpu: String,
    /// The counts, by section and function.
    instructions: BTreeMap<String, BTreeMap<String, u64>>,
}

/// A count, compared with the stored one.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    name: String,
    was: Option<u64>,
    is: Option<u64>,
}

/// Counts, and reports the differences from the stored counts; fails if a count has risen, or is no longer taken.
pub async fn check(bench: &mut Bench) -> Result<ExitCode> {
    let kept = Kept::read(&bench.root)?;
    let unchanged = leave_out_unchanged(bench, &kept.figures)?;
    let was = Counts::of(bench, kept.processor(), &kept.figures)?;
    bench.effort = Effort::Quick;
    let mut is = count(bench).await?;
    bench.effort = Effort::Thorough;
    let failing: Vec<Change> = changes(&was, &is).into_iter().filter(Change::fails).collect();
    if !failing.is_empty() {
        // A busy machine can only raise a count, for example by a repeated call.
        eprintln!("not as it must be: counting these once more, for the lesser of both counts");
        for change in &failing {
            eprintln!("{change}");
        }
        let names = bench.functions()?.into_iter().map(|function| function.name);
        let others = names.filter(|name| !failing.iter().any(|change| change.is_of(name))).collect();
        let unchanged = std::mem::replace(&mut bench.skipped, others);
        is.keep_lesser(&count(bench).await?);
        bench.skipped = unchanged;
    }
    if was.cpu != is.cpu {
        println!("counted on {}, compared with counts of {}: the C library and ring may differ", is.cpu, was.cpu);
    }
    let changes = changes(&was, &is);
    for change in &changes {
        println!("{change}");
    }
    let failed = changes.iter().filter(|change| change.fails()).count();
    let compared: usize = is.instructions.values().map(BTreeMap::len).sum();
    println!("{compared} counts, {} not as they were, of which {failed} must not be so", changes.len());
    println!("{unchanged} functions left out: their binaries are the ones that were counted");
    if failed > 0 {
        println!("where it is meant: `cargo performance --count` writes these counts down");
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Counts the functions whose binary has changed since it was counted, and stores the new counts.
pub async fn write(bench: &mut Bench) -> Result<ExitCode> {
    let mut kept = Kept::read(&bench.root)?;
    let unchanged = leave_out_unchanged(bench, &kept.figures)?;
    let (mut written, mut missing) = (0, Vec::new());
    for (section, counts) in count(bench).await?.instructions {
        for (name, count) in counts {
            let Some(row) = kept.figures.row(&section, &name) else {
                missing.push(format!("{section}: {name}"));
                continue;
            };
            #[expect(clippy::cast_precision_loss, reason = "counts of instructions are far below 2^53")]
            let value = count as f64;
            (row.value, row.binary) = (value, Some(bench.digest(&name)?));
            written += 1;
        }
    }
    if written > 0 {
        Kept::of(kept.figures, &programs(&bench.root)?)?.write(&bench.root)?;
    }
    println!("{written} counts written, {unchanged} functions left out: their binaries are the ones that were counted");
    if missing.is_empty() {
        return Ok(ExitCode::SUCCESS);
    }
    println!("not measured yet, `cargo performance --new` does that: {}", missing.join(", "));
    Ok(ExitCode::FAILURE)
}

/// Leaves out the functions whose binary was already counted; returns their number.
fn leave_out_unchanged(bench: &mut Bench, kept: &Figures) -> Result<usize> {
    let mut unchanged = BTreeSet::new();
    for function in bench.functions()? {
        let digest = bench.digest(&function.name)?;
        let mut rows = kept.rows.iter().filter(|row| is_counted(row) && row.subject == function.name).peekable();
        if rows.peek().is_some() && rows.all(|row| row.binary.as_ref() == Some(&digest)) {
            unchanged.insert(function.name);
        }
    }
    bench.skipped = unchanged;
    Ok(bench.skipped.len())
}

/// Whether the count of a row is compared.
fn is_counted(row: &Row) -> bool {
    row.exact && row.unit == Unit::Instructions && SECTIONS.contains(&&*row.section)
}

async fn count(bench: &Bench) -> Result<Counts> {
    let mut figures = Figures::default();
    for (section, counts) in [(start::SECTION, start::ours(bench).await?), (calls::SECTION, calls::ours(bench).await?)]
    {
        let row = |(name, count)| Row::new(section, name, count, Unit::Instructions);
        figures.rows.extend(counts.into_iter().map(row));
    }
    Counts::of(bench, &machine::cpu()?, &figures)
}

impl Counts {
    /// The counts of the service's own functions among `figures`.
    fn of(bench: &Bench, cpu: &str, figures: &Figures) -> Result<Self> {
        let functions = bench.functions()?;
        let mut instructions: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for row in &figures.rows {
            if is_counted(row) && functions.iter().any(|function| function.name == row.subject) {
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
                let count = row.value.round() as u64;
                instructions.entry(row.section.clone().into_owned()).or_default().insert(row.subject.clone(), count);
            }
        }
        Ok(Self { cpu: cpu.to_owned(), instructions })
    }

    fn keep_lesser(&mut self, other: &Self) {
        for (section, counts) in &mut self.instructions {
            for (name, count) in counts {
                let again = other.instructions.get(section).and_then(|counts| counts.get(name));
                *count = again.map_or(*count, |again| (*count).min(*again));
            }
        }
    }

    fn rows(&self) -> BTreeMap<String, u64> {
        let rows = self.instructions.iter();
        rows.flat_map(|(section, rows)| rows.iter().map(move |(name, is)| (format!("{section}: {name}"), *is)))
            .collect()
    }
}

/// The counts outside the tolerance.
fn changes(was: &Counts, is: &Counts) -> Vec<Change> {
    let (was, is) = (was.rows(), is.rows());
    let mut names: Vec<&String> = was.keys().chain(is.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| Change { name: name.clone(), was: was.get(name).copied(), is: is.get(name).copied() };
    names.into_iter().map(change).filter(|change| change.part().is_none_or(|part| part.abs() > TOLERANCE)).collect()
}

impl Change {
    /// The part by which the count has risen.
    fn part(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts of instructions are far below 2^53")]
        self.was.zip(self.is).map(|(was, is)| is as f64 / was as f64 - 1.0)
    }

    /// Whether it is about `function`.
    fn is_of(&self, function: &str) -> bool {
        self.name.rsplit_once(": ").is_some_and(|(_, name)| name == function)
    }

    fn fails(&self) -> bool {
        self.is.is_none() || self.part().is_some_and(|part| part > TOLERANCE)
    }
}

impl Display for Change {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match (self.was, self.is) {
            (Some(was), Some(is)) => {
                let verdict = if self.fails() { "FAILS" } else { "fell" };
                let percent = self.part().unwrap_or_default() * 100.0;
                write!(f, "{verdict}: {}: was {}, is {}, {percent:+.1} %", self.name, thousands(was), thousands(is))
            }
            (Some(was), None) => write!(f, "FAILS: {}: was {}, is no longer measured", self.name, thousands(was)),
            (None, is) => write!(f, "new: {}: is {}", self.name, thousands(is.unwrap_or_default())),
        }
    }
}
