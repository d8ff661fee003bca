//! Cuts a file extent into pieces that are on one target each, and maps target offsets back to the
//! file.

use crate::layout::Layout;
use crate::prepared::{Part, PreparedRegion, PreparedStripe, div_rem};
use crate::region::MAX_OFFSET;

/// A run of file bytes that is contiguous in one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Index of the target.
    pub target: u32,
    /// Offset in the object on that target, bytes.
    pub target_offset: u64,
    /// Offset in the file, bytes.
    pub file_offset: u64,
    /// Length in bytes, more than 0.
    pub len: u64,
}

/// The iterator that [`Layout::pieces`] returns.
#[derive(Clone, Debug)]
pub struct Pieces<'a> {
    layout: &'a Layout,
    /// File offset where the next piece begins.
    next: u64,
    /// One past the last byte.
    end: u64,
    /// Index of the region that `next` is in, the turn of its cycle, and the index of the stripe.
    region: usize,
    turn: u64,
    stripe: usize,
}

impl Layout {
    /// Cuts the file extent of `len` bytes at `offset` into pieces, each on one target, in
    /// ascending file order.
    ///
    /// Adjacent pieces are on different targets, so a cycle with a single target gives one piece.
    /// The first piece costs O(log regions + log stripes), every other one O(1). Bytes past
    /// [`MAX_OFFSET`] are left out.
    pub fn pieces(&self, offset: u64, len: u64) -> Pieces<'_> {
        let end = offset.saturating_add(len).min(MAX_OFFSET);
        let mut pieces = Pieces { layout: self, next: offset, end, region: 0, turn: 0, stripe: 0 };
        if offset < end {
            pieces.region = self.region_at(offset);
            (pieces.turn, pieces.stripe, _) = self.prepared[pieces.region].position(offset);
        }
        pieces
    }

    /// The piece that is all of `len` bytes at `offset`, if they lie in one stripe of one turn, or
    /// in one region on one target. `None` for other extents, which may be one piece all the same
    /// ([`Layout::pieces`]), and for 0 bytes.
    ///
    /// `offset` must be below [`MAX_OFFSET`].
    #[inline]
    pub fn piece_in_stripe(&self, offset: u64, len: u64) -> Option<Piece> {
        let region = &self.prepared[self.region_at(offset)];
        let (turn, stripe, in_stripe) = region.position(offset);
        let stripe = &region.stripes[stripe];
        let left = region.stripe_end(turn, stripe) - offset;
        let target_offset = stripe.in_object + turn * stripe.per_turn + in_stripe;
        (1..=left).contains(&len).then_some(Piece {
            target: stripe.target,
            target_offset,
            file_offset: offset,
            len,
        })
    }

    /// The location of the byte at `offset` of the file: (target, offset in the object).
    ///
    /// `offset` must be below [`MAX_OFFSET`].
    pub fn locate(&self, offset: u64) -> (u32, u64) {
        let region = &self.prepared[self.region_at(offset)];
        let (turn, stripe, in_stripe) = region.position(offset);
        let stripe = &region.stripes[stripe];
        (stripe.target, stripe.in_object + turn * stripe.per_turn + in_stripe)
    }

    /// The inverse of [`Layout::locate`]: the file offset of byte `target_offset` of the object on
    /// `target`.
    ///
    /// `None` if no file offset below [`MAX_OFFSET`] maps to it.
    pub fn file_offset(&self, target: u32, target_offset: u64) -> Option<u64> {
        let parts = self.parts_of(target);
        // Bases ascend, so only the last region that begins at or before the offset can contain it.
        let part = &parts[parts.partition_point(|part| part.base <= target_offset).checked_sub(1)?];
        let region = &self.prepared[part.region];
        let (turn, in_turn) = div_rem(target_offset - part.base, part.per_turn);
        let of_target = &region.by_target[part.from..part.to];
        let in_object = part.base + in_turn;
        let at = of_target.partition_point(|&s| region.stripes[s as usize].in_object <= in_object) - 1;
        let stripe = &region.stripes[of_target[at] as usize];
        let in_cycle = stripe.in_cycle + (in_object - stripe.in_object);
        let within = turn.checked_mul(region.cycle_len)?.checked_add(in_cycle)?;
        region.start.checked_add(within).filter(|&offset| offset < region.end.min(MAX_OFFSET))
    }

    /// Index of the region that contains `offset`.
    #[inline]
    pub fn region_at(&self, offset: u64) -> usize {
        let (_, all_but_last) = self.prepared.split_last().expect("a layout has a region");
        all_but_last.partition_point(|region| region.end <= offset)
    }

    pub(crate) fn parts_of(&self, target: u32) -> &[Part] {
        let place = target.checked_sub(self.first_target);
        place.and_then(|place| self.parts.get(place as usize)).map_or(&[], Vec::as_slice)
    }
}

impl PreparedRegion {
    /// (turn of the cycle, index of the stripe, offset in the stripe) of a file offset in this
    /// region. A region on one target is one turn.
    #[inline]
    fn position(&self, offset: u64) -> (u64, usize, u64) {
        if self.stripes.len() == 1 {
            return (0, 0, offset - self.start); // every turn continues where the last one ended
        }
        let (turn, in_cycle) = div_rem(offset - self.start, self.cycle_len);
        let stripe = self.stripe_at(in_cycle);
        (turn, stripe, in_cycle - self.stripes[stripe].in_cycle)
    }

    /// The file offset where a stripe begins in a turn of the cycle.
    #[inline]
    fn stripe_start(&self, turn: u64, stripe: &PreparedStripe) -> u64 {
        self.start + turn * self.cycle_len + stripe.in_cycle
    }

    /// One past the last byte of a stripe in a turn of the cycle.
    #[inline]
    fn stripe_end(&self, turn: u64, stripe: &PreparedStripe) -> u64 {
        match self.stripes.len() {
            1 => self.end,
            _ => (self.stripe_start(turn, stripe) + stripe.width).min(self.end),
        }
    }
}

impl Pieces<'_> {
    fn here(&self) -> (&PreparedRegion, &PreparedStripe) {
        let region = &self.layout.prepared[self.region];
        (region, &region.stripes[self.stripe])
    }

    /// Moves to the stripe that begins at `next`, where the current one ended.
    fn enter_next_stripe(&mut self) {
        let region = &self.layout.prepared[self.region];
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
        let target_offset = stripe.in_object + self.turn * stripe.per_turn + in_stripe;
        // Objects are dense: bytes that follow on the same target in the file also follow in its
        // object.
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
