//! Turns a scheme and the files and requests of a cell into a plan.

use std::collections::BTreeMap;
use std::path::Path;

use stripewise_cluster::{Cluster, CopySpec, Overlay, OverlayKind, Plan, Rule, size};
use stripewise_layout::{Layout, LayoutError, constructors};
use stripewise_plan::{
    Candidate, CopyOptions, Judged, Layouts, Options, PlanError, Present, Problem, Scheme as Asked, Servers,
    Shape, Workload, decide, judge, planners,
};

use stripewise_plan::workload::FileSet;

use crate::cell::{Cell, Part, Scheme};
use crate::workload;

/// A plan and its predictions.
#[derive(Clone, Debug, PartialEq)]
pub struct Planned {
    /// The plan, for the data path or the simulator.
    pub plan: Plan,
    /// Display text of the layouts, one for every file-name pattern.
    pub layout: String,
    /// Numbers for the record: `cil_s`, the overall cost by CIL's formula, summed over all
    /// requests, in process-seconds; `elapsed_s`, the planner's expected time of the parts in
    /// seconds.
    pub details: BTreeMap<String, f64>,
}

/// Plans all files of a cell, whose paths are below `root`.
///
/// # Errors
/// The scheme is impossible on this cluster or for these files.
pub fn plan(cell: &Cell, scheme: &Scheme, cluster: &Cluster, root: &Path) -> Result<Planned, PlanError> {
    of_workload(scheme, &workload::of(&cell.parts, root), cluster)
}

fn of_workload(scheme: &Scheme, workload: &Workload, cluster: &Cluster) -> Result<Planned, PlanError> {
    if let Scheme::LeastCost(schemes) = scheme {
        let planned = schemes.iter().map(|scheme| of_workload(scheme, workload, cluster));
        let planned = planned.collect::<Result<Vec<_>, _>>()?;
        let least = planned.into_iter().min_by(|a, b| a.details["cil_s"].total_cmp(&b.details["cil_s"]));
        return least.ok_or_else(|| PlanError::new("there is no scheme to choose from"));
    }
    let options = options(scheme);
    if *scheme == Scheme::Auto {
        let workload = workload.clone().divided(cluster, &options)?;
        let decisions = stripewise_plan::plan(&workload, cluster, &options)?.decisions;
        let chosen =
            decisions.into_iter().map(|decision| (decision.pattern.clone(), decision.chosen().clone()));
        return Ok(planned(scheme, cluster, chosen.collect()));
    }
    let servers = Servers::of(cluster)?;
    let plan_bytes = workload.file_sets.iter().map(|set| set.total_size()).sum();
    let present = present(scheme, cluster)?;
    let chosen = |set: &FileSet| {
        let set = &FileSet { present: present.clone(), ..set.clone() };
        let problem = Problem::new(set, cluster, &servers, &options, plan_bytes);
        Ok((set.pattern.clone(), judged(scheme, &problem)?))
    };
    let chosen = workload.file_sets.iter().map(chosen).collect::<Result<_, PlanError>>()?;
    Ok(planned(scheme, cluster, chosen))
}

/// The candidates for the files that one or more parts of a cell use.
pub struct Candidates {
    /// The parts, in order.
    pub parts: Vec<Part>,
    /// File-name pattern of the files.
    pub pattern: String,
    /// The candidates that compete in `auto` for these files, each in their share of the space.
    pub judged: Vec<Judged>,
}

/// Returns the candidates for every set of files of a cell. A part's files are in one set.
///
/// # Errors
/// The planners cannot plan for this cluster.
pub fn candidates(cell: &Cell, cluster: &Cluster, root: &Path) -> Result<Vec<Candidates>, PlanError> {
    let workload = workload::of(&cell.parts, root);
    let (servers, options) = (Servers::of(cluster)?, options(&Scheme::FastestCandidate));
    let plan_bytes = workload.file_sets.iter().map(|set| set.total_size()).sum();
    let of_set = |set: &FileSet| {
        let decision = decide(&Problem::new(set, cluster, &servers, &options, plan_bytes))?;
        let is_in_set = |part: &&Part| {
            let paths = workload::paths(part, root);
            set.files.iter().any(|file| *file.name == *paths[0])
        };
        let parts = cell.parts.iter().filter(is_in_set).cloned().collect();
        let judged = decision.competing().cloned().collect();
        Ok(Candidates { parts, pattern: decision.pattern, judged })
    };
    workload.file_sets.iter().map(of_set).collect()
}

