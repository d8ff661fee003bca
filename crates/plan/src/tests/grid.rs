//! Predicted elapsed times against a brute-force simulation, over a grid of applications and clusters.
//!
//! `STRIPEWISE_LONG=1 cargo test -p stripewise-plan --release grid -- --nocapture` runs the whole grid and prints the
//! distribution of the errors (bench/RESULTS.md); without the variable a small part of it is checked.

use stripewise_cluster::Cluster;
use stripewise_model::Op;

use super::{Pattern, Random, cluster, ior};
use crate::candidate::{Candidate, Method};
use crate::elapsed::Sub;
use crate::elapsed::oracle::simulate;
use crate::evaluate::elapsed;
use crate::planners;
use crate::problem::Problem;
use crate::{Options, Servers};

const PATTERNS: [Pattern; 4] = [Pattern::Random, Pattern::Segmented, Pattern::Strided, Pattern::FilePerProcess];

struct Case {
    name: String,
    pattern: Pattern,
    cluster: Cluster,
    workload: crate::Workload,
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

/// What the brute force says that a candidate takes.
fn measured(problem: &Problem<'_>, candidate: &Candidate) -> f64 {
    let group = &problem.set.groups[0];
    let files = candidate.layout_of(problem.set);
    let mut chains: Vec<Vec<Vec<Sub>>> = vec![Vec::new(); group.procs as usize];
    // Real servers are not so regular that processes arrive at the same instant again and again.
    let mut random = Random(7);
    let mut jitter = || 0.99 + 0.02 * (random.next() >> 11) as f64 / (1u64 << 53) as f64;
    for request in &group.sample {
        let layout = &candidate.layouts[files[request.file as usize] as usize];
        let mut subs = Vec::new();
        for server in 0..problem.servers.count() as u32 {
            let bytes = layout.bytes_on(server, request.offset, request.size);
            if bytes > 0 {
                let busy_s = problem.servers.service(server, group).busy_s(bytes) * jitter();
                subs.push(Sub { server, busy_s });
            }
        }
        chains[request.process as usize].push(subs);
    }
    simulate(&chains)
}

/// Errors and regrets of one way of predicting.
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

#[test]
fn predictions_are_close_to_a_brute_force_simulation() {
    let long = std::env::var_os("STRIPEWISE_LONG").is_some();
    let mut records: Vec<(Method, Pattern, Record)> = Vec::new();
    for method in [Method::Short, Method::Full] {
        records.extend(PATTERNS.map(|pattern| (method, pattern, Record::default())));
    }
    let options = Options::default();
    for case in cases(long) {
        let servers = Servers::of(&case.cluster).unwrap();
        let set = &case.workload.file_sets[0];
        let problem = Problem::new(set, &case.cluster, &servers, &options, set.total_size());
        let mut candidates = planners::by_name("overall").unwrap().propose(&problem).unwrap().candidates;
        // Of the stripe sizes a few: the brute force is slow.
        let mut stripes = 0;
        candidates.retain(|candidate| {
            let stripe = candidate.name.starts_with("stripe");
            stripes += usize::from(stripe);
            !stripe || stripes % 3 == 0
        });
        let measured: Vec<f64> = candidates.iter().map(|candidate| measured(&problem, candidate)).collect();
        let best = measured.iter().copied().fold(f64::INFINITY, f64::min);
        for (method, _, record) in records.iter_mut().filter(|record| record.1 == case.pattern) {
            let predicted: Vec<f64> =
                candidates.iter().map(|candidate| elapsed(&problem, candidate, *method)).collect();
            record.errors.extend(predicted.iter().zip(&measured).map(|(p, m)| p / m - 1.0));
            let chosen = (0..predicted.len()).min_by(|&a, &b| predicted[a].total_cmp(&predicted[b])).unwrap();
            record
                .regrets
                .push((measured[chosen] / best - 1.0, format!("{} {}", case.name, candidates[chosen].name)));
        }
    }
    let mut replays = Record::default();
    for (method, pattern, mut record) in records {
        record.print(&format!("{method:?} {pattern:?}"));
        if method == Method::Full {
            replays.errors.append(&mut record.errors);
            replays.regrets.append(&mut record.regrets);
        }
    }
    let worst = replays.regrets.iter().map(|r| r.0).fold(0.0, f64::max);
    assert!(worst < 0.03, "regret {worst}");
    let mut errors: Vec<f64> = replays.errors.iter().map(|e| e.abs()).collect();
    assert!(Record::quantile(&mut errors, 0.5) < 0.03);
}
