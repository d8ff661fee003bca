//! Replay of the sampled requests, in their order, through FIFO servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use stripewise_random::Noise;

use super::{Flow, Sub, network};

/// Service times vary by up to this fraction in both directions. With equal times, processes would
/// keep arriving at the same instant, and the result would depend on which one is served first; no
/// device is that regular.
const JITTER: f64 = 0.01;

/// Seconds that `total` requests take, of which `flow` has a sample, in order.
///
/// The processes run concurrently, each through its own requests. If `total` exceeds the sample,
/// each sampled request stands for several: the time is scaled. So faster processes get ahead, and
/// processes that crowd on one server do so for as long as in the real run. Deterministic.
/// O(requests · (sub-requests + log processes)) without a network; with one, every sub-request is
/// followed over its links.
pub fn replay(flow: &Flow, total: u64) -> f64 {
    if let Some(links) = flow.links {
        return network::replay(flow, links, total);
    }
    let chains = Chains::of(flow);
    let mut next = chains.firsts();
    let mut devices = Devices::new(flow.servers());
    let mut gate = Gate::new(flow.rounds, chains.len());
    // Times are not negative, so their bits have the same order.
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> =
        (0..chains.len() as u32).map(|c| Reverse((0, c))).collect();
    let mut end_s = 0.0f64;
    while let Some(Reverse((bits, chain))) = ready.pop() {
        let now_s = f64::from_bits(bits);
        end_s = now_s;
        for chain in gate.through(chain, chains.is_done(&next, chain)) {
            let Some(shape) = chains.next(flow, &mut next, chain) else { continue };
            let served = flow.subs_of(shape).iter().map(|sub| devices.serve(sub, chain, now_s));
            let done_s = served.fold(now_s, f64::max);
            ready.push(Reverse((done_s.to_bits(), chain)));
        }
    }
    end_s * (total as f64 / flow.len().max(1) as f64).max(1.0)
}

/// The barrier between rounds; without rounds every process passes.
pub(super) struct Gate {
    rounds: bool,
    /// Number of processes that have requests left.
    alive: usize,
    waiting: Vec<u32>,
}

impl Gate {
    pub fn new(rounds: bool, processes: usize) -> Self {
        Self { rounds, alive: processes, waiting: Vec::new() }
    }

    /// A process has arrived, to continue or (`ends`) to leave. Returns the processes that continue
    /// now.
    pub fn through(&mut self, chain: u32, ends: bool) -> Vec<u32> {
        match (ends, self.rounds) {
            (true, false) => return Vec::new(),
            (false, false) => return vec![chain],
            (true, true) => self.alive -= 1,
            (false, true) => self.waiting.push(chain),
        }
        if self.waiting.len() == self.alive { std::mem::take(&mut self.waiting) } else { Vec::new() }
    }
}

/// The servers' devices: FIFO, each with one arm.
pub(super) struct Devices {
    free_at_s: Vec<f64>,
    last_chain: Vec<Option<u32>>,
    noise: Noise,
}

impl Devices {
    pub fn new(servers: usize) -> Self {
        Self { free_at_s: vec![0.0; servers], last_chain: vec![None; servers], noise: Noise(1) }
    }

    /// Serves a sub-request that arrives now, after all that arrived before. Returns when it is
    /// done, seconds.
    pub fn serve(&mut self, sub: &Sub, chain: u32, now_s: f64) -> f64 {
        let server = sub.server as usize;
        let last = self.last_chain[server].replace(chain);
        let busy_s = if last.is_none_or(|last| last == chain) { sub.busy_s } else { sub.after_others_s };
        let free = &mut self.free_at_s[server];
        *free = free.max(now_s) + busy_s * (1.0 + JITTER * self.noise.next_unit());
        *free
    }
}

/// The requests of every process, in order. Process c has `requests[starts[c]..starts[c + 1]]`.
pub(super) struct Chains {
    starts: Vec<u32>,
    requests: Vec<u32>,
}

impl Chains {
    pub fn of(flow: &Flow) -> Self {
        let count = flow.chains.iter().map(|chain| chain + 1).max().unwrap_or(0) as usize;
        let mut starts = vec![0u32; count + 1];
        for &chain in &flow.chains {
            starts[chain as usize + 1] += 1;
        }
        for chain in 0..count {
            starts[chain + 1] += starts[chain];
        }
        let mut fill = starts.clone();
        let mut requests = vec![0u32; flow.chains.len()];
        for (request, &chain) in flow.chains.iter().enumerate() {
            let at = &mut fill[chain as usize];
            requests[*at as usize] = request as u32;
            *at += 1;
        }
        Self { starts, requests }
    }

    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Per process: the index of its first request.
    pub fn firsts(&self) -> Vec<u32> {
        self.starts[..self.len()].to_vec()
    }

    /// Whether a process has no request left.
    pub fn is_done(&self, next: &[u32], chain: u32) -> bool {
        next[chain as usize] == self.starts[chain as usize + 1]
    }

    /// The shape of a process's next request, if it has one. Advances `next`.
    pub fn next(&self, flow: &Flow, next: &mut [u32], chain: u32) -> Option<u32> {
        let at = &mut next[chain as usize];
        if *at == self.starts[chain as usize + 1] {
            return None;
        }
        let request = self.requests[*at as usize];
        *at += 1;
        Some(flow.order[request as usize])
    }
}
