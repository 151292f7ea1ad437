//! Tests the selection of cases and the list of exercises.

use std::collections::BTreeSet;

use shared::routes;

use crate::exercises::EXERCISES;
use crate::support::sweep::{Part, cases};

#[test]
fn a_seed_selects_a_fixed_tenth_and_all_seeds_cover_everything() {
    let all: Vec<usize> = (0..95).collect();
    assert_eq!(Part::All.of(all.clone()), all);
    let of = |seed| Part::Tenth(seed).of(all.clone());
    assert_eq!((of(7).len(), of(7)), (10, of(7)));
    let together: BTreeSet<usize> = (0..200).flat_map(of).collect();
    assert_eq!(together.into_iter().collect::<Vec<_>>(), all);
    assert_eq!(Part::Tenth(7).of(vec!["the only one"]), ["the only one"]);
}

#[test]
fn all_sweeps_of_a_run_have_the_same_seed() {
    assert_eq!(cases(0..95), cases(0..95));
}

#[test]
fn every_operation_has_one_exercise() {
    let exercised: Vec<_> = EXERCISES.iter().map(|exercise| exercise.route.name).collect();
    let wanted: Vec<_> = routes::ALL.iter().chain(routes::SIGNED).map(|route| route.name).collect();
    assert_eq!(exercised, wanted);
}
