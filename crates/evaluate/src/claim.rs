//! The papers' claims, and how they are presented.

use crate::cell::Cell;
use crate::record::{Labels, Place};

/// The papers (`docs/papers.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paper {
    /// CIL: cost-intelligent layouts, 2012.
    Cil,
    /// PSA: performance- and space-aware layouts, 2014 and 2016.
    Psa,
    /// SLA: selective, layout-aware SSD cache, 2016.
    Sla,
}

/// Size of the cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scale {
    /// Where they are run. Simulated cells have the published size. The others have sizes that a
    /// machine with two cores manages in a minute, with the published ratios.
    pub place: Place,
    /// Whether to run fewer cells and repeats.
    pub quick: bool,
}

/// One experiment of the papers.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// `C1` to `S7`.
    pub id: &'static str,
    /// The paper that describes it.
    pub paper: Paper,
    /// Title for headings.
    pub title: &'static str,
    /// Published setting: servers, sizes, processes.
    pub setting: &'static str,
    /// The paper's claim with its figures.
    pub claimed: &'static str,
    /// The individual claims that are compared with results.
    pub claims: Vec<Claim>,
    /// Figures to draw.
    pub figures: Vec<Figure>,
    /// Returns the cells at a scale; empty if the experiment is not run there.
    pub cells: fn(Scale) -> Vec<Cell>,
}

/// The quantity that a claim is about.
#[derive(Clone, Debug, PartialEq)]
pub enum Measure {
    /// Time under `over` divided by time under `scheme`, less 1: 0.5 is 50 % faster. Times are
    /// summed over all cells with the claim's labels.
    Gain {
        /// The scheme whose gain it is.
        scheme: String,
        /// The scheme to compare with.
        over: String,
    },
    /// The largest such gain of a single cell ("up to").
    LargestGain {
        /// The scheme whose gain it is.
        scheme: String,
        /// The scheme to compare with.
        over: String,
    },
    /// The gain over the best of several schemes, cell by cell.
    GainOverBest {
        /// The scheme whose gain it is.
        scheme: String,
        /// The schemes to compare with, each used for the whole cell.
        over: Vec<String>,
    },
    /// Fraction of the cells in which the scheme that a prediction ranks first is the fastest, or
    /// indistinguishable from it.
    BestPicked {
        /// Key of [`crate::Record::details`] with the prediction in seconds.
        by: String,
    },
}

/// One figure from a paper.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// Description, such as `random writes of 8K`.
    pub what: String,
    /// The claim applies to the cells that have all of these labels.
    pub labels: Labels,
    /// The quantity that is compared.
    pub measure: Measure,
    /// The paper's range (both ends are equal for a single figure), as a fraction: 0.5 is +50 %, or
    /// 50 % of all cases.
    pub claimed: (f64, f64),
}

/// A plot like the paper's.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// Title of the plot.
    pub title: String,
    /// The plot shows the cells that have all of these labels.
    pub labels: Labels,
    /// The label along x, and the title of the axis.
    pub x: (String, String),
    /// The schemes, in order.
    pub schemes: Vec<String>,
}

impl Claim {
    /// Returns whether the claim applies to a cell with these labels.
    pub fn is_about(&self, labels: &Labels) -> bool {
        has(labels, &self.labels)
    }
}

impl Figure {
    /// Returns whether the figure shows a cell with these labels.
    pub fn shows(&self, labels: &Labels) -> bool {
        has(labels, &self.labels)
    }
}

fn has(labels: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| labels.get(key) == Some(value))
}
