//! The processes of a run.

use std::collections::HashMap;

use stripewise_policy::{Cdt, Sent};

use crate::ends::Order;
use crate::overlay::{Memory, Ordered};

/// A process's use of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub file: u32,
    /// How the file lies if it has one copy.
    pub single: Option<u32>,
    pub order: Order,
}

/// One process.
#[derive(Debug, Default)]
pub(crate) struct Process {
    pub node: u32,
    /// The file that it used last, and the others.
    pub last: Option<Handle>,
    pub others: Vec<Handle>,
    /// When it ended, ns.
    pub ended_ns: u64,
    /// Sub-requests of its request that are not done, or files that it closes.
    pub waits_for: u32,
    /// When the last of those that are was done, ns.
    pub done_ns: u64,
    /// Its request on a file with several copies that is on its way through the network: the file, and when it began, ns.
    pub under_way: Option<(u32, u64)>,
    /// Of files with several copies.
    pub memory: Option<Box<Memory>>,
}

impl Process {
    /// What the policy remembers: of all files, and of this one.
    pub fn policy(&mut self, file: u32) -> (&mut Cdt, &Sent) {
        let memory = self.memory.get_or_insert_default();
        (&mut memory.cdt, memory.sent.entry(file).or_default())
    }

    /// Where its requests on a file ended.
    pub fn ordered(&mut self, file: u32) -> &mut Ordered {
        let ordered: &mut HashMap<u32, Ordered> = &mut self.memory.get_or_insert_default().ordered;
        ordered.entry(file).or_default()
    }
}
