//! Extra copies of a rule's files: replicas with other layouts (CIL §5), or cache copies on a
//! faster tier (SLA).

use serde::{Deserialize, Serialize};
use stripewise_layout::Layout;

use crate::names::named;
use crate::pattern::Spread;

/// Maximum number of copies of one file, including the original: the number of bits in the extent
/// map's masks.
pub const MAX_COPIES: usize = 8;

/// The copies of a rule's files in addition to the original, and how they are maintained.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// The purpose of the copies.
    pub kind: OverlayKind,
    /// Copies 1, 2, ...: at least 1 and at most [`MAX_COPIES`]` - 1`, with different names.
    pub copies: Vec<CopySpec>,
    /// Close does not wait for the background copying; the next process or `stripewise drain`
    /// completes it.
    pub lazy_close: bool,
    /// When the extent map is made durable.
    pub durability: Durability,
    /// Maximum number of bytes per second that background copying moves, at least 1; `None`: no
    /// limit.
    pub background: Option<u64>,
    /// The p that the plan assumed, at least 1. A value known at run time takes precedence.
    pub procs: u32,
    /// The c that the plan assumed, at least 1 and at most p.
    pub procs_per_node: u32,
}

/// The purpose of a file's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayKind {
    /// Whole copies, all of which hold all data once they are in sync.
    Replicas,
    /// Copies of the ranges of the file that gain most.
    Cache {
        /// Which data are admitted, and to which copy.
        mode: CacheMode,
        /// Which critical writes are admitted while there is space.
        admission: CacheAdmission,
        /// Bytes that the copies of all files together may fill on each of their servers, at least
        /// 1.
        capacity_per_server: u64,
    },
}

/// Which data the cache admits: the schemes that SLA compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Performance-critical data, each in the layout that gains most.
    #[default]
    Sla,
    /// Performance-critical data by the benefit of 1-DH, in 1-DH.
    Sca,
    /// All data, in 1-DH.
    Nsca,
    /// No new data; data already in the cache is still served.
    Off,
}

/// Which critical writes modes `sla` and `sca` admit while there is space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheAdmission {
    /// The writes that keep the servers of the cache and of the original equally busy: stripewise's
    /// own policy, `stripewise_policy::balance`.
    #[default]
    Balanced,
    /// All critical writes, until the space is full: Algorithm 1 as SLA prints it.
    AsPrinted,
}

/// When the extent map is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At fsync, `MPI_File_sync` and close.
    #[default]
    Sync,
    /// With every write, as SLA requires.
    EachWrite,
}

/// One extra copy.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySpec {
    /// A name for people: `1-DV`, `stripe 4M`, ...
    pub name: String,
    /// At least one layout; target indices as in [`crate::Cluster::targets`].
    pub layouts: Vec<Layout>,
    /// How a file's number selects one of several layouts.
    pub spread: Spread,
    /// g: the number of groups into which the copy's servers are divided; one group serves each
    /// request. 1 is 1-DH, and the number of servers is 1-DV. Only cache copies have more than 1;
    /// for replicas, the layouts show which servers a request touches.
    pub groups: u32,
}

impl CopySpec {
    /// The targets of all layouts, ascending, each once.
    pub fn targets(&self) -> Vec<u32> {
        let mut targets: Vec<u32> = self.layouts.iter().flat_map(Layout::targets).collect();
        targets.sort_unstable();
        targets.dedup();
        targets
    }
}

named!(CacheMode: Sla = "sla", Sca = "sca", Nsca = "nsca", Off = "off");
named!(CacheAdmission: Balanced = "balanced", AsPrinted = "as-printed");
named!(Durability: Sync = "sync", EachWrite = "each-write");
