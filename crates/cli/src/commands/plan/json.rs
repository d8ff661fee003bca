//! Output of `plan --json`.

use std::collections::BTreeMap;

use stripewise_cluster::{Cluster, CopySpec, KEEP};
use stripewise_layout::{Layout, Region, Stripe};
use stripewise_plan::workload::FileSet;
use stripewise_plan::{Compared, Decision, Judged, Objective, native};
use stripewise_report::predictions::{
    FilesPrediction, Moves, PredictedApplication, PredictedCopy, PredictedLayout, PredictedRegion,
    PredictedScheme, PredictedStripe, Predictions, Traced,
};

use super::args::Args;
use super::planned::{Application, Planned};

/// Cycles with more stripes are written with neighbors joined.
const CYCLE_MAX: usize = 128;

pub fn report(planned: &Planned, moves: Option<Moves>, args: &Args) -> Predictions {
    let emulated = planned.cluster.tiers.iter().filter(|tier| tier.emulate);
    let sets = planned.workload.file_sets.iter().zip(&planned.decisions).enumerate();
    Predictions {
        trace: planned.applications.iter().map(|of| of.path.as_str()).collect::<Vec<_>>().join(" "),
        applications: planned.applications.iter().filter_map(application).collect(),
        cluster: args.cluster.path.display().to_string(),
        profile: planned.profile.as_ref().map(|path| path.display().to_string()),
        plan: args.output.display().to_string(),
        scheme: args.scheme.clone(),
        objective: match planned.options.objective {
            Objective::Elapsed => "elapsed",
            Objective::Cost => "cost",
        }
        .to_owned(),
        min_gain: Some(args.min_gain).filter(|gain| gain.is_finite()),
        incomplete: planned.applications.iter().find_map(|of| of.trace.incomplete()),
        failed: planned.applications.iter().find_map(|of| of.trace.meta().failure()),
        emulated: emulated.map(|tier| tier.name.clone()).collect(),
        joint: planned.joint.clone(),
        loads: planned.loads.clone(),
        moves,
        left_out: planned.left_out,
        promise: planned.promise,
        traced: planned.applications.iter().map(traced).collect(),
        files: sets
            .map(|(index, set)| files(set, planned.compared.get(index), planned, args.candidates))
            .collect(),
    }
}

fn traced(of: &Application) -> Traced {
    Traced { trace: of.path.clone(), wall_s: of.trace.meta().wall_s, busiest: of.busiest }
}

/// One of several applications.
fn application(of: &Application) -> Option<PredictedApplication> {
    Some(PredictedApplication { trace: of.path.clone(), times: of.times, seconds: of.seconds? })
}

fn files(
    (set, decision): (&FileSet, &Decision),
    compared: Option<&Compared>,
    planned: &Planned,
    all: bool,
) -> FilesPrediction {
    let cluster = &planned.cluster;
    let view = |judged: &Judged| candidate(judged, cluster);
    let scheme =
        |judged: &Judged| PredictedScheme { scheme: judged.candidate.scheme.to_owned(), layout: view(judged) };
    let chosen = decision.chosen();
    FilesPrediction {
        pattern: decision.pattern.clone(),
        count: decision.files,
        first: set.files.first().map_or_else(String::new, |file| file.name.to_string()),
        bytes: decision.file_bytes,
        requests: decision.requests,
        memory: set.memory,
        compared: compared.cloned(),
        request_size: decision.request_size,
        scheme: if decision.keep { KEEP.to_owned() } else { chosen.candidate.scheme.to_owned() },
        keep: decision.keep,
        gain: decision.gain,
        reason: decision.reason.clone(),
        tie: decision.tie.clone(),
        remarks: decision.best().candidate.remarks.clone(),
        chosen: view(chosen),
        present: view(&decision.present),
        native: native(&chosen.candidate, set, cluster),
        notes: decision.notes.clone(),
        executables: planned.executables.get(&decision.pattern).cloned(),
        expected: decision.expected.clone(),
        candidates: all.then(|| decision.candidates.iter().map(scheme).collect()),
    }
}

fn candidate(judged: &Judged, cluster: &Cluster) -> PredictedLayout {
    let layouts = judged.candidate.layouts.build();
    let copy = |copy: &CopySpec| PredictedCopy {
        name: copy.name.clone(),
        layouts: copy.layouts.iter().map(|layout| regions(layout, cluster)).collect(),
    };
    let first = layouts.first().map(|layout| regions(layout, cluster)).unwrap_or_default();
    PredictedLayout {
        name: judged.candidate.name.clone(),
        form: Some(judged.candidate.form.clone()),
        stripes: first.first().map(|region| region.stripes.clone()).unwrap_or_default(),
        regions: first,
        layouts: layouts.iter().filter(|_| layouts.len() > 1).map(|l| regions(l, cluster)).collect(),
        predicted_s: judged.predicted_s(),
        cost: judged.cost,
        elapsed_s: judged.elapsed_s,
        client_s: judged.client_s,
        elapsed_by: judged.method,
        copies: judged.candidate.copies().iter().map(copy).collect(),
        background: judged.candidate.overlay.is_some().then_some(judged.background),
    }
}

fn regions(layout: &Layout, cluster: &Cluster) -> Vec<PredictedRegion> {
    let view = |region: &Region| PredictedRegion {
        start: region.start,
        end: region.end,
        cycle: cycle(region, cluster),
        stripes: stripes(region, cluster),
    };
    layout.regions().iter().map(view).collect()
}

/// The stripes of a cycle; in a long one, neighbors of the same width are joined.
fn cycle(region: &Region, cluster: &Cluster) -> Vec<PredictedStripe> {
    let joins = region.cycle.len() > CYCLE_MAX;
    let follows = |one: &Stripe, next: &Stripe| {
        joins
            && one.width == next.width
            && one.target.checked_add(1) == Some(next.target)
            && cluster.tier_of(one.target) == cluster.tier_of(next.target)
    };
    let joined = |run: &[Stripe]| {
        let first = run[0].target;
        let tier = cluster.tier_of(first).expect("a candidate's targets are the cluster's servers");
        let index = (first - cluster.targets_of(tier).start) as usize;
        let last = if run.len() > 1 { format!("-{}", index + run.len() - 1) } else { String::new() };
        PredictedStripe { target: format!("{}/{index}{last}", cluster.tiers[tier].name), bytes: run[0].width }
    };
    region.cycle.chunk_by(follows).map(joined).collect()
}

/// Returns bytes per server and turn by class. If the servers of a class differ, the largest value
/// counts.
fn stripes(region: &Region, cluster: &Cluster) -> BTreeMap<String, u64> {
    let mut per_target = BTreeMap::<u32, u64>::new();
    for stripe in &region.cycle {
        *per_target.entry(stripe.target).or_default() += stripe.width;
    }
    let classes = cluster.tiers.iter().map(|tier| (tier.class.clone(), 0));
    let mut by_class: BTreeMap<String, u64> = classes.collect();
    for (target, bytes) in per_target {
        let class = cluster.tier_of(target).and_then(|tier| by_class.get_mut(&cluster.tiers[tier].class));
        class.into_iter().for_each(|most| *most = bytes.max(*most));
    }
    by_class
}
