//! The page's section on the joint plan.

use stripewise_report::units;

use super::format;
use crate::joint::{self, PUBLISHED, Row};

/// Heading of the section.
pub const HEADING: &str = "The joint plan beside the best candidate";

/// Introduction to the tables.
pub const ABOUT: &str = "`auto` is the joint plan, which users get without `--scheme`. The fastest candidate is, for each set of \
    files, the one that the simulator finds fastest of all that compete in `auto`; nobody knows it before. Cells \
    about a cache give the same space to the plan. The claim is that the plan is never more than 2 % slower, simulated, \
    than the fastest candidate. Where it is faster, it is composed of several layouts. Gains are those of the \
    summed times; the bound is the gain that is left at most: no layout takes less time.";

/// Columns of [`summaries`].
pub const SUMMARY: [&str; 8] = [
    "experiment",
    "cells",
    "at most 2 % slower",
    "slower at most by",
    "over DEF",
    "over PA",
    "over PSA",
    "bound: faster at most by",
];

/// Columns of [`cell`].
pub const CELL: [&str; 10] = [
    "#",
    "cell",
    "auto",
    "fastest",
    "slower by",
    "DEF",
    "PA",
    "PSA",
    "bound",
    "layout of auto; of the fastest",
];

/// Number of cells of an experiment up to which all are shown.
const SHOWN: usize = 100;

/// States in how many cells the claim holds.
pub fn verdict(rows: &[Row]) -> String {
    let (all, holds) = (rows.len() as u64, rows.iter().filter(|row| row.holds()).count() as u64);
    match all == holds {
        true => format!("**The claim holds** in all {}.", units::counted(all, "cell", "cells")),
        false => format!(
            "**The claim does not hold**: in {} of {} cells the plan is more than 2 % slower.",
            units::count(all - holds),
            units::count(all)
        ),
    }
}

/// Returns the rows of each experiment.
pub fn by_experiment(rows: &[Row]) -> impl Iterator<Item = &[Row]> {
    rows.chunk_by(|a, b| a.experiment == b.experiment)
}

/// Returns one row for each experiment.
pub fn summaries(rows: &[Row]) -> impl Iterator<Item = Vec<String>> {
    by_experiment(rows).map(|of| {
        let worst = of.iter().map(Row::regret).fold(f64::NEG_INFINITY, f64::max);
        let mut cells = vec![
            of[0].experiment.clone(),
            units::count(of.len() as u64),
            units::count(of.iter().filter(|row| row.holds()).count() as u64),
            tenths(worst),
        ];
        let gain = |gain: Option<f64>| gain.map_or("–".to_owned(), tenths);
        cells.extend((0..PUBLISHED.len()).map(|index| gain(joint::gain(of, |row| row.published_s[index]))));
        let left = joint::gain(of, |row| row.least_s).map(|gain| 1.0 / (1.0 + gain) - 1.0);
        cells.push(gain(left));
        cells
    })
}

/// Returns the cells to list: where the claim does not hold, and all of small experiments.
pub fn listed(rows: &[Row]) -> impl Iterator<Item = Vec<String>> {
    by_experiment(rows).flat_map(|of| of.iter().filter(|row| of.len() <= SHOWN || !row.holds()).map(cell))
}

fn cell(row: &Row) -> Vec<String> {
    let seconds = |seconds: Option<f64>| seconds.map_or("–".to_owned(), units::seconds);
    let [def_s, pa_s, psa_s] = row.published_s.map(seconds);
    vec![
        row.experiment.clone(),
        format::labels(&row.labels),
        units::seconds(row.planned_s),
        units::seconds(row.fastest_s),
        tenths(row.regret()) + if row.holds() { "" } else { " ✗" },
        def_s,
        pa_s,
        psa_s,
        seconds(row.least_s),
        if row.layout == row.fastest { row.layout.clone() } else { format!("{}; {}", row.layout, row.fastest) },
    ]
}

/// Formats a fraction as percent with a sign and one digit.
fn tenths(value: f64) -> String {
    units::signed_percent((value * 1000.0).round() / 1000.0)
}
