//! What a user can choose about planning.

use stripewise_cluster::{CacheAdmission, CacheMode, Durability};

use crate::only_native::OnlyNative;

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
    /// Planners that take part in [`Scheme::Auto`] although they do not unasked: `replicas`, `cache`.
    pub with: Vec<String>,
    /// How files with several copies are made and kept.
    pub copies: CopyOptions,
    /// Only layouts that the file system has itself; `None`: stripewise will be there.
    pub native: Option<OnlyNative>,
}

/// What a user can choose about files with several copies.
#[derive(Clone, Debug)]
pub struct CopyOptions {
    /// Replicas of a file at most, the original included; at least 1.
    pub most: usize,
    /// Bytes that cached data may fill on each server; `None`: the capacity of the tier.
    pub cache_capacity: Option<u64>,
    /// What the cache admits.
    pub cache_mode: CacheMode,
    /// Whether it admits all of that while there is space.
    pub cache_admission: CacheAdmission,
    /// Close does not wait until the replicas are in sync.
    pub lazy_close: bool,
    /// When the extent map is made durable.
    pub durability: Durability,
    /// Bytes per second that background copying may move; `None`: as many as it can.
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
            with: Vec::new(),
            copies: CopyOptions::default(),
            native: None,
        }
    }
}
