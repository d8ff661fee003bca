//! The whole plan: a decision per file set, and the plan file made from them.

use std::collections::{BTreeMap, HashMap};

use stripewise_cluster::{Cluster, KEEP, Plan, Rule, Spread, size};
use stripewise_layout::Layout;
use stripewise_native::NativeLayout;
use stripewise_trace::summary::MAX_GROUPS;

use crate::candidate::Judged;
use crate::choose::{Decision, NEGLIGIBLE, decide};
use crate::error::PlanError;
use crate::joint::{Joint, jointly, many};
use crate::layouts::Layouts;
use crate::native::OnlyNative;
use crate::options::{Objective, Options, Scheme};
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::{FileSet, Workload};

/// The decisions for a workload.
#[derive(Clone, Debug)]
pub struct Planned {
    /// One per file set, in the workload's order.
    pub decisions: Vec<Decision>,
    /// All sets together; `None` if they were not planned jointly: there is only one, space for it
    /// on every tier, and no limit on moving; the options name a scheme, further copies or native
    /// layouts; or no joint plan was found.
    pub joint: Option<Joint>,
}

/// Decides for every file set of the workload.
///
/// # Errors
/// There is nothing to plan, the files are larger than all servers, the cluster is unusable, or the
/// requested planner cannot plan for it.
pub fn plan(workload: &Workload, cluster: &Cluster, options: &Options) -> Result<Planned, PlanError> {
    if workload.file_sets.is_empty() {
        return Err(PlanError::new("the trace has no reads or writes, so there is nothing to plan"));
    }
    if options.move_at_most.is_some() && !options.is_joint() {
        let problem = "a limit on moving needs the scheme auto, without native layouts";
        return Err(PlanError::new(problem));
    }
    let servers = Servers::of(cluster)?;
    check_space(workload, (cluster, &servers))?;
    if workload.file_sets.len() > MAX_GROUPS && options.sets_max() > MAX_GROUPS {
        let (decisions, joint) = many::plan(workload, (cluster, &servers), options)?;
        return Ok(Planned { decisions, joint: Some(joint) });
    }
    let plan_bytes = workload.total_size();
    let auto = Options { scheme: Scheme::Auto, ..options.clone() };
    let of_set =
        |set: &FileSet, options: &Options| decide(&Problem::new(set, cluster, &servers, options, plan_bytes));
    let mut decisions = Vec::with_capacity(workload.file_sets.len());
    for (index, set) in workload.file_sets.iter().enumerate() {
        match (of_set(set, options), &options.scheme) {
            (Ok(decision), _) => decisions.push(decision),
            // The requested candidate exists only for the main files; all others keep their layout.
            (Err(error), Scheme::Named(_)) if index > 0 => {
                let reason = format!("keep the present layout: {error}");
                decisions.push(Decision { keep: true, reason, ..of_set(set, &auto)? });
            }
            (Err(error), _) => return Err(error),
        }
    }
    let hardly_counts = keep_what_hardly_counts(&mut decisions);
    let (mut decisions, joint) = jointly(workload, (cluster, &servers), options, decisions, &hardly_counts)?;
    if let Some(only) = &options.native {
        for (index, layout) in
            layouts_of_directories(only, &decisions, &workload.file_sets, cluster, options.objective)
        {
            let only = OnlyNative { layout: Some(layout), ..only.clone() };
            let options = Options { native: Some(only), ..options.clone() };
            decisions[index] = of_set(&workload.file_sets[index], &options)?;
        }
    }
    Ok(Planned { decisions, joint })
}

