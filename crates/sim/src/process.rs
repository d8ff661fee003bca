//! The processes of a run.

use crate::ends::Order;

/// A process's use of a file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle {
    pub file: u32,
    pub order: Order,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Process {
    pub node: u32,
    /// The files that it uses; the one that it used last comes first.
    pub handles: Vec<Handle>,
    /// When it ended, ns.
    pub ended_ns: u64,
    /// Sub-requests of its request that are not done.
    pub waits_for: u32,
    /// When the last of those that are was done, ns.
    pub done_ns: u64,
}
