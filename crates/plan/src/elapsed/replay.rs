//! The sampled requests, in their order, through FIFO servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::Flow;

/// Service times vary by this part up and down. Without it, equal times make processes arrive at the same instant again
/// and again, and the result hangs on who is let in first; no device is that regular.
const JITTER: f64 = 0.01;

/// Seconds that `total` requests take, of which `flow` is a sample in order.
///
/// The processes work concurrently, each through its own requests. Deterministic; O(requests · (sub-requests + log
/// processes)). Where `total` exceeds the sample, the missing requests are assumed to go as fast as those of the
/// sample went while all processes were at work.
pub fn replay(flow: &Flow, total: u64) -> f64 {
    let chains = Chains::of(flow);
    let mut next: Vec<u32> = chains.starts[..chains.len()].to_vec();
    let mut free_at = vec![0.0f64; flow.servers()];
    // Times are not negative, so their bits order as they do.
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> =
        (0..chains.len() as u32).map(|c| Reverse((0, c))).collect();
    let mut end_s = 0.0f64;
    let mut issued = 0u64;
    let mut all_at_work: Option<(u64, f64)> = None;
    let mut noise = Noise(1);
    while let Some(Reverse((bits, chain))) = ready.pop() {
        let now = f64::from_bits(bits);
        let at = &mut next[chain as usize];
        if *at == chains.starts[chain as usize + 1] {
            all_at_work.get_or_insert((issued, now));
            continue;
        }
        let shape = flow.order[chains.requests[*at as usize] as usize];
        *at += 1;
        issued += 1;
        let mut done = now;
        for sub in flow.subs_of(shape) {
            let free = &mut free_at[sub.server as usize];
            *free = free.max(now) + sub.busy_s * noise.factor();
            done = done.max(*free);
        }
        end_s = end_s.max(done);
        ready.push(Reverse((done.to_bits(), chain)));
    }
    let missing = total.saturating_sub(issued) as f64;
    let steady = all_at_work.filter(|(count, _)| count * 2 >= issued);
    let (count, seconds) = steady.unwrap_or((issued, end_s));
    end_s + if count > 0 { missing * seconds / count as f64 } else { 0.0 }
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
