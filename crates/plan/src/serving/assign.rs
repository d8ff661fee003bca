//! Which copy of a candidate serves which request.

use std::borrow::Cow;

use stripewise_layout::Layout;
use stripewise_model::Cost;

use super::cached::Admission;
use super::classes::Classes;
use crate::candidate::{Candidate, Placement};
use crate::mapping::Mapped;
use crate::problem::Problem;
use crate::workload::{Group, Request};

/// Assigns the requests of a problem to a candidate's copies.
pub struct Serving<'a> {
    pub problem: &'a Problem<'a>,
    pub candidate: &'a Candidate,
    /// Copy 0 is the original.
    pub copies: Vec<Placement<'a>>,
    pub admission: Option<Admission<'a>>,
}

/// A group's sampled requests, mapped to the copies that serve them.
pub struct Served {
    /// Mapped to the layouts of all copies, one copy after the other. So the cost counts how
    /// requests meet on the servers that they really go to, whichever copies those belong to.
    pub mapped: Mapped,
    /// Per sampled request: the copy that serves it; empty if there is only one copy.
    pub copy_of: Vec<u8>,
}

impl<'a> Serving<'a> {
    /// For one candidate and the problem's files.
    pub fn new(problem: &'a Problem<'a>, candidate: &'a Candidate) -> Self {
        let (copies, admission) = (candidate.placements(problem.set), Admission::of(problem, candidate));
        Self { problem, candidate, copies, admission }
    }

    /// Assigns `sample`, requests of `group`, to copies.
    pub fn serve(&self, group: &Group, sample: &[Request]) -> Served {
        if let [original] = &self.copies[..] {
            return Served { mapped: Mapped::new(sample, original), copy_of: Vec::new() };
        }
        let copy_of = match &self.admission {
            Some(admission) => admission.copies(group, sample),
            None => self.cheapest(sample, &self.costs(group, sample)),
        };
        Served { mapped: self.map(sample, &copy_of), copy_of }
    }

    /// Per copy: the cost of every request of a sample if this copy served them all.
    pub fn costs(&self, group: &Group, sample: &[Request]) -> Vec<Vec<Cost>> {
        let costs = |copy| Mapped::new(sample, copy).costs(group, self.problem.servers);
        self.copies.iter().map(costs).collect()
    }

    /// Per request: the copy on which requests of its class cost least; the first of equal ones.
    /// `costs` are those of [`Serving::costs`].
    pub fn cheapest(&self, sample: &[Request], costs: &[Vec<Cost>]) -> Vec<u8> {
        let classes = Classes::of(sample, &self.copies);
        let sums: Vec<Vec<f64>> = costs.iter().map(|costs| classes.sums(costs)).collect();
        let of_class = |class: usize| {
            let first = (0..sums.len()).min_by(|&a, &b| sums[a][class].total_cmp(&sums[b][class]));
            first.unwrap_or(0) as u8
        };
        let by_class: Vec<u8> = (0..sums[0].len()).map(of_class).collect();
        classes.expand(&by_class)
    }

    fn map(&self, sample: &[Request], copy_of: &[u8]) -> Mapped {
        let layouts: Vec<&Layout> = self.copies.iter().flat_map(|copy| copy.layouts.iter()).collect();
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

    pub fn sample(&self, group: &'a Group) -> Cow<'a, [Request]> {
        self.problem.cost_sample(group, 1 + self.copies.len(), &self.copies)
    }
}