/// Returns the plan with these layouts, by file-name pattern.
pub fn planned(scheme: &Scheme, cluster: &Cluster, chosen: Vec<(String, Judged)>) -> Planned {
    let rule = |(pattern, judged): (String, Judged)| {
        let (predicted_s, elapsed_s) = (judged.predicted_s(), judged.elapsed_s);
        let reason = "a scheme of an experiment".to_owned();
        let Candidate { name: scheme, layouts, spread, overlay, .. } = judged.candidate;
        let layouts = layouts.build();
        Rule { pattern, scheme, reason, predicted_s, elapsed_s, layouts, spread, overlay }
    };
    let rules: Vec<Rule> = chosen.into_iter().map(rule).collect();
    let mut names: Vec<&str> = Vec::new();
    for rule in &rules {
        if !names.contains(&rule.scheme.as_str()) {
            names.push(&rule.scheme);
        }
    }
    let sum_s = |of: fn(&Rule) -> f64| rules.iter().map(of).sum::<f64>();
    Planned {
        layout: names.join("; "),
        details: [
            ("cil_s".to_owned(), sum_s(|rule| rule.predicted_s)),
            ("elapsed_s".to_owned(), sum_s(|rule| rule.elapsed_s)),
        ]
        .into(),
        plan: Plan { scheme: scheme.name(), cluster: cluster.clone(), rules },
    }
}

/// Returns the planner's options. Any gain is accepted, so that the requested scheme is always
/// planned.
fn options(scheme: &Scheme) -> Options {
    let mut options = Options { min_gain: f64::NEG_INFINITY, ..Options::default() };
    match scheme {
        Scheme::Planner(name) => options.scheme = Asked::Planner((*name).to_owned()),
        Scheme::Cache { mode, admission, capacity_per_server, .. } => {
            options.copies = CopyOptions {
                cache_capacity: Some(*capacity_per_server),
                cache_mode: *mode,
                cache_admission: *admission,
                ..CopyOptions::default()
            };
        }
        _ => {}
    }
    options
}

/// Returns the layout that the files have before they are planned.
fn present(scheme: &Scheme, cluster: &Cluster) -> Result<Present, PlanError> {
    let Scheme::Cache { stripe, .. } = scheme else { return Ok(Present::default()) };
    let (name, layouts) = (format!("stripe {}", size::format(*stripe)), vec![striped(cluster, 0, *stripe)?]);
    Ok(Present::Known { name, layouts, layout_of: None, managed: false })
}

/// Returns the scheme's layout of a file set with its predictions.
fn judged(scheme: &Scheme, problem: &Problem<'_>) -> Result<Judged, PlanError> {
    if let Scheme::Planner(_) = scheme {
        return Ok(decide(problem)?.best().clone());
    }
    Ok(judge(problem, vec![candidate(scheme, problem)?]).swap_remove(0))
}

fn candidate(scheme: &Scheme, problem: &Problem<'_>) -> Result<Candidate, PlanError> {
    let cluster = problem.cluster;
    let single = |layout: Layout| Candidate::single("given", scheme.name(), layout);
    match scheme {
        Scheme::Candidate(name) => proposed(problem, planner_of(name), |candidate| {
            // Groups of two servers, as in CIL.
            let pairs = Shape::TwoD(cluster.target_count() / 2);
            let is_pairs = candidate.form.tier.is_none() && candidate.form.shape == pairs;
            if name == "2-D" { is_pairs } else { candidate.is_called(name) }
        }),
        Scheme::Striped { tier, stripe } => striped(cluster, tier_named(cluster, tier)?, *stripe).map(single),
        Scheme::Replicas(schemes) => replicas(problem, schemes),
        Scheme::Cache { stripe, .. } => {
            let original = Layouts::from(vec![striped(cluster, 0, *stripe)?]);
            proposed(problem, "cache", |candidate| candidate.layouts == original)
        }
        Scheme::WholeRequests { request } => whole_requests(problem, *request).map(single),
        Scheme::Planner(_) | Scheme::LeastCost(_) | Scheme::Auto | Scheme::FastestCandidate => {
            Err(PlanError::new(format!("{} is no layout of its own", scheme.name())))
        }
    }
}

