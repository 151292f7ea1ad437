//! The measured figures, each with its reference and its bound.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// All figures of one run.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Figures {
    /// The rows of the table, in order.
    pub rows: Vec<Row>,
    /// The lines of the charts.
    pub series: Vec<Series>,
}

/// One figure.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Row {
    /// The section of the page; all rows of a section have the same words.
    pub section: Cow<'static, str>,
    /// The subject of the figure.
    pub subject: String,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
    /// The reference figure, in the same unit, from the same run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<(String, f64)>,
    /// Its bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub must: Option<Must>,
    /// Whether the figure is the same in every run of one build, so that a rise is no noise.
    pub exact: bool,
    /// The digest of the measured binary: the same binary is not counted again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binary: Option<String>,
}

/// The unit of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Unit {
    /// Instructions, by callgrind.
    Instructions,
    /// Milliseconds.
    Milliseconds,
    /// Seconds.
    Seconds,
    /// Bytes.
    Bytes,
    /// A multiple of the reference.
    Times,
    /// Percent above the reference.
    Percent,
    /// DynamoDB calls.
    Calls,
    /// Capacity units.
    CapacityUnits,
    /// Requests.
    Requests,
    /// A number per second.
    PerSecond,
}

/// The bound of a figure.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Must {
    /// The figure must be this or less.
    AtMost(f64),
    /// The figure must be this or more.
    AtLeast(f64),
    /// The figure must be exactly this.
    Exactly(f64),
}

/// A line of a chart.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Series {
    /// Its chart: the file name without the extension.
    pub chart: Cow<'static, str>,
    /// The name of the line.
    pub name: String,
    /// The points of the line.
    pub points: Vec<(f64, f64)>,
}

impl Figures {
    /// Adds a figure, and prints it at once: all of them together take a while.
    pub fn push(&mut self, row: Row) {
        println!("{row}");
        self.rows.push(row);
    }

    /// These figures, in which the sections and charts of `newer` replace the same ones.
    pub fn replaced_by(&self, newer: &Self) -> Self {
        Self {
            rows: replaced(&self.rows, &newer.rows, |row| &row.section),
            series: replaced(&self.series, &newer.series, |series| &series.chart),
        }
    }
}

impl Figures {
    /// These figures, in which the rows of `newer` replace the ones with the same subject; the others follow.
    pub fn with(&self, newer: &Self) -> Self {
        let same = |one: &Row, other: &Row| one.section == other.section && one.subject == other.subject;
        let stays = |row: &&Row| !newer.rows.iter().any(|new| same(row, new));
        let mut rows: Vec<Row> = self.rows.iter().filter(stays).chain(&newer.rows).cloned().collect();
        rows.sort_by_key(|row| self.rows.iter().position(|first| first.section == row.section));
        Self { rows, series: self.series.clone() }
    }

    /// The figure of `subject` in `section`.
    pub fn row(&mut self, section: &str, subject: &str) -> Option<&mut Row> {
        self.rows.iter_mut().find(|row| row.section == section && row.subject == subject)
    }

    /// The subjects of a section.
    pub fn subjects(&self, section: &str) -> BTreeSet<String> {
        let rows = self.rows.iter().filter(|row| row.section == section);
        rows.map(|row| row.subject.split([',', ':']).next().unwrap_or_default().to_owned()).collect()
    }
}

/// The elements of `older` whose group is missing in `newer`, and `newer`, in the order in which the groups first
/// occurred.
fn replaced<T: Clone>(older: &[T], newer: &[T], group: impl Fn(&T) -> &str) -> Vec<T> {
    let stays = |one: &&T| newer.iter().all(|new| group(new) != group(one));
    let mut all: Vec<T> = older.iter().filter(stays).chain(newer).cloned().collect();
    all.sort_by_key(|one| older.iter().chain(newer).position(|first| group(first) == group(one)));
    all
}

