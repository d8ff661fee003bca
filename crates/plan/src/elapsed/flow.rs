//! Sampled requests as the servers see them.

use std::borrow::Cow;
use std::ops::Range;

use stripewise_model::Op;

/// A sub-request: the share of one request that one server serves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sub {
    /// Target index.
    pub server: u32,
    /// Seconds that it keeps the server busy.
    pub busy_s: f64,
    /// The same if another process used the server since this one did, because the disk arm has
    /// moved.
    pub after_others_s: f64,
    /// Seconds that its bytes take on a network link.
    pub transfer_s: f64,
    /// Number of sub-requests to equal servers that it stands for, itself included: the client's
    /// node connects to all of them.
    pub stands_for: f64,
}

impl Sub {
    /// The same, if everything takes `weight` times as long.
    fn times(&self, weight: f64) -> Self {
        let Self { busy_s, after_others_s, transfer_s, .. } = self;
        let (busy_s, after_others_s) = (weight * busy_s, weight * after_others_s);
        Self { busy_s, after_others_s, transfer_s: weight * transfer_s, ..*self }
    }
}

/// The network between processes and servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// e: seconds that a connection keeps each of its ends busy.
    pub establish_s: f64,
    /// Direction of the bytes.
    pub op: Op,
}

/// The processes of one group of requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Crew {
    /// The number of its first process. Its processes end where those of the next crew begin.
    pub first: u32,
    /// The network; `None` if it takes no time.
    pub links: Option<Links>,
    /// Requests come in rounds: a process issues its next request when the current ones of all
    /// processes of the crew are done.
    pub rounds: bool,
    /// It begins when the crew before it has ended.
    pub follows: bool,
}

/// Sampled requests as the servers see them. Requests with the same sub-requests share a *shape*.
#[derive(Clone, Debug)]
pub struct Flow {
    /// The sub-requests of all shapes, one shape after the other.
    pub(super) subs: Vec<Sub>,
    /// Per shape: the end of its sub-requests in `subs`.
    ends: Vec<u32>,
    /// Per shape: number of sampled requests that have it.
    counts: Vec<u32>,
    /// Per sampled request, in order: its shape.
    pub(super) order: Vec<u32>,
    /// Per sampled request, in order: the process that issues it.
    pub(super) chains: Vec<u32>,
    /// Per process: the node that it runs on, whose link its processes share.
    pub(super) nodes: Vec<u32>,
    /// The groups; there is at least one.
    pub(super) crews: Vec<Crew>,
}

/// A flow that is a part of a larger one.
pub struct Joining<'f> {
    /// The requests of one group.
    pub flow: &'f Flow,
    /// What all of its times are multiplied by.
    pub weight: f64,
    /// It begins when the part before it has ended, not at the same time.
    pub follows: bool,
}

impl Flow {
    /// An empty flow of one group.
    pub fn new(links: Option<Links>, rounds: bool) -> Self {
        Self::of_crews(vec![Crew { first: 0, links, rounds, follows: false }])
    }

    fn of_crews(crews: Vec<Crew>) -> Self {
        let (order, chains, nodes) = (Vec::new(), Vec::new(), Vec::new());
        Self { subs: Vec::new(), ends: Vec::new(), counts: Vec::new(), order, chains, nodes, crews }
    }

