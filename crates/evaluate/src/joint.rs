//! The joint plan of every simulated cell beside the fastest candidate, the published schemes and
//! the bound.
//!
//! Its *regret* is the additional time as a fraction of the fastest candidate's; it is negative
//! where the plan is faster than every candidate.

use std::collections::BTreeMap;

use crate::bound::LEAST_S;
use crate::cell::{AUTO, FASTEST};
use crate::record::{Labels, Place, Record};

/// The regret that a plan may have: 2 %.
pub const ALLOWED: f64 = 0.02;

/// The published schemes, in the order of [`Row::published_s`].
pub const PUBLISHED: [&str; 3] = ["DEF", "PA", "PSA"];

/// One cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Id of the experiment.
    pub experiment: String,
    pub labels: Labels,
    /// Seconds under the joint plan.
    pub planned_s: f64,
    /// Layouts of the joint plan.
    pub layout: String,
    /// Seconds under the fastest candidate.
    pub fastest_s: f64,
    /// The fastest candidate's layouts.
    pub fastest: String,
    /// Seconds under [`PUBLISHED`]; `None` if the scheme was not run.
    pub published_s: [Option<f64>; 3],
    /// No layout takes less, seconds.
    pub least_s: Option<f64>,
}

impl Row {
    pub fn regret(&self) -> f64 {
        self.planned_s / self.fastest_s - 1.0
    }

    /// Whether the plan is at most [`ALLOWED`] slower than the fastest candidate.
    pub fn holds(&self) -> bool {
        self.planned_s <= self.fastest_s * (1.0 + ALLOWED)
    }
}

/// Returns the rows of all simulated cells that were run under both plans, in the order of their
/// first records.
pub fn rows<'r>(records: impl IntoIterator<Item = &'r Record>) -> Vec<Row> {
    type Of<'r> = BTreeMap<&'r str, &'r Record>;
    let mut cells: Vec<(&Record, Of<'r>)> = Vec::new();
    let mut known: BTreeMap<(&str, &Labels), usize> = BTreeMap::new();
    for record in records.into_iter().filter(|record| record.place == Place::Simulated) {
        let index = *known.entry((&record.experiment, &record.labels)).or_insert(cells.len());
        if index == cells.len() {
            cells.push((record, Of::new()));
        }
        cells[index].1.insert(&record.scheme, record);
    }
    cells.iter().filter_map(|(first, cell)| row(first, cell)).collect()
}

fn row(first: &Record, cell: &BTreeMap<&str, &Record>) -> Option<Row> {
    let seconds = |scheme: &str| cell.get(scheme)?.median_s();
    let (planned, fastest) = (cell.get(AUTO)?, cell.get(FASTEST)?);
    Some(Row {
        experiment: first.experiment.clone(),
        labels: first.labels.clone(),
        planned_s: planned.median_s()?,
        layout: planned.layout.clone(),
        fastest_s: fastest.median_s()?,
        fastest: fastest.layout.clone(),
        published_s: PUBLISHED.map(seconds),
        least_s: planned.details.get(LEAST_S).copied(),
    })
}

/// Returns by how much less time the joint plan takes than another one, summed over the rows for
/// which `other_s` is known: 0.5 is 50 % faster. `None` if it is known for none.
pub fn gain<'r>(rows: impl IntoIterator<Item = &'r Row>, other_s: impl Fn(&Row) -> Option<f64>) -> Option<f64> {
    let pairs = rows.into_iter().filter_map(|row| Some((row.planned_s, other_s(row)?)));
    let (planned_s, other_s) = pairs.fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
    (planned_s > 0.0).then(|| other_s / planned_s - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(procs: &str, scheme: &str, seconds: f64) -> Record {
        Record {
            experiment: "P2".into(),
            place: Place::Simulated,
            labels: [("procs".to_owned(), procs.to_owned())].into(),
            scheme: scheme.into(),
            parameters: String::new(),
            seconds: vec![seconds],
            bytes: 1,
            verified: None,
            failed: None,
            layout: scheme.to_lowercase(),
            details: [(LEAST_S.to_owned(), 0.5)].into(),
        }
    }

    #[test]
    fn a_plan_may_be_two_percent_slower_than_the_fastest_candidate() {
        let records = [
            record("8", "DEF", 2.0),
            record("8", FASTEST, 1.0),
            record("8", AUTO, 1.02),
            record("16", FASTEST, 1.0),
            record("16", AUTO, 1.03),
            record("32", FASTEST, 1.0),
            record("32", AUTO, 0.9),
        ];
        let rows = rows(&records);
        let holds: Vec<bool> = rows.iter().map(Row::holds).collect();
        assert_eq!(holds, [true, false, true]);
        assert_eq!(rows[0].published_s, [Some(2.0), None, None]);
        assert_eq!((rows[0].least_s, rows[0].fastest.as_str()), (Some(0.5), FASTEST));
    }

    #[test]
    fn cells_without_both_plans_have_no_row() {
        let emulated = Record { place: Place::Emulated, ..record("16", FASTEST, 1.0) };
        assert_eq!(rows(&[record("8", AUTO, 1.0), record("16", AUTO, 1.0), emulated]), []);
    }

    #[test]
    fn gains_are_of_the_times_of_the_cells_that_have_both() {
        let records = [
            record("8", FASTEST, 1.0),
            record("8", AUTO, 1.0),
            record("8", "PA", 1.5),
            record("16", FASTEST, 1.0),
            record("16", AUTO, 1.0),
        ];
        let rows = rows(&records);
        assert_eq!(gain(&rows, |row| row.published_s[1]), Some(0.5));
        assert_eq!(gain(&rows, |row| row.published_s[2]), None);
        assert_eq!(gain(&rows, |row| Some(row.fastest_s)), Some(0.0));
    }
}
