//! Bytes per target without walking the stripes, and file size against component sizes.

use crate::layout::{Layout, MAX_OFFSET};

impl Layout {
    /// Bytes on `target` of the first `file_size` bytes of the file: the size that its component has when the
    /// file is full. O(regions · log stripes).
    pub fn component_size(&self, target: u32, file_size: u64) -> u64 {
        let target = target as usize;
        if target >= self.target_count() {
            return 0;
        }
        let index = self.prepared.region_at(file_size.min(MAX_OFFSET));
        let region = &self.prepared.regions[index.min(self.prepared.regions.len() - 1)];
        region.base[target] + region.bytes_before(target, file_size.min(MAX_OFFSET))
    }

    /// Bytes on `target` of the file extent of `len` bytes at `offset`.
    pub fn bytes_on(&self, target: u32, offset: u64, len: u64) -> u64 {
        self.component_size(target, offset.saturating_add(len)) - self.component_size(target, offset)
    }

    /// Writes into `out[t]` the bytes of the extent on every target `t`; `out` has at least
    /// [`Layout::target_count`] elements, those past it are set to 0. O(targets · log stripes).
    pub fn bytes_per_target(&self, offset: u64, len: u64, out: &mut [u64]) {
        for (target, bytes) in out.iter_mut().enumerate() {
            *bytes = self.bytes_on(target as u32, offset, len);
        }
    }

    /// How many targets an extent touches.
    pub fn targets_touched(&self, offset: u64, len: u64) -> usize {
        (0..self.target_count()).filter(|&target| self.bytes_on(target as u32, offset, len) > 0).count()
    }

    /// The size of a file whose component on target `t` has `component_sizes[t]` bytes: one past the file offset
    /// of the last byte of any component. A component longer than any file could make it counts as far as it can.
    pub fn file_size(&self, component_sizes: &[u64]) -> u64 {
        (0..self.target_count() as u32)
            .zip(component_sizes)
            .filter(|&(_, &size)| size > 0)
            .map(|(target, &size)| self.file_offset(target, size - 1).map_or(0, |last| last + 1))
            .max()
            .unwrap_or(0)
    }
}
