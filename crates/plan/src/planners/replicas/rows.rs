//! What every kind of request costs under every candidate.

use std::borrow::Cow;
use std::collections::HashMap;

use rayon::prelude::*;

use crate::candidate::Candidate;
use crate::mapping::Mapped;
use crate::problem::Problem;
use crate::windows::windows;
use crate::workload::{Group, Request};

/// Requests that are looked at in all, about, and of a group at least; neighbours among them.
const REQUESTS: usize = 1 << 14;
const GROUP_LEAST: usize = 16;
const WINDOW: usize = 128;

/// Per candidate the cost of every row, seconds. A row is all requests that cost the same under every candidate.
pub fn of(problem: &Problem<'_>, candidates: &[Candidate]) -> Vec<Vec<f64>> {
    let of_each = (REQUESTS / problem.set.groups.len().max(1)).max(GROUP_LEAST);
    let samples: Vec<(&Group, Cow<'_, [Request]>)> =
        problem.set.groups.iter().map(|group| (group, windows(group, of_each, WINDOW))).collect();
    let of_candidate = |candidate: &Candidate| -> Vec<f64> {
        let layout_of = candidate.layout_of(problem.set);
        let of_group = |(group, sample): &(&Group, Cow<'_, [Request]>)| {
            let costs = Mapped::new(sample, &candidate.layouts, &layout_of).costs(group, problem.servers);
            costs.iter().map(|cost| cost.total_s()).collect::<Vec<f64>>()
        };
        samples.iter().flat_map(of_group).collect()
    };
    let weights: Vec<f64> = samples
        .iter()
        .flat_map(|(group, sample)| {
            std::iter::repeat_n(group.count as f64 / sample.len().max(1) as f64, sample.len())
        })
        .collect();
    joined(candidates.par_iter().map(of_candidate).collect(), &weights)
}

/// Joins requests that cost the same everywhere, each counting `weights` times.
fn joined(costs: Vec<Vec<f64>>, weights: &[f64]) -> Vec<Vec<f64>> {
    let mut known = HashMap::<Vec<u64>, usize>::new();
    let mut times = Vec::new();
    let mut first = Vec::new();
    for (request, &weight) in weights.iter().enumerate() {
        let key = costs.iter().map(|of_candidate| of_candidate[request].to_bits()).collect();
        let row = *known.entry(key).or_insert_with(|| {
            first.push(request);
            times.push(0.0);
            times.len() - 1
        });
        times[row] += weight;
    }
    let of_candidate =
        |costs: &Vec<f64>| first.iter().zip(&times).map(|(&r, times)| costs[r] * times).collect();
    costs.iter().map(of_candidate).collect()
}
