//! Replay of the sampled requests, in their order, over network links and through FIFO servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use stripewise_model::Op;

use super::chains::{Chains, Devices, Gate};
use super::flow::{Flow, Links, Sub};

/// Like [`super::replay`], with a network whose links are FIFO, too.
///
/// For every sub-request a connection takes e at the client's node and e at the server. Its bytes
/// then pass the node's link and the server's link at t per byte each; the receiver begins no
/// earlier than the sender. A write is sent, then served; a read is served, then sent. Different
/// sub-requests overlap. O(sub-requests · log(sub-requests in flight)).
pub(super) fn replay(flow: &Flow, total: u64) -> f64 {
    let mut run = Run::new(flow);
    run.gate.first().for_each(|chain| run.go_on(0.0, chain));
    while let Some(Reverse((ns, _, moving))) = run.events.pop() {
        run.step(ns as f64 * 1e-9, moving);
    }
    run.end_s * (total as f64 / flow.len().max(1) as f64).max(1.0)
}

/// The next step of a sub-request, in the order of a write. In a read, the device (`Serves`) comes
/// before the links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    Connects,
    Sends,
    Arrives,
    Serves,
    Done,
}

/// A sub-request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Moving {
    stage: Stage,
    chain: u32,
    /// Index into the flow's sub-requests.
    sub: u32,
}

/// The times until which one end of the network is busy, seconds.
#[derive(Clone, Copy, Default)]
struct End {
    connects_s: f64,
    transfers_s: f64,
}

struct Run<'a> {
    flow: &'a Flow,
    chains: Chains,
    /// Per chain: sub-requests of its current request that are in flight.
    left: Vec<u32>,
    nodes: Vec<End>,
    servers: Vec<End>,
    devices: Devices,
    gate: Gate<'a>,
    /// Chains that go on; empty between steps.
    going: Vec<u32>,
    /// Sorted by time, then by order of insertion.
    events: BinaryHeap<Reverse<(u64, u64, Moving)>>,
    added: u64,
    end_s: f64,
}

impl<'a> Run<'a> {
    fn new(flow: &'a Flow) -> Self {
        let (servers, gate) = (flow.servers(), Gate::new(flow));
        let nodes = flow.nodes.iter().map(|node| node + 1).max().unwrap_or(0);
        Self {
            flow,
            left: vec![0; flow.nodes.len()],
            nodes: vec![End::default(); nodes as usize],
            servers: vec![End::default(); servers],
            devices: Devices::new(servers),
            gate,
            going: Vec::new(),
            chains: Chains::of(flow),
            events: BinaryHeap::new(),
            added: 0,
            end_s: 0.0,
        }
    }

    fn add(&mut self, at_s: f64, moving: Moving) {
        self.added += 1;
        // In whole nanoseconds: sums of the same times in another order would differ otherwise, and
        // chance would decide which of two sub-requests that arrive together is first.
        self.events.push(Reverse(((at_s * 1e9).round() as u64, self.added, moving)));
    }

    fn node(&mut self, chain: u32) -> &mut End {
        &mut self.nodes[self.flow.nodes[chain as usize] as usize]
    }

    fn links(&self, chain: u32) -> Links {
        self.gate.crew(chain).links.expect("a flow over a network has links everywhere")
    }

    /// The chain has finished its request. Issues the next request of every chain that need not
    /// wait for others.
    fn go_on(&mut self, now_s: f64, chain: u32) {
        self.end_s = self.end_s.max(now_s);
        let mut going = std::mem::take(&mut self.going);
        let begin = self.gate.through(chain, self.chains.is_done(chain), &mut going);
        going.drain(..).for_each(|chain| self.issue(now_s, chain));
        self.going = going;
        begin.for_each(|chain| self.go_on(now_s, chain));
    }

    /// The chain's next request begins to establish its connections.
    fn issue(&mut self, now_s: f64, chain: u32) {
        let Some(shape) = self.chains.next(chain) else { return };
        let subs = self.flow.range_of(shape);
        debug_assert!(!subs.is_empty(), "a request has bytes somewhere");
        self.left[chain as usize] = subs.len() as u32;
        for sub in subs {
            let (establish_s, equal) = (self.links(chain).establish_s, self.flow.subs[sub].stands_for);
            let begin_s = reserve_all(&mut self.node(chain).connects_s, now_s, establish_s, equal);
            self.add(begin_s, Moving { stage: Stage::Connects, chain, sub: sub as u32 });
        }
    }

    fn step(&mut self, now_s: f64, moving: Moving) {
        let sub = self.flow.subs[moving.sub as usize];
        let Links { op, establish_s, .. } = self.links(moving.chain);
        let write = op == Op::Write;
        let (next, at_s) = match moving.stage {
            Stage::Connects => {
                let begin_s = reserve(&mut self.servers[sub.server as usize].connects_s, now_s, establish_s);
                (if write { Stage::Sends } else { Stage::Serves }, begin_s + establish_s)
            }
            Stage::Sends => (Stage::Arrives, self.pass(write, moving.chain, &sub, now_s)),
            Stage::Arrives => {
                let begin_s = self.pass(!write, moving.chain, &sub, now_s);
                (if write { Stage::Serves } else { Stage::Done }, begin_s + sub.transfer_s)
            }
            Stage::Serves => {
                let done_s = self.devices.serve(&sub, moving.chain, now_s);
                (if write { Stage::Done } else { Stage::Sends }, done_s)
            }
            Stage::Done => {
                let left = &mut self.left[moving.chain as usize];
                *left -= 1;
                if *left == 0 {
                    self.go_on(now_s, moving.chain);
                }
                return;
            }
        };
        self.add(at_s, Moving { stage: next, ..moving });
    }

    /// Returns when the bytes begin to pass one end, seconds.
    fn pass(&mut self, at_node: bool, chain: u32, sub: &Sub, now_s: f64) -> f64 {
        if at_node {
            reserve_all(&mut self.node(chain).transfers_s, now_s, sub.transfer_s, sub.stands_for)
        } else {
            reserve(&mut self.servers[sub.server as usize].transfers_s, now_s, sub.transfer_s)
        }
    }
}

/// Occupies a FIFO resource `count` times for `took_s` seconds and returns when the last time
/// begins.
fn reserve_all(until_s: &mut f64, now_s: f64, took_s: f64, count: f64) -> f64 {
    reserve(until_s, now_s, took_s * count) + took_s * (count - 1.0)
}

/// Occupies a FIFO resource for `took_s` seconds and returns when that begins.
fn reserve(until_s: &mut f64, now_s: f64, took_s: f64) -> f64 {
    let begin_s = until_s.max(now_s);
    *until_s = begin_s + took_s;
    begin_s
}
