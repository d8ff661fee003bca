//! A file extent, cut into the pieces that lie on one target each, and back.

use crate::layout::{Layout, MAX_OFFSET};

/// A run of file bytes that lies contiguously in one component.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Target index.
    pub target: u32,
    /// Offset in the component on that target, bytes.
    pub target_offset: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Length, bytes, more than 0.
    pub len: u64,
}

/// Iterator of [`Layout::pieces`].
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    layout: &'a Layout,
    next: u64,
    end: u64,
}

impl Layout {
    /// Cuts the file extent of `len` bytes at `offset` into pieces, ascending in the file, each on one target.
    ///
    /// Neighbouring pieces never lie contiguously in the same component: a cycle with a single stripe gives one
    /// piece. Each step costs O(log stripes). Bytes past [`MAX_OFFSET`] are left out.
    pub fn pieces(&self, offset: u64, len: u64) -> Pieces<'_> {
        let end = offset.saturating_add(len).min(MAX_OFFSET);
        Pieces { layout: self, next: offset, end }
    }

    /// Where the byte at `offset` of the file lies: (target, offset in its component).
    ///
    /// `offset` is less than [`MAX_OFFSET`].
    pub fn locate(&self, offset: u64) -> (u32, u64) {
        let region = &self.prepared.regions[self.prepared.region_at(offset)];
        let within = offset - region.start;
        let (turn, in_cycle) = (within / region.cycle_len, within % region.cycle_len);
        let stripe = region.stripes[region.stripe_at(in_cycle)];
        let target = stripe.target as usize;
        let in_region = turn * region.per_cycle[target] + stripe.in_target + (in_cycle - stripe.in_cycle);
        (stripe.target, region.base[target] + in_region)
    }

    /// The inverse of [`Layout::locate`]: the file offset of byte `target_offset` of the component on `target`.
    ///
    /// `None` where no file offset up to [`MAX_OFFSET`] maps to it.
    pub fn file_offset(&self, target: u32, target_offset: u64) -> Option<u64> {
        let index = target as usize;
        if index >= self.target_count() {
            return None;
        }
        // Bases ascend, so the last region that begins at or before the offset and uses the target holds it.
        let regions = &self.prepared.regions;
        let region =
            regions.iter().rev().find(|region| region.base[index] <= target_offset && region.uses(index))?;
        let within = target_offset - region.base[index];
        let (turn, in_target) = (within / region.per_cycle[index], within % region.per_cycle[index]);
        let of_target = &region.stripes_of[index];
        let at = of_target.partition_point(|&s| region.stripes[s as usize].in_target <= in_target) - 1;
        let stripe = region.stripes[of_target[at] as usize];
        let in_region = turn.checked_mul(region.cycle_len)?;
        let offset = region
            .start
            .checked_add(in_region)?
            .checked_add(stripe.in_cycle + (in_target - stripe.in_target))?;
        (offset < region.end.min(MAX_OFFSET)).then_some(offset)
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.next >= self.end {
            return None;
        }
        let file_offset = self.next;
        let (target, target_offset) = self.layout.locate(file_offset);
        let mut len = 0;
        // A piece goes on over stripes, turns and regions while the next byte follows in the same component.
        while self.next < self.end
            && (len == 0 || self.layout.locate(self.next) == (target, target_offset + len))
        {
            let run = self.layout.run_at(self.next).min(self.end - self.next);
            len += run;
            self.next += run;
        }
        Some(Piece { target, target_offset, file_offset, len })
    }
}

impl Layout {
    /// How many bytes from `offset` on certainly lie contiguously in one component.
    fn run_at(&self, offset: u64) -> u64 {
        let region = &self.prepared.regions[self.prepared.region_at(offset)];
        if region.stripes.len() == 1 {
            return region.end - offset;
        }
        let in_cycle = (offset - region.start) % region.cycle_len;
        let stripe = region.stripes[region.stripe_at(in_cycle)];
        (stripe.in_cycle + stripe.width - in_cycle).min(region.end - offset)
    }
}
