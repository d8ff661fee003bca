//! The equivalence of requests on a layout, and a hash for it.

use std::hash::{Hash, Hasher};

use stripewise_layout::{Layout, Region};
use stripewise_model::Access;
use stripewise_trace::summary::Past;

use crate::workload::Request;

/// Everything that decides how a request divides over the servers, and on which of them it
/// continues where its process's previous request ended. Requests with equal keys form one shape.
#[derive(PartialEq, Eq)]
pub struct Key {
    layout: u32,
    region: u32,
    /// Offset in the stripe cycle where the request begins. If another region matters, the file
    /// offset instead.
    phase: u64,
    size: u64,
    past: Past,
}

impl Key {
    /// The key of a request on `layout`, which is number `which` of several and whose regions have
    /// the cycle lengths `cycles` ([`cycle_len`]). Also returns the region that the request begins
    /// in.
    pub fn of(request: &Request, which: u32, layout: &Layout, cycles: &[u64]) -> (Self, u32) {
        let &Request { offset, size, past, .. } = request;
        let region = layout.region_at(offset);
        let Region { start, end, .. } = layout.regions()[region];
        let (within, cycle) = (offset - start, cycles[region]);
        // Within the region, every target's byte before the request lies in the cycle before the
        // request.
        let near = past.within(cycle);
        let before = if within < cycle { past } else { near };
        let crosses = offset.saturating_add(size) > end.unwrap_or(u64::MAX) || before.reach() > within;
        let key = if crosses {
            Self { layout: which, region: u32::MAX, phase: offset, size, past }
        } else {
            Self { layout: which, region: region as u32, phase: within % cycle, size, past: near }
        };
        (key, region as u32)
    }

    /// The access on every target that the request touches, if it follows from the key alone:
    /// random without a known past, sequential after a whole cycle in order. `cycle` is the cycle
    /// length of the request's region.
    pub fn access_everywhere(&self, cycle: u64) -> Option<Access> {
        if self.past == Past::default() {
            Some(Access::Random)
        } else if self.region != u32::MAX && self.past.run >= cycle {
            Some(Access::Sequential)
        } else {
            None
        }
    }
}

impl Hash for Key {
    /// Most requests have no past that matters, so an empty past adds nothing to the hash.
    fn hash<H: Hasher>(&self, state: &mut H) {
        let Past { run, stride, length, count } = self.past;
        state.write_u64(u64::from(self.layout) << 32 | u64::from(self.region));
        state.write_u64(self.phase);
        state.write_u64(self.size);
        if run > 0 {
            state.write_u64(run);
        }
        if count > 0 {
            [stride, length, count.into()].into_iter().for_each(|number| state.write_u64(number));
        }
    }
}

/// Number of bytes of a region after which its sequence of targets repeats. With a single target
/// all bytes are alike: 1.
pub fn cycle_len(region: &Region) -> u64 {
    match region.cycle.as_slice() {
        [first, rest @ ..] if rest.iter().all(|stripe| stripe.target == first.target) => 1,
        _ => region.cycle_len(),
    }
}
