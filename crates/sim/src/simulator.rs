//! The simulator's public interface.

use std::ops::Range;
use std::path::Path;

use stripewise_cluster::{Cluster, Plan, RuleIndex};

use crate::ends::Ends;
use crate::file::{Files, Known};
use crate::network::Net;
use crate::overlay::Spaces;
use crate::placed::{Scratch, Sub};
use crate::process::Process;
use crate::queue::Queue;
use crate::server::Servers;
use crate::{Options, Outcome, SimError};

/// A cluster and its files in virtual time. The same input gives the same bits.
///
/// The contents of caches, and the copies that hold the newest bytes, persist from one run to the
/// next. A simulator cannot be shared by threads; independent simulators can run in parallel.
#[derive(Debug)]
pub struct Simulator {
    pub(crate) options: Options,
    pub(crate) servers: Servers,
    pub(crate) files: Files,
    pub(crate) ends: Ends,
    pub(crate) processes: Vec<Process>,
    pub(crate) queue: Queue,
    pub(crate) scratch: Scratch,
    pub(crate) subs: Vec<Sub>,
    pub(crate) marks: Vec<Sub>,
    /// `None` if the network is not simulated.
    pub(crate) net: Option<Net>,
    /// Space used by cached data.
    pub(crate) spaces: Spaces,
    /// Per [`Spaces::account_of`] a server, the time until which the server counts as used by
    /// applications, ns.
    pub(crate) used_until_ns: Vec<u64>,
    /// Virtual time, ns.
    pub(crate) now_ns: u64,
    /// Number of processes that have not ended, and those of them that wait at a barrier.
    pub(crate) alive: u32,
    pub(crate) waiting: Vec<u32>,
    /// Log of all transfers of files with several copies.
    #[cfg(test)]
    pub(crate) log: Vec<(u32, stripewise_model::Op, crate::process::Sender, Vec<stripewise_policy::Part>)>,
    pub(crate) outcome: Outcome,
}

impl Simulator {
    /// Creates a simulator of a cluster without files. Emulated servers have the parameters of
    /// their class, others the measured ones.
    ///
    /// # Errors
    /// A tier without parameters or with invalid times; an invalid option.
    pub fn new(cluster: &Cluster, options: Options) -> Result<Self, SimError> {
        if !(0.0..1.0).contains(&options.jitter) {
            return Err(SimError("the jitter of service times must be at least 0 and below 1".to_owned()));
        }
        cluster.network.check()?;
        let servers = Servers::new(cluster, options.jitter, options.seed)?;
        Ok(Self {
            net: options.network.then(|| Net::new(&cluster.network, servers.len())),
            spaces: Spaces::new(cluster),
            used_until_ns: vec![0; servers.len()],
            servers,
            options,
            files: Files::default(),
            ends: Ends::default(),
            processes: Vec::new(),
            queue: Queue::default(),
            scratch: Scratch::default(),
            subs: Vec::new(),
            marks: Vec::new(),
            now_ns: 0,
            alive: 0,
            waiting: Vec::new(),
            #[cfg(test)]
            log: Vec::new(),
            outcome: Outcome::default(),
        })
    }

    /// Places files as a plan says, as the data path does when it creates them. Returns the numbers
    /// that requests use for them, in the order of `paths`. The files are full: bytes that were
    /// never written can be read from any copy. The policy uses `procs` (p) and `procs_per_node`
    /// (c); at run time an MPI library supplies these.
    ///
    /// # Errors
    /// A file that no rule places; a plan for other servers.
    pub fn open<P: AsRef<Path>>(
        &mut self,
        plan: &Plan,
        paths: &[P],
        procs: u32,
        procs_per_node: u32,
    ) -> Result<Range<u32>, SimError> {
        let (planned, there) = (plan.cluster.target_count(), self.servers.len());
        if planned != there {
            return Err(SimError(format!(
                "the plan has {planned} servers and the simulated cluster {there}: simulate the cluster that the plan was \
                 made for"
            )));
        }
        let procs = (procs.max(1), procs_per_node.clamp(1, procs.max(1)));
        let (mut known, rules) = (Known::default(), RuleIndex::of(plan));
        let place = |path: &P| self.files.place((plan, &rules), path.as_ref(), there, procs, &mut known);
        let placed = paths.iter().map(place).collect::<Result<Vec<_>, _>>()?;
        let first = self.files.files.len() as u32;
        self.files.files.extend(placed);
        Ok(first..self.files.files.len() as u32)
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }
}
