//! Plans to simulate if none is given: the planner's candidates.

use stripewise_cluster::{Plan, Rule};
use stripewise_plan::{Decision, Judged, Options, plan};
use stripewise_trace::Trace;

use super::Args;
use crate::commands::plan::read_workload;
use crate::files;

/// Returns the candidates that the planner expects to be fastest, by name. If groups of files have
/// different candidates, each group gets the candidate of that name, or else its best one.
pub fn plans(args: &Args, trace: &Trace) -> anyhow::Result<Vec<(String, Plan)>> {
    let (cluster, _) = files::cluster(&args.cluster, args.profile.as_deref())?;
    let workload = read_workload(trace, args.quiet)?;
    let decisions = plan(&workload, &cluster, &Options::default())?;
    let Some(largest) = decisions.iter().max_by_key(|decision| decision.requests) else {
        return Ok(Vec::new());
    };
    let mut order: Vec<&Judged> = largest.candidates.iter().collect();
    order.sort_by(|a, b| a.elapsed_s.total_cmp(&b.elapsed_s));
    order.truncate(args.top as usize);
    let plan = |name: &str| Plan {
        scheme: name.to_owned(),
        cluster: cluster.clone(),
        rules: decisions.iter().map(|decision| rule(decision, name)).collect(),
    };
    Ok(order.iter().map(|judged| (judged.candidate.name.clone(), plan(&judged.candidate.name))).collect())
}

fn rule(decision: &Decision, name: &str) -> Rule {
    let named = decision.candidates.iter().find(|judged| judged.candidate.name == name);
    let judged = named.unwrap_or(&decision.candidates[decision.best]);
    Rule {
        pattern: decision.pattern.clone(),
        scheme: judged.candidate.name.clone(),
        reason: String::new(),
        predicted_s: judged.predicted_s(),
        elapsed_s: judged.elapsed_s,
        layouts: judged.candidate.layouts.clone(),
        spread: judged.candidate.spread,
        overlay: judged.candidate.overlay.clone(),
    }
}
