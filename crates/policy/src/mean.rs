//! The mean cost of requests by size, computed at the first use, with a correction for requests
//! that meet at random.
//!
//! The cost formula assumes that a server is shared by q processes, the number that reach it on
//! average. Requests at random places that touch only k of a file's t servers meet on some servers
//! while others are idle. This is a closed queueing network of P processes and m = t/k stations, of
//! which the fraction P/(P+m-1) is busy on average (for random service times; with constant ones
//! somewhat more). So a request takes as long as if `(P+m-1)/m` processes shared its servers, where
//! the formula has `⌈P/m⌉`. In CIL's layouts, where every request touches all servers that its file
//! has, m is 1 and nothing changes. Measurements: `bench/results.d/copies.md`.

use std::sync::atomic::{AtomicU64, Ordering};

use stripewise_layout::{Layout, Region};
use stripewise_model::PreparedCost;

use crate::kind::Kind;

/// Maximum number of places in a region that the mean is taken over.
const PLACES: u64 = 64;
/// Sizes per power of two.
const STEPS: u64 = 8;
/// The cost of larger requests is proportional to that of this size, bytes.
const LARGEST: u64 = 1 << 40;
const SIZES: usize = (40 * STEPS + 1) as usize;

/// A mean that has not been computed; no cost has these bits.
const UNKNOWN: u64 = u64::MAX;

/// The mean costs of one copy.
#[derive(Debug)]
pub(crate) struct MeanCosts {
    /// Costs by [`Kind::index`].
    prepared: [PreparedCost; 4],
    layout: Layout,
    /// P: the number of processes whose files share the servers of this file.
    crowd: f64,
    /// Means in seconds by region, kind and size, as bits. All threads that compute a mean get the
    /// same value.
    means: Box<[AtomicU64]>,
}

impl MeanCosts {
    /// For a copy with `layout` and the costs `prepared`, used by `procs` processes whose files are
    /// spread over `spread_over` servers.
    pub fn new(layout: &Layout, prepared: [PreparedCost; 4], procs: u32, spread_over: usize) -> Self {
        let means = layout.regions().len() * Kind::ALL.len() * SIZES;
        let means = (0..means).map(|_| AtomicU64::new(UNKNOWN)).collect();
        let used = layout.targets().count();
        let crowd = (u64::from(procs) * used as u64).div_ceil(spread_over.max(used).max(1) as u64) as f64;
        Self { prepared, layout: layout.clone(), crowd, means }
    }

    /// The cost in seconds of a request of `len` bytes that begins in the region of `offset`; 0 for
    /// 0 bytes.
    pub fn cost_s(&self, kind: Kind, offset: u64, len: u64) -> f64 {
        if len == 0 {
            return 0.0;
        }
        let region = self.layout.region_at(offset);
        if len >= LARGEST {
            return self.mean_s(region, kind, SIZES - 1) * (len as f64 / LARGEST as f64);
        }
        let step = step_of(len);
        let (below, above) = (size_of(step), size_of(step + 1));
        let cost_s = self.mean_s(region, kind, step);
        if len == below {
            return cost_s;
        }
        let part = (len - below) as f64 / (above - below) as f64;
        cost_s + part * (self.mean_s(region, kind, step + 1) - cost_s)
    }

    fn mean_s(&self, region: usize, kind: Kind, step: usize) -> f64 {
        let mean = &self.means[(region * Kind::ALL.len() + kind.index()) * SIZES + step];
        let known = mean.load(Ordering::Relaxed);
        if known != UNKNOWN {
            return f64::from_bits(known);
        }
        let found_s = self.mean_over_places(&self.layout.regions()[region], kind, size_of(step));
        mean.store(found_s.to_bits(), Ordering::Relaxed);
        found_s
    }

    /// The mean over aligned places, evenly spread over a cycle, or over the region if that is
    /// shorter.
    fn mean_over_places(&self, region: &Region, kind: Kind, size: u64) -> f64 {
        let long = region.cycle_len().min(region.end.unwrap_or(u64::MAX) - region.start);
        let places = long.div_ceil(size).clamp(1, PLACES);
        let place = |index: u64| {
            let within = (u128::from(long) * u128::from(index) / u128::from(places)) as u64;
            region.start + within / size * size
        };
        let cost_s = |offset| {
            let cost = self.prepared[kind.index()].cost(offset, size);
            cost.establish_s + cost.transfer_s + self.meetings(offset, size) * (cost.startup_s + cost.io_s)
        };
        (0..places).map(|index| cost_s(place(index))).sum::<f64>() / places as f64
    }

    /// The factor by which a request takes longer than the cost formula says.
    fn meetings(&self, offset: u64, size: u64) -> f64 {
        let touched = self.layout.targets_touched(offset, size).max(1) as f64;
        let stations = self.layout.targets().count() as f64 / touched;
        (self.crowd + stations - 1.0) / stations / (self.crowd / stations).ceil()
    }
}

/// The largest step whose size is at most `len`; `len` is at least 1.
fn step_of(len: u64) -> usize {
    let power = u64::from(len.ilog2());
    let eighths = if power >= 3 { len >> (power - 3) } else { len << (3 - power) };
    (power * STEPS + eighths % STEPS) as usize
}

/// Size of a step, bytes.
fn size_of(step: usize) -> u64 {
    let step = step as u64;
    ((STEPS + step % STEPS) << (step / STEPS)) >> 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_eighths_of_a_power_of_two() {
        for len in (1..10_000).chain([LARGEST - 1, LARGEST, 3 << 38]) {
            let step = step_of(len);
            assert!(size_of(step) <= len, "{len}");
            assert!(len == size_of(step) || len < size_of(step + 1), "{len}");
        }
        assert_eq!(step_of(LARGEST), SIZES - 1);
        assert_eq!([8, 9, 16, 18, 1 << 20].map(|len| size_of(step_of(len))), [8, 9, 16, 18, 1 << 20]);
    }
}
