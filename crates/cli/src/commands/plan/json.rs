//! Output of `plan --json`.

use std::collections::BTreeMap;

use serde::Serialize;
use stripewise_cluster::{Cluster, CopySpec, KEEP};
use stripewise_layout::{Layout, Region};
use stripewise_model::Cost;
use stripewise_plan::{Background, Decision, Expected, Form, Judged, Method, Native, Objective, native};

use super::{Args, Planned};

/// The complete output.
#[derive(Serialize)]
pub struct Report {
    trace: String,
    cluster: String,
    profile: Option<String>,
    plan: String,
    scheme: String,
    objective: &'static str,
    min_gain: Option<f64>,
    /// Why calls are missing from the trace, if some are.
    incomplete: Option<String>,
    /// How the traced program failed, if it did.
    failed: Option<String>,
    /// Tiers whose servers are paced by parameters instead of by devices.
    emulated: Vec<String>,
    files: Vec<Files>,
}

/// The files of one pattern.
#[derive(Serialize)]
struct Files {
    pattern: String,
    /// Number of files in the trace that match, the first of them, and the bytes of all.
    count: usize,
    first: String,
    bytes: u64,
    requests: u64,
    request_size: u64,
    /// The planner whose candidate was chosen, or `keep`.
    scheme: String,
    keep: bool,
    /// Fraction of the present layout's time (or cost) that the best candidate saves.
    gain: f64,
    reason: String,
    /// Further remarks on the best candidate.
    remarks: Vec<String>,
    #[serde(flatten)]
    chosen: Candidate,
    present: Candidate,
    native: Vec<Native>,
    notes: Vec<String>,
    /// Warning about existing files that are executable: they cannot be run once they are managed.
    #[serde(skip_serializing_if = "Option::is_none")]
    executables: Option<String>,
    /// Expected work of the best candidate's copies, if it has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    expected: Option<Expected>,
    #[serde(skip_serializing_if = "Option::is_none")]
    candidates: Option<Vec<Scheme>>,
}

/// A candidate and the planner that proposed it.
#[derive(Serialize)]
struct Scheme {
    scheme: &'static str,
    #[serde(flatten)]
    candidate: Candidate,
}

#[derive(Serialize)]
struct Candidate {
    name: String,
    form: Form,
    /// Regions of the first layout.
    regions: Vec<RegionView>,
    /// Stripe sizes of the first layout's first region.
    stripes: BTreeMap<String, u64>,
    /// All layouts, if the files are spread over several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    layouts: Vec<Vec<RegionView>>,
    predicted_s: f64,
    cost: Cost,
    elapsed_s: f64,
    elapsed_by: Method,
    /// Extra copies, if there are any, and the copying between copies in addition to serving
    /// requests.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    copies: Vec<CopyView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    background: Option<Background>,
}

#[derive(Serialize)]
struct CopyView {
    name: String,
    layouts: Vec<Vec<RegionView>>,
}

#[derive(Serialize)]
struct RegionView {
    start: u64,
    end: Option<u64>,
    cycle: Vec<StripeView>,
    /// Bytes per server of each class in one turn of the cycle.
    stripes: BTreeMap<String, u64>,
}

#[derive(Serialize)]
struct StripeView {
    target: String,
    bytes: u64,
}

/// Returns the report on everything planned.
pub fn report(planned: &Planned, args: &Args) -> Report {
    let emulated = planned.cluster.tiers.iter().filter(|tier| tier.emulate);
    let sets = planned.workload.file_sets.iter().zip(&planned.decisions);
    Report {
        trace: args.trace.display().to_string(),
        cluster: args.cluster.display().to_string(),
        profile: planned.profile.as_ref().map(|path| path.display().to_string()),
        plan: args.output.display().to_string(),
        scheme: args.scheme.clone(),
        objective: match planned.options.objective {
            Objective::Elapsed => "elapsed",
            Objective::Cost => "cost",
        },
        min_gain: Some(args.min_gain).filter(|gain| gain.is_finite()),
        incomplete: planned.trace.incomplete(),
        failed: planned.trace.meta().failure(),
        emulated: emulated.map(|tier| tier.name.clone()).collect(),
        files: sets.map(|(set, decision)| files(set, decision, planned, args.candidates)).collect(),
    }
}

fn files(set: &stripewise_plan::workload::FileSet, decision: &Decision, planned: &Planned, all: bool) -> Files {
    let cluster = &planned.cluster;
    let view = |judged: &Judged| candidate(judged, cluster);
    let scheme = |judged: &Judged| Scheme { scheme: judged.candidate.scheme, candidate: view(judged) };
    let chosen = decision.chosen();
    Files {
        pattern: decision.pattern.clone(),
        count: decision.files,
        first: set.files.first().map_or_else(String::new, |file| file.name.clone()),
        bytes: decision.file_bytes,
        requests: decision.requests,
        request_size: decision.request_size,
        scheme: if decision.keep { KEEP.to_owned() } else { chosen.candidate.scheme.to_owned() },
        keep: decision.keep,
        gain: decision.gain,
        reason: decision.reason.clone(),
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

fn candidate(judged: &Judged, cluster: &Cluster) -> Candidate {
    let layouts = &judged.candidate.layouts;
    let copy = |copy: &CopySpec| CopyView {
        name: copy.name.clone(),
        layouts: copy.layouts.iter().map(|layout| self::regions(layout, cluster)).collect(),
    };
    let regions: Vec<RegionView> = layouts.first().map(|layout| regions(layout, cluster)).unwrap_or_default();
    Candidate {
        name: judged.candidate.name.clone(),
        form: judged.candidate.form.clone(),
        stripes: regions.first().map(|region| region.stripes.clone()).unwrap_or_default(),
        regions,
        layouts: layouts.iter().filter(|_| layouts.len() > 1).map(|l| self::regions(l, cluster)).collect(),
        predicted_s: judged.predicted_s(),
        cost: judged.cost,
        elapsed_s: judged.elapsed_s,
        elapsed_by: judged.method,
        copies: judged.candidate.copies().iter().map(copy).collect(),
        background: judged.candidate.overlay.is_some().then_some(judged.background),
    }
}

fn regions(layout: &Layout, cluster: &Cluster) -> Vec<RegionView> {
    let targets = cluster.targets();
    let view = |region: &Region| RegionView {
        start: region.start,
        end: region.end,
        cycle: region
            .cycle
            .iter()
            .map(|stripe| StripeView {
                target: targets[stripe.target as usize].name.clone(),
                bytes: stripe.width,
            })
            .collect(),
        stripes: stripes(region, cluster),
    };
    layout.regions().iter().map(view).collect()
}

/// Returns bytes per server and turn by class. If the servers of a class differ, the largest value
/// counts.
fn stripes(region: &Region, cluster: &Cluster) -> BTreeMap<String, u64> {
    let mut per_target = vec![0u64; cluster.target_count()];
    for stripe in &region.cycle {
        per_target[stripe.target as usize] += stripe.width;
    }
    let mut by_class = BTreeMap::new();
    for (tier, spec) in cluster.tiers.iter().enumerate() {
        let most = cluster.targets_of(tier).map(|target| per_target[target as usize]).max().unwrap_or(0);
        let bytes = by_class.entry(spec.class.clone()).or_insert(0);
        *bytes = most.max(*bytes);
    }
    by_class
}
