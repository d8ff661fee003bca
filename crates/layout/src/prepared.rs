//! Sums over the regions, computed once, that make every mapping a few divisions.

use crate::layout::Region;

/// One region with its prefix sums.
#[derive(Clone, Debug)]
pub(crate) struct PreparedRegion {
    pub start: u64,
    /// One past the last byte; `u64::MAX` where the region has no end.
    pub end: u64,
    /// Bytes of one turn of the cycle.
    pub cycle_len: u64,
    /// Per stripe, in cycle order.
    pub stripes: Vec<PreparedStripe>,
    /// Per target (index): bytes of it in one turn of the cycle.
    pub per_cycle: Vec<u64>,
    /// Per target (index): its bytes in all earlier regions, so where this region begins in the component.
    pub base: Vec<u64>,
    /// Per target (index): its stripes, as indices into `stripes`, ascending.
    pub stripes_of: Vec<Vec<u32>>,
}

/// One stripe with its place in the cycle and in its target's part of the cycle.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedStripe {
    pub target: u32,
    pub width: u64,
    /// Bytes of the cycle before this stripe.
    pub in_cycle: u64,
    /// Bytes of the same target in the cycle before this stripe.
    pub in_target: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub target_count: usize,
    pub regions: Vec<PreparedRegion>,
}

impl Prepared {
    /// `regions` must be a valid layout.
    pub fn new(regions: &[Region]) -> Self {
        let target_count =
            regions.iter().flat_map(|r| &r.cycle).map(|s| s.target as usize + 1).max().unwrap_or(0);
        let mut base = vec![0; target_count];
        let mut prepared = Vec::with_capacity(regions.len());
        for region in regions {
            let region = PreparedRegion::new(region, &base);
            for (target, base) in base.iter_mut().enumerate() {
                *base += region.bytes_before(target, region.end);
            }
            prepared.push(region);
        }
        Self { target_count, regions: prepared }
    }

    /// Index of the region that holds `offset`.
    pub fn region_at(&self, offset: u64) -> usize {
        self.regions.partition_point(|region| region.end <= offset)
    }
}

impl PreparedRegion {
    fn new(region: &Region, base: &[u64]) -> Self {
        let mut per_cycle = vec![0; base.len()];
        let mut stripes_of = vec![Vec::new(); base.len()];
        let mut cycle_len = 0;
        let mut stripes = Vec::with_capacity(region.cycle.len());
        for (index, stripe) in region.cycle.iter().enumerate() {
            let target = stripe.target as usize;
            stripes.push(PreparedStripe {
                target: stripe.target,
                width: stripe.width,
                in_cycle: cycle_len,
                in_target: per_cycle[target],
            });
            stripes_of[target].push(index as u32);
            per_cycle[target] += stripe.width;
            cycle_len += stripe.width;
        }
        Self {
            start: region.start,
            end: region.end.unwrap_or(u64::MAX),
            cycle_len,
            stripes,
            per_cycle,
            base: base.to_vec(),
            stripes_of,
        }
    }

    /// Index of the stripe that holds byte `in_cycle` of the cycle.
    pub fn stripe_at(&self, in_cycle: u64) -> usize {
        self.stripes.partition_point(|stripe| stripe.in_cycle + stripe.width <= in_cycle)
    }

    /// Bytes on `target` of this region's part of the file before the file offset `offset`
    /// (clamped to the region), without those of earlier regions.
    pub fn bytes_before(&self, target: usize, offset: u64) -> u64 {
        if self.per_cycle[target] == 0 {
            return 0;
        }
        let within = offset.clamp(self.start, self.end) - self.start;
        let (turns, rest) = (within / self.cycle_len, within % self.cycle_len);
        turns.saturating_mul(self.per_cycle[target]).saturating_add(self.partial(target, rest))
    }

    /// Bytes of `target` in the first `rest` bytes of the cycle; O(log stripes).
    fn partial(&self, target: usize, rest: u64) -> u64 {
        let of_target = &self.stripes_of[target];
        let after = of_target.partition_point(|&s| self.stripes[s as usize].in_cycle < rest);
        match after.checked_sub(1) {
            None => 0,
            Some(last) => {
                let stripe = &self.stripes[of_target[last] as usize];
                stripe.in_target + (rest - stripe.in_cycle).min(stripe.width)
            }
        }
    }

    /// Whether the region puts anything on `target`.
    pub fn uses(&self, target: usize) -> bool {
        self.per_cycle[target] > 0
    }
}
