//! The state of a replay: the processes' requests, the barrier between rounds, and the devices.

use std::ops::Range;

use stripewise_random::Noise;

use super::flow::{Crew, Flow, Sub};

/// Service times vary by up to this fraction in both directions ([`Noise`]).
const JITTER: f64 = 0.01;

/// When processes may issue their next request: in crews with rounds, when all are done with
/// theirs.
pub struct Gate<'f> {
    crews: &'f [Crew],
    /// Per crew.
    states: Vec<State>,
    /// Per process: its crew.
    crew_of: Vec<u32>,
}

#[derive(Clone, Default)]
struct State {
    /// The first process and one past the last.
    range: Range<u32>,
    /// Number of processes that have requests left.
    alive: usize,
    waiting: Vec<u32>,
}

impl<'f> Gate<'f> {
    pub fn new(flow: &'f Flow) -> Self {
        let crews = &flow.crews[..];
        let ends = crews.iter().skip(1).map(|crew| crew.first).chain([flow.processes()]);
        let ranges = crews.iter().zip(ends).map(|(crew, end)| crew.first..end);
        let state = |range: Range<u32>| State { alive: range.len(), range, waiting: Vec::new() };
        let states: Vec<State> = ranges.map(state).collect();
        let crew_of = (0..).zip(&states).flat_map(|(crew, of)| of.range.clone().map(move |_| crew)).collect();
        Self { crews, states, crew_of }
    }

    /// The processes that begin at once.
    pub fn first(&self) -> impl Iterator<Item = u32> + use<> {
        let at_once = self.crews.iter().zip(&self.states).filter(|(crew, _)| !crew.follows);
        at_once.map(|(_, state)| state.range.clone()).collect::<Vec<_>>().into_iter().flatten()
    }

    /// The crew of a process.
    pub fn crew(&self, chain: u32) -> &'f Crew {
        &self.crews[self.crew_of[chain as usize] as usize]
    }

    /// A process has arrived, to continue or (`ends`) to leave. Adds the processes that continue
    /// now to `going`. Returns those that begin, because the crew before theirs has ended.
    pub fn through(&mut self, chain: u32, ends: bool, going: &mut Vec<u32>) -> Range<u32> {
        let crew = self.crew_of[chain as usize] as usize;
        let (state, rounds) = (&mut self.states[crew], self.crews[crew].rounds);
        match (ends, rounds) {
            (true, _) => state.alive -= 1,
            (false, false) => going.push(chain),
            (false, true) => state.waiting.push(chain),
        }
        if rounds && state.waiting.len() == state.alive {
            // All begin at once, whoever came last; the order of ranks is as good as any.
            state.waiting.sort_unstable();
            going.append(&mut state.waiting);
        }
        let has_ended = ends && state.alive == 0;
        match self.crews.get(crew + 1) {
            Some(next) if has_ended && next.follows => self.states[crew + 1].range.clone(),
            _ => 0..0,
        }
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
        let mut left = vec![0..0; flow.processes() as usize];
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

    /// Whether a process has no request left.
    pub fn is_done(&self, chain: u32) -> bool {
        self.left[chain as usize].is_empty()
    }

    /// The shape of a process's next request, if it has one.
    pub fn next(&mut self, chain: u32) -> Option<u32> {
        self.left[chain as usize].next().map(|request| self.shapes[request])
    }
}
