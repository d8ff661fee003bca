//! The requests of a program, counted.

use std::collections::BTreeMap;

use stripewise_model::{Access, ClassParams, Op, Service};
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
    /// The part of the requests that may go on where their process was. Regular ones all may, whatever lies between them in the
    /// file: under some layout what is there is on other servers.
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
                    // By chance.
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

    /// What one costs a server of a class on average.
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