/// Fails if the files need more space than all servers have together.
fn check_space(workload: &Workload, (cluster, servers): (&Cluster, &Servers)) -> Result<(), PlanError> {
    let of_tier = |tier| servers.space_of(cluster, tier);
    let space = (0..cluster.tiers.len()).map(of_tier).fold(0, u64::saturating_add);
    let needed = workload.total_size();
    if needed <= space {
        return Ok(());
    }
    let tiers: Vec<String> = (cluster.tiers.iter().enumerate())
        .map(|(index, tier)| format!("{} {}", tier.name, size::format(of_tier(index))))
        .collect();
    let largest = workload.file_sets.iter().max_by_key(|set| set.total_size());
    let largest =
        largest.map_or(String::new(), |set| format!("{} {}", set.pattern, size::format(set.total_size())));
    Err(PlanError::new(format!(
        "the files take {}, {} more than the servers hold ({}); the largest: {largest}; raise capacity_per_server, or \
         plan for fewer files with --only",
        size::format(needed),
        size::format(needed - space),
        tiers.join(", "),
    )))
}

/// The file sets to decide again because files of their directory need another layout. Each
/// comes with the layout that is best for the whole directory.
fn layouts_of_directories(
    only: &OnlyNative,
    decisions: &[Decision],
    sets: &[FileSet],
    cluster: &Cluster,
    objective: Objective,
) -> Vec<(usize, NativeLayout)> {
    let mut directories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, decision) in decisions.iter().enumerate().filter(|(_, decision)| !decision.keep) {
        let directory = decision.pattern.rsplit_once('/').map_or("", |(directory, _)| directory);
        directories.entry(directory).or_default().push(index);
    }
    let mut anew = Vec::new();
    for members in directories.values() {
        let chosen = |&index: &usize| only.native(&decisions[index].best().candidate, &sets[index], cluster);
        let mut layouts: Vec<_> = members.iter().map(chosen).collect();
        layouts.dedup();
        if layouts.len() < 2 {
            continue;
        }
        let costs: Vec<Vec<(NativeLayout, f64)>> = members
            .iter()
            .map(|&index| {
                let candidates = decisions[index].candidates.iter();
                let cost = |judged: &Judged| {
                    Some((only.native(&judged.candidate, &sets[index], cluster).ok()?, objective.of(judged)))
                };
                candidates.filter_map(cost).collect()
            })
            .collect();
        if let Some(best) = cheapest_of_all(&costs) {
            anew.extend(members.iter().map(|&index| (index, best.clone())));
        }
    }
    anew
}

/// The layout with the least total cost among those that every set has a cost for.
fn cheapest_of_all(costs: &[Vec<(NativeLayout, f64)>]) -> Option<&NativeLayout> {
    let least = |of: &[(NativeLayout, f64)], layout: &NativeLayout| {
        of.iter().filter(|(known, _)| known == layout).map(|(_, cost)| *cost).min_by(f64::total_cmp)
    };
    let total = |layout| costs.iter().map(|of| least(of, layout)).sum::<Option<f64>>();
    let candidates = costs.first()?.iter().map(|(layout, _)| layout);
    let all = candidates.filter_map(|layout| Some((layout, total(layout)?)));
    all.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(layout, _)| layout)
}

/// Returns for every set whether it keeps its layout for that reason.
fn keep_what_hardly_counts(decisions: &mut [Decision]) -> Vec<bool> {
    let total: f64 = decisions.iter().map(|decision| decision.present.elapsed_s).sum();
    let of_one = |decision: &mut Decision| {
        let share = decision.present.elapsed_s / total.max(f64::MIN_POSITIVE);
        if share < NEGLIGIBLE && decision.requests > 0 {
            decision.keep = true;
            decision.reason =
                format!("keep the present layout: these files take {:.2} % of the I/O time", 100.0 * share);
        }
        share < NEGLIGIBLE || decision.requests == 0
    };
    decisions.iter_mut().map(of_one).collect()
}

/// Puts rules in the order in which they count: the first one that matches a file does. So patterns
/// of whole directories come last, and those of some files of a set come before that of all.
pub fn sort_rules(rules: &mut [Rule]) {
    rules.sort_by_key(|rule| (wildcards(&rule.pattern), rule.pattern.matches("<n>").count()));
}

