//! Compares claims with records: the result for each claim at each place, and whether it agrees.

mod cells;
mod measure;
mod verdict;

#[cfg(test)]
mod tests;

pub use measure::Found;
pub use verdict::{RULE, Verdict};

use crate::claim::{Claim, Experiment};
use crate::record::{Place, Record};

/// A claim and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// The results, in the order of [`Place::ALL`].
    pub outcomes: [Outcome; 3],
}

/// Result for a claim at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Place of the runs.
    pub place: Place,
    /// The value to compare with the claim; `None` if no cell of the claim was run with all schemes
    /// that the claim needs.
    pub found: Option<Found>,
    /// Number of cells in which a scheme that the claim needs failed, gave wrong bytes, or was not
    /// run.
    pub missing: usize,
    /// Whether the value agrees with the claim.
    pub verdict: Verdict,
}

impl Judgement<'_> {
    /// Returns the result at a place.
    pub fn at(&self, place: Place) -> &Outcome {
        self.outcomes.iter().find(|outcome| outcome.place == place).expect("there is one for every place")
    }
}

/// Judges all claims of an experiment by its records among `records`. If a scheme of a cell has
/// several records at a place, the last one counts.
pub fn judge<'a>(experiment: &'a Experiment, records: &[Record]) -> Vec<Judgement<'a>> {
    let own: Vec<&Record> = records.iter().filter(|record| record.experiment == experiment.id).collect();
    let outcome = |claim: &Claim, place: Place| {
        let cells = cells::of(own.iter().copied().filter(|record| record.place == place), &claim.labels);
        let (found, missing) = measure::measure(&claim.measure, &cells);
        let verdict = Verdict::of(claim.claimed, found.as_ref());
        Outcome { place, found, missing, verdict }
    };
    let judgement = |claim| Judgement { claim, outcomes: Place::ALL.map(|place| outcome(claim, place)) };
    experiment.claims.iter().map(judgement).collect()
}
