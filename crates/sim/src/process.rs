//! The processes of a run.

use std::collections::HashMap;

use stripewise_policy::{Cdt, Sent, Streams};

use crate::ends::Order;

/// A process's use of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub file: u32,
    pub order: Order,
}

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
    /// The policy's state: of all files, and the work sent and the ends of requests on this file.
    pub fn policy(&mut self, file: u32) -> (&mut Cdt, &Sent, &Streams) {
        let memory = self.memory.get_or_insert_default();
        let (sent, streams) = memory.files.entry(file).or_default();
        (&mut memory.cdt, sent, streams)
    }
}

/// The policy's state of one process.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    cdt: Cdt,
    files: HashMap<u32, (Sent, Streams)>,
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
