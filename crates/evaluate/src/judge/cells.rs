//! Groups records by cell.

use std::collections::BTreeMap;

use crate::claim::has;
use crate::record::{Labels, Record};

/// All records of a cell, by scheme.
pub type Cell<'a> = BTreeMap<&'a str, &'a Record>;

/// The median of a time, and half the span of its repeats, both in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Time {
    pub median_s: f64,
    pub half_span_s: f64,
}

/// Returns the cells that have `labels`. If a scheme has several records, the last one counts.
pub fn of<'a>(records: impl Iterator<Item = &'a Record>, labels: &Labels) -> BTreeMap<&'a Labels, Cell<'a>> {
    let mut cells: BTreeMap<&Labels, Cell<'a>> = BTreeMap::new();
    for record in records.filter(|record| has(&record.labels, labels)) {
        cells.entry(&record.labels).or_default().insert(&record.scheme, record);
    }
    cells
}

/// Returns the time of a record, unless the run failed or a byte was wrong.
pub fn time(record: &Record) -> Option<Time> {
    if record.failed.is_some() || record.verified == Some(false) {
        return None;
    }
    let median_s = record.median_s().filter(|median_s| *median_s > 0.0 && median_s.is_finite())?;
    Some(Time { median_s, half_span_s: 0.5 * record.spread().unwrap_or(0.0) * median_s })
}

impl Time {
    /// Adds a time that follows. The spans of the two are independent.
    pub fn then(self, next: Self) -> Self {
        Self { median_s: self.median_s + next.median_s, half_span_s: self.half_span_s.hypot(next.half_span_s) }
    }

    /// Returns the spread as a fraction of the median.
    pub fn relative(self) -> f64 {
        self.half_span_s / self.median_s
    }
}
