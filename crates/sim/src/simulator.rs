//! The simulator as its users see it.

use std::ops::Range;
use std::path::Path;

use stripewise_cluster::{Cluster, Plan};

use crate::ends::Ends;
use crate::file::Files;
use crate::network::Net;
use crate::overlay::Spaces;
use crate::placed::{Scratch, Sub};
use crate::process::Process;
use crate::queue::Queue;
use crate::server::Servers;
use crate::{Options, Outcome, SimError, Streams};

/// A cluster and the files on it, in virtual time: the same input gives the same bits.
///
/// What is in caches, and which copies hold the newest bytes, stays from one run to the next. Not shareable between threads; independent
/// simulators are.
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
    /// If it is simulated.
    pub(crate) net: Option<Net>,
    /// What caches hold.
    pub(crate) spaces: Spaces,
    /// Per [`Spaces::account_of`] a server, until when it counts as used by applications, ns.
    pub(crate) used_until_ns: Vec<u64>,
    /// Virtual time, ns.
    pub(crate) now_ns: u64,
    /// Processes that have not ended, and of these those that wait for the others.
    pub(crate) alive: u32,
    pub(crate) waiting: Vec<u32>,
    /// All transfers of files with several copies.
    #[cfg(test)]
    pub(crate) log: Vec<(u32, stripewise_model::Op, crate::run::Sender, Vec<crate::overlay::Part>)>,
    /// Of the present run.
    pub(crate) outcome: Outcome,
}

impl Simulator {
    /// Of a cluster without files. Emulated servers are as fast as their class says, others as measured.
    ///
    /// # Errors
    /// A tier without parameters, or with such as are no times; an option that is none.
    pub fn new(cluster: &Cluster, options: Options) -> Result<Self, SimError> {
        options.check()?;
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

    /// Places files as a plan says, as the data path does when they are made: returns the numbers that requests know them by, in the order
    /// of `paths`. They are full: what was never written reads from any copy. `procs` (p) and `procs_per_node` (c) are what the policy goes by;
    /// an MPI library tells them at run time.
    ///
    /// # Errors
    /// A file that no rule places; a plan for other servers.
    pub fn open(
        &mut self,
        plan: &Plan,
        paths: &[impl AsRef<Path>],
        procs: u32,
        procs_per_node: u32,
    ) -> Result<Range<u32>, SimError> {
        let (planned, there) = (plan.cluster.target_count(), self.servers.len());
        if planned != there {
            return Err(SimError::OtherCluster { plan: planned, cluster: there });
        }
        let first = self.files.files.len() as u32;
        self.files.open(plan, paths, there, (procs.max(1), procs_per_node.clamp(1, procs.max(1))))?;
        Ok(first..self.files.files.len() as u32)
    }

    /// Number of servers.
    pub fn servers(&self) -> usize {
        self.servers.len()
    }

    /// Runs an application: each of its processes does one thing after the other, all of them at once. Returns when the last has ended.
    ///
    /// # Panics
    /// A request on a file that was not opened, or that ends past 2^63.
    pub fn run(&mut self, streams: &mut dyn Streams) -> Outcome {
        let began_ns = self.now_ns;
        self.begin(streams);
        self.go(streams);
        Outcome { ends_s: self.ends(began_ns), ..self.end(began_ns) }
    }
}
