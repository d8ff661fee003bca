//! What a user can choose about planning.

use crate::present::Present;

/// What is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Objective {
    /// Expected wall-clock time.
    #[default]
    Elapsed,
    /// The papers' overall cost.
    Cost,
}

/// Which planners are asked.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Scheme {
    /// All of them; the cheapest wins.
    #[default]
    Auto,
    /// The planner of this name ([`crate::planners::ALL`]).
    Planner(String),
    /// The candidate of this name, whatever it costs.
    Named(String),
}

/// Everything that planning depends on besides the workload and the cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// Which planners are asked.
    pub scheme: Scheme,
    /// What is compared.
    pub objective: Objective,
    /// Algorithm 1's step, bytes, at least 1.
    pub step: u64,
    /// A change is recommended only if it saves more than this part of the present layout's time.
    pub min_gain: f64,
    /// Stripe sizes tried for every file set, bytes; `S/k` for its request size is added.
    pub stripes: Vec<u64>,
    /// The layout that files have now, where nothing is known of the files themselves.
    pub present: Present,
    /// The layouts that files of a set have now, by pattern.
    pub present_of: std::collections::HashMap<String, Present>,
}

/// 4 KiB: Algorithm 1's step.
pub const STEP: u64 = 4 << 10;
/// 5 %.
pub const MIN_GAIN: f64 = 0.05;

impl Default for Options {
    fn default() -> Self {
        Self {
            scheme: Scheme::Auto,
            objective: Objective::Elapsed,
            step: STEP,
            min_gain: MIN_GAIN,
            stripes: (12..=26).map(|log| 1 << log).collect(),
            present: Present::default(),
            present_of: std::collections::HashMap::new(),
        }
    }
}
