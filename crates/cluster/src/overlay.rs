//! Further copies of a rule's files: replicas with other layouts (CIL §5), or cache copies on a faster tier (SLA).

use stripewise_layout::Layout;

use crate::spread::Spread;

/// Copies of one file at most, the original included: as many as the extent map's masks have bits.
pub const MAX_COPIES: usize = 8;

/// The copies that a rule's files have besides the original, and how they are kept.
#[derive(Clone, Debug, PartialEq)]
pub struct Overlay {
    /// What the copies are for.
    pub kind: OverlayKind,
    /// Copy 1, 2, ...; 1 to [`MAX_COPIES`]` - 1`, their names differ.
    pub copies: Vec<CopySpec>,
    /// Close does not wait for the background copying: the next process or `stripewise drain` does the rest.
    pub lazy_close: bool,
    /// When the extent map is made durable.
    pub durability: Durability,
    /// Most bytes per second that background copying moves, at least 1; `None`: no limit.
    pub background: Option<u64>,
    /// p that the plan assumed, at least 1; what is known at run time counts more.
    pub procs: u32,
    /// c that the plan assumed, at least 1 and at most p.
    pub procs_per_node: u32,
}

/// What the copies of a file are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OverlayKind {
    /// Whole copies, all of which hold everything once they are in sync.
    Replicas,
    /// Copies of those parts of the file that gain most.
    Cache {
        /// What is admitted, and where to.
        mode: CacheMode,
        /// Whether all of it is admitted while there is space.
        admission: CacheAdmission,
        /// Bytes that the copies of all files together may fill on each of their servers, at least 1.
        capacity_per_server: u64,
    },
}

/// Which data the cache admits: the schemes that SLA compares.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheMode {
    /// Performance-critical data, each in the layout that gains most.
    #[default]
    Sla,
    /// Performance-critical data by the benefit of 1-DH, in 1-DH.
    Sca,
    /// Everything, in 1-DH.
    Nsca,
    /// Nothing new; what is cached is still served.
    Off,
}

/// Which critical writes modes `sla` and `sca` admit while there is space.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheAdmission {
    /// Those that keep the servers of the cache and of the original equally busy: ours, `stripewise_policy::balance`.
    #[default]
    Balanced,
    /// All, until the space is full: Algorithm 1 as SLA prints it.
    AsPrinted,
}

/// When the extent map is made durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Durability {
    /// At fsync, `MPI_File_sync` and close.
    #[default]
    Sync,
    /// With every write, as SLA asks for.
    EachWrite,
}

/// One further copy.
#[derive(Clone, Debug, PartialEq)]
pub struct CopySpec {
    /// For people: `1-DV`, `stripe 4M`, ...
    pub name: String,
    /// At least one; target indices as in [`crate::Cluster::targets`].
    pub layouts: Vec<Layout>,
    /// How a file's number picks one of several layouts.
    pub spread: Spread,
    /// g: groups that the copy's servers are divided into, each request being served by one of them: 1 is 1-DH, the
    /// number of servers is 1-DV. Only cache copies have more than 1; what replicas' requests touch is seen from
    /// their layouts.
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

impl CacheMode {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sla, Self::Sca, Self::Nsca, Self::Off];

    /// As written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sla => "sla",
            Self::Sca => "sca",
            Self::Nsca => "nsca",
            Self::Off => "off",
        }
    }

    /// The mode of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|mode| mode.name() == name)
    }
}

impl CacheAdmission {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Balanced, Self::AsPrinted];

    /// As written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Balanced => "balanced",
            Self::AsPrinted => "as-printed",
        }
    }

    /// The admission of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|admission| admission.name() == name)
    }
}

impl Durability {
    /// Both of them.
    pub const ALL: [Self; 2] = [Self::Sync, Self::EachWrite];

    /// As written in files and on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Sync => "sync",
            Self::EachWrite => "each-write",
        }
    }

    /// The durability of this name.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|durability| durability.name() == name)
    }
}
