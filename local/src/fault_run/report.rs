//! The report of a fault run: a table of the endpoints, and the result of each check.

use std::fmt::{Display, Formatter};
use std::time::Duration;

use embedded_dynamodb::partitions::Partitions;

use crate::fault_run::check::Check;

/// The most failures in a report.
const SHOWN: usize = 5;

/// The endpoints of one kind.
#[derive(Debug, Default)]
pub struct EndpointFigures {
    /// Their name.
    pub name: String,
    /// Events that they should get.
    pub events: usize,
    /// Requests that arrived.
    pub requests: usize,
    /// Events that they accepted.
    pub taken: usize,
    /// Repeats of events that they had accepted.
    pub again: usize,
    /// Attempts in the deliveries; `None` for connectors, which have no list of deliveries.
    pub attempts: Option<u64>,
    /// Deliveries that were given up.
    pub dead: Option<usize>,
    /// From close to receipt: the median and the slowest hundredth.
    pub times: Option<(Duration, Duration)>,
}

/// The report.
#[derive(Debug)]
pub struct FaultRunReport {
    /// The seed of the plan.
    pub seed: u64,
    /// The endpoints.
    pub rows: Vec<EndpointFigures>,
    /// The checks of the run.
    pub checks: Vec<Check>,
    /// How long healthy endpoints wait, without faults and with faults: the slowest hundredth of each.
    pub slowest: Option<(Duration, Duration)>,
    /// The units that the functions took of the partitions of the table.
    pub partitions: Partitions,
}

impl FaultRunReport {
    /// Whether every check passed. No check depends on the speed of the machine.
    pub fn holds(&self) -> bool {
        self.checks.iter().all(|check| check.wrong.is_empty() && check.seen > 0)
    }
}

/// The median and the slowest hundredth of `times`, which are sorted.
pub fn quantiles(times: &[Duration]) -> Option<(Duration, Duration)> {
    let at = |hundredths: usize| times.get((times.len() * hundredths / 100).min(times.len().saturating_sub(1)));
    Some((*at(50)?, *at(99)?))
}

impl Display for FaultRunReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "seed {}\n", self.seed)?;
        writeln!(
            formatter,
            "{:30}{:>8}{:>10}{:>8}{:>8}{:>10}{:>7}{:>9}{:>9}",
            "endpoints", "events", "requests", "taken", "again", "attempts", "dead", "p50 ms", "p99 ms"
        )?;
        for row in &self.rows {
            let or_none = |number: Option<u128>| number.map_or_else(|| "-".to_owned(), |number| number.to_string());
            writeln!(
                formatter,
                "{:30}{:>8}{:>10}{:>8}{:>8}{:>10}{:>7}{:>9}{:>9}",
                row.name,
                row.events,
                row.requests,
                row.taken,
                row.again,
                or_none(row.attempts.map(u128::from)),
                or_none(row.dead.map(|dead| dead as u128)),
                or_none(row.times.map(|(median, _)| median.as_millis())),
                or_none(row.times.map(|(_, slowest)| slowest.as_millis())),
            )?;
        }
        writeln!(formatter)?;
        for Check { what, seen, wrong } in &self.checks {
            let word = if wrong.is_empty() && *seen > 0 { "ok" } else { "FAILED" };
            writeln!(formatter, "{word:8}{seen:>7}  {what}")?;
            for wrong in wrong.iter().take(SHOWN) {
                writeln!(formatter, "{:17}{wrong}", "")?;
            }
            if wrong.len() > SHOWN {
                writeln!(formatter, "{:17}and {} more", "", wrong.len() - SHOWN)?;
            }
        }
        if let Some((clean, faulty)) = self.slowest {
            let times = faulty.as_secs_f64() / clean.as_secs_f64();
            let (clean, faulty) = (clean.as_millis(), faulty.as_millis());
            writeln!(
                formatter,
                "{:17}the slowest hundredth of healthy endpoints' events took {faulty} ms, {times:.1} times the {clean} ms \
                 without faults; both depend on this machine",
                ""
            )?;
        }
        write!(formatter, "\n{}", self.partitions)
    }
}
