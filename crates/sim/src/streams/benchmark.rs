//! The requests of a synthetic benchmark.

use std::collections::VecDeque;

use stripewise_model::Op;
use stripewise_trace::synth::{self, Benchmark};
use stripewise_trace::{Flags, Op as Traced};

use super::{Step, Streams};

/// One round of a benchmark: all of its writes, or all of its reads. Steps are generated on demand.
///
/// A process continues with its next request as soon as one is done, independently of the others,
/// but collective requests wait for all processes. Files are numbered as in [`synth::Job::files`],
/// starting at `first_file`.
pub struct Rounds<'a> {
    processes: u32,
    per_node: u32,
    first_file: u32,
    steps: Box<dyn Iterator<Item = synth::Step> + 'a>,
    queued: Vec<VecDeque<Step>>,
    waits: bool,
}

impl<'a> Rounds<'a> {
    /// All rounds of a benchmark, in order.
    pub fn of(benchmark: &'a dyn Benchmark, first_file: u32) -> Vec<(Op, Self)> {
        let job = benchmark.job();
        let round = |(op, steps): (Traced, _)| {
            let queued = vec![VecDeque::new(); job.processes as usize];
            let per_node = job.per_node.max(1);
            (
                op_of(op).unwrap_or(Op::Read),
                Self { processes: job.processes, per_node, first_file, steps, queued, waits: true },
            )
        };
        benchmark.rounds().into_iter().map(round).collect()
    }

    /// Makes collective requests not wait for other processes. The difference in time is the cost
    /// of waiting.
    #[must_use]
    pub fn without_waiting(self) -> Self {
        Self { waits: false, ..self }
    }

    /// Queues the next step of the benchmark; false if there are no more.
    fn advance(&mut self) -> bool {
        let Some(step) = self.steps.next() else { return false };
        let Some(op) = op_of(step.op) else { return true };
        for call in &step.calls {
            let file = self.first_file + call.file;
            self.queued[call.rank as usize].push_back(Step::Request {
                file,
                op,
                offset: call.offset,
                size: call.size,
            });
        }
        if self.waits && step.flags.has(Flags::COLLECTIVE) {
            self.queued.iter_mut().for_each(|queue| queue.push_back(Step::Barrier));
        }
        true
    }
}

/// The direction of a traced call, if it moves data.
pub(super) fn op_of(op: Traced) -> Option<Op> {
    match op {
        Traced::Read => Some(Op::Read),
        Traced::Write => Some(Op::Write),
        _ => None,
    }
}

impl Streams for Rounds<'_> {
    fn processes(&self) -> u32 {
        self.processes
    }

    fn node_of(&self, process: u32) -> u32 {
        process / self.per_node
    }

    fn next(&mut self, process: u32) -> Option<Step> {
        loop {
            if let Some(step) = self.queued[process as usize].pop_front() {
                return Some(step);
            }
            if !self.advance() {
                return None;
            }
        }
    }
}
