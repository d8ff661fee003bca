//! Computes the values that are compared with claims.

use std::collections::BTreeMap;

use crate::claim::Measure;
use crate::pick;
use crate::record::{Labels, Record};

/// The value found for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// Same unit as [`crate::Claim::claimed`]: 0.5 is +50 %, or 50 % of all cases.
    pub value: f64,
    /// Uncertainty of the value to either side: half the span of the repeats of all times involved,
    /// combined as independent deviations; 0 without repeats.
    pub spread: f64,
    /// Number of cells involved.
    pub cells: usize,
    /// Labels of the cell with the value, if it is the largest of all cells.
    pub at: Option<Labels>,
}

/// The records of each cell, by scheme. If a scheme has several records, the last one counts.
type Cells<'a> = BTreeMap<&'a Labels, BTreeMap<&'a str, &'a Record>>;

/// The median of a time, and half the span of its repeats, both in seconds.
#[derive(Clone, Copy)]
struct Time {
    median_s: f64,
    half_span_s: f64,
}

impl Time {
    /// Returns the time of a record, unless the run failed or a byte was wrong.
    fn of(record: &Record) -> Option<Self> {
        let median_s = record.median_s().filter(|median_s| *median_s > 0.0 && median_s.is_finite())?;
        let half_span_s = 0.5 * record.spread().unwrap_or(0.0) * median_s;
        (!record.is_bad()).then_some(Self { median_s, half_span_s })
    }

    /// Adds a time that follows. The spans of the two are independent.
    fn then(self, next: Self) -> Self {
        Self { median_s: self.median_s + next.median_s, half_span_s: self.half_span_s.hypot(next.half_span_s) }
    }

    /// Returns the spread as a fraction of the median.
    fn relative(self) -> f64 {
        self.half_span_s / self.median_s
    }
}

/// Returns the value for these records, and the number of cells that could not be used because a
/// scheme is missing or failed.
pub fn measure(measure: &Measure, records: &[&Record]) -> (Option<Found>, usize) {
    let mut cells = Cells::new();
    for record in records {
        cells.entry(&record.labels).or_default().insert(&record.scheme, record);
    }
    match measure {
        Measure::Gain { scheme, over } => {
            total(&pairs(&cells, scheme, std::slice::from_ref(over)), cells.len())
        }
        Measure::GainOverBest { scheme, over } => total(&pairs(&cells, scheme, over), cells.len()),
        Measure::LargestGain { scheme, over } => {
            largest(&pairs(&cells, scheme, std::slice::from_ref(over)), cells.len())
        }
        Measure::BestPicked { by } => picked(&cells, by),
    }
}

/// (the scheme's time, the time that it is compared with) of the cells that have both.
type Pairs<'a> = Vec<(&'a Labels, (Time, Time))>;

/// Returns the times of a scheme and the least of the times of others.
fn pairs<'a>(cells: &Cells<'a>, scheme: &str, over: &[String]) -> Pairs<'a> {
    let pair = |cell: &BTreeMap<&str, &Record>| {
        let of = |name: &str| Time::of(cell.get(name)?);
        let others: Option<Vec<Time>> = over.iter().map(|name| of(name)).collect();
        let best = others?.into_iter().min_by(|a, b| a.median_s.total_cmp(&b.median_s))?;
        Some((of(scheme)?, best))
    };
    cells.iter().filter_map(|(labels, cell)| Some((*labels, pair(cell)?))).collect()
}

fn gain((scheme, over): (Time, Time), cells: usize) -> Found {
    let ratio = over.median_s / scheme.median_s;
    let spread = ratio * over.relative().hypot(scheme.relative());
    Found { value: ratio - 1.0, spread, cells, at: None }
}

fn total(pairs: &Pairs<'_>, cells: usize) -> (Option<Found>, usize) {
    let times = pairs.iter().map(|(_, times)| *times);
    let sum = times.reduce(|sum, next| (sum.0.then(next.0), sum.1.then(next.1)));
    (sum.map(|sum| gain(sum, pairs.len())), cells - pairs.len())
}

fn largest(pairs: &Pairs<'_>, cells: usize) -> (Option<Found>, usize) {
    let gains = pairs.iter().map(|(labels, times)| (*labels, gain(*times, pairs.len())));
    let largest = gains.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    (largest.map(|(labels, found)| Found { at: Some(labels.clone()), ..found }), cells - pairs.len())
}

/// Returns the fraction of the cells in which the scheme that `by` ranks first is the fastest, or
/// indistinguishable from it.
fn picked(cells: &Cells<'_>, by: &str) -> (Option<Found>, usize) {
    let is_right = |cell: &BTreeMap<&str, &Record>| {
        let candidates: Vec<&Record> =
            cell.values().copied().filter(|record| record.details.contains_key(by)).collect();
        let is_usable = candidates.len() > 1 && candidates.iter().all(|record| Time::of(record).is_some());
        let picked = pick::first(&candidates, by, pick::EQUAL, "elapsed_s").filter(|_| is_usable)?;
        Some(pick::is_alike(picked, pick::fastest(&candidates)?, pick::EQUAL))
    };
    let right: Vec<bool> = cells.values().filter_map(is_right).collect();
    let value = right.iter().filter(|right| **right).count() as f64 / right.len().max(1) as f64;
    let found = Found { value, spread: 0.0, cells: right.len(), at: None };
    ((!right.is_empty()).then_some(found), cells.len() - right.len())
}
