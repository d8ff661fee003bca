//! Which scheme of a cell a prediction ranks first, and whether it is as good as the fastest.

use std::cmp::Ordering;

use crate::record::Record;

/// Predictions that differ by less than this fraction are equal: they are sums of the same terms in
/// different order.
pub const EQUAL: f64 = 1e-9;

/// Returns the record with the least prediction `by`; `None` if one lacks it. Predictions are equal
/// up to the fraction `equal`. Ties go to the least prediction `then`, then to the first name, as
/// in the planner.
pub fn first<'r>(cell: &[&'r Record], by: &str, equal: f64, then: &str) -> Option<&'r Record> {
    let values: Option<Vec<f64>> = cell.iter().map(|record| record.details.get(by).copied()).collect();
    let values = values?;
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let tied = cell.iter().zip(values).filter(|(_, value)| *value <= least * (1.0 + equal));
    let then = |record: &Record| record.details.get(then).copied().unwrap_or(f64::INFINITY);
    tied.map(|(record, _)| *record).min_by(|a, b| {
        let closer = (then(a) - then(b)).abs() <= EQUAL * then(b).abs();
        let by_then = if closer { Ordering::Equal } else { then(a).total_cmp(&then(b)) };
        by_then.then_with(|| a.scheme.cmp(&b.scheme))
    })
}

/// Returns the record with the least median; `None` if there are none.
pub fn fastest<'r>(cell: &[&'r Record]) -> Option<&'r Record> {
    let median_s = |record: &Record| record.median_s().unwrap_or(f64::INFINITY);
    cell.iter().copied().min_by(|a, b| median_s(a).total_cmp(&median_s(b)))
}

/// Returns whether the fastest repeat of a record takes no longer than the slowest repeat of the
/// best record, up to the fraction `alike`.
pub fn is_alike(record: &Record, best: &Record, alike: f64) -> bool {
    let least_s = record.seconds.iter().copied().fold(f64::INFINITY, f64::min);
    let most_s = best.seconds.iter().copied().fold(0.0, f64::max);
    least_s <= most_s * (1.0 + alike)
}