    /// The flow of several groups of one application, each with processes of its own.
    pub fn joined<'f>(parts: impl IntoIterator<Item = Joining<'f>>) -> Self {
        let mut all = Self::of_crews(Vec::new());
        for Joining { flow, weight, follows } in parts.into_iter().filter(|part| part.flow.len() > 0) {
            let (subs, shapes, first) = (all.subs.len() as u32, all.ends.len() as u32, all.processes());
            let links = |links: Links| Links { establish_s: weight * links.establish_s, ..links };
            let of_crew = |crew: &Crew| Crew {
                first: first + crew.first,
                links: crew.links.map(links),
                follows: follows || crew.follows,
                ..*crew
            };
            all.crews.extend(flow.crews.iter().map(of_crew));
            all.subs.extend(flow.subs.iter().map(|sub| sub.times(weight)));
            all.ends.extend(flow.ends.iter().map(|end| subs + end));
            all.counts.extend(&flow.counts);
            all.order.extend(flow.order.iter().map(|shape| shapes + shape));
            all.chains.extend(flow.chains.iter().map(|chain| first + chain));
            all.nodes.extend(&flow.nodes);
        }
        all
    }

    /// The same requests, each as soon as its process is done with the one before.
    pub fn without_rounds(&self) -> Self {
        let mut flow = self.clone();
        flow.crews.iter_mut().for_each(|crew| crew.rounds = false);
        flow
    }

    /// One more than the largest number of a process.
    pub(super) fn processes(&self) -> u32 {
        self.nodes.len() as u32
    }

    /// The network of the first group.
    fn links(&self) -> Option<Links> {
        self.crews.first()?.links
    }

    /// Whether the network takes time.
    pub(super) fn has_network(&self) -> bool {
        self.links().is_some()
    }

    /// Adds a shape: the sub-requests of a request, at most one per server. Returns the shape's
    /// number.
    pub fn add_shape(&mut self, subs: impl IntoIterator<Item = Sub>) -> u32 {
        self.subs.extend(subs);
        self.ends.push(self.subs.len() as u32);
        self.counts.push(0);
        (self.ends.len() - 1) as u32
    }

    /// Adds the next request: its shape, the process (0..) that issues it, and the node of that.
    pub fn push(&mut self, shape: u32, chain: u32, node: u32) {
        self.counts[shape as usize] += 1;
        self.order.push(shape);
        self.chains.push(chain);
        if chain >= self.processes() {
            self.nodes.resize(chain as usize + 1, node);
        }
        self.nodes[chain as usize] = node;
    }

    /// Number of requests.
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Mean number of servers that a request connects to.
    pub fn connections(&self) -> f64 {
        let of_shape = |subs: &[Sub]| subs.iter().map(|sub| sub.stands_for).sum::<f64>();
        self.shapes().map(|(share, subs)| share * of_shape(subs)).sum()
    }

    /// One more than the largest server index.
    pub(super) fn servers(&self) -> usize {
        self.subs.iter().map(|sub| sub.server as usize + 1).max().unwrap_or(0)
    }

    /// An equivalent without order and network, for the closed form. Every access to a server that
    /// several processes use costs as much as after another process's. A server's link and its
    /// device work on different sub-requests at the same time, so only the slower of the two
    /// counts. Borrowed if nothing changes.
    pub(super) fn simplified(&self) -> Cow<'_, Self> {
        if !self.has_network() && self.subs.iter().all(|sub| sub.busy_s == sub.after_others_s) {
            return Cow::Borrowed(self);
        }
        let mut first = vec![None; self.servers()];
        let mut shared = vec![false; self.servers()];
        for (&shape, &chain) in self.order.iter().zip(&self.chains) {
            for sub in self.subs_of(shape) {
                let server = sub.server as usize;
                shared[server] |= *first[server].get_or_insert(chain) != chain;
            }
        }
        let mut flow = self.clone();
        let others = flow.subs.iter_mut().filter(|sub| shared[sub.server as usize]);
        others.for_each(|sub| sub.busy_s = sub.after_others_s);
        if let Some(links) = self.links() {
            flow.crews[0].links = None;
            let link_s = |sub: &Sub| links.establish_s + sub.transfer_s;
            flow.subs.iter_mut().for_each(|sub| sub.busy_s = sub.busy_s.max(link_s(sub)));
        }
        Cow::Owned(flow)
    }

    pub fn subs_of(&self, shape: u32) -> &[Sub] {
        &self.subs[self.range_of(shape)]
    }

    /// The range of a shape's sub-requests in `subs`.
    pub(super) fn range_of(&self, shape: u32) -> Range<usize> {
        let shape = shape as usize;
        let start = if shape == 0 { 0 } else { self.ends[shape - 1] };
        start as usize..self.ends[shape] as usize
    }

    /// The shapes that occur, each with its fraction of all requests.
    pub(super) fn shapes(&self) -> impl Iterator<Item = (f64, &[Sub])> + Clone {
        let total = self.order.len().max(1) as f64;
        let shapes = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        shapes.map(move |(shape, &count)| (f64::from(count) / total, self.subs_of(shape as u32)))
    }
}

impl Default for Flow {
    fn default() -> Self {
        Self::new(None, false)
    }
}
