//! Computes the values that are compared with claims.

use std::collections::BTreeMap;

use super::cells::{Cell, Time, time};
use crate::claim::Measure;
use crate::record::{Labels, Record};

/// Predictions that differ by less than this fraction are equal: they are sums of the same terms in
/// different order.
const EQUAL: f64 = 1e-9;

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

/// Returns the value for these cells, and the number of cells that could not be used because a
/// scheme is missing or failed.
pub fn measure(measure: &Measure, cells: &BTreeMap<&Labels, Cell<'_>>) -> (Option<Found>, usize) {
    match measure {
        Measure::Gain { scheme, over } => total(cells, |cell| pair(cell, scheme, &[over])),
        Measure::GainOverBest { scheme, over } => {
            let over: Vec<&String> = over.iter().collect();
            total(cells, |cell| pair(cell, scheme, &over))
        }
        Measure::LargestGain { scheme, over } => largest(cells, |cell| pair(cell, scheme, &[over])),
        Measure::BestPicked { by } => picked(cells, by),
    }
}

/// Returns (the scheme's time, the least of the others' times) in a cell; `None` if one is missing.
fn pair(cell: &Cell<'_>, scheme: &str, over: &[&String]) -> Option<(Time, Time)> {
    let of = |name: &str| time(cell.get(name)?);
    let others: Option<Vec<Time>> = over.iter().map(|name| of(name)).collect();
    let best = others?.into_iter().min_by(|a, b| a.median_s.total_cmp(&b.median_s))?;
    Some((of(scheme)?, best))
}

fn gain((scheme, over): (Time, Time), cells: usize) -> Found {
    let ratio = over.median_s / scheme.median_s;
    let spread = ratio * over.relative().hypot(scheme.relative());
    Found { value: ratio - 1.0, spread, cells, at: None }
}

type Pairs<'c, 'a> = Vec<(&'c Labels, (Time, Time))>;

fn pairs<'c, 'a>(
    cells: &BTreeMap<&'c Labels, Cell<'a>>,
    pair: impl Fn(&Cell<'a>) -> Option<(Time, Time)>,
) -> (Pairs<'c, 'a>, usize) {
    let found: Pairs<'c, 'a> = cells.iter().filter_map(|(labels, cell)| Some((*labels, pair(cell)?))).collect();
    let missing = cells.len() - found.len();
    (found, missing)
}

fn total<'a>(
    cells: &BTreeMap<&Labels, Cell<'a>>,
    pair: impl Fn(&Cell<'a>) -> Option<(Time, Time)>,
) -> (Option<Found>, usize) {
    let (found, missing) = pairs(cells, pair);
    let sum =
        found.iter().map(|(_, times)| *times).reduce(|sum, next| (sum.0.then(next.0), sum.1.then(next.1)));
    (sum.map(|sum| gain(sum, found.len())), missing)
}

fn largest<'a>(
    cells: &BTreeMap<&Labels, Cell<'a>>,
    pair: impl Fn(&Cell<'a>) -> Option<(Time, Time)>,
) -> (Option<Found>, usize) {
    let (found, missing) = pairs(cells, pair);
    let gains = found.iter().map(|(labels, times)| (*labels, gain(*times, found.len())));
    let largest = gains.max_by(|a, b| a.1.value.total_cmp(&b.1.value));
    (largest.map(|(labels, found)| Found { at: Some(labels.clone()), ..found }), missing)
}

/// Returns the fraction of the cells in which the scheme that `by` ranks first is the fastest, or
/// indistinguishable from it.
fn picked(cells: &BTreeMap<&Labels, Cell<'_>>, by: &str) -> (Option<Found>, usize) {
    let mut count = [0, 0];
    let mut missing = 0;
    for cell in cells.values() {
        let candidates: Vec<&Record> =
            cell.values().copied().filter(|record| record.details.contains_key(by)).collect();
        if candidates.len() < 2 || candidates.iter().any(|record| time(record).is_none()) {
            missing += 1;
            continue;
        }
        count[usize::from(is_best(predicted(&candidates, by), &candidates))] += 1;
    }
    let cells = count[0] + count[1];
    let value = count[1] as f64 / cells.max(1) as f64;
    ((cells > 0).then_some(Found { value, spread: 0.0, cells, at: None }), missing)
}

/// Returns the candidate with the least prediction. Ties go to the least expected time, then to the
/// first name, as in the planner.
fn predicted<'a>(candidates: &[&'a Record], by: &str) -> &'a Record {
    let cost = |record: &Record| record.details[by];
    let least = candidates.iter().map(|record| cost(record)).fold(f64::INFINITY, f64::min);
    let elapsed = |record: &Record| record.details.get("elapsed_s").copied().unwrap_or(f64::INFINITY);
    let tied = candidates.iter().filter(|record| cost(record) <= least + EQUAL * least.abs());
    let first = tied.min_by(|a, b| {
        let closer = (elapsed(a) - elapsed(b)).abs() <= EQUAL * elapsed(b).abs();
        let by_time = if closer { std::cmp::Ordering::Equal } else { elapsed(a).total_cmp(&elapsed(b)) };
        by_time.then_with(|| a.scheme.cmp(&b.scheme))
    });
    first.copied().unwrap_or(candidates[0])
}

/// Returns whether a record is that of the fastest scheme, or its fastest repeat is no slower than
/// the slowest repeat of that scheme.
fn is_best(picked: &Record, candidates: &[&Record]) -> bool {
    let median_s = |record: &Record| record.median_s().unwrap_or(f64::INFINITY);
    let fastest = candidates.iter().min_by(|a, b| median_s(a).total_cmp(&median_s(b))).expect("two or more");
    let least_s = picked.seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most_s = fastest.seconds.iter().copied().fold(0.0, f64::max);
    least_s <= most_s * (1.0 + EQUAL)
}
