//! What the planner expects of a rule's copies: `expected` of `stripewise plan --json`.

use serde::Deserialize;

/// What the copies of a pattern's files do.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Expected {
    /// Copy 0 is the original.
    pub copies: Vec<ExpectedCopy>,
    /// Kinds of requests, those with the most bytes first.
    pub classes: Vec<RequestClass>,
    /// Bytes that all copies take (of a cache: may take), as a multiple of the files' bytes.
    pub space_factor: f64,
    /// Close waits until everything is copied, and the expected time has it.
    pub close_waits: bool,
    /// Of a cache.
    #[serde(default)]
    pub cache: Option<ExpectedCache>,
}

/// One copy.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ExpectedCopy {
    /// `original`, or the plan's name for it.
    pub name: String,
    /// Requests that it serves.
    pub requests: f64,
    /// Their bytes.
    pub bytes: f64,
    /// Everything if it were the only copy, process-seconds.
    #[serde(default)]
    pub alone_predicted_s: Option<f64>,
    /// The same in wall-clock seconds.
    #[serde(default)]
    pub alone_elapsed_s: Option<f64>,
}

/// Like requests.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RequestClass {
    /// `read`, `write`.
    pub op: String,
    /// `random`, `sequential`.
    pub access: String,
    /// Mean bytes of one.
    pub request_bytes: u64,
    /// Processes at a time.
    pub procs: u32,
    /// Of these on one node.
    pub procs_per_node: u32,
    /// How many.
    pub requests: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Mean cost of one on each copy, seconds.
    pub cost_s: Vec<f64>,
    /// The part of them that each copy serves.
    pub served: Vec<f64>,
    /// Of a cache: the part that gains most in each copy; the first: that is not critical.
    #[serde(default)]
    pub critical: Vec<f64>,
}

/// What a cache does.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ExpectedCache {
    /// `sla`, `sca`, `nsca`, `off`.
    pub mode: String,
    /// Bytes that cached data may fill.
    pub capacity_bytes: f64,
    /// Performance-critical requests.
    pub critical_requests: f64,
    /// Bytes that they move.
    pub critical_request_bytes: f64,
    /// Bytes of their data, each byte once.
    pub critical_bytes: f64,
    /// The part of these that fits.
    pub fits: f64,
    /// x: the part of all requests' time on the original that hits would take there.
    pub time_of_hits: f64,
    /// All requests by SLA's model without the cache, process-seconds.
    pub original_s: f64,
    /// And with it.
    pub cached_s: f64,
    /// And with one layout only.
    pub layouts: Vec<CacheLayout>,
}

/// A cache with one layout only.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct CacheLayout {
    /// `1-DH`, ...
    pub name: String,
    /// Whether the plan has it.
    pub chosen: bool,
    /// Process-seconds.
    pub cached_s: f64,
}

/// Copying between copies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Background {
    /// Bytes that are copied.
    pub bytes: u64,
    /// How long that keeps the busiest server busy, or takes at the limit, seconds.
    pub seconds: f64,
}

impl Expected {
    /// Whether the lists have an entry for every copy.
    pub fn is_complete(&self) -> bool {
        let copies = self.copies.len();
        let complete = |class: &RequestClass| {
            class.cost_s.len() == copies
                && class.served.len() == copies
                && [0, copies].contains(&class.critical.len())
        };
        copies > 0 && self.classes.iter().all(complete)
    }

    /// All requests.
    pub fn requests(&self) -> f64 {
        self.copies.iter().map(|copy| copy.requests).sum()
    }

    /// Their bytes.
    pub fn bytes(&self) -> f64 {
        self.copies.iter().map(|copy| copy.bytes).sum()
    }

    /// The part of all requests that copies other than the original serve: a cache's hits.
    pub fn hits(&self) -> f64 {
        part(self.copies.iter().skip(1).map(|copy| copy.requests).sum(), self.requests())
    }

    /// The same of their bytes.
    pub fn hit_bytes(&self) -> f64 {
        part(self.copies.iter().skip(1).map(|copy| copy.bytes).sum(), self.bytes())
    }
}

impl ExpectedCache {
    /// What data are that the cache takes: `critical`, or `admitted` where it takes whatever comes.
    pub fn taken(&self) -> &'static str {
        taken(&self.mode)
    }

    /// How many times as fast everything would be if hits took no time: 1/(1-x).
    pub fn bound(&self) -> f64 {
        1.0 / (1.0 - self.time_of_hits.clamp(0.0, 1.0))
    }

    /// How many times as fast SLA's model expects it.
    pub fn speed_up(&self) -> f64 {
        part(self.original_s, self.cached_s)
    }
}

impl RequestClass {
    /// The copy on which a request costs least, of equal ones the first.
    pub fn cheapest(&self) -> usize {
        let costs = self.cost_s.iter().enumerate();
        costs.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(copy, _)| copy)
    }

    /// `T_H - T_S(l)` of the cache layout that it gains most in, seconds.
    pub fn benefit_s(&self) -> f64 {
        let cached = self.cost_s.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
        self.cost_s.first().map_or(0.0, |original| original - cached)
    }
}

/// What requests are whose data a cache with this mode takes.
pub fn taken(mode: &str) -> &'static str {
    if mode == "nsca" { "admitted" } else { "critical" }
}

/// `some` of `all`; 0 of nothing.
pub fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}
