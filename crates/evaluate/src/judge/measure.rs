//! What is compared with a claim.

use std::collections::BTreeMap;

use super::cells::{Cell, Time, time};
use crate::claim::Measure;
use crate::record::{Labels, Record};

/// Predictions that differ by less than this part are equal: they are sums of the same terms in another order.
const EQUAL: f64 = 1e-9;

/// What was found for a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Found {
    /// As [`crate::Claim::claimed`]: 0.5 is +50 %, or 50 % of all cases.
    pub value: f64,
    /// How far the repeats let it lie from there, to either side: half of what they span, of all times that are in it, as
    /// independent deviations; 0 where nothing was repeated.
    pub spread: f64,
    /// The cells that are in it.
    pub cells: usize,
    /// The one cell that it was found in, where it is the largest of all.
    pub at: Option<Labels>,
}

/// What was found in these cells, and how many of them could not be used because a scheme is missing or failed.
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

/// (a scheme's time, the least of the others' times) in a cell; none if one is missing.
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

/// The share of the cells in which the scheme that `by` has fastest is the fastest, or not to be told from it.
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

/// The one with the least prediction; of equal ones that with the least expected time, then the first name, as the planner
/// has it.
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

/// Whether a record is of the fastest scheme, or its fastest repeat is no slower than the slowest one of that.
fn is_best(picked: &Record, candidates: &[&Record]) -> bool {
    let median_s = |record: &Record| record.median_s().unwrap_or(f64::INFINITY);
    let fastest = candidates.iter().min_by(|a, b| median_s(a).total_cmp(&median_s(b))).expect("two or more");
    let least_s = picked.seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most_s = fastest.seconds.iter().copied().fold(0.0, f64::max);
    least_s <= most_s * (1.0 + EQUAL)
}
