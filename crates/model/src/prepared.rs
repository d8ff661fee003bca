//! The general formula on a layout, with everything that does not depend on the request
//! precomputed.

use std::ops::Range;

use stripewise_layout::{Layout, MAX_OFFSET};

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::general::{self, Server, Share, Startup, larger};
use crate::params::{Network, Service};
use crate::reach::Reach;

/// The cost of any request on one layout. It is prepared once per layout and group of requests, and
/// evaluated per request.
#[derive(Clone, Debug)]
pub struct PreparedCost {
    /// The layout, with targets renumbered so that equal servers are adjacent.
    layout: Layout,
    /// Ranges of equal servers. Of each range, only the number of servers touched and the most
    /// bytes on one of them matter.
    kinds: Vec<(Range<usize>, Server)>,
    network: Network,
    procs_per_node: u32,
    startup: Startup,
    /// The number of processes that share a server, by region of the layout, where that depends on
    /// the request.
    reach: Option<Vec<Reach>>,
}

impl PreparedCost {
    /// For requests that see target `t` of the layout as `servers[t]`; `procs_per_node` is c.
    ///
    /// # Errors
    /// A target of the layout without a server; invalid times; 0 processes per node.
    pub fn new(
        layout: &Layout,
        servers: &[Server],
        network: Network,
        procs_per_node: u32,
        startup: Startup,
    ) -> Result<Self, ModelError> {
        network.check()?;
        error::at_least_1("the number of processes per node", procs_per_node)?;
        error::targets_known(layout, servers.len())?;
        let (kinds, number) = group(layout, servers);
        let layout = layout
            .renumbered(|target| number[target as usize])
            .expect("still valid: only the targets' numbers changed");
        Ok(Self { layout, kinds, network, procs_per_node, startup, reach: None })
    }

    /// For requests of any size by `procs` processes (p), when nothing but the request is known: a
    /// server is shared by as many of the processes as requests of this size reach it. CIL's
    /// layouts get the paper's q: p in 1-DH, ⌈p/n⌉ in 1-DV, ⌈p/g⌉ in 2-D.
    ///
    /// In a region with a cycle of C bytes, w of which are on server i, aligned requests of r bytes
    /// reach the server with probability `min(1, max(r, w)/C)`. The processes' files are spread
    /// evenly over `spread_over` servers (n), of which this layout uses k: a process's requests
    /// reach them with k/n of that probability.
    ///
    /// # Errors
    /// As [`PreparedCost::new`]; no process, or more per node than processes.
    pub fn by_reach(
        layout: &Layout,
        services: &[Service],
        spread_over: usize,
        network: Network,
        (procs, procs_per_node): (u32, u32),
        startup: Startup,
    ) -> Result<Self, ModelError> {
        error::processes(procs, procs_per_node)?;
        let servers: Vec<Server> =
            services.iter().map(|&service| Server::new(service, 1)).collect::<Result<_, _>>()?;
        let mut prepared = Self::new(layout, &servers, network, procs_per_node, startup)?;
        prepared.reach = Some(Reach::by_region(&prepared.layout, &prepared.kinds, procs, spread_over));
        Ok(prepared)
    }

    /// The cost of the request of `size` bytes at `offset`. A request of 0 bytes costs nothing;
    /// bytes past [`MAX_OFFSET`] do not count.
    pub fn cost(&self, offset: u64, size: u64) -> Cost {
        match self.layout.target_count() {
            0..=8 => self.cost_with(offset, size, &mut [0; 8]),
            9..=64 => self.cost_with(offset, size, &mut [0; 64]),
            _ => self.cost_of_touched(offset, size),
        }
    }

    fn cost_with(&self, offset: u64, size: u64, scratch: &mut [u64]) -> Cost {
        let bytes = &mut scratch[..self.layout.target_count()];
        self.layout.bytes_per_target(offset, size, bytes);
        self.cost_by_kind(offset, size, |range| largest(bytes[range.clone()].iter().copied()))
    }

    /// The cost without visiting the servers that the request does not touch.
    fn cost_of_touched(&self, offset: u64, size: u64) -> Cost {
        let mut touched = Vec::new();
        self.layout.bytes_by_target(offset, size, &mut touched);
        self.cost_by_kind(offset, size, |range| {
            let place = |end: usize| touched.partition_point(|&(target, _)| (target as usize) < end);
            largest(touched[place(range.start)..place(range.end)].iter().map(|&(_, bytes)| bytes))
        })
    }

    /// The cost of a request that puts on a range of equal servers what `on` says: the most bytes
    /// on one of them, and the number of those touched.
    #[inline]
    fn cost_by_kind(&self, offset: u64, size: u64, on: impl Fn(&Range<usize>) -> (f64, u32) + Clone) -> Cost {
        match &self.reach {
            None => self.shared_cost(offset, size, on, |_, server| server),
            Some(reach) => {
                let reach = &reach[self.layout.region_at(offset)];
                self.shared_cost(offset, size, on, |kind, server| {
                    server.shared_by(reach.sharing(kind, size as f64))
                })
            }
        }
    }

    #[inline]
    fn shared_cost(
        &self,
        offset: u64,
        size: u64,
        on: impl Fn(&Range<usize>) -> (f64, u32) + Clone,
        shared: impl Fn(usize, Server) -> Server + Clone,
    ) -> Cost {
        let shares = self.kinds.iter().enumerate().map(|(kind, (range, server))| {
            let (bytes, count) = on(range);
            Share { server: shared(kind, *server), bytes, count }
        });
        let size = size.min(MAX_OFFSET.saturating_sub(offset));
        general::cost(self.startup, &self.network, self.procs_per_node, size as f64, shares)
    }
}

/// The largest of several numbers of bytes, and how many of them are not 0.
#[inline]
fn largest(bytes: impl Iterator<Item = u64>) -> (f64, u32) {
    let (mut most, mut count) = (0.0, 0);
    for bytes in bytes {
        // The signed conversion is one instruction. The maximum is taken of floating-point numbers
        // because that of integers would be vectorized, and then has to wait for the single stores
        // that filled `bytes`.
        most = larger(most, bytes as i64 as f64);
        count += u32::from(bytes > 0);
    }
    (most, count)
}

/// Orders the used targets so that equal servers are adjacent. Returns the groups, and each
/// target's place in the order.
fn group(layout: &Layout, servers: &[Server]) -> (Vec<(Range<usize>, Server)>, Vec<u32>) {
    let mut kinds: Vec<(Server, Vec<u32>)> = Vec::new();
    for target in layout.targets() {
        let server = servers[target as usize];
        match kinds.iter_mut().find(|kind| kind.0 == server) {
            Some((_, targets)) => targets.push(target),
            None => kinds.push((server, vec![target])),
        }
    }
    let mut number = vec![0; layout.target_count()];
    let mut next = 0;
    let mut place = |(server, targets): (Server, Vec<u32>)| {
        let from = next;
        for target in targets {
            number[target as usize] = next as u32;
            next += 1;
        }
        (from..next, server)
    };
    (kinds.into_iter().map(&mut place).collect(), number)
}
