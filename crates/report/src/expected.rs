//! Expected work of a rule's copies, from `expected` of `stripewise plan --json`.

use serde::Deserialize;

/// Expected work of the copies of a pattern's files.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct Expected {
    /// The copies; copy 0 is the original.
    pub copies: Vec<ExpectedCopy>,
    /// Classes of requests, those with the most bytes first.
    pub classes: Vec<RequestClass>,
    /// Bytes that all copies occupy (a cache: may occupy), as a multiple of the files' bytes.
    pub space_factor: f64,
    /// Whether close waits until everything is copied. The expected time then includes the wait.
    pub close_waits: bool,
    /// Additional numbers of a cache.
    #[serde(default)]
    pub cache: Option<ExpectedCache>,
}

/// Expected work of one copy.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ExpectedCopy {
    /// `original`, or the copy's name in the plan.
    pub name: String,
    /// Number of requests that it serves.
    pub requests: f64,
    /// Bytes of these requests.
    pub bytes: f64,
    /// Predicted cost if this were the only copy, process-seconds.
    #[serde(default)]
    pub alone_predicted_s: Option<f64>,
    /// Expected time if this were the only copy, wall-clock seconds.
    #[serde(default)]
    pub alone_elapsed_s: Option<f64>,
}

/// A class of similar requests.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct RequestClass {
    /// `read` or `write`.
    pub op: String,
    /// `random` or `sequential`.
    pub access: String,
    /// Mean bytes per request.
    pub request_bytes: u64,
    /// Number of concurrent processes.
    pub procs: u32,
    /// Number of these processes on one node.
    pub procs_per_node: u32,
    /// Number of requests.
    pub requests: u64,
    /// Bytes of all these requests.
    pub bytes: u64,
    /// Mean cost of one request on each copy, seconds.
    pub cost_s: Vec<f64>,
    /// Fraction of the requests that each copy serves.
    pub served: Vec<f64>,
    /// For a cache: fraction of the requests that gain most in each copy. Entry 0 is the fraction
    /// that is not critical.
    #[serde(default)]
    pub critical: Vec<f64>,
}

/// Expected work of a cache.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct ExpectedCache {
    /// `sla`, `sca`, `nsca` or `off`.
    pub mode: String,
    /// Maximum bytes of cached data.
    pub capacity_bytes: f64,
    /// Number of performance-critical requests.
    pub critical_requests: f64,
    /// Bytes that these requests move.
    pub critical_request_bytes: f64,
    /// Bytes of the data they access, each byte counted once.
    pub critical_bytes: f64,
    /// Fraction of the critical bytes that fits into the cache.
    pub fits: f64,
    /// x: the time that hits would take on the original, as a fraction of the time that all
    /// requests take there.
    pub time_of_hits: f64,
    /// Predicted time of all requests without the cache by SLA's model, process-seconds.
    pub original_s: f64,
    /// Predicted time with the cache, process-seconds.
    pub cached_s: f64,
    /// Predictions for a cache with one layout only.
    pub layouts: Vec<CacheLayout>,
}

/// Prediction for a cache with one layout only.
#[derive(Clone, Debug, Deserialize, PartialEq)]
pub struct CacheLayout {
    /// Name of the layout, such as `1-DH`.
    pub name: String,
    /// Whether the plan uses it.
    pub chosen: bool,
    /// Predicted time in process-seconds.
    pub cached_s: f64,
}

/// Background copying between copies.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
pub struct Background {
    /// Number of bytes copied.
    pub bytes: u64,
    /// Seconds for which the copying keeps the busiest server busy, or the time it takes at the
    /// limit.
    pub seconds: f64,
}

impl Expected {
    /// Returns whether the lists have an entry for every copy.
    pub fn is_complete(&self) -> bool {
        let copies = self.copies.len();
        let complete = |class: &RequestClass| {
            class.cost_s.len() == copies
                && class.served.len() == copies
                && [0, copies].contains(&class.critical.len())
        };
        copies > 0 && self.classes.iter().all(complete)
    }

    /// Returns the number of all requests.
    pub fn requests(&self) -> f64 {
        self.copies.iter().map(|copy| copy.requests).sum()
    }

    /// Returns the bytes of all requests.
    pub fn bytes(&self) -> f64 {
        self.copies.iter().map(|copy| copy.bytes).sum()
    }

    /// Returns the fraction of requests that copies other than the original serve: a cache's hits.
    pub fn hits(&self) -> f64 {
        part(self.copies.iter().skip(1).map(|copy| copy.requests).sum(), self.requests())
    }

    /// Returns the fraction of bytes that copies other than the original serve.
    pub fn hit_bytes(&self) -> f64 {
        part(self.copies.iter().skip(1).map(|copy| copy.bytes).sum(), self.bytes())
    }
}

impl ExpectedCache {
    /// Returns the kind of data that the cache takes: `critical`, or `admitted` in the mode that
    /// admits everything.
    pub fn taken(&self) -> &'static str {
        taken(&self.mode)
    }

    /// Returns the speedup if hits took no time: 1/(1-x).
    pub fn bound(&self) -> f64 {
        1.0 / (1.0 - self.time_of_hits.clamp(0.0, 1.0))
    }

    /// Returns the speedup that SLA's model expects.
    pub fn speed_up(&self) -> f64 {
        part(self.original_s, self.cached_s)
    }
}

impl RequestClass {
    /// Returns the copy on which a request costs least; the first of equal ones.
    pub fn cheapest(&self) -> usize {
        let costs = self.cost_s.iter().enumerate();
        costs.min_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |(copy, _)| copy)
    }

    /// Returns `T_H - T_S(l)` in seconds, for the cache layout l in which the request gains most.
    pub fn benefit_s(&self) -> f64 {
        let cached = self.cost_s.iter().skip(1).copied().fold(f64::INFINITY, f64::min);
        self.cost_s.first().map_or(0.0, |original| original - cached)
    }
}

/// Returns the kind of requests whose data a cache in this mode takes.
pub fn taken(mode: &str) -> &'static str {
    if mode == "nsca" { "admitted" } else { "critical" }
}

/// Returns `some` divided by `all`, or 0 if `all` is 0.
pub fn part(some: f64, all: f64) -> f64 {
    if all > 0.0 { some / all } else { 0.0 }
}
