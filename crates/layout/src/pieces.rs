//! A file extent, cut into the pieces that lie on one target each, and back.

use crate::layout::{Layout, MAX_OFFSET};
use crate::prepared::{PreparedRegion, PreparedStripe, div_rem};

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
    /// The next piece begins here.
    next: u64,
    /// One past the last byte.
    end: u64,
    /// Index of the region, the turn of its cycle and the index of the stripe that `next` lies in.
    region: usize,
    turn: u64,
    stripe: usize,
}

impl Layout {
    /// Cuts the file extent of `len` bytes at `offset` into pieces, ascending in the file, each on one target.
    ///
    /// Neighbouring pieces lie on different targets: a cycle with a single target gives one piece.
    /// The first costs O(log regions + log stripes), every other O(1). Bytes past [`MAX_OFFSET`] are left out.
    pub fn pieces(&self, offset: u64, len: u64) -> Pieces<'_> {
        let end = offset.saturating_add(len).min(MAX_OFFSET);
        let mut pieces = Pieces { layout: self, next: offset, end, region: 0, turn: 0, stripe: 0 };
        if offset < end {
            pieces.region = self.prepared.region_at(offset);
            (pieces.turn, pieces.stripe, _) = self.prepared.regions[pieces.region].position(offset);
        }
        pieces
    }

    /// Where the byte at `offset` of the file lies: (target, offset in its component).
    ///
    /// `offset` is less than [`MAX_OFFSET`].
    pub fn locate(&self, offset: u64) -> (u32, u64) {
        let region = &self.prepared.regions[self.prepared.region_at(offset)];
        let (turn, stripe, in_stripe) = region.position(offset);
        let stripe = &region.stripes[stripe];
        (stripe.target, stripe.in_component + turn * stripe.per_turn + in_stripe)
    }

    /// The inverse of [`Layout::locate`]: the file offset of byte `target_offset` of the component on `target`.
    ///
    /// `None` where no file offset below [`MAX_OFFSET`] maps to it.
    pub fn file_offset(&self, target: u32, target_offset: u64) -> Option<u64> {
        self.prepared.file_offset(target, target_offset).filter(|&offset| offset < MAX_OFFSET)
    }
}

impl PreparedRegion {
    /// (turn of the cycle, index of the stripe, offset in the stripe) of a file offset in this region.
    fn position(&self, offset: u64) -> (u64, usize, u64) {
        let (turn, in_cycle) = div_rem(offset - self.start, self.cycle_len);
        let stripe = self.stripe_at(in_cycle);
        (turn, stripe, in_cycle - self.stripes[stripe].in_cycle)
    }

    /// File offset where a stripe begins in a turn of the cycle.
    fn stripe_start(&self, turn: u64, stripe: &PreparedStripe) -> u64 {
        self.start + turn * self.cycle_len + stripe.in_cycle
    }

    /// One past the last byte of a stripe in a turn of the cycle.
    fn stripe_end(&self, turn: u64, stripe: &PreparedStripe) -> u64 {
        match self.stripes.len() {
            1 => self.end, // every turn goes on where the last one ended
            _ => (self.stripe_start(turn, stripe) + stripe.width).min(self.end),
        }
    }
}

impl Pieces<'_> {
    fn here(&self) -> (&PreparedRegion, &PreparedStripe) {
        let region = &self.layout.prepared.regions[self.region];
        (region, &region.stripes[self.stripe])
    }

    /// Moves on to the stripe that begins at `next`, where the present one ended.
    fn enter_next_stripe(&mut self) {
        let region = &self.layout.prepared.regions[self.region];
        if self.next == region.end {
            (self.region, self.turn, self.stripe) = (self.region + 1, 0, 0);
        } else if self.stripe + 1 == region.stripes.len() {
            (self.turn, self.stripe) = (self.turn + 1, 0);
        } else {
            self.stripe += 1;
        }
    }
}

impl Iterator for Pieces<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.next >= self.end {
            return None;
        }
        let file_offset = self.next;
        let (region, stripe) = self.here();
        let in_stripe = file_offset - region.stripe_start(self.turn, stripe);
        let target = stripe.target;
        let target_offset = stripe.in_component + self.turn * stripe.per_turn + in_stripe;
        // Components are dense, so what follows in the file on the same target follows in its component.
        loop {
            let (region, stripe) = self.here();
            self.next = region.stripe_end(self.turn, stripe).min(self.end);
            if self.next == self.end {
                break;
            }
            self.enter_next_stripe();
            if self.here().1.target != target {
                break;
            }
        }
        Some(Piece { target, target_offset, file_offset, len: self.next - file_offset })
    }
}
