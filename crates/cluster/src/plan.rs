//! `plan.toml`: which files get which layout. The planner writes it; `place` and the data path read
//! it. Format: `docs/formats/plan.md`.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use stripewise_layout::Layout;

use crate::cluster::Cluster;
use crate::overlay::{CopySpec, Overlay};
use crate::pattern::{Spread, literal_prefix, match_path};

/// The scheme of rules that leave the files unchanged.
pub const KEEP: &str = "keep";

/// A plan. It is self-contained and includes the cluster for which it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// The requested scheme (`overall`, `psa`, ...).
    pub scheme: String,
    /// The cluster, with calibrated parameters in addition to those given by hand.
    pub cluster: Cluster,
    /// The rules; the first match applies.
    pub rules: Vec<Rule>,
}

/// The layout of all files whose absolute path matches a pattern.
#[derive(Clone, Debug, PartialEq)]
pub struct Rule {
    /// Absolute path pattern: `<n>` is a run of digits, `*` any characters but `/`, `**` any
    /// characters ([`crate::pattern`]).
    pub pattern: String,
    /// The scheme that the planner chose (`1-DH`, `PSA`, ...), or [`KEEP`]: leave the files
    /// unchanged.
    pub scheme: String,
    /// The reason, in one sentence for people.
    pub reason: String,
    /// The papers' overall cost: the sum of all request costs, seconds.
    pub predicted_s: f64,
    /// Expected wall-clock time, seconds.
    pub elapsed_s: f64,
    /// Layouts for the matching files, with target indices as in [`Cluster::targets`]; none for
    /// [`KEEP`]. A file takes the one that [`Rule::choose`] selects (1-DV and 2-D of files that
    /// belong to one process each).
    pub layouts: Vec<Layout>,
    /// How a file's number selects one of several layouts.
    pub spread: Spread,
    /// Extra copies of the files. The copy with a layout of `layouts` is then the original, copy 0.
    pub overlay: Option<Overlay>,
}

impl Plan {
    /// The first rule that matches the absolute path, if any. A rule without layouts means that the
    /// file is not managed.
    pub fn rule_for(&self, path: &Path) -> Option<&Rule> {
        self.rules.iter().find(|rule| rule.matches(path))
    }
}

impl Rule {
    /// Whether the rule applies to the file at this absolute path. Allocates nothing.
    pub fn matches(&self, path: &Path) -> bool {
        match_path(self.pattern.as_bytes(), path.as_os_str().as_bytes(), None).is_some()
    }

    /// The layout of the file at this absolute path; `None`: the path does not match, or the rule
    /// has no layouts. Allocates nothing.
    pub fn choose(&self, path: &Path) -> Option<&Layout> {
        self.layouts.get(self.spread.index(&self.pattern, path, self.layouts.len())?)
    }

    /// The extra copies of the file at this absolute path, from copy 1 on, with the layout of each.
    /// Empty if the path does not match or the files have only one copy. Allocates nothing.
    pub fn copies_for<'a>(&'a self, path: &'a Path) -> impl Iterator<Item = (&'a CopySpec, &'a Layout)> + 'a {
        let copies = self.overlay.iter().flat_map(|overlay| &overlay.copies);
        copies.filter_map(move |copy| {
            let index = copy.spread.index(&self.pattern, path, copy.layouts.len())?;
            Some((copy, copy.layouts.get(index)?))
        })
    }
}

/// The prefixes of all paths to which rules of a plan may apply. Rules without layouts apply to no
/// file.
#[derive(Clone, Debug, Default)]
pub struct Reach {
    /// Sorted; none is a prefix of another.
    beginnings: Vec<Box<[u8]>>,
}

impl Reach {
    /// The prefixes of all rules of the plan.
    pub fn of(plan: &Plan) -> Self {
        let rules = plan.rules.iter().filter(|rule| !rule.layouts.is_empty());
        let mut beginnings: Vec<Box<[u8]>> =
            rules.map(|rule| literal_prefix(rule.pattern.as_bytes()).into()).collect();
        beginnings.sort_unstable();
        // After sorting, a string follows its prefixes.
        beginnings.dedup_by(|longer, shorter| longer.starts_with(shorter));
        Self { beginnings }
    }

    /// Whether no rule applies to any file.
    pub fn is_empty(&self) -> bool {
        self.beginnings.is_empty()
    }

    /// Whether a rule may apply to the file at this absolute path; `false`: certainly none does.
    /// Takes O(log rules), allocates nothing.
    pub fn has(&self, path: &[u8]) -> bool {
        // A prefix of the path is not greater than the path, and every string between the two
        // begins with it.
        let after = self.beginnings.partition_point(|beginning| **beginning <= *path);
        self.beginnings[..after].last().is_some_and(|beginning| path.starts_with(beginning))
    }
}
