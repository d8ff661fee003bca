//! Compares claims with records: the result for each claim at each place, and whether it agrees.

mod measure;
mod verdict;

#[cfg(test)]
mod tests;

pub use measure::Found;
pub use verdict::{RULE, Verdict};

use crate::bound;
use crate::claim::{Claim, Experiment, has};
use crate::record::{Place, Record};

/// A claim and its results.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement<'a> {
    pub claim: &'a Claim,
    /// The results, in the order of [`Place::ALL`].
    pub outcomes: [Outcome; 3],
}

/// Result for a claim at one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    pub place: Place,
    /// The value to compare with the claim; `None` if no cell of the claim was run with all schemes
    /// that the claim needs.
    pub found: Option<Found>,
    /// Number of cells in which a scheme that the claim needs failed, gave wrong bytes, or was not
    /// run.
    pub missing: usize,
    pub verdict: Verdict,
    /// The largest gain that the cells' lower bounds permit; see [`bound::of`].
    pub bound: Option<f64>,
}

impl Judgement<'_> {
    /// Returns the result at a place.
    pub fn at(&self, place: Place) -> &Outcome {
        self.outcomes.iter().find(|outcome| outcome.place == place).expect("there is one for every place")
    }
}

/// Judges all claims of an experiment by its records among `records`. If a scheme of a cell has
/// several records at a place, the last one counts.
pub fn judge<'a, 'r>(
    experiment: &'a Experiment,
    records: impl IntoIterator<Item = &'r Record>,
) -> Vec<Judgement<'a>> {
    let records = records.into_iter();
    let own: Vec<&Record> = records.filter(|record| record.experiment == experiment.id).collect();
    let outcome = |claim: &Claim, place: Place| {
        let is_about = |record: &&&Record| record.place == place && has(&record.labels, &claim.labels);
        let records: Vec<&Record> = own.iter().filter(is_about).copied().collect();
        let (found, missing) = measure::measure(&claim.measure, &records);
        let verdict = Verdict::of(claim.claimed, found.as_ref());
        Outcome { place, found, missing, verdict, bound: bound::of(&claim.measure, &records) }
    };
    let judgement = |claim| Judgement { claim, outcomes: Place::ALL.map(|place| outcome(claim, place)) };
    experiment.claims.iter().map(judgement).collect()
}
