//! The requests of a trace.

use std::collections::VecDeque;

use stripewise_trace::{Op as Traced, Request};

use super::benchmark::op_of;
use super::{Step, Streams};

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

impl<I: Iterator<Item = Request>> Queued<I> {
    /// For processes on these nodes; the caller chooses the node numbers.
    pub fn new(requests: I, nodes: Vec<u32>, compute: bool) -> Self {
        let (queued, ended_ns) = (vec![VecDeque::new(); nodes.len()], vec![None; nodes.len()]);
        let left = vec![u64::MAX; nodes.len()];
        Self { requests, nodes, compute, queued, ended_ns, left }
    }

    /// Sets the number of requests that move bytes for every process. A process that has made all
    /// of them has ended, which is then known without reading the rest of the trace.
    pub fn with_counts(self, counts: Vec<u64>) -> Self {
        Self { left: counts, ..self }
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
            None if request.op == Traced::Mark && is_of_all => Step::Barrier,
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

impl<I: Iterator<Item = Request>> Streams for Queued<I> {
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
            if self.left[process as usize] == 0 {
                return None;
            }
            if !self.advance() {
                return None;
            }
        }
    }
}
