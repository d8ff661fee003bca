//! A layout that was considered, and how it is judged.

use stripewise_cluster::{CopySpec, Overlay, Spread};
use stripewise_layout::Layout;
use stripewise_model::Cost;

use crate::spread::layout_of;
use crate::workload::FileSet;

/// A way to lay out the files of a set.
#[derive(Clone, Debug, PartialEq)]
pub struct Candidate {
    /// Unique within a set: `1-DH`, `2-D g=2`, `stripe 64K on ssd`, `PSA <120K,8K>`, ...
    pub name: String,
    /// The planner that proposed it: `overall`, `psa`, `pa`, `def` or `present`.
    pub scheme: &'static str,
    /// One for all files, or several over which the files are spread.
    pub layouts: Vec<Layout>,
    /// How a file picks one of several.
    pub spread: Spread,
    /// Per file of the set, where it is known: which layout it has, whatever the spread says.
    pub by_file: Option<Vec<u32>>,
    /// Further copies, if it has any: `layouts` are then the original's.
    pub overlay: Option<Overlay>,
    /// What else there is to know about it, in sentences without a full stop.
    pub remarks: Vec<String>,
}

impl Candidate {
    /// A candidate with one layout for all files.
    pub fn single(scheme: &'static str, name: impl Into<String>, layout: Layout) -> Self {
        Self::spread(scheme, name, vec![layout], Spread::default())
    }

    /// A candidate with several layouts, over which the files are spread.
    pub fn spread(scheme: &'static str, name: impl Into<String>, layouts: Vec<Layout>, spread: Spread) -> Self {
        Self { name: name.into(), scheme, layouts, spread, by_file: None, overlay: None, remarks: Vec::new() }
    }

    /// The further copies.
    pub fn copies(&self) -> &[CopySpec] {
        self.overlay.as_ref().map_or(&[], |overlay| &overlay.copies)
    }

    /// Per file of the set: which of the layouts it has.
    pub fn layout_of(&self, set: &FileSet) -> Vec<u32> {
        self.by_file.clone().unwrap_or_else(|| layout_of(set, &self.spread, self.layouts.len()))
    }

    /// Number of targets used.
    pub fn targets(&self) -> usize {
        let layouts = self.copies().iter().flat_map(|copy| &copy.layouts).chain(&self.layouts);
        let mut targets: Vec<u32> = layouts.flat_map(Layout::targets).collect();
        targets.sort_unstable();
        targets.dedup();
        targets.len()
    }
}

/// How `elapsed_s` was found: by sending sampled requests through the servers ([`crate::elapsed::replay`]).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Some 2000 requests per group of like ones: this candidate was far from the best.
    Short,
    /// At least 8000 requests per group, or all of them.
    #[default]
    Full,
}

/// A candidate and what it is predicted to cost.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// The candidate.
    pub candidate: Candidate,
    /// One that people look for: a layout of the papers over all servers, or a planner's own choice.
    pub notable: bool,
    /// The papers' overall cost, term by term, over all requests.
    pub cost: Cost,
    /// Expected wall-clock seconds.
    pub elapsed_s: f64,
    /// How they were found.
    pub method: Method,
    /// The busiest server.
    pub busiest: u32,
    /// Its busy time, seconds.
    pub busiest_s: f64,
    /// Servers that a request touches, mean over all requests.
    pub servers_per_request: f64,
    /// What is copied in the background for it.
    pub background: Background,
}

/// Copying between the copies of files that does not serve requests: lazy synchronisation, write-back, fetches.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Background {
    /// Bytes that are read from one copy and written to another.
    pub bytes: u64,
    /// How long that keeps the busiest server busy, or how long the limit of background copying makes it take, seconds.
    pub seconds: f64,
}

impl Judged {
    /// The sum of the cost's terms, process-seconds.
    pub fn predicted_s(&self) -> f64 {
        self.cost.total_s()
    }
}
