//! The number of processes that share a server, as one request sees it.

use std::ops::Range;

use stripewise_layout::Layout;

use crate::general::larger;

/// The sharing of requests of any size, per region of a layout and kind of server.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    regions: Vec<ReachOfRegion>,
}

#[derive(Clone, Debug)]
pub(crate) struct ReachOfRegion {
    /// One past the last byte; `u64::MAX` if the region has no end.
    end: u64,
    /// C, the bytes of the cycle.
    cycle: f64,
    /// p·k and C·n: products of whole numbers, so that their quotient is exact where it is whole.
    procs: f64,
    spread_cycle: f64,
    /// w by kind: the most bytes that a cycle has on a server of the kind.
    widths: Box<[f64]>,
}

impl Reach {
    /// For `procs` processes (p) whose files are spread over `servers` servers (n); k is the target
    /// count of `layout`, and `kinds` are ranges of its targets.
    pub fn new(layout: &Layout, kinds: &[Range<usize>], procs: u32, servers: usize) -> Self {
        let used = layout.target_count();
        let servers = servers.max(used) as f64;
        let procs = f64::from(procs) * used as f64;
        let regions = layout.regions().iter().map(|region| {
            let mut bytes = vec![0u64; layout.target_count()];
            for stripe in &region.cycle {
                bytes[stripe.target as usize] += stripe.width;
            }
            let most = |kind: &Range<usize>| bytes[kind.clone()].iter().copied().max().unwrap_or(0) as f64;
            let cycle = bytes.iter().sum::<u64>() as f64;
            let end = region.end.unwrap_or(u64::MAX);
            let widths = kinds.iter().map(most).collect();
            ReachOfRegion { end, cycle, procs, spread_cycle: cycle * servers, widths }
        });
        Self { regions: regions.collect() }
    }

    /// For requests that begin at `offset`.
    pub fn at(&self, offset: u64) -> &ReachOfRegion {
        let region = self.regions.partition_point(|region| region.end <= offset);
        &self.regions[region.min(self.regions.len() - 1)]
    }
}

impl ReachOfRegion {
    /// `max(1, ⌈p · k/n · min(1, max(r, w)/C)⌉)` for requests of `size` bytes.
    #[inline]
    pub fn sharing(&self, kind: usize, size: f64) -> f64 {
        let wide = larger(size, self.widths[kind]);
        let reaching = if wide < self.cycle { wide } else { self.cycle };
        let shared = self.procs * reaching / self.spread_cycle;
        let whole = shared as i64 as f64; // rounding up by hand: a call of `ceil` costs as much as the rest
        larger(1.0, if whole < shared { whole + 1.0 } else { whole })
    }
}
