//! Bytes per target, computed without visiting the file's stripes, and conversions between file
//! size and object sizes.

use crate::layout::Layout;
use crate::prepared::object_size;
use crate::region::MAX_OFFSET;

impl Layout {
    /// Bytes that the first `file_size` bytes of the file put on `target`: the size of its object
    /// when the file is full. O(log regions + log stripes of a cycle).
    pub fn object_size(&self, target: u32, file_size: u64) -> u64 {
        object_size(&self.prepared, self.parts_of(target), file_size.min(MAX_OFFSET))
    }

    /// Adds to `out[t]` the sizes of the objects that full files have on each target t. An element
    /// of `files` is the size of a file, and how many files have it (in all fewer than 2^64). A sum
    /// that is larger than `u64::MAX` becomes `u64::MAX`. O(files · log files + stripes of a cycle)
    /// per region, while [`Layout::object_size`] of each file and target takes O(files · targets).
    ///
    /// # Panics
    /// If `out` has fewer than [`Layout::target_count`] elements.
    pub fn add_object_sizes(&self, files: &[(u64, u64)], out: &mut [u64]) {
        assert!(out.len() >= self.target_count(), "one element per target");
        for region in self.prepared.iter() {
            let within = |size: u64| size.min(region.end).min(MAX_OFFSET).checked_sub(region.start);
            let reaching = files.iter().filter_map(|&(size, count)| Some((within(size)?, count)));
            region.add_bytes_before(reaching, out);
        }
    }

    /// Bytes on `target` of the file extent of `len` bytes at `offset`.
    pub fn bytes_on(&self, target: u32, offset: u64, len: u64) -> u64 {
        self.object_size(target, offset.saturating_add(len)) - self.object_size(target, offset)
    }

    /// Writes to `out[t]` the bytes of the extent on each target `t`; elements past
    /// [`Layout::target_count`] are set to 0. O(targets + stripes of a cycle) per region that the
    /// extent touches, without allocation.
    ///
    /// # Panics
    /// If `out` has fewer than [`Layout::target_count`] elements.
    pub fn bytes_per_target(&self, offset: u64, len: u64, out: &mut [u64]) {
        assert!(out.len() >= self.target_count(), "one element per target");
        out.fill(0);
        let end = offset.saturating_add(len).min(MAX_OFFSET);
        if offset >= end {
            return;
        }
        for region in &self.prepared[self.region_at(offset)..] {
            if region.start >= end {
                break;
            }
            region.add_bytes(offset.max(region.start) - region.start, end.min(region.end) - region.start, out);
        }
    }

    /// Replaces `out` with the targets that the extent touches, in ascending order, each with its
    /// bytes. An extent that is shorter than a cycle costs O(stripes touched), any other one
    /// O(targets + stripes of a cycle) per region that it touches.
    pub fn bytes_by_target(&self, offset: u64, len: u64, out: &mut Vec<(u32, u64)>) {
        out.clear();
        let region = &self.prepared[self.region_at(offset)];
        let end = offset.saturating_add(len).min(MAX_OFFSET);
        if len < region.cycle_len && end <= region.end {
            out.extend(self.pieces(offset, len).map(|piece| (piece.target, piece.len)));
            out.sort_unstable_by_key(|of_target| of_target.0);
            out.dedup_by(|next, kept| {
                let same = next.0 == kept.0;
                kept.1 += if same { next.1 } else { 0 };
                same
            });
        } else {
            let mut bytes = vec![0; self.target_count()];
            self.bytes_per_target(offset, len, &mut bytes);
            out.extend((0..).zip(bytes).filter(|of_target| of_target.1 > 0));
        }
    }

    /// Number of targets that an extent touches. O(targets · log stripes of a cycle).
    pub fn targets_touched(&self, offset: u64, len: u64) -> usize {
        (0..self.target_count() as u32).filter(|&target| self.bytes_on(target, offset, len) > 0).count()
    }

    /// The size of a file whose object on target `t` has `object_sizes[t]` bytes: one past the
    /// file offset of the last byte of any object.
    ///
    /// An object may be longer than the layout allows if its target is used only in a region that
    /// ends. It then counts up to the last byte that it can have in the file. Sizes past the
    /// layout's targets do not count.
    pub fn file_size(&self, object_sizes: &[u64]) -> u64 {
        let reaches = |(target, &size): (u32, &u64)| {
            let last = size.min(self.object_size(target, MAX_OFFSET)).checked_sub(1)?;
            self.file_offset(target, last).map(|offset| offset + 1)
        };
        (0..self.target_count() as u32).zip(object_sizes).filter_map(reaches).max().unwrap_or(0)
    }
}
