//! Prefix sums over the regions, computed once, that reduce every mapping to a few divisions.

use crate::region::{Region, Stripe};

/// The regions with their prefix sums, and the same by target. Memory is linear in the number of
/// stripes and in the largest target index.
#[derive(Clone, Debug)]
pub(crate) struct Prepared {
    pub regions: Vec<PreparedRegion>,
    /// Per target index, the regions whose cycle names the target, in ascending order.
    parts: Vec<Vec<Part>>,
}

#[derive(Clone, Debug)]
pub(crate) struct PreparedRegion {
    pub start: u64,
    /// One past the last byte; `u64::MAX` if the region has no end.
    pub end: u64,
    /// Bytes of one turn of the cycle.
    pub cycle_len: u64,
    /// Stripes in cycle order. Adjacent stripes on one target are joined, so a cycle on one target
    /// is one stripe.
    pub stripes: Vec<PreparedStripe>,
    /// Indices into `stripes`, ordered by target and then by position in the cycle.
    by_target: Vec<u32>,
}

/// A stripe with its position in the cycle and in its target's object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedStripe {
    pub target: u32,
    pub width: u64,
    /// Bytes of the cycle before this stripe.
    pub in_cycle: u64,
    /// Offset in the object where the first turn of this stripe begins.
    pub in_component: u64,
    /// Bytes that one turn puts on the same target.
    pub per_turn: u64,
}

/// The bytes of one region in one target's object.
#[derive(Clone, Debug)]
struct Part {
    region: usize,
    /// Offset in the object where the region begins.
    base: u64,
    /// Bytes that one turn puts on the target.
    per_turn: u64,
    /// The target's stripes: a range of the region's `by_target`.
    from: usize,
    to: usize,
}

impl Prepared {
    /// Prepares `regions`, which must be a valid layout.
    pub fn new(regions: &[Region]) -> Self {
        let stripes = regions.iter().flat_map(|region| &region.cycle);
        let targets = stripes.map(|stripe| stripe.target as usize + 1).max().unwrap_or(0);
        let mut prepared =
            Self { regions: Vec::with_capacity(regions.len()), parts: vec![Vec::new(); targets] };
        for region in regions {
            prepared.push(region);
        }
        prepared
    }

    /// Appends the next region. The positions of its stripes depend on what earlier regions put on
    /// their targets.
    fn push(&mut self, region: &Region) {
        let mut next = PreparedRegion::new(region);
        let mut order: Vec<(u32, u32)> = next.stripes.iter().map(|stripe| stripe.target).zip(0..).collect();
        order.sort_unstable();
        for of_target in order.chunk_by(|a, b| a.0 == b.0) {
            let target = of_target[0].0;
            let base = self.component_size(target, region.start);
            let per_turn = of_target.iter().map(|&(_, index)| next.stripes[index as usize].width).sum();
            let from = next.by_target.len();
            let mut in_component = base;
            for &(_, index) in of_target {
                let stripe = &mut next.stripes[index as usize];
                (stripe.in_component, stripe.per_turn) = (in_component, per_turn);
                in_component += stripe.width;
                next.by_target.push(index);
            }
            let to = next.by_target.len();
            let part = Part { region: self.regions.len(), base, per_turn, from, to };
            self.parts[target as usize].push(part);
        }
        self.regions.push(next);
    }

    /// One more than the largest target index.
    pub fn target_count(&self) -> usize {
        self.parts.len()
    }

    /// Whether any cycle names the target.
    pub fn uses(&self, target: u32) -> bool {
        !self.parts_of(target).is_empty()
    }

    /// Index of the region that contains `offset`.
    pub fn region_at(&self, offset: u64) -> usize {
        self.regions.partition_point(|region| region.end <= offset)
    }

