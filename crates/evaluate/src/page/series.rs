//! Data of a figure: the throughput of each scheme over x, by place.

use std::collections::{BTreeMap, BTreeSet};

use crate::claim::{Experiment, Figure, has};
use crate::record::{Labels, Place, Record, amount};

/// Directory of the drawings, next to the page.
pub const DRAWINGS: &str = "evaluation";

/// A figure with its numbers.
#[derive(Clone, Debug)]
pub struct Chart<'a> {
    pub figure: &'a Figure,
    /// Its schemes, in order.
    pub schemes: &'a [String],
    pub file_name: String,
    pub looks: Vec<usize>,
    /// One panel for each place with data.
    pub panels: Vec<Panel>,
}

/// The numbers of one place.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    pub place: Place,
    /// The values along x, in order.
    pub x: Vec<String>,
    /// One point for each x, by scheme of the figure.
    pub points: Vec<Vec<Option<Point>>>,
}

/// A throughput in bytes/s: that of the medians, and the range from the slowest to the fastest
/// repeats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub rate: f64,
    pub least: f64,
    pub most: f64,
}

impl Panel {
    pub fn all(&self) -> impl Iterator<Item = &Point> {
        self.points.iter().flatten().flatten()
    }
}

/// Returns the figures of an experiment that have data. `look_of` gives a scheme's look.
pub fn charts<'a>(
    experiment: &'a Experiment,
    records: &[Vec<&Record>; 3],
    look_of: impl Fn(&str) -> usize,
) -> Vec<Chart<'a>> {
    let schemes = &experiment.schemes;
    let chart = |(index, figure): (usize, &'a Figure)| {
        let panels = Place::ALL
            .iter()
            .zip(records)
            .filter_map(|(place, records)| panel(figure, schemes, *place, records));
        Chart {
            figure,
            schemes,
            file_name: format!("{}-{}.svg", experiment.id, index + 1),
            looks: schemes.iter().map(|scheme| look_of(scheme)).collect(),
            panels: panels.collect(),
        }
    };
    let charts = experiment.figures.iter().enumerate().map(chart);
    charts.filter(|chart| !chart.panels.is_empty()).collect()
}

fn panel(figure: &Figure, schemes: &[String], place: Place, records: &[&Record]) -> Option<Panel> {
    let mut at: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    let mut x: Vec<&str> = Vec::new();
    for record in records.iter().filter(|record| has(&record.labels, &figure.labels)) {
        let Some(value) = record.labels.get(&figure.x.0) else { continue };
        if !x.contains(&value.as_str()) {
            x.push(value);
        }
        at.entry(value).or_default().push(record);
    }
    // Sizes and numbers are sorted by value; other labels stay in their order of appearance.
    x.sort_by(|a, b| match (amount(a), amount(b)) {
        (Some(a), Some(b)) => a.total_cmp(&b),
        _ => std::cmp::Ordering::Equal,
    });
    let of = |scheme: &String| x.iter().map(|value| point(&at[value], scheme, schemes)).collect();
    let points: Vec<Vec<Option<Point>>> = schemes.iter().map(of).collect();
    let panel = Panel { place, x: x.iter().map(|value| (*value).to_owned()).collect(), points };
    let anything = panel.all().next().is_some();
    anything.then_some(panel)
}

/// Returns the throughput of a scheme over all cells with the same x. Returns `None` if the scheme
/// lacks a cell in which another scheme of the figure was run, because sums over different cells
/// are not comparable.
fn point(records: &[&Record], scheme: &str, schemes: &[String]) -> Option<Point> {
    let cells: BTreeSet<&Labels> =
        records.iter().filter(|record| schemes.contains(&record.scheme)).map(|record| &record.labels).collect();
    let own: BTreeMap<&Labels, &Record> = records
        .iter()
        .filter(|record| record.scheme == scheme && !record.is_bad())
        .map(|record| (&record.labels, *record))
        .collect();
    if own.is_empty() || own.len() < cells.len() {
        return None;
    }
    let bytes: f64 = own.values().map(|record| record.bytes as f64).sum();
    let total = |seconds: &dyn Fn(&Record) -> Option<f64>| -> Option<f64> {
        own.values().map(|record| seconds(record)).sum::<Option<f64>>().filter(|sum| *sum > 0.0)
    };
    Some(Point {
        rate: bytes / total(&Record::median_s)?,
        least: bytes / total(&|record| record.seconds.iter().copied().reduce(f64::max))?,
        most: bytes / total(&|record| record.seconds.iter().copied().reduce(f64::min))?,
    })
}
