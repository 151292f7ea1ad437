//! The result of each call of a replay, as a table, and whether all of them are right.

use std::collections::BTreeSet;
use std::fmt::{Display, Formatter};

use shared::routes;

use crate::functions;

/// The result of a replay.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// The calls, in the order in which they were sent.
    pub rows: Vec<CallOutcome>,
    /// The number of calls that the options left out.
    pub left_out: usize,
}

/// One call.
#[derive(Debug)]
pub struct CallOutcome {
    /// The call's name.
    pub name: String,
    /// The function that should answer; `None` if the gateway should.
    pub function: Option<&'static str>,
    /// Its result.
    pub outcome: Outcome,
}

/// The result of a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The answer was as expected, with this status.
    Same(u16),
    /// The answer was different.
    Differs {
        /// The status of the answer.
        status: u16,
        /// The expected status.
        wanted: u16,
        /// The differences, in lines.
        difference: String,
    },
    /// There was no answer.
    NoAnswer(String),
    /// The call was not sent, for this reason.
    NotSent(String),
}

impl ReplayReport {
    /// Whether every call that was sent had the expected answer, and there was at least one.
    pub fn holds(&self) -> bool {
        self.count(|outcome| matches!(outcome, Outcome::Same(_))) > 0 && self.failed() == 0
    }

    /// The functions with a route to which no call was sent.
    pub fn not_reached(&self) -> Vec<&'static str> {
        let sent = self.rows.iter().filter(|row| !matches!(row.outcome, Outcome::NotSent(_)));
        let reached: BTreeSet<_> = sent.filter_map(|row| row.function).collect();
        routes::ALL.iter().map(|route| route.name).filter(|name| !reached.contains(name)).collect()
    }

    fn failed(&self) -> usize {
        self.count(|outcome| matches!(outcome, Outcome::Differs { .. } | Outcome::NoAnswer(_)))
    }

    fn count(&self, which: impl Fn(&Outcome) -> bool) -> usize {
        self.rows.iter().filter(|row| which(&row.outcome)).count()
    }
}

impl Display for ReplayReport {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let width = self.rows.iter().map(|row| row.name.len()).max().unwrap_or_default();
        writeln!(formatter, "{:width$}  answered  wanted", "call")?;
        for CallOutcome { name, outcome, .. } in &self.rows {
            match outcome {
                Outcome::Same(status) => writeln!(formatter, "{name:width$}  {status:>8}  same")?,
                Outcome::Differs { status, wanted, difference } => {
                    writeln!(formatter, "{name:width$}  {status:>8}  {wanted}, DIFFERS")?;
                    for line in difference.lines() {
                        writeln!(formatter, "    {line}")?;
                    }
                }
                Outcome::NoAnswer(error) => writeln!(formatter, "{name:width$}  {:>8}  NO ANSWER: {error}", "-")?,
                Outcome::NotSent(reason) => writeln!(formatter, "{name:width$}  {:>8}  not sent: {reason}", "-")?,
            }
        }
        let same = self.count(|outcome| matches!(outcome, Outcome::Same(_)));
        let not_sent = self.count(|outcome| matches!(outcome, Outcome::NotSent(_)));
        writeln!(formatter, "\n{same} answers as wanted, {} not; {not_sent} calls not sent.", self.failed())?;
        if self.left_out > 0 {
            writeln!(formatter, "{} calls were left out by --only or --skip.", self.left_out)?;
        }
        let not_reached = self.not_reached();
        let reached = routes::ALL.len() - not_reached.len();
        write!(formatter, "{reached} of {} functions with a route were called", routes::ALL.len())?;
        if not_reached.is_empty() {
            writeln!(formatter, ".")?;
        } else {
            writeln!(formatter, ", but not {}.", not_reached.join(", "))?;
        }
        let tasks = functions::TASKS.iter().map(|task| task.name);
        let consumers = functions::CONSUMERS.iter().map(|consumer| consumer.name);
        let scheduled = functions::SCHEDULED.iter().map(|scheduled| scheduled.name);
        let unrouted: Vec<_> = tasks.chain(consumers).chain(scheduled).collect();
        writeln!(formatter, "Without a route, so not called: {}.", unrouted.join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(outcomes: Vec<Outcome>) -> ReplayReport {
        let row = |outcome| CallOutcome { name: "delete-tag".to_owned(), function: Some("delete-tag"), outcome };
        ReplayReport { rows: outcomes.into_iter().map(row).collect(), left_out: 0 }
    }

    #[test]
    fn a_report_fails_with_a_wrong_answer_or_none_at_all() {
        let differs = || Outcome::Differs { status: 500, wanted: 200, difference: "answered 500".to_owned() };
        let not_sent = || Outcome::NotSent("why".to_owned());
        assert!(report(vec![Outcome::Same(200), not_sent()]).holds());
        assert!(!report(vec![Outcome::Same(200), differs()]).holds());
        assert!(!report(vec![Outcome::Same(200), Outcome::NoAnswer("refused".to_owned())]).holds());
        assert!(!report(vec![not_sent()]).holds());
        assert!(!report(vec![]).holds());
        let text = report(vec![Outcome::Same(200), differs(), not_sent()]).to_string();
        for part in ["200  same", "500  200, DIFFERS\n    answered 500", "not sent: why", "1 answers as wanted, 1 not"]
        {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_sent_call_reaches_its_function() {
        assert!(!report(vec![Outcome::Same(404)]).not_reached().contains(&"delete-tag"));
        assert!(report(vec![Outcome::NotSent("why".to_owned())]).not_reached().contains(&"delete-tag"));
    }
}
