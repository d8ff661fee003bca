//! Static choice by overall cost (CIL §4): 1-DH, 1-DV, every 2-D, and every stripe size.

use stripewise_layout::{Layout, constructors};

use crate::candidate::{Candidate, Proposal};
use crate::counts::group_counts;
use crate::error::PlanError;
use crate::form::{Form, Shape};
use crate::layouts::Layouts;
use crate::problem::Problem;
use crate::space;
use crate::spread::{choose_spread, layout_of};

/// Maximum number of files over which [`Made::weighted`] balances; further files repeat the
/// pattern.
const WEIGHTED_MAX: usize = 256;

/// All layouts of CIL, over all servers and over each tier alone. Where a tier is too small for the
/// files, each file continues on other servers in the same kind of layout.
pub fn propose(problem: &Problem<'_>) -> Result<Proposal, PlanError> {
    let mut made = Made { problem, candidates: Vec::new() };
    let all: Vec<u32> = (0..problem.servers.count() as u32).collect();
    made.scope(&all, None);
    if problem.cluster.tiers.len() > 1 {
        for (tier, spec) in problem.cluster.tiers.iter().enumerate() {
            let targets: Vec<u32> = problem.cluster.targets_of(tier).collect();
            made.scope(&targets, Some(&spec.name));
        }
    }
    if made.candidates.is_empty() {
        let problem = "the files do not fit on the servers under any layout; raise capacity_per_server";
        return Err(PlanError::new(problem));
    }
    Ok(Proposal { candidates: made.candidates, pick: None })
}

struct Made<'p> {
    problem: &'p Problem<'p>,
    candidates: Vec<Candidate>,
}

/// How a candidate divides a file over targets: the same for its second part, on other targets.
type Divide<'s> = &'s dyn Fn(&[u32], usize) -> Option<Layout>;

impl Made<'_> {
    /// All candidates on `targets`.
    fn scope(&mut self, targets: &[u32], tier: Option<&str>) {
        let n = targets.len();
        let (size, align) = (self.problem.size, self.problem.align());
        let form = |shape| Form::new(shape, tier.map(str::to_owned));
        let counts = group_counts(n, &self.problem.sharers());
        for &groups in &counts {
            let form = form(Shape::grouped(groups, n));
            if self.problem.set.private {
                self.private(form, targets, groups);
            } else {
                let divide = |on: &[u32], _| constructors::two_d(on, groups.min(on.len()), size, align).ok();
                self.add(form, targets, 1, &divide);
            }
            if n == 1 {
                return;
            }
        }
        if self.problem.set.private {
            self.weighted(form(Shape::OneDvWeighted), targets);
        }
        for stripe in self.stripes(&counts) {
            let divide = |on: &[u32], _| constructors::striped(on, stripe).ok();
            self.add(form(Shape::Striped(stripe)), targets, 1, &divide);
        }
    }

    /// Adds a candidate for files that one process uses each: every file is striped over its group
    /// of servers.
    fn private(&mut self, form: Form, targets: &[u32], groups: usize) {
        let (size, align) = (self.problem.size, self.problem.align());
        let divide = |on: &[u32], index: usize| {
            let groups = groups.min(on.len());
            constructors::two_d(constructors::group_members(on, groups, index % groups), 1, size, align).ok()
        };
        self.add(form, targets, groups, &divide);
    }

    /// Adds a candidate that keeps each of these files on one server, with more files on faster
    /// servers: each next file goes to the server that would finish it first.
    fn weighted(&mut self, form: Form, targets: &[u32]) {
        let group = self.problem.main_group();
        let busy_s =
            |target: u32| self.problem.servers.busy_s(target, group.op, group.access, self.problem.size);
        let slowest = targets.iter().map(|&target| busy_s(target)).fold(0.0, f64::max);
        let fastest = targets.iter().map(|&target| busy_s(target)).fold(f64::INFINITY, f64::min);
        if slowest <= 1.05 * fastest {
            return;
        }
        let files = (self.problem.set.count() as usize).min(WEIGHTED_MAX);
        let mut load = vec![0.0; targets.len()];
        let mut order = Vec::with_capacity(files);
        for _ in 0..files {
            let end = |index: usize| load[index] + busy_s(targets[index]);
            let first = (0..targets.len()).min_by(|&a, &b| end(a).total_cmp(&end(b))).unwrap_or(0);
            load[first] = end(first);
            order.push(targets[first]);
        }
        let divide = |on: &[u32], index: usize| {
            let target = *order.get(index)?;
            let on = if on.contains(&target) { target } else { *on.get(index % on.len().max(1))? };
            constructors::on_one(on).ok()
        };
        self.add(form, targets, files, &divide);
    }

    /// The stripe sizes to try: those of the options, and S/k for every k of `counts`.
    fn stripes(&self, counts: &[usize]) -> Vec<u64> {
        let problem = self.problem;
        let mut stripes = problem.options.stripes.clone();
        for &k in counts {
            stripes.push(problem.size.div_ceil(k as u64).next_multiple_of(problem.align()));
        }
        // All stripes that hold the largest file whole give the same layout.
        let largest = problem.set.largest().max(1).checked_next_power_of_two().unwrap_or(u64::MAX);
        stripes.retain(|&stripe| stripe > 0 && stripe <= largest.max(problem.align()));
        stripes.sort_unstable();
        stripes.dedup();
        stripes
    }

    /// Adds the candidate with `count` layouts, made to fit. A stripe size is added only if it
    /// gives a new layout.
    fn add(&mut self, mut form: Form, targets: &[u32], count: usize, divide: Divide<'_>) {
        let layouts: Option<Vec<Layout>> = (0..count).map(|index| divide(targets, index)).collect();
        let Some(layouts) = layouts else { return };
        let spread = choose_spread(self.problem.set, count);
        let layout_of = layout_of(self.problem.set, &spread, count);
        let Some((layouts, others)) = space::fit(self.problem, layouts, &layout_of, divide) else { return };
        let layouts = Layouts::from(layouts);
        if matches!(form.shape, Shape::Striped(_))
            && self.candidates.iter().any(|known| known.layouts == layouts)
        {
            return;
        }
        form.overflow = self.tiers(&others);
        self.candidates.push(Candidate::spread("overall", form, layouts, spread));
    }

    /// The names of the tiers that `targets` are in.
    fn tiers(&self, targets: &[u32]) -> Vec<String> {
        let cluster = self.problem.cluster;
        let mut tiers: Vec<usize> = targets.iter().filter_map(|&target| cluster.tier_of(target)).collect();
        tiers.dedup();
        tiers.iter().map(|&tier| cluster.tiers[tier].name.clone()).collect()
    }
}
