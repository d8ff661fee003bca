//! Which layer's calls on a file are in the trace. Each layer is built on the next lower one, so
//! the calls of only one of them count.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{Counters, Layer};

/// Maximum number of files that are told apart, which bounds memory.
const FILES_MAX: usize = 4 << 20;

/// Files by the layers that have calls on them.
#[derive(Default)]
pub(super) struct Covered {
    /// Files with segments, by id.
    segments: FxHashMap<u64, Segments>,
    /// Files with system calls, by id.
    system_calls: FxHashSet<u64>,
    beyond: u64,
}

/// The segments of a file.
struct Segments {
    layer: Layer,
    transfers: u64,
    /// Reads and writes of this layer that Darshan counted.
    counted: u64,
}

impl Covered {
    /// Whether the trace has segments.
    pub(super) fn has_segments(&self) -> bool {
        !self.segments.is_empty()
    }

    /// Notes segments of a file. Returns whether they get into the trace: there are some, and none
    /// of a lower layer.
    pub(super) fn add(&mut self, id: u64, layer: Layer, transfers: u64) -> bool {
        if transfers == 0 {
            return false;
        }
        if self.segments.len() >= FILES_MAX && !self.segments.contains_key(&id) {
            self.beyond += 1;
            return false;
        }
        let of = self.segments.entry(id).or_insert(Segments { layer, transfers: 0, counted: 0 });
        if of.layer == layer {
            of.transfers = of.transfers.saturating_add(transfers);
        }
        of.layer == layer
    }

    /// Notes what a module counted of a file.
    pub(super) fn count(&mut self, id: u64, of: Counters, transfers: [u64; 2]) {
        if of == Counters::Posix && self.system_calls.len() < FILES_MAX {
            self.system_calls.insert(id);
        }
        let layer = if of == Counters::MpiIo { Layer::MpiIo } else { Layer::Posix };
        // C streams are in no DXT.
        if let Some(segments) = self.segments.get_mut(&id).filter(|of| of.layer == layer)
            && of != Counters::Stdio
        {
            segments.counted = transfers.into_iter().fold(segments.counted, u64::saturating_add);
        }
    }

    /// Whether calls of a module on a file are made of counters. Call it after all are counted.
    pub(super) fn takes(&self, id: u64, of: Counters) -> bool {
        // MPI-IO makes system calls, and Darshan does not see those of C streams.
        of != Counters::MpiIo || !self.system_calls.contains(&id) && self.system_calls.len() < FILES_MAX
    }

    /// Whether the reads and writes of a module on a file are not to be made of counters, since the
    /// trace has segments.
    pub(super) fn has(&self, id: u64, of: Counters) -> bool {
        of != Counters::Stdio && self.segments.contains_key(&id)
    }

    /// Reads and writes that Darshan counted and DXT lacks, of files of which it has some.
    pub(super) fn missing(&self) -> u64 {
        let missing = self.segments.values().map(|of| of.counted.saturating_sub(of.transfers));
        missing.fold(0, u64::saturating_add)
    }

    /// Records left out because there are too many files.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }
}
