//! Maps a group's requests to a candidate's layouts: bytes per server, sequential or random there,
//! the requests' cost, and their flow through the servers.

mod alike;
mod key;

#[cfg(test)]
mod tests;

use std::collections::{HashMap, HashSet};

use stripewise_layout::{Layout, Region};
use stripewise_model::{Access, Call, Cost, Network, Op, Server, Share, Startup, general, sharing};
use stripewise_policy::FastHash;

use alike::Use;
use key::{Key, cycle_len};

use crate::call_costs::CallCosts;
use crate::candidate::Placement;
use crate::elapsed::{Flow, Links, Sub};
use crate::servers::Servers;
use crate::workload::{Group, Request};

/// A sample of requests, grouped by how they divide over the servers.
pub struct Mapped {
    shapes: Vec<Shape>,
    /// The pieces of all shapes, one shape after the other.
    pieces: Vec<Piece>,
    /// Per sampled request: its shape.
    order: Vec<u32>,
}

/// The bytes of a request on one target.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Piece {
    target: u32,
    bytes: u64,
    access: Access,
    /// File offset of the first of its bytes. Requests go to their servers in this order.
    first: u64,
}

/// The time of a request on idle servers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Idle {
    /// Seconds until the slowest of its servers has served it.
    pub seconds: f64,
    /// The seconds of them that depend on its bytes.
    pub transfer_s: f64,
}

struct Shape {
    /// Region of the request's first byte. Requests that begin in different regions have different
    /// shapes.
    region: u32,
    size: u64,
    /// Index of its first piece in [`Mapped::pieces`]; they end where the next shape's begin.
    start: u32,
    count: u64,
}

impl Mapped {
    /// Maps `sample` to one copy of the files.
    pub fn new(sample: &[Request], copy: &Placement<'_>) -> Self {
        let layouts: Vec<&Layout> = copy.layouts.iter().collect();
        Self::by_request(sample, &layouts, |_, request| copy.layout_of[request.file as usize])
    }

    /// Maps `sample`, whose request with index i is served by `layouts[which(i, request)]`.
    pub fn by_request(sample: &[Request], layouts: &[&Layout], which: impl Fn(usize, &Request) -> u32) -> Self {
        let cycles = cycles(layouts.iter().copied());
        let mut bytes = Vec::new();
        let mut known = HashMap::<Key, u32, FastHash>::default();
        let mut mapped =
            Self { shapes: Vec::new(), pieces: Vec::new(), order: Vec::with_capacity(sample.len()) };
        for (index, request) in sample.iter().enumerate() {
            let which = which(index, request);
            let layout = layouts[which as usize];
            let (key, region) = Key::of(request, which, layout, &cycles[which as usize]);
            let shape = *known.entry(key).or_insert_with_key(|key| {
                layout.bytes_by_target(request.offset, request.size, &mut bytes);
                let everywhere = key.access_everywhere(cycles[which as usize][region as usize]);
                let piece = |&(target, bytes): &(u32, u64)| Piece {
                    target,
                    bytes,
                    access: everywhere.unwrap_or_else(|| access_on(layout, target, request)),
                    first: first_on(layout, target, request),
                };
                let start = mapped.pieces.len() as u32;
                mapped.pieces.extend(bytes.iter().map(piece));
                mapped.shapes.push(Shape { region, size: request.size, start, count: 0 });
                (mapped.shapes.len() - 1) as u32
            });
            mapped.shapes[shape as usize].count += 1;
            mapped.order.push(shape);
        }
        mapped
    }

    fn pieces_of(&self, shape: usize) -> &[Piece] {
        let end = self.shapes.get(shape + 1).map_or(self.pieces.len(), |next| next.start as usize);
        &self.pieces[self.shapes[shape].start as usize..end]
    }

    /// The papers' overall cost of the whole group: the sum of all requests' costs by the general
    /// formula.
    ///
    /// Server i is shared by `q_i = ⌈p · requests that touch i / requests⌉` processes. Both counts
    /// include only requests that begin in the same region, because PSA's heterogeneous and
    /// homogeneous requests each have p processes.
    pub fn cost(&self, group: &Group, servers: &Servers) -> Cost {
        let of_shape = self.shapes.iter().zip(self.cost_by_shape(group, servers));
        let sum: Cost = of_shape.map(|(shape, cost)| cost * shape.count as f64).sum();
        sum * group.weight(self.order.len())
    }

    /// The overall cost of every sampled request, in order.
    pub fn costs(&self, group: &Group, servers: &Servers) -> Vec<Cost> {
        let of_shape = self.cost_by_shape(group, servers);
        self.order.iter().map(|&shape| of_shape[shape as usize]).collect()
    }

