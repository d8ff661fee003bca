//! `plan.toml`: which files get which layout. Written by the planner, read by `place` and by the data path.

use stripewise_layout::Layout;

use crate::cluster::Cluster;

/// A plan: self-contained, so it carries the cluster it was made for.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The scheme that was asked for (`overall`, `psa`, ...).
    pub scheme: String,
    /// The cluster, with calibrated parameters already applied.
    pub cluster: Cluster,
    /// First match wins.
    pub rules: Vec<Rule>,
}

/// The layout of all files whose absolute path matches a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Absolute path pattern: `<n>` is a run of digits, `*` any characters but `/`, `**` any characters.
    pub pattern: String,
    /// What the planner chose (`1-DH`, `PSA`, ...), or `keep`: leave the files as they are.
    pub scheme: String,
    /// One sentence for people.
    pub reason: String,
    /// The papers' overall cost: the sum of all request costs, seconds.
    pub predicted_s: f64,
    /// Expected wall-clock seconds.
    pub elapsed_s: f64,
    /// Candidate layouts for the matching files, target indices as in [`Cluster::targets`]; none for `keep`.
    /// A file takes the one that [`Rule::choose`] picks (1-DV and 2-D of files that belong to one process each).
    pub layouts: Vec<Layout>,
    /// How a file's number picks one of several layouts.
    pub spread: Spread,
}

/// Which of a rule's layouts a file gets: `(number / stride) mod layouts`.
#[derive(Clone, Debug, PartialEq)]
pub struct Spread {
    /// Which `<n>` of the pattern is the file's number, counted from 0; `None`: a hash of the path is.
    pub field: Option<usize>,
    /// Numbers that get the same layout; at least 1.
    pub stride: u64,
}
