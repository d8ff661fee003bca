//! What the papers claim, and how it is shown.

use crate::cell::Cell;
use crate::record::{Labels, Place};

/// The papers (`docs/papers.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// Cost-intelligent layouts, 2012.
    Cil,
    /// Performance- and space-aware layouts, 2014 and 2016.
    Psa,
    /// Selective, layout-aware SSD cache, 2016.
    Sla,
}

/// How large the cells are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Where they are run: simulated ones have the published size, the others sizes that a machine with two cores manages
    /// in a minute, with the published ratios.
    pub place: Place,
    /// Fewer cells and repeats.
    pub quick: bool,
}

/// One row of the published experiments.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `C1` to `S7`.
    pub id: &'static str,
    /// Whose.
    pub paper: Paper,
    /// A heading.
    pub title: &'static str,
    /// What was run there: servers, sizes, processes.
    pub setting: &'static str,
    /// What was claimed, in the paper's figures.
    pub claimed: &'static str,
    /// The same, one by one, to be compared.
    pub claims: Vec<Claim>,
    /// How it is drawn.
    pub figures: Vec<Figure>,
    /// What is run at a scale; none where it is not run there.
    pub cells: fn(Scale) -> Vec<Cell>,
}

/// What is compared.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Time under `over` divided by time under `scheme`, less 1: 0.5 is 50 % faster. Of all cells that have the claim's
    /// labels, the total of their times.
    Gain {
        /// The scheme whose gain it is.
        scheme: String,
        /// Over which.
        over: String,
    },
    /// The largest such gain of a single cell ("up to").
    LargestGain {
        /// The scheme whose gain it is.
        scheme: String,
        /// Over which.
        over: String,
    },
    /// The same over the best of all these schemes, cell by cell.
    GainOverBest {
        /// The scheme whose gain it is.
        scheme: String,
        /// Over which, each as if it were used throughout.
        over: Vec<String>,
    },
    /// Share of the cells in which the scheme that a prediction has fastest is the fastest, or not to be told from it.
    BestPicked {
        /// Key of [`crate::Record::details`] with the prediction, seconds.
        by: String,
    },
}

/// One figure that a paper gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// For people: `random writes of 8K`.
    pub what: String,
    /// The cells that it is about: those that have all of these labels.
    pub labels: Labels,
    /// What is compared.
    pub measure: Measure,
    /// What the paper has, from and to (the same where it is one figure); a share: 0.5 is +50 %, or 50 % of all cases.
    pub claimed: (f64, f64),
}

/// A plot like the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title.
    pub title: String,
    /// The cells that are in it.
    pub labels: Labels,
    /// The label along x, and what the axis is called.
    pub x: (String, String),
    /// The schemes, in order.
    pub schemes: Vec<String>,
}

impl Claim {
    /// Whether a cell with these labels is one that the claim is about.
    pub fn is_about(&self, labels: &Labels) -> bool {
        has(labels, &self.labels)
    }
}

impl Figure {
    /// Whether a cell with these labels is in the figure.
    pub fn shows(&self, labels: &Labels) -> bool {
        has(labels, &self.labels)
    }
}

fn has(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
