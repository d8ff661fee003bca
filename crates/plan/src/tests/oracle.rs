//! Brute-force event-driven simulation with an explicit queue per server. It was written
//! independently of `elapsed::replay`.

use std::collections::VecDeque;

use crate::elapsed::Sub;

/// The time when the last request of all processes is done. `chains[c]` are the requests of process
/// c, in order.
pub fn simulate(chains: &[Vec<Vec<Sub>>]) -> f64 {
    let servers = chains.iter().flatten().flatten().map(|sub| sub.server as usize + 1).max().unwrap_or(0);
    let mut queues: Vec<VecDeque<(usize, Sub)>> = vec![VecDeque::new(); servers];
    let mut arm_of: Vec<Option<usize>> = vec![None; servers];
    let mut done_at: Vec<Option<f64>> = vec![None; servers];
    let mut position = vec![0usize; chains.len()];
    let mut outstanding = vec![0usize; chains.len()];
    let mut issue: Vec<usize> = (0..chains.len()).collect();
    let mut now = 0.0;
    loop {
        for chain in issue.drain(..) {
            if let Some(request) = chains[chain].get(position[chain]) {
                position[chain] += 1;
                outstanding[chain] = request.len();
                for sub in request {
                    queues[sub.server as usize].push_back((chain, *sub));
                }
            }
        }
        for (server, queue) in queues.iter().enumerate() {
            if let (None, Some(&(chain, sub))) = (done_at[server], queue.front()) {
                let others = arm_of[server].is_some_and(|of| of != chain);
                done_at[server] = Some(now + if others { sub.after_others_s } else { sub.busy_s });
                arm_of[server] = Some(chain);
            }
        }
        let Some(next) = done_at.iter().flatten().copied().min_by(f64::total_cmp) else { return now };
        now = next;
        for (server, done) in done_at.iter_mut().enumerate() {
            if *done == Some(now) {
                *done = None;
                let (chain, _) = queues[server].pop_front().expect("a busy server has a request");
                outstanding[chain] -= 1;
                if outstanding[chain] == 0 {
                    issue.push(chain);
                }
            }
        }
    }
}

/// A sub-request that takes the same time whichever process used the server before.
pub fn sub(server: u32, busy_s: f64) -> Sub {
    Sub { server, busy_s, after_others_s: busy_s, transfer_s: 0.0, stands_for: 1.0 }
}
