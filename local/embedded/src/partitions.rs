//! Counts the units that calls take of each partition in each second, and reports when a partition has none left.
//!
//! DynamoDB gives each partition 1,000 write units and 3,000 read units per second, whatever the table has. It may give
//! more, but promises none of that, so it is left out: unused units of the minutes before, and more partitions for a
//! key whose sort keys do not only grow.
//!
//! The seconds are the ones of the machine. The load of a partition depends on how fast processes write, and refused
//! calls are retried after a wait in real time. The clock of a service under test cannot be used: it stands still, or
//! skips an hour at once. In a test whose second must be as long as its calls, the test itself ends each second.

use std::collections::{BTreeMap, HashMap};
use std::fmt::{Display, Formatter};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// The number of partitions in a report, the hottest first.
const REPORTED: usize = 10;
/// Characters of the longest id.
const LONGEST_ID: usize = 36;

/// The kind of unit that a call takes of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Unit {
    /// To read.
    Read,
    /// To write.
    Write,
}

impl Unit {
    /// The units of this kind that DynamoDB gives a partition per second.
    pub const fn limit(self) -> f64 {
        match self {
            Self::Read => 3000.0,
            Self::Write => 1000.0,
        }
    }
}

/// A partition key of the table or of one of its indexes, and one of its two limits.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    /// The kind of unit.
    pub unit: Unit,
    /// The index; `None` for the table.
    pub index: Option<String>,
    /// The partition key.
    pub key: String,
}

impl Display for Partition {
    /// Shows only names and ids of the key: other parts may be a customer's data, or a hash of them.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        let unit = match self.unit {
            Unit::Read => "read",
            Unit::Write => "write",
        };
        let index = self.index.as_deref().map_or_else(|| "table".to_owned(), |index| format!("index {index}"));
        write!(formatter, "{unit:5} {index:9} {}", self.name(false))
    }
}

impl Partition {
    /// The key without parts that may be a customer's data; with `kind` also without ids, so that it is the same for
    /// every organisation.
    pub fn name(&self, kind: bool) -> String {
        let is_id = |word: &str| word.len() >= 28 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
        let is_said = |word: &str| {
            let is_name = word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
            is_name && word.len() <= LONGEST_ID && !(kind && is_id(word))
        };
        let said = |part: &str| {
            let word = part.trim_end_matches(['#', '=', '&']);
            format!("{}{}", if is_said(word) { word } else { "…" }, &part[word.len()..])
        };
        self.key.split_inclusive(['#', '=', '&']).map(said).collect()
    }
}

/// The mode of counting.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub enum Counting {
    /// The units are not counted.
    #[default]
    Off,
    /// The units are counted.
    Counted,
    /// The units are counted, and a partition that has used this multiple of its limit refuses calls until the next
    /// second.
    Throttled(f64),
}

/// The use of a partition.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Heat {
    /// The most units in one second.
    pub peak: f64,
    /// All units together.
    pub units: f64,
    /// The number of refused calls and refused parts of batches.
    pub refused: u64,
}

/// The count of all partitions of a table, off by default. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Partitions(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    counting: Counting,
    seconds: Seconds,
    counts: HashMap<Partition, Count>,
}

#[derive(Debug, Default)]
struct Count {
    second: u64,
    /// Units in this second.
    units: f64,
    heat: Heat,
}

/// The source of the seconds.
#[derive(Debug)]
enum Seconds {
    /// The clock of the machine, since its first use.
    Machine(Instant),
    /// A caller that sets them.
    ByHand(u64),
}

impl Default for Seconds {
    fn default() -> Self {
        Self::Machine(Instant::now())
    }
}

impl Seconds {
    fn now(&self) -> u64 {
        match self {
            Self::Machine(began) => began.elapsed().as_secs(),
            Self::ByHand(second) => *second,
        }
    }
}

impl State {
    /// The count of `partition` in this second.
    fn count(&mut self, partition: &Partition) -> &mut Count {
        let second = self.seconds.now();
        let count = self.counts.entry(partition.clone()).or_default();
        if count.second != second {
            (count.second, count.units) = (second, 0.0);
        }
        count
    }
}

impl Partitions {
    /// A count of this kind.
    pub fn new(counting: Counting) -> Self {
        let partitions = Self::default();
        partitions.set(counting);
        partitions
    }

    /// The same, with seconds that end only by [`Partitions::next_second`].
    #[must_use]
    pub fn by_hand(self) -> Self {
        self.state().seconds = Seconds::ByHand(0);
        self
    }

    /// Sets the mode of counting from now on.
    pub fn set(&self, counting: Counting) {
        self.state().counting = counting;
    }

    /// Ends a second that a caller sets.
    pub fn next_second(&self) {
        if let Seconds::ByHand(second) = &mut self.state().seconds {
            *second += 1;
        }
    }

    /// Forgets all counts.
    pub fn forget(&self) {
        self.state().counts.clear();
    }

    /// Counts these units.
    pub fn take(&self, partition: &Partition, units: f64) {
        let mut state = self.state();
        let count = state.count(partition);
        count.units += units;
        count.heat.units += units;
        count.heat.peak = count.heat.peak.max(count.units);
    }

    /// Whether units are counted.
    pub(crate) fn are_counted(&self) -> bool {
        self.state().counting != Counting::Off
    }

    /// Whether `partition` has no unit left in this second; if so, a refusal is counted. The last admitted call may
    /// take more units than are left: its units are known only after it.
    pub(crate) fn refuses(&self, partition: &Partition) -> bool {
        let mut state = self.state();
        let Counting::Throttled(times) = state.counting else { return false };
        if !state.counts.contains_key(partition) {
            return false;
        }
        let count = state.count(partition);
        let refuses = count.units >= partition.unit.limit() * times;
        count.heat.refused += u64::from(refuses);
        refuses
    }

    /// The use of each partition.
    pub fn heat(&self) -> BTreeMap<Partition, Heat> {
        let state = self.state();
        state.counts.iter().map(|(partition, count)| (partition.clone(), count.heat)).collect()
    }

    /// The partitions that came nearest to their limits in one second, the nearest first.
    pub fn hottest(&self) -> Vec<(Partition, Heat)> {
        let mut all: Vec<_> = self.heat().into_iter().collect();
        let share = |(partition, heat): &(Partition, Heat)| heat.peak / partition.unit.limit();
        all.sort_by(|one, other| share(other).total_cmp(&share(one)));
        all.truncate(REPORTED);
        all
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Display for Partitions {
    /// A line for each of the hottest partitions.
    fn fmt(&self, formatter: &mut Formatter<'_>) -> std::fmt::Result {
        writeln!(formatter, "{:>12}{:>10}{:>9}  hottest partitions", "peak units/s", "units", "refused")?;
        for (partition, Heat { peak, units, refused }) in self.hottest() {
            writeln!(formatter, "{peak:>12.1}{units:>10.1}{refused:>9}  {partition}")?;
        }
        Ok(())
    }
}
