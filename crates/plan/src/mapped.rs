//! Files that programs map into memory. Their stripes must be whole pages, or mmap fails with
//! ENODEV.

use stripewise_layout::Layout;

use crate::candidate::Candidate;
use crate::planners::Proposal;

/// Page size, bytes. A trace does not record it. A machine with larger pages maps files in these
/// stripes only if the stripes are also multiples of its page size.
pub const PAGE: u64 = 4 << 10;

/// Removes the candidates whose files cannot be mapped. If the proposal's pick is among them, all
/// remaining candidates compete. Also returns a note about the removed candidates, if there are
/// any. Mappings are made of the original, so extra copies may have any stripes.
pub(crate) fn filter(planner: &str, proposal: Proposal) -> (Proposal, Option<String>) {
    let (mut kept, mut pick) = (Vec::new(), None);
    let (mut missing, mut example) = (0, None);
    for (index, candidate) in proposal.candidates.into_iter().enumerate() {
        if is_mappable(&candidate) {
            pick = pick.or((proposal.pick == Some(index)).then_some(kept.len()));
            kept.push(candidate);
        } else {
            missing += 1;
            example.get_or_insert(candidate.name);
        }
    }
    let note = example.map(|name| {
        format!("{planner}: {missing} whose stripes are not whole pages, which files that are mapped need; the first is {name}")
    });
    (Proposal { candidates: kept, pick }, note)
}

fn is_mappable(candidate: &Candidate) -> bool {
    let whole = |layout: &Layout| {
        layout.regions().iter().all(|region| {
            region.start.is_multiple_of(PAGE)
                && region.cycle.iter().all(|stripe| stripe.width.is_multiple_of(PAGE))
        })
    };
    candidate.layouts.iter().all(whole)
}
