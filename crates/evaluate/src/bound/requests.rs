//! Counts the requests of a program.

use std::collections::BTreeMap;

use stripewise_model::{Access, ClassParams, Op, Service};
use stripewise_trace::synth;

use crate::cell::{Part, Program};

/// The requests of a part.
pub(super) struct Requests {
    /// (bytes, number of requests) for each size.
    pub sizes: Vec<(u64, u64)>,
    /// Number of processes that issue requests.
    pub chains: u32,
    /// Number of nodes on which they run.
    pub nodes: u32,
    /// Whether processes access random places.
    pub random: bool,
    /// Fraction of the requests that can continue where their process stopped. For regular patterns
    /// this is 1, whatever lies between the requests in the file: some layout puts those bytes on
    /// other servers.
    pub in_order: f64,
}

impl Requests {
    pub fn of(part: &Part) -> Self {
        let job = part.program.benchmark().job();
        let nodes = job.processes.div_ceil(job.per_node);
        let mut requests =
            Self { sizes: Vec::new(), chains: job.processes, nodes, random: false, in_order: 1.0 };
        match &part.program {
            Program::Ior(ior) => {
                let each = ior.block / ior.transfer * ior.segments;
                requests.sizes.push((ior.transfer, each * u64::from(ior.processes)));
                requests.random = ior.access == synth::Access::Random;
                if requests.random {
                    // A random request continues the previous one by chance only.
                    requests.in_order = 1.0 / each as f64;
                }
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

    /// Counts the requests one by one.
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

    /// Returns the mean parameters of a request on a server of the class.
    pub fn service(&self, class: &ClassParams, op: Op) -> Service {
        let (random, in_order) = (class.service(op, Access::Random), class.service(op, Access::Sequential));
        let mean = |random: f64, in_order: f64| random + self.in_order * (in_order - random);
        Service {
            startup_s: mean(random.startup_s, in_order.startup_s),
            per_byte_s: mean(random.per_byte_s, in_order.per_byte_s),
        }
    }

    pub fn bytes(&self) -> f64 {
        self.sizes.iter().map(|&(size, count)| size as f64 * count as f64).sum()
    }
}
