//! The number of processes that share a server, as one request sees it.

use std::ops::Range;

use stripewise_layout::Layout;

use crate::general::{Server, larger};

/// The sharing of requests of any size that begin in one region of a layout, by kind of server.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
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
    pub fn by_region(
        layout: &Layout,
        kinds: &[(Range<usize>, Server)],
        procs: u32,
        servers: usize,
    ) -> Vec<Self> {
        let used = layout.target_count();
        let servers = servers.max(used) as f64;
        let procs = f64::from(procs) * used as f64;
        let of_region = |region: &stripewise_layout::Region| {
            let mut bytes = vec![0u64; used];
            for stripe in &region.cycle {
                bytes[stripe.target as usize] += stripe.width;
            }
            let most =
                |(kind, _): &(Range<usize>, _)| bytes[kind.clone()].iter().copied().max().unwrap_or(0) as f64;
            let cycle = region.cycle_len() as f64;
            Self { cycle, procs, spread_cycle: cycle * servers, widths: kinds.iter().map(most).collect() }
        };
        layout.regions().iter().map(of_region).collect()
    }

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
