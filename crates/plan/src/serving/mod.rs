//! Which copy of a candidate serves which request, and the background copying between the copies.
//!
//! With replicas, the copy on which requests of the same class cost least serves a request, as if
//! all of them went there (CIL §5.1). With a cache, the copy that SLA's model finds best serves a
//! critical request, as far as the critical data fits. This predicts a run that finds the cache as
//! an earlier, similar run left it.

mod background;
mod cached;
mod classes;
pub mod expected;

use std::borrow::Cow;

use stripewise_cluster::OverlayKind;
use stripewise_layout::Layout;

pub use cached::{Admission, CacheCosts};
pub use classes::Classes;
pub use expected::{Alone, CacheLayout, Expected, ExpectedCache, ExpectedCopy, RequestClass};

use crate::candidate::{Background, Candidate};
use crate::mapping::Mapped;
use crate::problem::Problem;
use crate::spread::layout_of;
use crate::workload::{Group, Request};

/// Assigns the requests of a problem to a candidate's copies.
pub struct Serving<'a> {
    problem: &'a Problem<'a>,
    candidate: &'a Candidate,
    /// Copy 0 is the original.
    copies: Vec<CopyOfFiles<'a>>,
    admission: Option<Admission<'a>>,
}

/// One copy of all files.
struct CopyOfFiles<'a> {
    layouts: &'a [Layout],
    /// Per file: index of its layout.
    layout_of: Vec<u32>,
}

/// A group's sampled requests, mapped to the copies that serve them.
pub struct Served {
    /// Mapped to the layouts of all copies, one copy after the other. So the cost counts how
    /// requests meet on the servers that they really go to, whichever copies those belong to.
    pub mapped: Mapped,
    /// Per sampled request: the copy that serves it; empty if there is only one copy.
    copy_of: Vec<u8>,
}

impl<'a> Serving<'a> {
    /// For one candidate and the problem's files.
    pub fn new(problem: &'a Problem<'a>, candidate: &'a Candidate) -> Self {
        let set = problem.set;
        let mut copies = vec![CopyOfFiles { layouts: &candidate.layouts, layout_of: candidate.layout_of(set) }];
        copies.extend(candidate.copies().iter().map(|copy| {
            let layout_of = layout_of(set, &copy.spread, copy.layouts.len());
            CopyOfFiles { layouts: &copy.layouts, layout_of }
        }));
        let admission = match candidate.overlay.as_ref().map(|overlay| overlay.kind) {
            Some(OverlayKind::Cache { mode, capacity_per_server, .. }) => {
                Some(Admission::new(problem, candidate, mode, capacity_per_server))
            }
            _ => None,
        };
        Self { problem, candidate, copies, admission }
    }

    /// Assigns `sample`, requests of `group`, to copies.
    pub fn serve(&self, group: &Group, sample: &[Request]) -> Served {
        if let [original] = &self.copies[..] {
            let mapped = Mapped::new(sample, original.layouts, &original.layout_of);
            return Served { mapped, copy_of: Vec::new() };
        }
        let copy_of = match &self.admission {
            Some(admission) => admission.copies(group, sample),
            None => self.cheapest(group, sample),
        };
        Served { mapped: self.map(sample, &copy_of), copy_of }
    }

    /// Per request: the copy on which requests of its class cost least; the first of equal ones.
    fn cheapest(&self, group: &Group, sample: &[Request]) -> Vec<u8> {
        let copies: Vec<_> = self.copies.iter().map(|copy| (copy.layouts, &copy.layout_of)).collect();
        let classes = Classes::of(sample, &copies);
        let sums: Vec<Vec<f64>> = (copies.iter())
            .map(|(layouts, layout_of)| {
                classes.sums(&Mapped::new(sample, layouts, layout_of).costs(group, self.problem.servers))
            })
            .collect();
        let of_class = |class: usize| {
            let first = (0..sums.len()).min_by(|&a, &b| sums[a][class].total_cmp(&sums[b][class]));
            first.unwrap_or(0) as u8
        };
        let by_class: Vec<u8> = (0..sums[0].len()).map(of_class).collect();
        classes.expand(&by_class)
    }

    fn map(&self, sample: &[Request], copy_of: &[u8]) -> Mapped {
        let layouts: Vec<Layout> = self.copies.iter().flat_map(|copy| copy.layouts).cloned().collect();
        let mut first = Vec::with_capacity(self.copies.len());
        self.copies.iter().fold(0, |before, copy| {
            first.push(before);
            before + copy.layouts.len() as u32
        });
        Mapped::by_request(sample, &layouts, |index, request| {
            let copy = usize::from(copy_of[index]);
            first[copy] + self.copies[copy].layout_of[request.file as usize]
        })
    }

    /// The background copying between the copies.
    pub fn background(&self) -> Background {
        if self.copies.len() == 1 { Background::default() } else { background::of(self) }
    }

    /// Seconds that the last close waits for the replicas to be in sync, if it does. It includes
    /// all of the copying, because the servers have no time for it while they serve requests.
    pub fn wait_at_close_s(&self) -> f64 {
        match &self.candidate.overlay {
            Some(overlay) if overlay.kind == OverlayKind::Replicas && !overlay.lazy_close => {
                self.background().seconds
            }
            _ => 0.0,
        }
    }

    fn sample(&self, group: &'a Group) -> Cow<'a, [Request]> {
        self.problem.cost_sample(group, 1 + self.copies.len())
    }
}
