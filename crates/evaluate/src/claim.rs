//! The papers' claims, and how they are presented.

use serde::Deserialize;

use crate::cell::{Cell, PUBLISHED, Scheme};
use crate::record::{Labels, Place};

/// The papers (`docs/papers.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
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

impl Scale {
    pub(crate) fn is_simulated(self) -> bool {
        self.place == Place::Simulated
    }

    /// Returns the value of this scale. `simulated` and `measured` have the value at full size and
    /// that of a quick run.
    pub(crate) fn of<T>(self, simulated: [T; 2], measured: [T; 2]) -> T {
        let [full, quick] = if self.is_simulated() { simulated } else { measured };
        if self.quick { quick } else { full }
    }
}

/// One experiment of the papers, as `experiments.toml` describes it, with its cells.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// `C1` to `S7`, `X1` or `X2`.
    #[serde(skip)]
    pub id: &'static str,
    /// The paper that describes it.
    pub paper: Paper,
    /// Title for headings.
    pub title: String,
    /// Published setting: servers, sizes, processes.
    pub setting: String,
    /// The paper's claim with its figures.
    pub claimed: String,
    /// The schemes that are compared, in the order of the figures.
    pub schemes: Vec<String>,
    /// Figures to draw.
    pub figures: Vec<Figure>,
    /// The individual claims that are compared with results.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Explanation of why results differ from the claims, shown below the table: Markdown with
    /// paragraphs, lists, tables, `code`, **bold**, and links relative to `docs/`.
    #[serde(skip)]
    pub explanation: &'static str,
    /// Returns the cells in the simulator or on emulated servers; see [`Experiment::cells`].
    #[serde(skip, default = "no_cells")]
    pub(crate) cells: fn(Scale) -> Vec<Cell>,
}

impl Experiment {
    /// Returns the cells at a scale; empty if the experiment is not run there.
    pub fn cells(&self, scale: Scale) -> Vec<Cell> {
        // Only P1 is defined on disks. `bench/disks` has experiments of its own.
        if scale.place == Place::Disks && self.id != "P1" {
            return Vec::new();
        }
        let cells = (self.cells)(scale).into_iter().map(|cell| Cell { experiment: self.id, ..cell });
        let is_compared = scale.is_simulated() && !self.id.starts_with('X');
        cells.map(|cell| if is_compared { with_plans(cell) } else { cell }).collect()
    }
}

/// Adds what the joint plan is compared with, and the plan itself, as far as the cell lacks them.
/// PSA and PA need two kinds of servers.
fn with_plans(mut cell: Cell) -> Cell {
    let published = if cell.storage.tiers.len() > 1 { PUBLISHED.len() } else { 1 };
    for scheme in PUBLISHED.into_iter().take(published).chain([Scheme::FastestCandidate, Scheme::Auto]) {
        if !cell.schemes.contains(&scheme) {
            cell.schemes.push(scheme);
        }
    }
    cell
}

fn no_cells() -> fn(Scale) -> Vec<Cell> {
    |_| Vec::new()
}

/// The quantity that a claim is about.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
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
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Claim {
    /// Description, such as `random writes of 8K`.
    pub what: String,
    /// The claim applies to the cells that have all of these labels.
    #[serde(default)]
    pub labels: Labels,
    /// The quantity that is compared.
    #[serde(flatten)]
    pub measure: Measure,
    /// The paper's range (both ends are equal for a single figure), as a fraction: 0.5 is +50 %, or
    /// 50 % of all cases.
    #[serde(deserialize_with = "one_or_two")]
    pub claimed: (f64, f64),
}

fn one_or_two<'de, D: serde::Deserializer<'de>>(from: D) -> Result<(f64, f64), D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Claimed {
        Figure(f64),
        Range(f64, f64),
    }
    Ok(match Claimed::deserialize(from)? {
        Claimed::Figure(figure) => (figure, figure),
        Claimed::Range(from, to) => (from, to),
    })
}

/// A plot like the paper's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// Title of the plot.
    pub title: String,
    /// The plot shows the cells that have all of these labels.
    #[serde(default)]
    pub labels: Labels,
    /// The label along x, and the title of the axis.
    pub x: (String, String),
}

/// Returns whether a cell with the labels `of` has all the `wanted` ones.
pub fn has(of: &Labels, wanted: &Labels) -> bool {
    wanted.iter().all(|(key, value)| of.get(key) == Some(value))
}
