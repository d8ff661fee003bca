//! Many file sets, and what each of them gets.

use stripewise_cluster::Cluster;
use stripewise_model::{Access, Op};

use crate::options::Options;
use crate::problem::Problem;
use crate::servers::Servers;
use crate::workload::FileSet;

/// A workload of many sets, and where it is to be stored.
pub struct Field<'p> {
    /// The sets.
    pub sets: &'p [FileSet],
    /// The cluster.
    pub cluster: &'p Cluster,
    /// The cluster's parameters by target.
    pub servers: &'p Servers,
    /// The user's options.
    pub options: &'p Options,
    /// The tier of every server.
    pub tier_of: Vec<u32>,
    /// Maximum number of sets that become kinds of their own.
    pub alone_max: usize,
}

/// Which column each set gets.
#[derive(Clone, Copy, Default)]
pub struct Place {
    /// Index of the kind.
    pub kind: u32,
    /// Index of the set among those of its kind.
    pub member: u32,
    /// Index of the column of the kind; 0: the present layout.
    pub column: u8,
}

impl Field<'_> {
    /// The problem of one set with all of the space.
    pub fn problem<'s>(&'s self, set: &'s FileSet) -> Problem<'s> {
        Problem::new(set, self.cluster, self.servers, self.options, set.total_size())
    }

    /// Seconds of a request on the slowest servers.
    pub fn work(&self) -> impl Fn(Op, Access, u64) -> f64 + Sync + '_ {
        let tiers = (0..self.cluster.tiers.len()).filter(|&tier| !self.cluster.targets_of(tier).is_empty());
        let first: Vec<u32> = tiers.map(|tier| self.cluster.targets_of(tier).start).collect();
        move |op, access, bytes| {
            first.iter().map(|&server| self.servers.busy_s(server, op, access, bytes)).fold(0.0, f64::max)
        }
    }
}
