//! Synthetic traces: the requests of a benchmark, without running it.
//!
//! A benchmark is a sequence of [`Step`]s. In each step every process makes at most one request,
//! and all of these run concurrently. Times are nominal: a step takes [`STEP_NS`], and the storage
//! is not modeled. So order, phases and concurrency are realistic, but durations have no meaning.

mod benchmark;
mod btio;
mod collective;
mod glibc_random;
mod hpio;
mod ior;
mod tile;

#[cfg(test)]
mod tests;

pub use benchmark::{BadParameters, Benchmark, Call, Direction, Job, Step, Steps};
pub use btio::{Btio, BtioClass};
pub use collective::TwoPhase;
pub use hpio::Hpio;
pub use ior::{Access, Ior, RandomWithin};
pub use tile::Tile;

use crate::{Flags, Op, Request, TraceError, TraceWriter};

/// Nominal duration of a step, nanoseconds.
pub const STEP_NS: u64 = 1_000_000;

/// Nominal duration of a request, nanoseconds. All requests of a step overlap.
const REQUEST_NS: u64 = STEP_NS / 10 * 9;

/// Appends the benchmark's trace to an empty writer. Calls `progress` with the number of calls now
/// and then.
pub fn write(
    benchmark: &dyn Benchmark,
    writer: &mut TraceWriter,
    progress: &mut dyn FnMut(u64),
) -> Result<(), TraceError> {
    let job = benchmark.job();
    let numbers = Numbers {
        processes: (0..job.processes).map(|rank| writer.process_id(&job.process(rank))).collect(),
        files: job.files.iter().map(|file| writer.file_id(file)).collect(),
        start_ns: 0,
    };
    let mut calls = 0u64;
    calls_of(benchmark, &numbers, &mut |call| {
        calls += 1;
        if calls.is_multiple_of(1 << 16) {
            progress(calls);
        }
        writer.push(call)
    })?;
    Ok(())
}

/// A trace's numbers for the processes and files of a benchmark, and the benchmark's start time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Numbers {
    /// Numbers of the processes, by rank.
    pub processes: Vec<u32>,
    /// Numbers of the files, in the order of [`Job::files`].
    pub files: Vec<u32>,
    /// Start of the benchmark, nanoseconds since the start of the trace.
    pub start_ns: u64,
}

/// Passes all calls of a benchmark to `push`, in order of start, until that fails. Returns the end
/// of the last call, nanoseconds since the start of the trace.
///
/// # Errors
/// The errors of `push`.
pub fn calls_of<E>(
    benchmark: &dyn Benchmark,
    numbers: &Numbers,
    push: &mut dyn FnMut(&Request) -> Result<(), E>,
) -> Result<u64, E> {
    let shared = numbers.files.len() == 1;
    let mut push = |clock_ns: u64, i: usize, op: Op, flags: Flags, call: &Call| {
        // Starts are a nanosecond apart, so that the order is the same in every reader.
        let start_ns = clock_ns + i as u64;
        push(&Request {
            process: numbers.processes[call.rank as usize],
            tid: 1000 + call.rank,
            file: numbers.files[call.file as usize],
            op,
            flags,
            offset: call.offset,
            size: call.size,
            result: if op.is_data() { call.size as i64 } else { 0 },
            start_ns,
            end_ns: start_ns + REQUEST_NS,
        })
    };
    let mut clock_ns = numbers.start_ns;
    for (op, steps) in benchmark.rounds() {
        let open_or_close = |rank: u32| Call { rank, file: if shared { 0 } else { rank }, offset: 0, size: 0 };
        let ranks = 0..numbers.processes.len() as u32;
        for rank in ranks.clone() {
            push(clock_ns, rank as usize, Op::Open, Flags::NONE, &open_or_close(rank))?;
        }
        clock_ns += STEP_NS;
        for step in steps {
            debug_assert_eq!(step.op.is_data(), op.is_data());
            for (i, call) in step.calls.iter().enumerate() {
                push(clock_ns, i, step.op, step.flags, call)?;
            }
            clock_ns += STEP_NS;
        }
        for rank in ranks {
            push(clock_ns, rank as usize, Op::Close, Flags::NONE, &open_or_close(rank))?;
        }
        clock_ns += STEP_NS;
    }
    Ok(clock_ns)
}
