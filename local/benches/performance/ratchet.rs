//! Instruction counts may fall, and not rise unseen: `docs/performance.json` has them, and `--check` compares.

use std::collections::BTreeMap;
use std::fmt::{Display, Formatter};
use std::process::ExitCode;

use crate::bench::Bench;
use crate::figures::thousands;
use crate::figures::{Figures, Row, Unit};
use crate::kept::Kept;
use crate::{Result, calls, machine, start};

/// The sections whose rows of our own functions are kept.
const SECTIONS: [&str; 2] = [start::SECTION, calls::SECTION];
/// By what part a count may rise before the check fails: more than it mostly differs by from run to run.
const TOLERANCE: f64 = 0.03;

/// The counts of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Counts {
    /// The processor they were taken on: the C library and ring choose some of their code by it.
    cpu: String,
    /// By section and function.
    instructions: BTreeMap<String, BTreeMap<String, u64>>,
}

/// How one count compares with what it was.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Change {
    name: String,
    was: Option<u64>,
    is: Option<u64>,
}

/// Counts, and tells what differs from what was written down; fails where a count has risen, or is no longer taken.
pub async fn check(bench: &mut Bench) -> Result<ExitCode> {
    let kept = Kept::read(&bench.root)?;
    let was = Counts::of(bench, kept.processor(), &kept.figures)?;
    let mut is = count(bench).await?;
    let failing: Vec<Change> = changes(&was, &is).into_iter().filter(Change::fails).collect();
    if !failing.is_empty() {
        // What a busy machine does to a count, a call made again for one, only ever adds to it.
        eprintln!("not as it must be: counting these once more, for the lesser of both counts");
        for change in &failing {
            eprintln!("{change}");
        }
        let names = bench.functions()?.into_iter().map(|function| function.name);
        bench.skipped = names.filter(|name| !failing.iter().any(|change| change.is_of(name))).collect();
        is.keep_lesser(&count(bench).await?);
        bench.skipped.clear();
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
    if failed > 0 {
        println!("where it is meant: `cargo performance` writes docs/performance.json anew");
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
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
    /// The counts of our own functions among `figures`.
    fn of(bench: &Bench, cpu: &str, figures: &Figures) -> Result<Self> {
        let functions = bench.functions()?;
        let mut instructions: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
        for row in &figures.rows {
            let kept = row.exact && row.unit == Unit::Instructions && SECTIONS.contains(&&*row.section);
            if kept && functions.iter().any(|function| function.name == row.subject) {
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

/// What is not within the tolerance of what it was.
fn changes(was: &Counts, is: &Counts) -> Vec<Change> {
    let (was, is) = (was.rows(), is.rows());
    let mut names: Vec<&String> = was.keys().chain(is.keys()).collect();
    names.sort();
    names.dedup();
    let change = |name: &String| Change { name: name.clone(), was: was.get(name).copied(), is: is.get(name).copied() };
    names.into_iter().map(change).filter(|change| change.part().is_none_or(|part| part.abs() > TOLERANCE)).collect()
}

impl Change {
    /// By what part of itself the count has risen.
    fn part(&self) -> Option<f64> {
        #[expect(clippy::cast_precision_loss, reason = "counts of instructions are far below 2^53")]
        self.was.zip(self.is).map(|(was, is)| is as f64 / was as f64 - 1.0)
    }

    /// Whether it is about this function.
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
