//! The general formula on a layout, with all that does not depend on the request computed beforehand.

use std::ops::Range;

use stripewise_layout::{Layout, LayoutError, MAX_OFFSET, Region, Stripe};

use crate::cost::Cost;
use crate::error::{self, ModelError};
use crate::general::{self, Server, Share, Startup, larger};
use crate::params::Network;

/// The cost of any request on one layout. Made once per layout and group of requests, evaluated per request.
#[derive(Clone, Debug)]
pub struct PreparedCost {
    /// With targets renumbered so that like servers are neighbours.
    layout: Layout,
    /// Like servers: of these only the number touched and the most bytes matter.
    kinds: Vec<(Range<usize>, Server)>,
    network: Network,
    procs_per_node: u32,
    startup: Startup,
}

impl PreparedCost {
    /// For requests that see target `t` of the layout as `servers[t]`; `procs_per_node` is c.
    ///
    /// # Errors
    /// A target of the layout without a server; times that are not; no process per node.
    pub fn new(
        layout: &Layout,
        servers: &[Server],
        network: Network,
        procs_per_node: u32,
        startup: Startup,
    ) -> Result<Self, ModelError> {
        network.check()?;
        error::count("the number of processes per node", procs_per_node)?;
        if let Some(target) = layout.targets().find(|&target| target as usize >= servers.len()) {
            return Err(ModelError::UnknownTarget { target, known: servers.len() });
        }
        let (kinds, number) = group(layout, servers);
        let layout = renumbered(layout, &number).expect("still valid: only the targets' numbers changed");
        Ok(Self { layout, kinds, network, procs_per_node, startup })
    }

    /// The cost of the request of `size` bytes at `offset`. Nothing for 0 bytes; bytes past [`MAX_OFFSET`] do
    /// not count.
    pub fn cost(&self, offset: u64, size: u64) -> Cost {
        match self.layout.target_count() {
            0..=8 => self.cost_with(offset, size, &mut [0; 8]),
            9..=64 => self.cost_with(offset, size, &mut [0; 64]),
            many => self.cost_with(offset, size, &mut vec![0; many]),
        }
    }

    fn cost_with(&self, offset: u64, size: u64, scratch: &mut [u64]) -> Cost {
        let bytes = &mut scratch[..self.layout.target_count()];
        self.layout.bytes_per_target(offset, size, bytes);
        let shares = self.kinds.iter().map(|(range, server)| {
            let (mut most, mut count) = (0.0, 0);
            for &bytes in &bytes[range.clone()] {
                // Signed: one instruction. As floating point: the largest of integers would be looked for several
                // at a time, which has to wait for the single stores that filled `bytes`.
                most = larger(most, bytes as i64 as f64);
                count += u32::from(bytes > 0);
            }
            Share { server: *server, bytes: most, count }
        });
        let size = size.min(MAX_OFFSET.saturating_sub(offset));
        general::cost(self.startup, &self.network, self.procs_per_node, size as f64, shares)
    }
}

/// The used targets in an order that has like servers together: the groups, and each target's place in the order.
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

fn renumbered(layout: &Layout, number: &[u32]) -> Result<Layout, LayoutError> {
    let stripe = |&Stripe { target, width }: &Stripe| Stripe { target: number[target as usize], width };
    let region = |region: &Region| Region {
        start: region.start,
        end: region.end,
        cycle: region.cycle.iter().map(stripe).collect(),
    };
    Layout::new(layout.regions().iter().map(region).collect())
}