    fn cost_by_shape(&self, group: &Group, servers: &Servers) -> Vec<Cost> {
        let regions = self.shapes.iter().map(|shape| shape.region as usize + 1).max().unwrap_or(0);
        let mut requests = vec![0u64; regions];
        let mut touching = vec![vec![0u64; servers.count()]; regions];
        for (index, shape) in self.shapes.iter().enumerate() {
            requests[shape.region as usize] += shape.count;
            for piece in self.pieces_of(index) {
                touching[shape.region as usize][piece.target as usize] += shape.count;
            }
        }
        let shared: Vec<Vec<[Server; 2]>> = (touching.iter().zip(&requests))
            .map(|(touching, &requests)| {
                let q = touching.iter().map(|&touching| sharing(group.procs, touching, requests));
                let server = |target, q, access| servers.shared(target, group.op, access, q);
                q.zip(0..).map(|(q, target)| BY_ACCESS.map(|access| server(target, q, access))).collect()
            })
            .collect();
        (self.shapes.iter().enumerate())
            .map(|(index, shape)| {
                let servers_here = &shared[shape.region as usize];
                let share = |piece: &Piece| Share {
                    server: servers_here[piece.target as usize][piece.access as usize],
                    bytes: piece.bytes as f64,
                    count: 1,
                };
                let shares = self.pieces_of(index).iter().map(share);
                let (network, per_node) = (&servers.network, group.procs_per_node);
                general::cost(Startup::EverySharer, network, per_node, shape.size as f64, shares)
            })
            .collect()
    }

    /// Every share of a server in a request, with the number of requests of all runs that it stands
    /// for.
    fn weighted(&self, group: &Group) -> impl Iterator<Item = (f64, &Piece)> {
        let weight = group.weight(self.order.len());
        self.shapes.iter().enumerate().flat_map(move |(index, shape)| {
            let times = weight * shape.count as f64;
            self.pieces_of(index).iter().map(move |piece| (times, piece))
        })
    }

    /// Adds to `busy_s[target]` the seconds that the group's requests keep each target busy.
    /// Returns the number of servers that each request touches, summed over all requests.
    pub fn add_busy(&self, group: &Group, servers: &Servers, busy_s: &mut [f64]) -> f64 {
        let mut touched = 0.0;
        for (times, &Piece { target, access, bytes, .. }) in self.weighted(group) {
            touched += times;
            busy_s[target as usize] += times * servers.busy_s(target, group.op, access, bytes);
        }
        touched
    }

    /// What each sampled request takes if its servers do nothing else, in order.
    pub fn on_idle(&self, group: &Group, servers: &Servers) -> Vec<Idle> {
        let busy_s = |piece: &Piece, bytes| servers.busy_s(piece.target, group.op, piece.access, bytes);
        let of_shape = |shape| {
            let of_piece = |piece: &Piece| {
                let seconds = busy_s(piece, piece.bytes);
                // No byte would take no startup either.
                Idle { seconds, transfer_s: seconds - busy_s(piece, 1) }
            };
            let pieces = self.pieces_of(shape).iter().map(of_piece);
            pieces.max_by(|one, other| one.seconds.total_cmp(&other.seconds)).unwrap_or_default()
        };
        let of_shapes: Vec<Idle> = (0..self.shapes.len()).map(of_shape).collect();
        self.order.iter().map(|&shape| of_shapes[shape as usize]).collect()
    }

    /// Adds to `sums[target]` the bytes that the group's requests read or write on each target.
    pub fn add_bytes(&self, group: &Group, sums: &mut [f64]) {
        self.weighted(group)
            .for_each(|(times, piece)| sums[piece.target as usize] += times * piece.bytes as f64);
    }

    /// Seconds that the group's requests keep all servers busy, and the error of these seconds.
    pub fn busy(&self, group: &Group, servers: &Servers) -> (f64, f64) {
        let (mut busy_s, mut error_s) = (0.0, 0.0);
        for (times, &Piece { target, access, bytes, .. }) in self.weighted(group) {
            busy_s += times * servers.busy_s(target, group.op, access, bytes);
            error_s += times * servers.error_s(target, group.op, access, bytes);
        }
        (busy_s, error_s)
    }

    /// Seconds that all requests of the group take in the client beyond those of plain files,
    /// summed over the processes.
    pub fn client_s(&self, group: &Group, client: &CallCosts) -> f64 {
        let call = match group.op {
            Op::Read => Call::Read,
            Op::Write => Call::Write,
        };
        let mut objects = client.no_objects();
        let of_shape = |(index, shape): (usize, &Shape)| {
            client.count_objects(self.pieces_of(index).iter().map(|piece| piece.target), &mut objects);
            let (managed_s, plain_s) = client.seconds(call, &objects);
            shape.count as f64 * (managed_s - plain_s).max(0.0)
        };
        let sampled_s: f64 = self.shapes.iter().enumerate().map(of_shape).sum();
        sampled_s * group.weight(self.order.len())
    }

    /// The mapped requests as a flow through the servers. `sample` is the sample that was mapped.
    /// The flow has the first requests only if all of them have more than `most` sub-requests.
    pub fn flow(&self, group: &Group, sample: &[Request], servers: &Servers, most: usize) -> Flow {
        self.flow_on(self.representatives(servers), group, sample, servers, most)
    }

