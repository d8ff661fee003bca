//! Plans made by hand, and their times in the simulator.

use stripewise_cluster::{Plan, Rule, Spread};
use stripewise_layout::Layout;
use stripewise_layout::constructors::striped;
use stripewise_sim::{Lists, Simulator, Step};

use crate::workload::{FileSet, Request, Workload};

/// Seconds in the simulator, one file set after the other, or those in lanes at the same time. A
/// set counts as often as its application runs.
pub fn simulated(workload: &Workload, plan: &Plan) -> f64 {
    if workload.file_sets.iter().any(|set| set.groups.iter().any(|group| group.lane.is_some())) {
        return simulated_sets(&workload.file_sets.iter().collect::<Vec<_>>(), plan);
    }
    let of_set = |set: &FileSet| set.groups[0].times as f64 * simulated_sets(&[set], plan);
    workload.file_sets.iter().map(of_set).sum()
}

/// Seconds of sets whose requests are made at the same time.
fn simulated_sets(sets: &[&FileSet], plan: &Plan) -> f64 {
    let groups = || sets.iter().flat_map(|set| &set.groups);
    let processes = groups().flat_map(|group| &group.sample).map(|request| request.process + 1).max().unwrap();
    let mut steps = vec![Vec::new(); processes as usize];
    let (mut names, mut first) = (Vec::new(), 0);
    for set in sets {
        for (group, &Request { process, file, offset, size, .. }) in
            set.groups.iter().flat_map(|group| group.sample.iter().map(move |request| (group, request)))
        {
            steps[process as usize].push(Step::Request { file: first + file, op: group.op, offset, size });
        }
        names.extend(set.files.iter().map(|file| &*file.name));
        first = names.len() as u32;
    }
    let mut simulator = Simulator::new(&plan.cluster, stripewise_sim::Options::default()).unwrap();
    simulator.open(plan, &names, processes, 2).unwrap();
    simulator.run(&mut Lists::new(steps, 2)).elapsed_s
}

/// The least simulated time of plans in which every set is on one tier or on all servers, in
/// stripes of one of these sizes, as far as the files fit.
pub fn best_by_hand(workload: &Workload, plan: &Plan, stripes: &[u64]) -> f64 {
    let cluster = &plan.cluster;
    let all = 0..cluster.targets().len() as u32;
    let tiers = (0..cluster.tiers.len()).map(|tier| cluster.targets_of(tier)).chain([all]);
    let layouts: Vec<Layout> = tiers
        .flat_map(|on| {
            let on: Vec<u32> = on.collect();
            stripes.iter().map(move |&stripe| striped(&on, stripe).unwrap()).collect::<Vec<_>>()
        })
        .collect();
    let mut search = Search { workload, plan, layouts, alone: Vec::new(), best_s: f64::INFINITY };
    let is_alone = |set: &FileSet| set.groups.iter().all(|group| group.lane.is_none());
    if workload.file_sets.iter().all(is_alone) {
        search.alone = (0..workload.file_sets.len()).map(|set| search.times_alone(set)).collect();
    }
    search.from(&mut Vec::new());
    search.best_s
}

struct Search<'w> {
    workload: &'w Workload,
    plan: &'w Plan,
    layouts: Vec<Layout>,
    /// By set and layout: its time, if the sets follow one another.
    alone: Vec<Vec<f64>>,
    best_s: f64,
}

impl Search<'_> {
    /// The plan with these layouts, by set.
    fn plan(&self, chosen: &[usize]) -> Plan {
        let rule = |(set, &layout): (&FileSet, &usize)| Rule {
            pattern: set.pattern.clone(),
            scheme: "by hand".into(),
            reason: String::new(),
            predicted_s: 0.0,
            elapsed_s: 0.0,
            layouts: vec![self.layouts[layout].clone()],
            spread: Spread::default(),
            overlay: None,
        };
        Plan { rules: self.workload.file_sets.iter().zip(chosen).map(rule).collect(), ..self.plan.clone() }
    }

    fn times_alone(&self, set: usize) -> Vec<f64> {
        let alone = Workload { file_sets: vec![self.workload.file_sets[set].clone()] };
        let time = |layout| simulated(&alone, &self.plan(&vec![layout; set + 1]));
        (0..self.layouts.len()).map(time).collect()
    }

    /// Tries all layouts of the sets after `chosen`.
    fn from(&mut self, chosen: &mut Vec<usize>) {
        if chosen.len() == self.workload.file_sets.len() {
            let seconds = match self.alone.is_empty() {
                true => simulated(self.workload, &self.plan(chosen)),
                false => self.alone.iter().zip(&*chosen).map(|(times, &layout)| times[layout]).sum(),
            };
            self.best_s = self.best_s.min(seconds);
            return;
        }
        for layout in 0..self.layouts.len() {
            chosen.push(layout);
            if self.fits(chosen) {
                self.from(chosen);
            }
            chosen.pop();
        }
    }

    fn fits(&self, chosen: &[usize]) -> bool {
        let used = |target: u32| -> u64 {
            let sets = self.workload.file_sets.iter().zip(chosen);
            sets.flat_map(|(set, &layout)| {
                set.files.iter().map(move |file| self.layouts[layout].object_size(target, file.size))
            })
            .sum()
        };
        (0..).zip(self.plan.cluster.targets()).all(|(target, of)| used(target) <= of.capacity)
    }
}
