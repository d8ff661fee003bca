//! Drops the candidates that cannot be placed: those that a file system cannot be told, and those
//! whose files programs could not map.

use std::collections::BTreeMap;

use stripewise_cluster::{Cluster, Driver, FileSystem, Members, NativeTarget, size};
use stripewise_layout::Layout;
use stripewise_native::cephfs;

use crate::candidate::{Candidate, Proposal};
use crate::problem::{PAGE, Problem};

/// Number of dropped candidates that a note names per reason.
const NAMED: usize = 3;
/// Multiple of an even share from which on a remark says how full the fullest server is.
const UNEVEN_LEAST: f64 = 1.05;

/// Drops the candidates of a planner that cannot be placed. Returns notes on them with the reasons.
pub fn filter(problem: &Problem<'_>, planner: &str, proposal: &mut Proposal) -> Vec<String> {
    let mut notes = Vec::new();
    if problem.cluster.has_pools() {
        let dropped = proposal.retain(|candidate| {
            let remarks = left_to_the_file_system(candidate, problem)?;
            // First: it is about the prediction itself.
            candidate.remarks.splice(0..0, remarks);
            Ok::<_, String>(())
        });
        if let Some((name, reason)) = dropped.first() {
            notes.push(format!(
                "{planner}: {} that the file system cannot be told; the first is {name}: {reason}",
                dropped.len()
            ));
        }
    }
    if problem.is_mapped() {
        let dropped = proposal.retain(|candidate| is_mappable(candidate).then_some(()).ok_or(()));
        if let Some((name, ())) = dropped.first() {
            notes.push(format!(
                "{planner}: {} whose stripes are not whole pages, which files that are mapped need; the first is {name}",
                dropped.len()
            ));
        }
    }
    if let Some(only) = &problem.options.native {
        let mut dropped: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (name, reason) in proposal.retain(|candidate| {
            candidate.layouts = only.admit(candidate, problem.set, problem.cluster)?;
            Ok(())
        }) {
            dropped.entry(reason).or_default().push(name);
        }
        for (reason, names) in dropped {
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = names[..names.len().min(NAMED)].join(", ");
            notes.push(format!("{planner}: {named}{more}: {reason}"));
        }
    }
    notes
}

/// What the file systems that stripe over pools decide about a candidate's layouts, one sentence
/// per tier.
///
/// # Errors
/// Why these layouts cannot be expressed to them.
fn left_to_the_file_system(candidate: &Candidate, problem: &Problem<'_>) -> Result<Vec<String>, String> {
    let cluster = problem.cluster;
    let mut folded = cluster.clone();
    // Per native target: how uneven the longest part of a file on it is.
    let mut uneven = BTreeMap::<u32, f64>::new();
    let (original, copies) = (candidate.layouts.build(), candidate.copies().iter());
    for layout in original.iter().chain(copies.flat_map(|copy| &copy.layouts)) {
        let layout = folded.fold(layout).map_err(|error| error.to_string())?;
        for target in layout.targets() {
            let len = layout.object_size(target, problem.set.largest());
            let drawn = folded.native_target(target).map_or(1.0, |native| unevenness(native, len, cluster));
            let known = uneven.entry(target).or_insert(1.0);
            *known = known.max(drawn);
        }
    }
    let mut remarks = Vec::new();
    for (tier, spec) in cluster.tiers.iter().enumerate() {
        let Driver::Native { system, members: Members::Pool { name, count }, .. } = &spec.driver else {
            continue;
        };
        let natives = folded.native_targets.iter().filter(|native| native.tier == tier);
        let shapes: Vec<String> = natives
            .map(|native| format!("{} on {} of {count}", size::format(native.width), native.count))
            .collect();
        if !shapes.is_empty() {
            remarks.push(format!(
                "on {} {} stripes ({}): it decides which servers of pool {name} hold a file, and the prediction \
                 takes them in turn{}",
                spec.name,
                system.title(),
                shapes.join(", "),
                drawn(&folded, tier, &uneven),
            ));
        }
    }
    Ok(remarks)
}

/// As [`cephfs::unevenness`], of the part of a file of `len` bytes on a native target.
fn unevenness(native: NativeTarget, len: u64, cluster: &Cluster) -> f64 {
    match &cluster.tiers[native.tier].driver {
        Driver::Native { system: FileSystem::CephFs, members: Members::Pool { count, .. }, .. } => {
            cephfs::unevenness(native.width, native.count, len, *count)
        }
        _ => 1.0,
    }
}

/// What a tier's file system makes of that, if it places every object at random.
fn drawn(folded: &Cluster, tier: usize, uneven: &BTreeMap<u32, f64>) -> String {
    let of_tier = |target: u32| folded.native_target(target).is_some_and(|native| native.tier == tier);
    let most =
        uneven.iter().filter(|&(&target, _)| of_tier(target)).map(|(_, &uneven)| uneven).fold(1.0, f64::max);
    if most < UNEVEN_LEAST {
        return String::new();
    }
    format!(
        ", but it draws one for each object: of the largest file the fullest server holds {most:.1} times an even \
         share on average"
    )
}

/// Whether all stripes are whole pages; without that mmap fails with ENODEV. Mappings are made of
/// the original, so extra copies may have any stripes.
fn is_mappable(candidate: &Candidate) -> bool {
    let whole = |layout: &Layout| {
        layout.regions().iter().all(|region| {
            region.start.is_multiple_of(PAGE)
                && region.cycle.iter().all(|stripe| stripe.width.is_multiple_of(PAGE))
        })
    };
    candidate.layouts.build().iter().all(whole)
}
