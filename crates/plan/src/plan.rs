//! The whole plan: a decision per file set, and the plan file made of them.

use stripewise_cluster::{Cluster, KEEP, Plan, Rule, Spread};

use crate::choose::{Decision, decide};
use crate::error::PlanError;
use crate::options::{Options, Scheme};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::Workload;

/// Decides for every file set of the workload, in its order.
///
/// # Errors
/// There is nothing to plan, the cluster is unusable, or the planner that was asked for cannot plan for it.
pub fn plan(workload: &Workload, cluster: &Cluster, options: &Options) -> Result<Vec<Decision>, PlanError> {
    if workload.file_sets.is_empty() {
        return Err(PlanError::new("the trace has no reads or writes, so there is nothing to plan"));
    }
    let servers = Servers::of(cluster)?;
    let sizes = workload.file_sets.iter().map(|set| set.total_size());
    let plan_bytes = sizes.fold(0u64, u64::saturating_add);
    let of_set = |set| decide(&Problem::new(set, cluster, &servers, options, plan_bytes));
    workload.file_sets.iter().map(of_set).collect()
}

/// The plan file: one rule per decision.
pub fn to_plan(decisions: &[Decision], cluster: &Cluster, options: &Options) -> Plan {
    let scheme = match &options.scheme {
        Scheme::Auto => "auto".to_owned(),
        Scheme::Planner(name) | Scheme::Named(name) => name.clone(),
    };
    Plan { scheme, cluster: cluster.clone(), rules: decisions.iter().map(rule).collect() }
}

fn rule(decision: &Decision) -> Rule {
    let chosen = decision.chosen();
    let (scheme, layouts, spread) = if decision.keep {
        (KEEP.to_owned(), Vec::new(), Spread::default())
    } else {
        (chosen.candidate.name.clone(), chosen.candidate.layouts.clone(), chosen.candidate.spread)
    };
    Rule {
        pattern: decision.pattern.clone(),
        scheme,
        reason: decision.reason.clone(),
        predicted_s: chosen.predicted_s(),
        elapsed_s: chosen.elapsed_s,
        layouts,
        spread,
    }
}
