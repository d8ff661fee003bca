//! The cost of every class of requests under every candidate.

use std::borrow::Cow;

use rayon::prelude::*;

use crate::candidate::{Candidate, Placement};
use crate::mapping::Mapped;
use crate::problem::Problem;
use crate::serving::Classes;
use crate::windows::windows;
use crate::workload::{Group, Request};

/// Approximate number of sampled requests, over all groups.
const REQUESTS: usize = 1 << 14;
/// Minimum number of sampled requests of a group.
const GROUP_LEAST: usize = 16;
/// Neighboring requests per window of a sample.
const WINDOW: usize = 128;

/// Per candidate: the cost of every row, seconds. A row is all requests of a group that begin in
/// the same regions of all candidates' layouts. The same copy serves them, whichever candidates
/// become copies ([`Classes`]).
pub fn of<'c>(problem: &Problem<'_>, candidates: &'c [Candidate]) -> Vec<Vec<f64>> {
    let of_each = (REQUESTS / problem.set.groups.len().max(1)).max(GROUP_LEAST);
    let placement = |candidate: &'c Candidate| candidate.placements(problem.set).swap_remove(0);
    let copies: Vec<Placement<'_>> = candidates.iter().map(placement).collect();
    let samples: Vec<(&Group, Cow<'_, [Request]>, Classes)> = (problem.set.groups.iter())
        .map(|group| {
            let sample = windows(group, of_each, WINDOW);
            let classes = Classes::of(&sample, &copies);
            (group, sample, classes)
        })
        .collect();
    let of_candidate = |copy: &Placement<'_>| -> Vec<f64> {
        let of_group = |(group, sample, classes): &(&Group, Cow<'_, [Request]>, Classes)| {
            let costs = Mapped::new(sample, copy.layouts, &copy.layout_of).costs(group, problem.servers);
            let weight = group.count as f64 / sample.len().max(1) as f64;
            classes.sums(&costs).into_iter().map(|sum_s| weight * sum_s).collect::<Vec<f64>>()
        };
        samples.iter().flat_map(of_group).collect()
    };
    copies.par_iter().map(of_candidate).collect()
}
