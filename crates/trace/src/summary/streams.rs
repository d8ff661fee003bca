//! Streams: the reads, or the writes, of one process in one file, in order.

use crate::{Op, Request};
use rustc_hash::FxHashMap;

/// When there are this many streams, all are forgotten; this bounds the memory (49 MiB). It is what
/// a hash table of 2^20 places holds; one more stream would double the table.
const MAX_STREAMS: usize = (1 << 20) / 8 * 7;

/// How a request relates to the previous one of its stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// The stream's first request.
    First,
    /// It starts where the previous one ended.
    Sequential,
    /// It starts at the same distance from the previous one's start as that from its predecessor's;
    /// the distance in bytes.
    Strided(i64),
    /// None of these.
    Random,
}

struct Stream {
    offset: u64,
    end: u64,
    distance: Option<i64>,
}

/// All streams of a trace.
#[derive(Default)]
pub(super) struct Streams {
    streams: FxHashMap<(u64, u32), Stream>,
}

impl Streams {
    /// How this read or write relates to the previous one of its stream. Requests must come in
    /// order of start.
    pub(super) fn step(&mut self, request: &Request) -> Step {
        if self.streams.len() >= MAX_STREAMS {
            self.streams.clear();
        }
        let key = (u64::from(request.process) << 1 | u64::from(request.op == Op::Write), request.file);
        let end = request.offset.saturating_add(request.bytes());
        let Some(stream) = self.streams.get_mut(&key) else {
            self.streams.insert(key, Stream { offset: request.offset, end, distance: None });
            return Step::First;
        };
        let distance = request.offset.wrapping_sub(stream.offset) as i64;
        let step = if request.offset == stream.end {
            Step::Sequential
        } else if stream.distance == Some(distance) {
            Step::Strided(distance)
        } else {
            Step::Random
        };
        *stream = Stream { offset: request.offset, end, distance: Some(distance) };
        step
    }
}
