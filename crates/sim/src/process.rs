//! The processes of a run.

use std::collections::HashMap;

use stripewise_policy::{Cdt, Sent, Streams};

use crate::ends::Order;

/// A process's use of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub file: u32,
    /// Number of the file's [`Placed`](crate::placed::Placed), if it has a single copy.
    pub single: Option<u32>,
    pub order: Order,
}

/// A process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub node: u32,
    /// The file used last, and the others.
    pub last: Option<Handle>,
    pub others: Vec<Handle>,
    /// Time when the process ended, ns.
    pub ended_ns: u64,
    /// Number of unfinished sub-requests of its request, or of files that it is closing.
    pub waits_for: u32,
    /// Time when the last finished sub-request was done, ns.
    pub done_ns: u64,
    /// The request on a file with several copies that is in the network: the file, and the start of
    /// the request, ns.
    pub under_way: Option<(u32, u64)>,
    /// State of the policy, for files with several copies.
    pub memory: Option<Box<Memory>>,
}

impl Process {
    /// The policy's state for all files, and for this one.
    pub fn policy(&mut self, file: u32) -> (&mut Cdt, &Sent) {
        let memory = self.memory.get_or_insert_default();
        (&mut memory.cdt, memory.sent.entry(file).or_default())
    }

    /// The ends of the process's requests on a file.
    pub fn streams(&mut self, file: u32) -> &Streams {
        self.memory.get_or_insert_default().streams.entry(file).or_default()
    }
}

/// The policy's state of one process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    cdt: Cdt,
    /// Per file, the work sent.
    sent: HashMap<u32, Sent>,
    /// Per file, the ends of requests.
    streams: HashMap<u32, Streams>,
}

/// The sender of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sender {
    Process(u32),
    Background,
}

impl Sender {
    /// The number by which servers know it.
    pub fn number(self) -> u32 {
        match self {
            Self::Process(process) => process,
            Self::Background => u32::MAX,
        }
    }
}
