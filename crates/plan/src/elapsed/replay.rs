//! Replay of the sampled requests, in their order, through FIFO servers.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::chains::{Chains, Devices, Gate};
use super::flow::Flow;
use super::network;

/// Seconds that `total` requests take, of which `flow` has a sample, in order.
///
/// The processes run concurrently, each through its own requests. If `total` exceeds the sample,
/// each sampled request stands for several: the time is scaled. So faster processes get ahead, and
/// processes that crowd on one server do so for as long as in the real run. Deterministic.
/// O(requests · (sub-requests + log processes)) without a network; with one, every sub-request is
/// followed over its links.
pub fn replay(flow: &Flow, total: u64) -> f64 {
    if flow.has_network() {
        return network::replay(flow, total);
    }
    let mut chains = Chains::of(flow);
    let mut devices = Devices::new(flow.servers());
    let mut gate = Gate::new(flow);
    // Times are not negative, so their bits have the same order.
    let mut ready: BinaryHeap<Reverse<(u64, u32)>> = gate.first().map(|chain| Reverse((0, chain))).collect();
    let (mut end_s, mut going) = (0.0f64, Vec::new());
    while let Some(Reverse((bits, chain))) = ready.pop() {
        let now_s = f64::from_bits(bits);
        end_s = now_s;
        let begin = gate.through(chain, chains.is_done(chain), &mut going);
        ready.extend(begin.map(|chain| Reverse((bits, chain))));
        for chain in going.drain(..) {
            let Some(shape) = chains.next(chain) else { continue };
            let served = flow.subs_of(shape).iter().map(|sub| devices.serve(sub, chain, now_s));
            let done_s = served.fold(now_s, f64::max);
            ready.push(Reverse((done_s.to_bits(), chain)));
        }
    }
    end_s * (total as f64 / flow.len().max(1) as f64).max(1.0)
}