/// Returns the planner that proposes candidates with such a name.
fn planner_of(name: &str) -> &'static str {
    match name.split_once(' ') {
        Some(("PSA", _)) => "psa",
        Some(("PA", _)) => "pa",
        _ => "overall",
    }
}

/// Returns a planner's first candidate that `is_meant` accepts.
fn proposed(
    problem: &Problem<'_>,
    planner: &str,
    is_meant: impl Fn(&Candidate) -> bool,
) -> Result<Candidate, PlanError> {
    let planner = planners::by_name(planner).expect("the planners' names are constants");
    let candidates = (planner.propose)(problem)?.candidates;
    let names: Vec<String> = candidates.iter().map(|candidate| candidate.name.clone()).collect();
    let missing = || PlanError::new(format!("{}: no such candidate among {}", planner.name, names.join(", ")));
    candidates.into_iter().find(is_meant).ok_or_else(missing)
}

fn tier_named(cluster: &Cluster, name: &str) -> Result<usize, PlanError> {
    let tier = cluster.tiers.iter().position(|tier| tier.name == name);
    tier.ok_or_else(|| PlanError::new(format!("the cluster has no tier {name:?}")))
}

fn striped(cluster: &Cluster, tier: usize, stripe: u64) -> Result<Layout, PlanError> {
    let targets: Vec<u32> = cluster.targets_of(tier).collect();
    constructors::striped(&targets, stripe).map_err(wrong)
}

/// Returns a candidate whose original has the layout of the first scheme and whose replicas have
/// those of the others. Close does not wait: a file is written to the cheapest copy, and the others
/// follow (CIL §5).
fn replicas(problem: &Problem<'_>, schemes: &[Scheme]) -> Result<Candidate, PlanError> {
    let mut copies = schemes.iter().map(|scheme| candidate(scheme, problem)).collect::<Result<Vec<_>, _>>()?;
    if copies.len() < 2 {
        return Err(PlanError::new("replicas need two layouts at least"));
    }
    let others = copies.split_off(1);
    let original = copies.swap_remove(0);
    let copy = |Candidate { name, layouts, spread, .. }: Candidate| CopySpec {
        name,
        layouts: layouts.build(),
        spread,
        groups: 1,
    };
    let overlay = problem.overlay(OverlayKind::Replicas, others.into_iter().map(copy).collect());
    let overlay = Overlay { lazy_close: true, ..overlay };
    let names: Vec<String> = schemes.iter().map(Scheme::name).collect();
    Ok(original.with_copies(original.scheme, format!("replicas {}", names.join(" + ")), overlay))
}

/// Returns a layout with whole requests on one SServer each, in turn, until the SServers are full;
/// the rest of the file is striped evenly over the HServers.
fn whole_requests(problem: &Problem<'_>, request: u64) -> Result<Layout, PlanError> {
    let cluster = problem.cluster;
    let pairs = |tier: usize, width: u64| -> Vec<(u32, u64)> {
        cluster.targets_of(tier).map(|target| (target, width)).collect()
    };
    let fast = pairs(tier_named(cluster, "ssd")?, request);
    let slow = tier_named(cluster, "hdd")?;
    let servers = cluster.targets_of(slow).len().max(1) as u64;
    let targets: Vec<u32> = fast.iter().map(|stripe| stripe.0).collect();
    let space = problem.space_for_file(&targets);
    constructors::until_full(&fast, &space, &pairs(slow, request.div_ceil(servers).max(1))).map_err(wrong)
}

fn wrong(error: LayoutError) -> PlanError {
    PlanError::new(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Scale;
    use crate::experiments;
    use crate::record::Place;

    /// The published layouts are those of all files of a pattern.
    #[test]
    fn no_experiment_has_files_that_the_planner_divides() {
        let scale = Scale { place: Place::Simulated, quick: false };
        for cell in experiments::all().into_iter().flat_map(|experiment| experiment.cells(scale)) {
            let cluster = cell.storage.cluster(&|tier, index| format!("/{tier}{index}").into(), false);
            let workload = workload::of(&cell.parts, Path::new("/data"));
            let patterns = |workload: &Workload| {
                workload.file_sets.iter().map(|set| set.pattern.clone()).collect::<Vec<_>>()
            };
            let before = patterns(&workload);
            let divided = workload.divided(&cluster, &Options::default()).unwrap();
            assert_eq!(patterns(&divided), before, "{} {:?}", cell.experiment, cell.labels);
        }
    }
}
