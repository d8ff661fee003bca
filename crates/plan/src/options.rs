//! User options of planning.

use stripewise_cluster::{CacheAdmission, CacheMode, Durability};
use stripewise_trace::summary::MAX_GROUPS;

use crate::candidate::Judged;
use crate::native::OnlyNative;

/// Maximum number of file sets that are planned by what they have in common.
const MANY_SETS: usize = 1 << 17;

/// The prediction by which candidates are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Expected wall-clock time.
    #[default]
    Elapsed,
    /// The papers' overall cost.
    Cost,
}

impl Objective {
    /// The prediction for a candidate, seconds.
    pub fn of(self, judged: &Judged) -> f64 {
        match self {
            Self::Elapsed => judged.elapsed_s,
            Self::Cost => judged.predicted_s(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Elapsed => "time",
            Self::Cost => "overall cost",
        }
    }
}

/// Which planners run and which candidate is chosen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// All planners of `auto`; the best candidate wins.
    #[default]
    Auto,
    /// Only the planner of this name ([`crate::planners::ALL`]).
    Planner(String),
    /// The candidate of this name, whatever it costs.
    Named(String),
}

/// Everything that planning depends on besides the workload and the cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which planners run and which candidate is chosen.
    pub scheme: Scheme,
    /// The prediction by which candidates are compared.
    pub objective: Objective,
    /// Step of PSA's Algorithm 1, bytes, at least 1.
    pub step: u64,
    /// A change is recommended only if it saves at least this fraction of the present layout's time
    /// or cost.
    pub min_gain: f64,
    /// Stripe sizes to try for every file set, bytes; `S/k` for the set's request size S is added.
    pub stripes: Vec<u64>,
    /// Planners that [`Scheme::Auto`] runs in addition to its default ones: `replicas`, `cache`,
    /// `regions`.
    pub with: Vec<String>,
    /// Options of files with several copies.
    pub copies: CopyOptions,
    /// Restricts planning to the file system's own layouts; `None`: programs run with stripewise.
    pub native: Option<OnlyNative>,
    /// Maximum number of bytes of existing files whose layout changes ([`FileSet::existing`]);
    /// `None`: unlimited. Only file sets that are planned jointly can keep it.
    ///
    /// [`FileSet::existing`]: crate::workload::FileSet::existing
    pub move_at_most: Option<u64>,
}

impl Options {
    /// Maximum number of file sets that can be planned with these options. More than [`MAX_GROUPS`]
    /// are planned by what they have in common.
    pub fn sets_max(&self) -> usize {
        let is_many = self.is_joint() && self.with.is_empty() && self.move_at_most.is_none();
        if is_many { MANY_SETS } else { MAX_GROUPS }
    }

    /// Whether file sets share the space by what it saves.
    pub(crate) fn is_joint(&self) -> bool {
        self.scheme == Scheme::Auto && self.native.is_none()
    }
}

/// User options of files with several copies.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Maximum number of replicas of a file, including the original; at least 1.
    pub most: usize,
    /// Bytes that cached data may fill on each server; `None`: the capacity of the tier.
    pub cache_capacity: Option<u64>,
    /// Which requests the cache admits.
    pub cache_mode: CacheMode,
    /// Whether the cache admits all of them while it has space.
    pub cache_admission: CacheAdmission,
    /// Close does not wait until the replicas are in sync.
    pub lazy_close: bool,
    /// When the extent map is made durable.
    pub durability: Durability,
    /// Limit of background copying, bytes per second; `None`: unlimited.
    pub background: Option<u64>,
}

impl Default for CopyOptions {
    fn default() -> Self {
        Self {
            most: 2,
            cache_capacity: None,
            cache_mode: CacheMode::default(),
            cache_admission: CacheAdmission::default(),
            lazy_close: false,
            durability: Durability::default(),
            background: None,
        }
    }
}

/// Default step of Algorithm 1: 4 KiB.
pub const STEP: u64 = 4 << 10;
/// Default of [`Options::min_gain`]: 5 %.
pub const MIN_GAIN: f64 = 0.05;

impl Default for Options {
    fn default() -> Self {
        Self {
            scheme: Scheme::Auto,
            objective: Objective::Elapsed,
            step: STEP,
            min_gain: MIN_GAIN,
            stripes: (12..=26).map(|log| 1 << log).collect(),
            with: Vec::new(),
            copies: CopyOptions::default(),
            native: None,
            move_at_most: None,
        }
    }
}
