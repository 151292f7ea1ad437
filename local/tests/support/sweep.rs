//! Selects the cases of sweeps, which are tests of many cases: `cargo test` takes a random tenth and prints its seed.
//!
//! The variable `SWEEP` selects them: `all` takes all cases, as CI does, and a seed repeats the tenth of a failed test.

use std::sync::LazyLock;

use fastrand::Rng;

/// The seed of a run. All sweeps have the same, so that one value of `SWEEP` repeats a test that has several.
static SEED: LazyLock<u64> = LazyLock::new(|| fastrand::u64(0..1_000_000));

/// The cases that a sweep takes.
#[derive(Debug, Clone, Copy)]
pub enum Part {
    /// All of them.
    All,
    /// A random tenth, by this seed.
    Tenth(u64),
}

impl Part {
    /// The part that the variable `SWEEP` selects.
    #[expect(clippy::disallowed_methods, reason = "this variable is for tests, not for the service")]
    fn chosen() -> Self {
        match std::env::var("SWEEP") {
            Ok(all) if all == "all" => Self::All,
            Ok(seed) => Self::Tenth(seed.parse().unwrap_or_else(|_| panic!("SWEEP is `all` or a seed, not `{seed}`"))),
            Err(_) => Self::Tenth(*SEED),
        }
    }

    /// The cases of `all` in this part.
    pub fn of<T>(self, all: Vec<T>) -> Vec<T> {
        let Self::Tenth(seed) = self else { return all };
        // Sweeps of different lengths are chosen independently, although they have the same seed.
        let chosen = Rng::with_seed(seed ^ all.len() as u64).choose_multiple(0..all.len(), all.len().div_ceil(10));
        all.into_iter().enumerate().filter(|(place, _)| chosen.contains(place)).map(|(_, one)| one).collect()
    }
}

/// Whether this run takes all cases of every sweep.
pub fn takes_all() -> bool {
    matches!(Part::chosen(), Part::All)
}

/// Asserts that at least `least` cases had what a sweep looks for. A run of a tenth may have fewer.
pub fn seen_in(count: usize, least: usize) {
    assert!(count >= least || !takes_all(), "only {count} cases, and not {least}");
}

/// The cases of `all` that this run takes, in their order. A failed test shows the printed seed.
pub fn cases<T>(all: impl IntoIterator<Item = T>) -> Vec<T> {
    let (chosen, all) = (Part::chosen(), all.into_iter().collect::<Vec<_>>());
    let count = all.len();
    let taken = chosen.of(all);
    if let Part::Tenth(seed) = chosen {
        println!("SWEEP={seed}: {} of {count} cases", taken.len());
    }
    taken
}
