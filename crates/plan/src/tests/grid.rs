//! Predicted elapsed times against a brute-force simulation, over a grid of applications and
//! clusters.
//!
//! `STRIPEWISE_LONG=1 cargo test -p stripewise-plan --release grid -- --nocapture` runs the whole
//! grid and prints the distribution of the errors (bench/RESULTS.md). Without the variable, a small
//! subset of it is checked.

use std::collections::HashMap;

use stripewise_cluster::Cluster;
use stripewise_model::{Access, Op};

use super::oracle::{simulate, sub};
use super::{Pattern, Random, cluster, ior, with_order};
use crate::candidate::Candidate;
use crate::elapsed::Sub;
use crate::evaluate::{Effort, FULL, SHORT, elapsed};
use crate::planners;
use crate::problem::Problem;
use crate::sampled::sampled;
use crate::serving::Serving;
use crate::{Options, Servers, Workload};

const PATTERNS: [Pattern; 4] = [Pattern::Random, Pattern::Segmented, Pattern::Strided, Pattern::FilePerProcess];

struct Case {
    name: String,
    pattern: Pattern,
    cluster: Cluster,
    workload: Workload,
}

fn cases(long: bool) -> Vec<Case> {
    let pick = |all: &[u64], few: &[u64]| if long { all.to_vec() } else { few.to_vec() };
    let kib = |list: Vec<u64>| list.into_iter().map(|k| k << 10).collect::<Vec<u64>>();
    let sizes = kib(pick(&[4, 16, 64, 256, 512, 1024, 4096], &[64, 1024]));
    let procs = pick(&[1, 2, 4, 8, 16, 32, 64], &[1, 16]);
    let servers: &[(usize, usize)] = if long { &[(4, 4), (8, 0), (6, 2)] } else { &[(4, 4), (6, 2)] };
    let alphas = if long { vec![1e-4, 3e-4, 2e-3, 8e-3] } else { vec![3e-4] };
    let mut cases = Vec::new();
    for &(h, s) in servers {
        for &alpha in &alphas {
            let cluster = cluster((h, alpha, 7.95e-9), (s, 5e-5, 2.38e-9), ("1T", "1T"), (0.0, 0.0));
            let cluster = with_order(cluster);
            for &size in &sizes {
                for &p in &procs {
                    for pattern in PATTERNS {
                        let workload = ior(pattern, Op::Read, p as u32, size, 4096 / p);
                        let name = format!("{h}+{s} alpha={alpha} size={}K p={p} {pattern:?}", size >> 10);
                        cases.push(Case { name, pattern, cluster: cluster.clone(), workload });
                    }
                }
            }
        }
    }
    cases
}