    /// The servers to replay ([`alike::representatives`]).
    fn representatives(&self, servers: &Servers) -> Option<Vec<f64>> {
        let touched: usize = self.order.iter().map(|&shape| self.pieces_of(shape as usize).len()).sum();
        let of_shape = |shape| {
            let used = move |&Piece { target, bytes, access, .. }: &Piece| Use {
                shape: shape as u64,
                target,
                bytes,
                access,
            };
            self.pieces_of(shape).iter().map(used)
        };
        let uses = (0..self.shapes.len()).flat_map(of_shape);
        alike::representatives(touched / self.order.len().max(1), uses, servers)
    }

    fn flow_on(
        &self,
        stands_for: Option<Vec<f64>>,
        group: &Group,
        sample: &[Request],
        servers: &Servers,
        most: usize,
    ) -> Flow {
        let network = &servers.network;
        let links = Links { establish_s: network.establish_s, op: group.op };
        let links = (*network != Network::default()).then_some(links);
        let mut flow = Flow::new(links, group.collective);
        let stands_for = |piece: &Piece| stands_for.as_ref().map_or(1.0, |of| of[piece.target as usize]);
        let mut pieces: Vec<Piece> = Vec::new();
        for shape in 0..self.shapes.len() {
            pieces.clear();
            pieces.extend(self.pieces_of(shape).iter().filter(|piece| stands_for(piece) > 0.0));
            if links.is_some() {
                // The request that reaches a server first gets its bytes first, so the order of the
                // pieces decides which link is busy when.
                pieces.sort_by_key(|piece| piece.first);
            }
            let sub = |piece: &Piece| Sub { stands_for: stands_for(piece), ..piece.sub(group, servers) };
            flow.add_shape(pieces.iter().map(sub));
        }
        let mut chains = ChainOf::new(sample, group.procs);
        let mut subs = 0;
        for (&shape, request) in self.order.iter().zip(sample) {
            subs += flow.subs_of(shape).len();
            if subs > most && flow.len() > 0 {
                break;
            }
            flow.push(shape, chains.of(request.process), group.node(request.process));
        }
        flow
    }
}

/// An upper bound on the pieces of a sample on one copy of the files, without mapping it. Exact
/// only above `most`: distinct requests are not counted if even all of them have fewer pieces.
pub fn pieces_at_most(sample: &[Request], copy: &Placement<'_>, most: usize) -> usize {
    let size = sample.iter().map(|request| request.size).max().unwrap_or(0);
    let widest = |layout: &Layout| {
        let of_region = |region: &Region| {
            let narrowest = region.cycle.iter().map(|stripe| stripe.width).min().unwrap_or(1);
            region.cycle.len().min((size / narrowest) as usize + 2)
        };
        layout.regions().iter().map(of_region).max().unwrap_or(0)
    };
    let widest = copy.layouts.iter().map(widest).max().unwrap_or(0);
    if sample.len().saturating_mul(widest) <= most {
        return sample.len() * widest;
    }
    let cycles = cycles(copy.layouts.iter());
    let key = |request: &Request| {
        let which = copy.layout_of[request.file as usize];
        Key::of(request, which, &copy.layouts[which as usize], &cycles[which as usize]).0
    };
    sample.iter().map(key).collect::<HashSet<Key, FastHash>>().len() * widest
}

/// The cycle lengths of every region of every layout.
fn cycles<'l>(layouts: impl Iterator<Item = &'l Layout>) -> Vec<Vec<u64>> {
    layouts.map(|layout| layout.regions().iter().map(cycle_len).collect()).collect()
}

/// Indexed by `Access as usize`.
const BY_ACCESS: [Access; 2] = [Access::Random, Access::Sequential];

impl Piece {
    fn sub(&self, group: &Group, servers: &Servers) -> Sub {
        let device_s = |access| servers.service(self.target, group.op, access).busy_s(self.bytes);
        let busy_s = device_s(self.access);
        let one_arm = servers.one_arm[self.target as usize];
        Sub {
            server: self.target,
            busy_s,
            after_others_s: if one_arm { device_s(Access::Random) } else { busy_s },
            transfer_s: self.bytes as f64 * servers.network.per_byte_s,
            stands_for: 1.0,
        }
    }
}

/// The kind of access that `target` sees in a request. It is sequential if it begins in the object
/// where the process's previous access to that object ended: the byte before it in the object is
/// then the last one that the process accessed on the target.
fn access_on(layout: &Layout, target: u32, request: &Request) -> Access {
    let before = layout.object_size(target, request.offset).checked_sub(1);
    let before = before.and_then(|last| layout.file_offset(target, last));
    match before.is_some_and(|byte| request.past.covers(request.offset, byte)) {
        true => Access::Sequential,
        false => Access::Random,
    }
}

/// File offset of the request's first byte on `target`.
fn first_on(layout: &Layout, target: u32, request: &Request) -> u64 {
    let before = layout.object_size(target, request.offset);
    layout.file_offset(target, before).unwrap_or(u64::MAX)
}

/// Assigns the processes of a sample to `procs` chains. If the trace has more processes than are
/// ever concurrent, several of them follow one another in one chain. If it has fewer (asynchronous
/// requests, threads), a process has several chains.
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
