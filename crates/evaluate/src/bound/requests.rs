//! The requests of a program, counted.

use std::collections::BTreeMap;

use stripewise_model::Access;
use stripewise_trace::synth;

use crate::cell::{Part, Program};

/// What a part asks for.
pub(super) struct Requests {
    /// (bytes, how many).
    pub sizes: Vec<(u64, u64)>,
    /// Processes that have requests.
    pub chains: u32,
    /// Nodes that they run on.
    pub nodes: u32,
    /// Whether processes go from one place to any other.
    pub random: bool,
    /// Whether a process may go on where it was.
    in_order: bool,
}

impl Requests {
    pub fn of(part: &Part) -> Self {
        let job = part.program.benchmark().job();
        let nodes = job.processes.div_ceil(job.per_node);
        let mut requests =
            Self { sizes: Vec::new(), chains: job.processes, nodes, random: false, in_order: true };
        match &part.program {
            Program::Ior(ior) => {
                let each = ior.block / ior.transfer * ior.segments;
                requests.sizes.push((ior.transfer, each * u64::from(ior.processes)));
                requests.random = ior.access == synth::Access::Random;
                requests.in_order = !requests.random;
            }
            Program::Hpio(hpio) if hpio.collective.is_none() => {
                requests.sizes.push((hpio.region_size, hpio.regions * u64::from(hpio.processes)));
            }
            Program::Tile(tile) if tile.collective.is_none() => {
                let rows = tile.elements_y * u64::from(job.processes);
                requests.sizes.push((tile.elements_x * tile.element_size, rows));
            }
            Program::Hpio(_) | Program::Tile(_) | Program::Btio(_) => requests.count(part),
        }
        requests
    }

    /// Counts them one by one.
    fn count(&mut self, part: &Part) {
        let mut sizes = BTreeMap::new();
        let mut most = 1;
        for (_, steps) in part.program.benchmark().rounds() {
            for step in steps {
                most = most.max(step.calls.len() as u32);
                for call in step.calls {
                    *sizes.entry(call.size).or_insert(0) += 1;
                }
            }
        }
        self.sizes = sizes.into_iter().collect();
        self.chains = most;
    }

    /// With whose parameters nothing is faster than it can be.
    pub fn access(&self) -> Access {
        if self.in_order { Access::Sequential } else { Access::Random }
    }

    pub fn bytes(&self) -> f64 {
        self.sizes.iter().map(|&(size, count)| size as f64 * count as f64).sum()
    }
}
