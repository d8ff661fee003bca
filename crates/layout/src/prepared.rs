//! Prefix sums over the regions, computed once, that reduce every mapping to a few divisions.

use crate::region::{Region, Stripe};

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
    pub by_target: Vec<u32>,
}

/// A stripe with its position in the cycle and in its target's object.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedStripe {
    pub target: u32,
    pub width: u64,
    /// Bytes of the cycle before this stripe.
    pub in_cycle: u64,
    /// Offset in the object where the first turn of this stripe begins.
    pub in_object: u64,
    /// Bytes that one turn puts on the same target.
    pub per_turn: u64,
}

/// The bytes of one region in one target's object.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub region: usize,
    /// Offset in the object where the region begins.
    pub base: u64,
    /// Bytes that one turn puts on the target.
    pub per_turn: u64,
    /// The target's stripes: a range of the region's `by_target`.
    pub from: usize,
    pub to: usize,
}

/// The prefix sums of valid regions, the smallest target index, and the parts of each target from
/// that one on. Memory is linear in the number of stripes and in the range of target indices.
pub(crate) fn prepare(regions: &[Region]) -> (Vec<PreparedRegion>, u32, Vec<Vec<Part>>) {
    let targets = || regions.iter().flat_map(|region| &region.cycle).map(|stripe| stripe.target);
    let first = targets().min().unwrap_or(0);
    let count = targets().max().map_or(0, |last| last - first + 1);
    let mut prepared = Vec::with_capacity(regions.len());
    let mut parts = vec![Vec::new(); count as usize];
    for region in regions {
        push(&mut prepared, first, &mut parts, region);
    }
    (prepared, first, parts)
}

/// Appends the next region. The positions of its stripes depend on what earlier regions put on
/// their targets.
fn push(prepared: &mut Vec<PreparedRegion>, first: u32, parts: &mut [Vec<Part>], region: &Region) {
    let mut next = PreparedRegion::new(region);
    let mut order: Vec<(u32, u32)> = next.stripes.iter().map(|stripe| stripe.target).zip(0..).collect();
    order.sort_unstable();
    for of_target in order.chunk_by(|a, b| a.0 == b.0) {
        let parts = &mut parts[(of_target[0].0 - first) as usize];
        let base = object_size(prepared, parts, region.start);
        let per_turn = of_target.iter().map(|&(_, index)| next.stripes[index as usize].width).sum();
        let from = next.by_target.len();
        let mut in_object = base;
        for &(_, index) in of_target {
            let stripe = &mut next.stripes[index as usize];
            (stripe.in_object, stripe.per_turn) = (in_object, per_turn);
            in_object += stripe.width;
            next.by_target.push(index);
        }
        parts.push(Part { region: prepared.len(), base, per_turn, from, to: next.by_target.len() });
    }
    prepared.push(next);
}

/// Bytes that the first `file_size` bytes of the file put on the target with these parts.
pub(crate) fn object_size(regions: &[PreparedRegion], parts: &[Part], file_size: u64) -> u64 {
    let began = parts.partition_point(|part| regions[part.region].start < file_size);
    let Some(part) = began.checked_sub(1).map(|last| &parts[last]) else { return 0 };
    let region = &regions[part.region];
    part.base + region.bytes_before(part, file_size.min(region.end) - region.start)
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
                        in_object: 0,
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
    #[inline]
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
            stripe.in_object - part.base + (rest - stripe.in_cycle).min(stripe.width)
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

    /// Adds to `out[t]` the bytes that the first `within` bytes of the region put on each target t,
    /// times `count`, for each (within, count) of `files`. The counts add up to less than 2^64, so
    /// no product overflows. Sums become at most `u64::MAX`.
    pub fn add_bytes_before(&self, files: impl Iterator<Item = (u64, u64)>, out: &mut [u64]) {
        let (mut turns, mut rests) = (0, Vec::new());
        for (within, count) in files {
            let (whole, rest) = div_rem(within, self.cycle_len);
            turns += u128::from(whole) * u128::from(count);
            rests.push((rest, count));
        }
        rests.sort_unstable();
        // Of the last turns, what is before a byte of the cycle: the whole of those that end there
        // or earlier, and up to that byte of the others.
        let mut longer: u128 = rests.iter().map(|rest| u128::from(rest.1)).sum();
        let (mut rests, mut shorter, mut before) = (rests.into_iter().peekable(), 0, 0);
        for stripe in &self.stripes {
            let end = stripe.in_cycle + stripe.width;
            while let Some((rest, count)) = rests.next_if(|rest| rest.0 <= end) {
                shorter += u128::from(rest) * u128::from(count);
                longer -= u128::from(count);
            }
            let covered = shorter + longer * u128::from(end);
            let here = turns.saturating_mul(u128::from(stripe.width)).saturating_add(covered - before);
            before = covered;
            let sum = &mut out[stripe.target as usize];
            *sum = sum.saturating_add(u64::try_from(here).unwrap_or(u64::MAX));
        }
    }
}

pub(crate) fn div_rem(n: u64, by: u64) -> (u64, u64) {
    (n / by, n % by)
}
