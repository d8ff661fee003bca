//! Two-phase collective I/O as in ROMIO's generic driver: the requests that reach the file system.
//!
//! In the first phase the processes exchange data, without file I/O. In the second, some of them,
//! the *aggregators*, access the file. The range from the first to the last byte of the collective
//! call is divided into one contiguous *file domain* per aggregator, all of equal size. Every
//! aggregator accesses its domain, from the first to the last requested byte there, in buffers of
//! `cb_buffer_size` bytes with one contiguous request each. If a write does not overwrite a buffer
//! completely, the buffer is read first.

use super::benchmark::{Call, Step};
use crate::{Flags, Op};

/// The hints of two-phase I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoPhase {
    /// `cb_nodes`: number of aggregators. ROMIO's default is one process per node.
    pub aggregators: u32,
    /// `cb_buffer_size`: maximum size of a request, bytes. ROMIO's default is 16 MiB.
    pub buffer: u64,
}

/// The bytes that all processes together request in a collective call: `[start, end)`, or pieces of
/// it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wanted {
    /// Offset of the first byte.
    pub start: u64,
    /// Offset after the last byte.
    pub end: u64,
    /// Size of each contiguous piece, bytes; the first begins at `start`.
    pub piece: u64,
    /// Distance between the starts of consecutive pieces, bytes; equal to `piece` if there are no
    /// holes.
    pub stride: u64,
}

impl Wanted {
    /// Every byte from `start` to `end`.
    pub(super) fn all(start: u64, end: u64) -> Wanted {
        Wanted { start, end, piece: 1, stride: 1 }
    }

    fn has_holes(&self) -> bool {
        self.stride > self.piece
    }

    /// Whether all of these bytes are requested.
    fn has_all(&self, offset: u64, size: u64) -> bool {
        !self.has_holes() || (offset - self.start) % self.stride + size <= self.piece
    }

    /// The range from the first to the last requested byte of a file domain; empty if there is
    /// none.
    fn part(&self, start: u64, end: u64) -> (u64, u64) {
        let (first, end) = (start - self.start, end.min(self.end).saturating_sub(self.start));
        let into = first % self.stride;
        let first = if into < self.piece { first } else { first - into + self.stride };
        let last = end.saturating_sub(1);
        let into = last % self.stride;
        let end = if into < self.piece { end } else { last - into + self.piece };
        (self.start + first, self.start + end)
    }
}

impl TwoPhase {
    /// The steps of one collective call of `processes` processes on file 0. The aggregators are
    /// spread evenly over the ranks, like the nodes.
    pub(super) fn steps(self, op: Op, wanted: Wanted, processes: u32) -> impl Iterator<Item = Step> {
        let aggregators = u64::from(self.aggregators.clamp(1, processes));
        let domain = (wanted.end - wanted.start).div_ceil(aggregators);
        let rounds = domain.div_ceil(self.buffer);
        let phases: &[bool] = if op == Op::Write && wanted.has_holes() { &[true, false] } else { &[false] };
        let call = move |round: u64, read_first: bool, i: u64| {
            let domain_start = wanted.start + i * domain;
            let (first, end) = wanted.part(domain_start, domain_start + domain);
            let offset = first + round * self.buffer;
            let size = end.saturating_sub(offset).min(self.buffer);
            let rank = (i * u64::from(processes) / aggregators) as u32;
            let idle = size == 0 || read_first && wanted.has_all(offset, size);
            (!idle).then_some(Call { rank, file: 0, offset, size })
        };
        let steps = (0..rounds).flat_map(move |round| {
            phases.iter().map(move |read_first| {
                let op = if *read_first { Op::Read } else { op };
                let calls = (0..aggregators).filter_map(|i| call(round, *read_first, i));
                Step { op, flags: Flags::POSITIONAL.with(Flags::COLLECTIVE), calls: calls.collect() }
            })
        });
        steps.filter(|step| !step.calls.is_empty())
    }
}
