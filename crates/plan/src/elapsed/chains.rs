//! The state of a replay: the processes' requests, the barrier between rounds, and the devices.

use std::ops::Range;

use stripewise_random::Noise;

use super::flow::{Flow, Sub};

/// Service times vary by up to this fraction in both directions ([`Noise`]).
const JITTER: f64 = 0.01;

/// The barrier between rounds; without rounds every process passes.
pub struct Gate {
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
pub struct Devices {
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

/// The shapes of the requests that every process has not issued yet.
pub struct Chains {
    /// The requests of one process after those of the other, in order.
    shapes: Vec<u32>,
    /// Per process: the indices of the requests that it has left.
    left: Vec<Range<usize>>,
}

impl Chains {
    pub fn of(flow: &Flow) -> Self {
        let mut left = vec![0..0; flow.chains.iter().map(|chain| chain + 1).max().unwrap_or(0) as usize];
        flow.chains.iter().for_each(|&chain| left[chain as usize].end += 1);
        let mut start = 0;
        for of_chain in &mut left {
            let len = of_chain.end;
            *of_chain = start..start;
            start += len;
        }
        let mut shapes = vec![0; flow.chains.len()];
        for (&shape, &chain) in flow.order.iter().zip(&flow.chains) {
            let of_chain = &mut left[chain as usize];
            shapes[of_chain.end] = shape;
            of_chain.end += 1;
        }
        Self { shapes, left }
    }

    pub fn len(&self) -> usize {
        self.left.len()
    }

    /// Whether a process has no request left.
    pub fn is_done(&self, chain: u32) -> bool {
        self.left[chain as usize].is_empty()
    }

    /// The shape of a process's next request, if it has one.
    pub fn next(&mut self, chain: u32) -> Option<u32> {
        self.left[chain as usize].next().map(|request| self.shapes[request])
    }
}
