//! Servers that take the time of a class of `cluster.toml`: for test beds.
//!
//! Every emulated server has a word in memory shared by all processes of a user on the node: the time until which it is
//! busy. A request reserves its time there on each of the servers it touches (compare-and-swap), does its real
//! I/O, and returns at the latest of the reserved ends. So requests of all processes queue up as at a real server, and a
//! request over several servers takes as long as the slowest.
//!
//! Paced are reads and writes through [`FanOut`](crate::FanOut). Syncs, truncates, opening, creating and removing are free.

use std::path::Path;
use std::sync::Arc;

use stripewise_model::ClassParams;
use stripewise_sys::{Result, SysRef};

/// The shared state of all emulated servers of a user.
#[derive(Debug)]
pub struct Emulation {}

/// One emulated server, as a component set uses it. Cloned handles are the same server, but streams of their own:
/// whether an access is sequential is decided per handle.
#[derive(Clone, Debug)]
pub struct Server {}

impl Emulation {
    /// Attaches to the state in `path`; `None`: `/dev/shm/stripewise-emulation-UID`. Created when absent; emptied when
    /// nobody else is attached, so nothing of earlier runs, earlier boots or killed processes is left.
    ///
    /// # Errors
    /// As open(2), mmap(2); EPERM when the file belongs to another user.
    pub fn attach(sys: &SysRef, path: Option<&Path>) -> Result<Arc<Self>> {
        let _ = (sys, path);
        todo!()
    }

    /// The server of target `target_id` (its marker's id, or any other unique name), paced by `params`.
    ///
    /// # Errors
    /// ENOSPC when more than 16384 servers are known.
    pub fn server(self: &Arc<Self>, target_id: &str, params: &ClassParams) -> Result<Server> {
        let _ = (target_id, params);
        todo!()
    }
}
