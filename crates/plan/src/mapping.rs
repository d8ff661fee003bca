//! A group's requests on a candidate's layouts: bytes per server, their cost, and their flow through the servers.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use stripewise_layout::Layout;
use stripewise_model::{Cost, Server, Share, Startup, general, sharing};

use crate::elapsed::{Flow, Sub};
use crate::servers::Servers;
use crate::workload::{Group, Request};

/// Which requests of a sample divide alike over the servers.
pub struct Mapped {
    shapes: Vec<Shape>,
    /// (target, bytes) of all shapes, one after the other.
    pieces: Vec<(u32, u64)>,
    /// Per sampled request: its shape.
    order: Vec<u32>,
}

struct Shape {
    /// Region of the first byte: requests of different regions are not alike.
    region: u32,
    size: u64,
    /// Where its pieces begin in [`Mapped::pieces`]; they end where the next shape's begin.
    start: u32,
    count: u64,
}

impl Mapped {
    /// Maps `sample`; the file with index f has `layouts[layout_of[f]]`.
    pub fn new(sample: &[Request], layouts: &[Layout], layout_of: &[u32]) -> Self {
        let cycles: Vec<Vec<u64>> = layouts
            .iter()
            .map(|layout| layout.regions().iter().map(|r| r.cycle.iter().map(|s| s.width).sum()).collect())
            .collect();
        let targets = layouts.iter().map(Layout::target_count).max().unwrap_or(0);
        let mut bytes = vec![0u64; targets];
        let mut known = HashMap::<Key, u32, Hash>::default();
        let mut mapped =
            Self { shapes: Vec::new(), pieces: Vec::new(), order: Vec::with_capacity(sample.len()) };
        for request in sample {
            let which = layout_of[request.file as usize];
            let layout = &layouts[which as usize];
            let (key, region) = Key::of(request, which, layout, &cycles[which as usize]);
            let shape = *known.entry(key).or_insert_with(|| {
                layout.bytes_per_target(request.offset, request.size, &mut bytes);
                mapped.add_shape(region, request.size, &bytes)
            });
            mapped.shapes[shape as usize].count += 1;
            mapped.order.push(shape);
        }
        mapped
    }

    fn add_shape(&mut self, region: u32, size: u64, bytes: &[u64]) -> u32 {
        let start = self.pieces.len() as u32;
        let touched = bytes.iter().enumerate().filter(|(_, bytes)| **bytes > 0);
        self.pieces.extend(touched.map(|(target, &bytes)| (target as u32, bytes)));
        self.shapes.push(Shape { region, size, start, count: 0 });
        (self.shapes.len() - 1) as u32
    }

    fn pieces_of(&self, shape: usize) -> &[(u32, u64)] {
        let end = self.shapes.get(shape + 1).map_or(self.pieces.len(), |next| next.start as usize);
        &self.pieces[self.shapes[shape].start as usize..end]
    }

    /// The papers' overall cost of the whole group: the sum of all requests' costs by the general formula.
    ///
    /// Server i is shared by `q_i = ⌈p · requests that touch i / requests⌉` of the processes, counted among the
    /// requests that begin in the same region (PSA's heterogeneous and homogeneous requests each have p).
    pub fn cost(&self, group: &Group, servers: &Servers) -> Cost {
        let regions = self.shapes.iter().map(|shape| shape.region as usize + 1).max().unwrap_or(0);
        let mut requests = vec![0u64; regions];
        let mut touching = vec![vec![0u64; servers.count()]; regions];
        for (index, shape) in self.shapes.iter().enumerate() {
            requests[shape.region as usize] += shape.count;
            for &(target, _) in self.pieces_of(index) {
                touching[shape.region as usize][target as usize] += shape.count;
            }
        }
        let shared: Vec<Vec<Server>> = (touching.iter().zip(&requests))
            .map(|(touching, &requests)| {
                let q = touching.iter().map(|&touching| sharing(group.procs, touching, requests));
                q.enumerate().map(|(target, q)| servers.shared(target, group, q)).collect()
            })
            .collect();
        let sum: Cost = (self.shapes.iter().enumerate())
            .map(|(index, shape)| {
                let servers_here = &shared[shape.region as usize];
                let share = |&(target, bytes): &(u32, u64)| Share {
                    server: servers_here[target as usize],
                    bytes: bytes as f64,
                    count: 1,
                };
                let shares = self.pieces_of(index).iter().map(share);
                let (network, per_node) = (servers.network(), group.procs_per_node);
                general::cost(Startup::EverySharer, network, per_node, shape.size as f64, shares)
                    * shape.count as f64
            })
            .sum();
        sum * (group.count as f64 / self.order.len().max(1) as f64)
    }

