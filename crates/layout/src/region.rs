//! What a layout consists of: regions of stripe cycles.

/// The largest file offset that a layout maps: 2^63 - 1, the largest `off_t`.
pub const MAX_OFFSET: u64 = i64::MAX as u64;

/// Number of targets that a layout can name; indices are below it.
///
/// File systems stripe over far fewer servers. The bound keeps a target number in a damaged file
/// from making per-target tables exhaust the memory.
pub const MAX_TARGETS: u32 = 1 << 16;

/// One step of a stripe cycle: the next `width` bytes of the file are on `target`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stripe {
    /// Index into the list of targets that the layout is used with, below [`MAX_TARGETS`].
    pub target: u32,
    /// Width in bytes, more than 0.
    pub width: u64,
}

/// A byte range of the file, and the stripe cycle that repeats over it from `start`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Region {
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte; `None` in the last region, which has no end, and only there.
    pub end: Option<u64>,
    /// The stripe cycle; a target may occur several times.
    pub cycle: Vec<Stripe>,
}

impl Region {
    /// Bytes of one turn of the cycle; at most 2^63 in a valid layout.
    pub fn cycle_len(&self) -> u64 {
        self.cycle.iter().map(|stripe| stripe.width).sum()
    }
}