/// The plan file: one rule per decision.
pub fn to_plan(decisions: &[Decision], cluster: &Cluster, options: &Options) -> Plan {
    let scheme = match &options.scheme {
        Scheme::Auto => "auto".to_owned(),
        Scheme::Planner(name) | Scheme::Named(name) => name.clone(),
    };
    // Many sets have few layouts.
    let mut built = HashMap::new();
    let mut rules: Vec<Rule> = decisions.iter().map(|decision| rule(decision, &mut built)).collect();
    if rules.len() > MAX_GROUPS {
        rules = alike(rules);
    }
    sort_rules(&mut rules);
    Plan { scheme, cluster: cluster.clone(), rules }
}

/// The rules in an order in which those with the same layouts follow one another. They get the same
/// reason, and the mean of their times, so that they are written as one.
///
/// Patterns with a `*`, which match what others match, come last.
fn alike(rules: Vec<Rule>) -> Vec<Rule> {
    let is_narrow = |rule: &Rule| wildcards(&rule.pattern) == 0 && !rule.pattern.starts_with('*');
    let (narrow, broad): (Vec<Rule>, Vec<Rule>) = rules.into_iter().partition(is_narrow);
    let mut sets: Vec<Vec<Rule>> = Vec::new();
    let mut known = HashMap::new();
    for rule in narrow {
        let Spread { field, stride } = rule.spread;
        // Rules with the same layouts share them.
        let layouts: Vec<_> = rule.layouts.iter().map(|layout| layout.regions().as_ptr()).collect();
        let next = sets.len();
        let place = *known.entry((rule.scheme.clone(), layouts, field, stride)).or_insert(next);
        if place == next { sets.push(vec![rule]) } else { sets[place].push(rule) }
    }
    sets.iter_mut().for_each(|rules| describe_alike(rules));
    sets.into_iter().flatten().chain(broad).collect()
}

/// Gives rules with the same layouts the same reason, and the mean of their times.
fn describe_alike(rules: &mut [Rule]) {
    let count = rules.len();
    if count == 1 {
        return;
    }
    let mean = |of: fn(&Rule) -> f64| rules.iter().map(of).sum::<f64>() / count as f64;
    let (predicted_s, elapsed_s) = (mean(|rule| rule.predicted_s), mean(|rule| rule.elapsed_s));
    let reason =
        format!("{count} patterns of files; the times are their means; of the first: {}", rules[0].reason);
    for rule in rules {
        (rule.predicted_s, rule.elapsed_s, rule.reason) = (predicted_s, elapsed_s, reason.clone());
    }
}

/// The number of wildcards `*` in a pattern.
fn wildcards(pattern: &str) -> usize {
    let mut is_ordinary = false;
    let of = |letter: char| {
        let counts = letter == '*' && !is_ordinary;
        is_ordinary = letter == '\\' && !is_ordinary;
        usize::from(counts)
    };
    pattern.chars().map(of).sum()
}

fn rule<'d>(decision: &'d Decision, built: &mut HashMap<&'d Layouts, Vec<Layout>>) -> Rule {
    let chosen = decision.chosen();
    let (scheme, layouts, spread) = if decision.keep {
        (KEEP.to_owned(), Vec::new(), Spread::default())
    } else {
        let packed = &chosen.candidate.layouts;
        let layouts = built.entry(packed).or_insert_with(|| packed.build());
        (chosen.candidate.name.clone(), layouts.clone(), chosen.candidate.spread)
    };
    Rule {
        pattern: decision.pattern.clone(),
        scheme,
        reason: decision.reason.clone(),
        predicted_s: chosen.predicted_s(),
        elapsed_s: chosen.elapsed_s,
        layouts,
        spread,
        overlay: if decision.keep { None } else { chosen.candidate.overlay.clone() },
    }
}
