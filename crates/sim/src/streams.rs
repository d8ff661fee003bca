//! The steps of an application's processes: lists, the requests of a synthetic benchmark, and those
//! of a trace.

use std::collections::VecDeque;
use std::vec::IntoIter;

use stripewise_model::Op;
use stripewise_trace::synth::{self, Benchmark};
use stripewise_trace::{Flags, Op as TracedOp, Request as TracedRequest};

/// A step of a process.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A read or write. The next step follows when it is done.
    Request {
        /// Number of the file ([`crate::Simulator::open`]).
        file: u32,
        /// Direction.
        op: Op,
        /// First byte.
        offset: u64,
        /// Length in bytes; a request of 0 bytes has no effect.
        size: u64,
    },
    /// Waits until all processes that have not ended wait.
    Barrier,
    /// Computes.
    Compute {
        /// Duration in seconds, at least 0.
        seconds: f64,
    },
}

/// One run of an application: the steps of each of its processes, in order.
pub trait Streams {
    /// Number of processes.
    fn processes(&self) -> u32;

    /// The node that a process runs on. Used only if the network is simulated.
    fn node_of(&self, process: u32) -> u32;

    /// The next step of a process. `None` if the process has ended; it is not called again for that
    /// process.
    fn next(&mut self, process: u32) -> Option<Step>;
}

/// Steps given as a list per process, for tests and short runs.
#[derive(Clone, Debug, Default)]
pub struct Lists {
    steps: Vec<IntoIter<Step>>,
    per_node: u32,
}

impl Lists {
    /// Creates streams with these steps for each process, in order. 0 processes per node count as
    /// 1.
    pub fn new(steps: Vec<Vec<Step>>, per_node: u32) -> Self {
        Self { steps: steps.into_iter().map(Vec::into_iter).collect(), per_node: per_node.max(1) }
    }
}

impl Streams for Lists {
    fn processes(&self) -> u32 {
        self.steps.len() as u32
    }

    fn node_of(&self, process: u32) -> u32 {
        process / self.per_node
    }

    fn next(&mut self, process: u32) -> Option<Step> {
        self.steps[process as usize].next()
    }
}

/// One round of a benchmark: all of its writes, or all of its reads. Steps are generated on demand.
///
/// A process continues with its next request as soon as one is done, independently of the others,
/// but collective requests wait for all processes. Files are numbered as in [`synth::Job::files`],
/// starting at `first_file`.
pub struct Rounds<'a> {
    per_node: u32,
    first_file: u32,
    steps: Box<dyn Iterator<Item = synth::Step> + 'a>,
    queued: Vec<VecDeque<Step>>,
    waits: bool,
}

impl<'a> Rounds<'a> {
    /// All rounds of a benchmark, in order. Without `waits`, collective requests do not wait for
    /// other processes; the difference in time is the cost of waiting.
    pub fn of(benchmark: &'a dyn Benchmark, first_file: u32, waits: bool) -> Vec<Self> {
        let job = benchmark.job();
        let queued = vec![VecDeque::new(); job.processes as usize];
        let per_node = job.per_node.max(1);
        let round = |(_, steps)| Self { per_node, first_file, steps, queued: queued.clone(), waits };
        benchmark.rounds().into_iter().map(round).collect()
    }

    /// Queues the next step of the benchmark; false if there are no more.
    fn advance(&mut self) -> bool {
        let Some(step) = self.steps.next() else { return false };
        let Some(op) = op_of(step.op) else { return true };
        for call in &step.calls {
            let file = self.first_file + call.file;
            let request = Step::Request { file, op, offset: call.offset, size: call.size };
            self.queued[call.rank as usize].push_back(request);
        }
        if self.waits && step.flags.has(Flags::COLLECTIVE) {
            self.queued.iter_mut().for_each(|queue| queue.push_back(Step::Barrier));
        }
        true
    }
}

/// The direction of a traced call, if it moves data.
fn op_of(op: TracedOp) -> Option<Op> {
    match op {
        TracedOp::Read => Some(Op::Read),
        TracedOp::Write => Some(Op::Write),
        _ => None,
    }
}

impl Streams for Rounds<'_> {
    fn processes(&self) -> u32 {
        self.queued.len() as u32
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

/// The steps of each process in a trace whose requests come in order of their start. Memory grows
/// with the distance by which some processes are ahead of others in the trace.
///
/// Reads and writes that moved bytes become requests for these bytes. Collective calls (marks)
/// become barriers if all processes take part. With `compute`, the time between two requests of a
/// process becomes computing.
pub struct Queued<I> {
    requests: I,
    nodes: Vec<u32>,
    compute: bool,
    queued: Vec<VecDeque<Step>>,
    /// Per process, the time when its last request ended, ns.
    ended_ns: Vec<Option<u64>>,
    /// Per process, the number of requests left.
    left: Vec<u64>,
}

impl<I: Iterator<Item = TracedRequest>> Queued<I> {
    /// For processes on these nodes; the caller chooses the node numbers. `counts` has the number
    /// of requests that move bytes for every process. A process that has made all of them has
    /// ended, which is then known without reading the rest of the trace.
    pub fn new(requests: I, nodes: Vec<u32>, counts: Vec<u64>, compute: bool) -> Self {
        let (queued, ended_ns) = (vec![VecDeque::new(); nodes.len()], vec![None; nodes.len()]);
        Self { requests, nodes, compute, queued, ended_ns, left: counts }
    }

    /// Queues the next request; false if there are no more.
    fn advance(&mut self) -> bool {
        let Some(request) = self.requests.next() else { return false };
        let process = request.process as usize;
        let is_of_all = request.size == self.nodes.len() as u64;
        let step = match op_of(request.op) {
            Some(op) if request.bytes() > 0 => {
                Step::Request { file: request.file, op, offset: request.offset, size: request.bytes() }
            }
            None if request.op == TracedOp::Mark && is_of_all => Step::Barrier,
            _ => return true,
        };
        if process >= self.nodes.len() {
            return true;
        }
        if let (true, Step::Request { .. }) = (self.compute, step) {
            let before_ns = self.ended_ns[process].replace(request.end_ns);
            let idle_ns = before_ns.map_or(0, |before_ns| request.start_ns.saturating_sub(before_ns));
            if idle_ns > 0 {
                self.queued[process].push_back(Step::Compute { seconds: idle_ns as f64 / 1e9 });
            }
        }
        self.queued[process].push_back(step);
        true
    }
}

impl<I: Iterator<Item = TracedRequest>> Streams for Queued<I> {
    fn processes(&self) -> u32 {
        self.nodes.len() as u32
    }

    fn node_of(&self, process: u32) -> u32 {
        self.nodes[process as usize]
    }

    fn next(&mut self, process: u32) -> Option<Step> {
        loop {
            if let Some(step) = self.queued[process as usize].pop_front() {
                if let Step::Request { .. } = step {
                    self.left[process as usize] -= 1;
                }
                return Some(step);
            }
            if self.left[process as usize] == 0 || !self.advance() {
                return None;
            }
        }
    }
}
