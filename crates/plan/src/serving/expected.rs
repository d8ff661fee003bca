//! The predicted use of a candidate's copies, for the report: which kinds of requests go to which
//! copy, and why.

use serde::{Deserialize, Serialize};
use stripewise_cluster::OverlayKind;
use stripewise_model::{Access, Cost, Op};

use super::assign::Serving;
pub use super::cached::part;
use super::cached::{Admission, ExpectedCache};
use crate::candidate::Candidate;
use crate::problem::Problem;
use crate::workload::Group;

/// The predicted use of a candidate's copies.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Expected {
    /// Copy 0 is the original.
    pub copies: Vec<ExpectedCopy>,
    /// Kinds of requests, sorted by bytes, most first.
    pub classes: Vec<RequestClass>,
    /// Bytes that all copies together take, or may take in the case of a cache, as a multiple of
    /// the files' bytes.
    pub space_factor: f64,
    /// Close waits until everything is copied, and the elapsed time includes the wait.
    pub close_waits: bool,
    /// The cache, if the candidate has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<ExpectedCache>,
}

/// The predicted use of one copy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ExpectedCopy {
    /// `original`, or the copy's name in the plan.
    pub name: String,
    /// Number of requests that it serves.
    pub requests: f64,
    /// Bytes of these requests.
    pub bytes: f64,
    /// The cost of all requests if this were the only copy; `None` for cache copies, which do not
    /// hold whole files.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub alone: Option<Alone>,
}

/// The cost of all requests on one copy alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Alone {
    /// The papers' overall cost, process-seconds.
    pub alone_predicted_s: f64,
    /// Expected wall-clock seconds.
    pub alone_elapsed_s: f64,
}

/// The requests of one group: one operation, access and concurrency, and sizes within an eighth of
/// a power of two.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RequestClass {
    /// Direction.
    pub op: Op,
    /// Sequential or random.
    pub access: Access,
    /// Mean size of a request, bytes.
    pub request_bytes: u64,
    /// p: number of concurrent processes.
    pub procs: u32,
    /// c: of those, processes per node.
    pub procs_per_node: u32,
    /// Number of requests.
    pub requests: u64,
    /// Bytes of all requests.
    pub bytes: u64,
    /// Mean cost of a request on every copy, seconds, by the model that chooses at run time: CIL's
    /// for replicas, SLA's for a cache.
    pub cost_s: Vec<f64>,
    /// The fraction of the requests that every copy serves.
    pub served: Vec<f64>,
    /// For a cache: the fraction of performance-critical requests, by the copy in which they gain
    /// most. Entry 0, the original, is the fraction that is not critical.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub critical: Vec<f64>,
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

impl Expected {
    /// The prediction for a candidate with several copies; `None` if it has only one. `alone` holds
    /// the cost of each copy alone. The costs of a cache's single layouts are left to the caller.
    pub fn of(problem: &Problem<'_>, candidate: &Candidate, alone: &[Alone]) -> Option<Self> {
        let overlay = candidate.overlay.as_ref()?;
        let serving = Serving::new(problem, candidate);
        let mut groups: Vec<&Group> = problem.set.groups.iter().collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.bytes));
        let classes: Vec<RequestClass> = groups.iter().map(|group| class(&serving, group)).collect();
        let of_cache = |admission: &Admission<'_>| ExpectedCache {
            time_of_hits: admission.time_of_hits(),
            ..admission.effect.clone()
        };
        let cache = serving.admission.as_ref().map(of_cache);
        let space_factor = match &cache {
            None => 1.0 + overlay.copies.len() as f64,
            Some(cache) => 1.0 + cache.capacity_bytes / (problem.set.total_size().max(1)) as f64,
        };
        let close_waits = overlay.kind == OverlayKind::Replicas && !overlay.lazy_close;
        Some(Self { copies: copies(candidate, &classes, alone), classes, space_factor, close_waits, cache })
    }
}

fn copies(candidate: &Candidate, classes: &[RequestClass], alone: &[Alone]) -> Vec<ExpectedCopy> {
    let names =
        std::iter::once("original").chain(candidate.copies().iter().map(|copy| copy.name.as_str())).enumerate();
    let copy = |(index, name): (usize, &str)| ExpectedCopy {
        name: name.to_owned(),
        requests: classes.iter().map(|class| class.requests as f64 * class.served[index]).sum(),
        bytes: classes.iter().map(|class| class.bytes as f64 * class.served[index]).sum(),
        alone: alone.get(index).copied(),
    };
    names.map(copy).collect()
}

fn class<'a>(serving: &Serving<'a>, group: &'a Group) -> RequestClass {
    let sample = serving.sample(group);
    let copies = serving.copies.len();
    let (mut cost_s, mut served) = (vec![0.0; copies], vec![0.0; copies]);
    let mut critical = Vec::new();
    match &serving.admission {
        None => {
            let costs = serving.costs(group, &sample);
            cost_s = costs.iter().map(|of_copy| of_copy.iter().map(Cost::total_s).sum()).collect();
            for &copy in &serving.cheapest(&sample, &costs) {
                served[usize::from(copy)] += 1.0;
            }
        }
        Some(admission) => {
            critical = vec![0.0; copies];
            admission.each(group, &sample, |request, chosen, cost_on| {
                cost_s.iter_mut().enumerate().for_each(|(copy, sum)| *sum += cost_on(copy));
                critical[chosen] += 1.0;
                served[admission.served(chosen, request)] += 1.0;
            });
        }
    }
    let sampled = sample.len().max(1) as f64;
    [&mut cost_s, &mut served, &mut critical].into_iter().flatten().for_each(|sum| *sum /= sampled);
    RequestClass {
        op: group.op,
        access: group.access,
        request_bytes: group.bytes / group.count.max(1),
        procs: group.procs,
        procs_per_node: group.procs_per_node,
        requests: group.count,
        bytes: group.bytes,
        cost_s,
        served,
        critical,
    }
}