    /// Bytes that the first `file_size` bytes of the file put on `target`.
    pub fn component_size(&self, target: u32, file_size: u64) -> u64 {
        let parts = self.parts_of(target);
        let began = parts.partition_point(|part| self.regions[part.region].start < file_size);
        let Some(part) = began.checked_sub(1).map(|last| &parts[last]) else { return 0 };
        let region = &self.regions[part.region];
        part.base + region.bytes_before(part, file_size.min(region.end) - region.start)
    }

    /// The file offset of byte `offset` of the object; `None` if no file is long enough.
    pub fn file_offset(&self, target: u32, offset: u64) -> Option<u64> {
        let parts = self.parts_of(target);
        // Bases ascend, so only the last region that begins at or before the offset can contain it.
        let part = &parts[parts.partition_point(|part| part.base <= offset).checked_sub(1)?];
        let region = &self.regions[part.region];
        let (turn, in_turn) = div_rem(offset - part.base, part.per_turn);
        let of_target = &region.by_target[part.from..part.to];
        let in_component = part.base + in_turn;
        let at = of_target.partition_point(|&s| region.stripes[s as usize].in_component <= in_component) - 1;
        let stripe = &region.stripes[of_target[at] as usize];
        let in_cycle = stripe.in_cycle + (in_component - stripe.in_component);
        let within = turn.checked_mul(region.cycle_len)?.checked_add(in_cycle)?;
        region.start.checked_add(within).filter(|&offset| offset < region.end)
    }

    fn parts_of(&self, target: u32) -> &[Part] {
        self.parts.get(target as usize).map_or(&[], Vec::as_slice)
    }
}

impl PreparedRegion {
    /// Computes what depends on the region alone; [`Prepared::push`] fills in the rest.
    fn new(region: &Region) -> Self {
        let mut stripes: Vec<PreparedStripe> = Vec::with_capacity(region.cycle.len());
        let mut cycle_len = 0;
        for &Stripe { target, width } in &region.cycle {
            match stripes.last_mut() {
                Some(last) if last.target == target => last.width += width,
                _ => {
                    stripes.push(PreparedStripe {
                        target,
                        width,
                        in_cycle: cycle_len,
                        in_component: 0,
                        per_turn: 0,
                    });
                }
            }
            cycle_len += width;
        }
        let by_target = Vec::with_capacity(stripes.len());
        let end = region.end.unwrap_or(u64::MAX);
        Self { start: region.start, end, cycle_len, stripes, by_target }
    }

    /// Index of the stripe that contains byte `in_cycle` of the cycle.
    pub fn stripe_at(&self, in_cycle: u64) -> usize {
        self.stripes.partition_point(|stripe| stripe.in_cycle + stripe.width <= in_cycle)
    }

    /// Bytes that the first `within` bytes of the region put on the target of `part`.
    fn bytes_before(&self, part: &Part, within: u64) -> u64 {
        let (turns, rest) = div_rem(within, self.cycle_len);
        let of_target = &self.by_target[part.from..part.to];
        let began = of_target.partition_point(|&s| self.stripes[s as usize].in_cycle < rest);
        let in_turn = began.checked_sub(1).map_or(0, |last| {
            let stripe = &self.stripes[of_target[last] as usize];
            stripe.in_component - part.base + (rest - stripe.in_cycle).min(stripe.width)
        });
        turns * part.per_turn + in_turn
    }

    /// Adds to `out[t]` the bytes that the range `from..to` of the region puts on each target t.
    pub fn add_bytes(&self, from: u64, to: u64, out: &mut [u64]) {
        let (from_turn, from_rest) = div_rem(from, self.cycle_len);
        let (to_turn, to_rest) = div_rem(to, self.cycle_len);
        let turns = to_turn - from_turn;
        for stripe in &self.stripes {
            let covered = |rest: u64| rest.saturating_sub(stripe.in_cycle).min(stripe.width);
            out[stripe.target as usize] += turns * stripe.width + covered(to_rest) - covered(from_rest);
        }
    }
}

pub(crate) fn div_rem(n: u64, by: u64) -> (u64, u64) {
    (n / by, n % by)
}
