//! Two-phase collective I/O, as ROMIO's generic driver does it: what reaches the file system.
//!
//! In the first phase the processes exchange data, which no file system sees. In the second, some of them, the
//! *aggregators*, access the file: the range from the first to the last byte of the collective call is cut into as many
//! contiguous *file domains* of equal size; every aggregator goes through its domain in buffers of
//! `cb_buffer_size` bytes, one contiguous request each. Where the written data has holes, a buffer is read first.

use super::{Call, Step};
use crate::{Flags, Op};

/// The hints of two-phase I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TwoPhase {
    /// `cb_nodes`: aggregators. ROMIO takes one process per node unless told otherwise.
    pub aggregators: u32,
    /// `cb_buffer_size`: the most bytes of one request. ROMIO's default is 16 MiB.
    pub buffer: u64,
}

impl TwoPhase {
    /// The steps of one collective call of `processes` processes on file 0 that covers `start..end`; `holes`: not every byte
    /// of it. Aggregators are spread over the ranks as evenly as nodes are.
    pub(super) fn steps(
        self,
        op: Op,
        (start, end): (u64, u64),
        holes: bool,
        processes: u32,
    ) -> impl Iterator<Item = Step> {
        let aggregators = u64::from(self.aggregators.clamp(1, processes));
        let domain = (end - start).div_ceil(aggregators);
        let rounds = domain.div_ceil(self.buffer);
        let read_first = op == Op::Write && holes;
        (0..rounds).flat_map(move |round| {
            let ops = if read_first { vec![Op::Read, op] } else { vec![op] };
            ops.into_iter().map(move |op| {
                let calls = (0..aggregators).filter_map(|i| {
                    let domain_end = (start + (i + 1) * domain).min(end);
                    let offset = start + i * domain + round * self.buffer;
                    let size = domain_end.saturating_sub(offset).min(self.buffer);
                    let rank = (i * u64::from(processes) / aggregators) as u32;
                    (size > 0).then_some(Call { rank, file: 0, offset, size })
                });
                Step { op, flags: Flags::POSITIONAL.with(Flags::COLLECTIVE), calls: calls.collect() }
            })
        })
    }
}