    /// Adds to `busy_s[target]` how long the group's requests keep each target busy, seconds, and returns how many
    /// servers they touch in sum.
    pub fn add_busy(&self, group: &Group, servers: &Servers, busy_s: &mut [f64]) -> f64 {
        let weight = group.count as f64 / self.order.len().max(1) as f64;
        let mut touched = 0.0;
        for (index, shape) in self.shapes.iter().enumerate() {
            let times = weight * shape.count as f64;
            touched += times * self.pieces_of(index).len() as f64;
            for &(target, bytes) in self.pieces_of(index) {
                busy_s[target as usize] += times * servers.busy_s(target, group, bytes);
            }
        }
        touched
    }

    /// The mapped requests as they flow through the servers; `sample` is what was mapped.
    pub fn flow(&self, group: &Group, sample: &[Request], servers: &Servers) -> Flow {
        let mut flow = Flow::default();
        for shape in 0..self.shapes.len() {
            let sub =
                |&(server, bytes): &(u32, u64)| Sub { server, busy_s: servers.busy_s(server, group, bytes) };
            flow.add_shape(self.pieces_of(shape).iter().map(sub));
        }
        let mut chains = ChainOf::new(sample, group.procs);
        for (&shape, request) in self.order.iter().zip(sample) {
            flow.push(shape, chains.of(request.process));
        }
        flow
    }
}

/// Gives every process one of `procs` chains: where the trace has more processes than are ever concurrent, several
/// follow one another in a chain; where it has fewer (asynchronous requests, threads), a process has several.
struct ChainOf {
    known: HashMap<u32, (u32, u32)>,
    procs: u32,
    per_process: u32,
}

impl ChainOf {
    fn new(sample: &[Request], procs: u32) -> Self {
        let mut known = HashMap::new();
        for request in sample {
            let next = known.len() as u32;
            known.entry(request.process).or_insert((next, 0));
        }
        let processes = (known.len() as u32).max(1);
        Self { known, procs: procs.max(1), per_process: (procs / processes).max(1) }
    }

    fn of(&mut self, process: u32) -> u32 {
        let (number, turn) = self.known.get_mut(&process).expect("every process of the sample is known");
        let chain = (*number * self.per_process + *turn % self.per_process) % self.procs;
        *turn += 1;
        chain
    }
}

/// What decides how a request divides over the servers.
#[derive(PartialEq, Eq, Hash)]
struct Key {
    layout: u32,
    region: u32,
    /// Where in the cycle it begins; the offset itself where it crosses into the next region.
    phase: u64,
    size: u64,
}

impl Key {
    fn of(request: &Request, which: u32, layout: &Layout, cycles: &[u64]) -> (Self, u32) {
        let regions = layout.regions();
        let region =
            regions.partition_point(|r| r.end.is_some_and(|end| end <= request.offset)).min(regions.len() - 1);
        let end = regions[region].end.unwrap_or(u64::MAX);
        let crosses = request.offset.saturating_add(request.size) > end;
        let phase =
            if crosses { request.offset } else { (request.offset - regions[region].start) % cycles[region] };
        let key_region = if crosses { u32::MAX } else { region as u32 };
        (Self { layout: which, region: key_region, phase, size: request.size }, region as u32)
    }
}

/// Hashing with [`Mixer`].
pub type Hash = BuildHasherDefault<Mixer>;

/// A fast hash for few small numbers (multiply and fold); not for input that an adversary chooses, whose worst is a
/// slow plan.
#[derive(Default)]
pub struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 29)
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, number: u32) {
        self.write_u64(number.into());
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(5) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 ^= self.0 >> 32;
    }
}
