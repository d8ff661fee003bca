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

/// The network between processes and servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// e: seconds that a connection keeps each of its ends busy.
    pub establish_s: f64,
    /// c: number of chains on one node, which share its link.
    pub per_node: u32,
    /// Direction of the bytes.
    pub op: Op,
}

/// Sampled requests as the servers see them. Requests with the same sub-requests share a *shape*.
#[derive(Clone, Debug, Default)]
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
    /// The network; `None` if it takes no time.
    pub(super) links: Option<Links>,
    /// Requests come in rounds: a process issues its next request when the current ones of all
    /// processes are done.
    pub(super) rounds: bool,
}

impl Flow {
    /// An empty flow.
    pub fn new(links: Option<Links>, rounds: bool) -> Self {
        Self { links, rounds, ..Self::default() }
    }

    /// Adds a shape: the sub-requests of a request, at most one per server. Returns the shape's
    /// number.
    pub fn add_shape(&mut self, subs: impl IntoIterator<Item = Sub>) -> u32 {
        self.subs.extend(subs);
        self.ends.push(self.subs.len() as u32);
        self.counts.push(0);
        (self.ends.len() - 1) as u32
    }

    /// Adds the next request: its shape, and the process (0..) that issues it.
    pub fn push(&mut self, shape: u32, chain: u32) {
        self.counts[shape as usize] += 1;
        self.order.push(shape);
        self.chains.push(chain);
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
        if self.links.is_none() && self.subs.iter().all(|sub| sub.busy_s == sub.after_others_s) {
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
        if let Some(links) = flow.links.take() {
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
