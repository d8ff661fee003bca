//! The steps of an application's processes.

mod benchmark;
mod queued;

use stripewise_model::Op;

pub use benchmark::Rounds;
pub use queued::Queued;

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
    /// The steps of each process, in order.
    pub steps: Vec<Vec<Step>>,
    /// Processes per node; 0 counts as 1.
    pub per_node: u32,
    next: Vec<usize>,
}

impl Lists {
    /// Creates streams with these steps.
    pub fn new(steps: Vec<Vec<Step>>, per_node: u32) -> Self {
        let next = vec![0; steps.len()];
        Self { steps, per_node, next }
    }
}

impl Streams for Lists {
    fn processes(&self) -> u32 {
        self.steps.len() as u32
    }

    fn node_of(&self, process: u32) -> u32 {
        process / self.per_node.max(1)
    }

    fn next(&mut self, process: u32) -> Option<Step> {
        let next = &mut self.next[process as usize];
        *next += 1;
        self.steps[process as usize].get(*next - 1).copied()
    }
}