impl Row {
    /// A figure without a bound.
    pub fn new(section: &'static str, subject: impl Into<String>, value: f64, unit: Unit) -> Self {
        let exact = unit == Unit::Instructions;
        Self {
            section: Cow::Borrowed(section),
            subject: subject.into(),
            value,
            unit,
            reference: None,
            must: None,
            exact,
            binary: None,
        }
    }

    /// The same, with the digest of the counted binary.
    #[must_use]
    pub fn of_binary(self, digest: String) -> Self {
        Self { binary: Some(digest), ..self }
    }

    /// The same, with a reference.
    #[must_use]
    pub fn compared_with(self, name: impl Into<String>, value: f64) -> Self {
        Self { reference: Some((name.into(), value)), ..self }
    }

    /// The same, with a bound.
    #[must_use]
    pub fn must(self, must: Must) -> Self {
        Self { must: Some(must), ..self }
    }

    /// Whether it is within its bound.
    pub fn holds(&self) -> bool {
        match self.must {
            Some(Must::AtMost(most)) => self.value <= most,
            Some(Must::AtLeast(least)) => self.value >= least,
            Some(Must::Exactly(value)) => (self.value - value).abs() < 1e-9,
            None => true,
        }
    }
}

impl std::fmt::Display for Row {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { section, subject, value, unit, reference, must, .. } = self;
        write!(formatter, "{section} | {subject} | {value:.2} {unit:?}")?;
        if let Some((name, value)) = reference {
            write!(formatter, " | {name}: {value:.2}")?;
        }
        if let Some(must) = must {
            write!(formatter, " | {must:?}{}", if self.holds() { "" } else { ", which it is not" })?;
        }
        Ok(())
    }
}

/// A count as a figure.
#[expect(clippy::cast_precision_loss, reason = "counts are far below 2^53")]
pub const fn figure(count: u64) -> f64 {
    count as f64
}

/// The median of `values`; `None` if there are no values.
pub fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// A time as a figure.
pub fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

/// A figure as text: `1.23 M instructions`, `2.9 MB`, `3.4 ×`.
pub fn shown(value: f64, unit: Unit) -> String {
    let plural = |word: &str| if (value - 1.0).abs() < 1e-9 { word.to_owned() } else { format!("{word}s") };
    match unit {
        Unit::Instructions if value >= 1e9 => format!("{} G instructions", digits(value / 1e9)),
        Unit::Instructions if value >= 1e6 => format!("{} M instructions", digits(value / 1e6)),
        Unit::Instructions if value >= 1e3 => format!("{} k instructions", digits(value / 1e3)),
        Unit::Instructions => format!("{value:.0} {}", plural("instruction")),
        Unit::Milliseconds => format!("{} ms", digits(value)),
        Unit::Seconds => format!("{} s", digits(value)),
        Unit::Bytes if value >= 1e6 => format!("{} MB", digits(value / 1e6)),
        Unit::Bytes if value >= 1e3 => format!("{} kB", digits(value / 1e3)),
        Unit::Bytes => format!("{value:.0} {}", plural("byte")),
        Unit::Times => format!("{} ×", digits(value)),
        Unit::Percent => format!("{} %", digits(value)),
        Unit::Calls => format!("{} {}", digits(value), plural("call")),
        Unit::Requests => format!("{} {}", digits(value), plural("request")),
        Unit::PerSecond => format!("{} a second", digits(value)),
        Unit::CapacityUnits => format!("{} {}", digits(value), plural("unit")),
    }
}

/// Three digits, without meaningless zeros; whole numbers as they are.
fn digits(value: f64) -> String {
    if value >= 1000.0 {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "what is behind the point is not shown"
        )]
        return thousands(value.round() as u64);
    }
    let decimals = match value.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// `1000000` as `1,000,000`.
pub fn thousands(value: u64) -> String {
    let digits = value.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().map(String::from_utf8_lossy);
    groups.collect::<Vec<_>>().join(",")
}
