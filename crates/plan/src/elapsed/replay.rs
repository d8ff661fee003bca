//! The sampled requests, in their order, through FIFO servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Flow;

/// Service times vary by this part up and down. Without it, equal times make processes arrive at the same instant again
/// and again, and the result hangs on who is let in first; no device is that regular.
const JITTER: f64 = 0.01;

/// Seconds that `total` requests take, of which `flow` has a sample, in order.
///
/// The processes work concurrently, each through its own requests. Where `total` exceeds the sample, each of its requests
/// stands for several: the time is scaled. So processes that are faster than others get ahead, and those that crowd on one
/// server for a while do so for as long as they really would. Deterministic; O(requests · (sub-requests + log processes)).
pub fn replay(flow: &Flow, total: u64) -> f64 {
    let chains = Chains::of(flow);
    let mut next: Vec<u32> = chains.starts[..chains.len()].to_vec();
    let mut free_at = vec![0.0f64; flow.servers()];
    let mut last_chain = vec![None; flow.servers()];
    let mut noise = Noise(1);
    // Times are not negative, so their bits order as they do.
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> =
        (0..chains.len() as u32).map(|c| Reverse((0, c))).collect();
    let mut end_s = 0.0f64;
    while let Some(Reverse((bits, chain))) = ready.pop() {
        let now = f64::from_bits(bits);
        end_s = now;
        let at = &mut next[chain as usize];
        if *at == chains.starts[chain as usize + 1] {
            continue;
        }
        let shape = flow.order[chains.requests[*at as usize] as usize];
        *at += 1;
        let mut done = now;
        for sub in flow.subs_of(shape) {
            let free = &mut free_at[sub.server as usize];
            let last = last_chain[sub.server as usize].replace(chain);
            let busy_s = if last.is_none_or(|last| last == chain) { sub.busy_s } else { sub.after_others_s };
            *free = free.max(now) + busy_s * noise.factor();
            done = done.max(*free);
        }
        ready.push(Reverse((done.to_bits(), chain)));
    }
    end_s * (total as f64 / flow.len().max(1) as f64).max(1.0)
}

/// A fixed sequence of numbers between 1 - [`JITTER`] and 1 + [`JITTER`] (xorshift64*).
struct Noise(u64);

impl Noise {
    fn factor(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        1.0 + JITTER * (bits as f64 / f64::from(1u32 << 31) - 1.0)
    }
}

/// The requests of every process, in order: those of process c are `requests[starts[c]..starts[c + 1]]`.
struct Chains {
    starts: Vec<u32>,
    requests: Vec<u32>,
}

impl Chains {
    fn of(flow: &Flow) -> Self {
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

    fn len(&self) -> usize {
        self.starts.len() - 1
    }
}
