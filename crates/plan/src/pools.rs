//! Tiers that are pools, over which the file system stripes: only candidates that can be expressed
//! to the file system, with remarks on what it decides itself.

use stripewise_cluster::{Cluster, Driver, Members, size};

use crate::candidate::Candidate;
use crate::planners::Proposal;

/// Removes the candidates that cannot be expressed to the file systems. If the proposal's pick is
/// among them, all remaining candidates compete. Also returns a note about the removed candidates,
/// if there are any, with the reason for the first. Each remaining candidate gets a remark on what
/// is left to the file system.
pub fn foldable(planner: &str, proposal: Proposal, cluster: &Cluster) -> (Proposal, Option<String>) {
    if !cluster.has_pools() {
        return (proposal, None);
    }
    let (mut kept, mut pick) = (Vec::new(), None);
    let (mut missing, mut example) = (0, None);
    for (index, mut candidate) in proposal.candidates.into_iter().enumerate() {
        match left_to_the_file_system(&candidate, cluster) {
            Ok(remarks) => {
                candidate.remarks.extend(remarks);
                pick = pick.or((proposal.pick == Some(index)).then_some(kept.len()));
                kept.push(candidate);
            }
            Err(problem) => {
                missing += 1;
                example.get_or_insert((candidate.name, problem));
            }
        }
    }
    let note = example.map(|(name, problem)| {
        format!("{planner}: {missing} that the file system cannot be told; the first is {name}: {problem}")
    });
    (Proposal { candidates: kept, pick }, note)
}

/// What the file systems decide about a candidate's layouts, one sentence per tier.
///
/// # Errors
/// Why these layouts cannot be expressed to them.
fn left_to_the_file_system(candidate: &Candidate, cluster: &Cluster) -> Result<Vec<String>, String> {
    let mut folded = cluster.clone();
    let copies = candidate.copies().iter().flat_map(|copy| &copy.layouts);
    for layout in candidate.layouts.iter().chain(copies) {
        folded.fold(layout).map_err(|error| error.to_string())?;
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
                 takes them in turn",
                spec.name,
                system.title(),
                shapes.join(", "),
            ));
        }
    }
    Ok(remarks)
}