/// Seconds that a candidate takes in the brute-force simulation.
fn measured(problem: &Problem<'_>, candidate: &Candidate) -> f64 {
    let group = &problem.set.groups[0];
    let files = candidate.layout_of(problem.set);
    let mut chains: Vec<Vec<Vec<Sub>>> = vec![Vec::new(); group.procs as usize];
    // Real servers are not so regular that processes keep arriving at the same instant.
    let mut random = Random(7);
    let mut jitter = || 0.99 + 0.02 * (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    // Per process, file and server: the object offset where the last access ended.
    let mut last_end = HashMap::new();
    let layouts = candidate.layouts.build();
    for request in &group.sample {
        let layout = &layouts[files[request.file as usize] as usize];
        let mut subs = Vec::new();
        for server in 0..problem.servers.count() as u32 {
            let bytes = layout.bytes_on(server, request.offset, request.size);
            if bytes > 0 {
                let from = layout.object_size(server, request.offset);
                let before = last_end.insert((request.process, request.file, server), from + bytes);
                let access = if before == Some(from) { Access::Sequential } else { Access::Random };
                let busy_s = problem.servers.service(server, group.op, access).busy_s(bytes) * jitter();
                subs.push(sub(server, busy_s));
            }
        }
        chains[request.process as usize].push(subs);
    }
    simulate(&chains)
}

/// Errors and regrets of one prediction method.
#[derive(Default)]
struct Record {
    errors: Vec<f64>,
    regrets: Vec<(f64, String)>,
}

impl Record {
    fn quantile(values: &mut [f64], q: f64) -> f64 {
        values.sort_by(f64::total_cmp);
        values[((values.len() - 1) as f64 * q) as usize]
    }

    /// Checks the median of the errors and the largest regret.
    fn check(&self, error_max: f64, regret_max: f64) {
        let mut errors: Vec<f64> = self.errors.iter().map(|e| e.abs()).collect();
        let (error, regret) =
            (Self::quantile(&mut errors, 0.5), self.regrets.iter().map(|r| r.0).fold(0.0, f64::max));
        assert!(error < error_max && regret < regret_max, "median error {error}, largest regret {regret}");
    }

    fn print(&mut self, title: &str) {
        let mut errors: Vec<f64> = self.errors.iter().map(|e| e.abs()).collect();
        let at = |q: f64, errors: &mut Vec<f64>| 100.0 * Self::quantile(errors, q);
        println!(
            "{title}: {} predictions: median |error| {:.2} %, 90 % {:.2} %, 99 % {:.2} %, largest {:.2} %",
            errors.len(),
            at(0.5, &mut errors),
            at(0.9, &mut errors),
            at(0.99, &mut errors),
            at(1.0, &mut errors),
        );
        let mut regrets: Vec<f64> = self.regrets.iter().map(|r| r.0).collect();
        println!(
            "  {} choices: regret median {:.2} %, 90 % {:.2} %, 99 % {:.2} %, largest {:.2} %",
            regrets.len(),
            at(0.5, &mut regrets),
            at(0.9, &mut regrets),
            at(0.99, &mut regrets),
            at(1.0, &mut regrets),
        );
        self.regrets.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (regret, name) in self.regrets.iter().take(8) {
            println!("    {:.2} % {name}", 100.0 * regret);
        }
    }
}

/// Predicts and simulates all candidates of a workload. `seen` is the planner's view of it.
fn compare(
    record: &mut Record,
    name: &str,
    cluster: &Cluster,
    whole: &Workload,
    seen: &Workload,
    effort: Effort,
) {
    let options = Options::default();
    let servers = Servers::of(cluster).unwrap();
    let set = &whole.file_sets[0];
    let problem = Problem::new(set, cluster, &servers, &options, set.total_size());
    let seen = Problem::new(&seen.file_sets[0], cluster, &servers, &options, set.total_size());
    let mut candidates = (planners::by_name("overall").unwrap().propose)(&seen).unwrap().candidates;
    // Only a few of the stripe sizes, because the brute force is slow.
    let mut stripes = 0;
    candidates.retain(|candidate| {
        let stripe = matches!(candidate.form.shape, crate::Shape::Striped(_));
        stripes += usize::from(stripe);
        !stripe || stripes % 3 == 0
    });
    let measured: Vec<f64> = candidates.iter().map(|candidate| measured(&problem, candidate)).collect();
    let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
    let predicted: Vec<f64> =
        candidates.iter().map(|candidate| elapsed(&Serving::new(&seen, candidate), effort)).collect();
    record.errors.extend(predicted.iter().zip(&measured).map(|(p, m)| p / m - 1.0));
    let chosen = (0..predicted.len()).min_by(|&a, &b| predicted[a].total_cmp(&predicted[b])).unwrap();
    record.regrets.push((measured[chosen] / best - 1.0, format!("{name} {}", candidates[chosen].name)));
}

fn is_long() -> bool {
    std::env::var_os("STRIPEWISE_LONG").is_some()
}

#[test]
fn predictions_are_close_to_a_brute_force_simulation() {
    let mut records = PATTERNS.map(|pattern| (pattern, Record::default(), Record::default()));
    for case in cases(is_long()) {
        let (_, quick, full) = records.iter_mut().find(|record| record.0 == case.pattern).unwrap();
        for (record, effort) in [(quick, SHORT), (full, FULL)] {
            compare(record, &case.name, &case.cluster, &case.workload, &case.workload, effort);
        }
    }
    for (pattern, mut quick, mut full) in records {
        quick.print(&format!("{pattern:?}, short replay"));
        full.print(&format!("{pattern:?}, full replay"));
        full.check(0.03, 0.03);
    }
}

/// Runs of which only a sample is kept, on SSDs that hold a third of the file.
#[test]
fn long_runs_are_predicted_from_a_part_of_their_requests() {
    let (count, kept) = if is_long() { (1 << 16, 1 << 14) } else { (1 << 14, 1 << 13) };
    let (procs, sizes): (&[u32], &[u64]) =
        if is_long() { (&[1, 4, 16, 64], &[64 << 10, 1 << 20]) } else { (&[16], &[64 << 10]) };
    for pattern in PATTERNS {
        let mut record = Record::default();
        for &p in procs {
            for &size in sizes {
                let capacity = format!("{}K", count * size / 12 / 1024);
                let cluster = cluster((4, 3e-4, 7.95e-9), (4, 5e-5, 2.38e-9), ("1T", &capacity), (0.0, 0.0));
                let cluster = with_order(cluster);
                let whole = ior(pattern, Op::Read, p, size, count / u64::from(p));
                let mut seen = whole.clone();
                let group = &mut seen.file_sets[0].groups[0];
                group.sample = sampled(&group.sample, kept);
                compare(&mut record, &format!("size={}K p={p}", size >> 10), &cluster, &whole, &seen, FULL);
            }
        }
        record.print(&format!("{pattern:?}, {kept} of {count} requests"));
        record.check(0.05, 0.05);
    }
}
