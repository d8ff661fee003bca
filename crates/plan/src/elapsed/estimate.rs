//! A closed form for requests that meet by chance.

use super::flow::{Flow, Sub};

/// Expected seconds per request for `procs` processes, if the requests of different processes meet
/// by chance.
///
/// At throughput X, server i is busy a fraction `ρ_i = X·D_i` of the time (`D_i`: its mean busy
/// time per request). A sub-request that arrives at random waits `W_i = r_i (ρ_i - D_i/L) / (1 -
/// ρ_i)`. `r_i = E[s²]/2E[s]` is the mean residual time of the sub-request in service
/// (Pollaczek-Khinchine). `D_i/L` is the load that the waiting process itself contributes (L: its
/// latency without contention). X follows from Little's law, `X · E[max_i (W_i + s_i)] = p`, and is
/// bounded by the busiest server.
///
/// For equal servers and requests that touch one server each, this is the memory-interference
/// formula of Baskett and Smith (Comm. ACM 19(6), 1976). It is exact if all requests touch the same
/// servers, and for one process.
pub fn estimate(flow: &Flow, procs: u32) -> f64 {
    let flow = &*flow.simplified();
    let moments = Moments::of(flow, procs.max(1));
    let floor_s = moments.floor_s();
    if floor_s <= 0.0 || procs <= 1 {
        return floor_s;
    }
    // Bisection for the throughput, as a fraction of the most that the bounds allow.
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let mut waits = vec![0.0; moments.demand.len()];
    for _ in 0..40 {
        let share = 0.5 * (low + high);
        let throughput = share / floor_s;
        moments.waits(throughput, procs, &mut waits);
        let response_s: f64 = flow.shapes().map(|(weight, subs)| weight * response(subs, &waits)).sum();
        if throughput * response_s < f64::from(procs) { low = share } else { high = share }
    }
    floor_s / high
}

/// Lower bound on the seconds per request of `procs` processes: those of the busiest server, or of
/// one process's chain of requests without contention.
pub fn floor_s(flow: &Flow, procs: u32) -> f64 {
    Moments::of(&flow.simplified(), procs.max(1)).floor_s()
}

fn response(subs: &[Sub], waits: &[f64]) -> f64 {
    subs.iter().map(|sub| waits[sub.server as usize] + sub.busy_s).fold(0.0, f64::max)
}

/// First and second moments of the busy time per request, by server.
pub(super) struct Moments {
    demand: Vec<f64>,
    residual: Vec<f64>,
    /// The mean latency of a request without contention, divided by the number of processes.
    latency_s: f64,
}

impl Moments {
    pub fn of(flow: &Flow, procs: u32) -> Self {
        let mut demand = vec![0.0; flow.servers()];
        let (mut square, mut latency_s) = (demand.clone(), 0.0);
        for (share, subs) in flow.shapes() {
            latency_s += share * subs.iter().map(|sub| sub.busy_s).fold(0.0, f64::max);
            for sub in subs {
                demand[sub.server as usize] += share * sub.busy_s;
                square[sub.server as usize] += share * sub.busy_s * sub.busy_s;
            }
        }
        let residual = demand.iter().zip(square);
        let residual = residual.map(|(&d, square)| if d > 0.0 { square / (2.0 * d) } else { 0.0 }).collect();
        Self { demand, residual, latency_s: latency_s / f64::from(procs) }
    }

    /// Lower bound on the seconds per request: no run is faster than the busiest server, or than
    /// one process's chain of latencies.
    pub fn floor_s(&self) -> f64 {
        self.demand.iter().copied().fold(0.0, f64::max).max(self.latency_s)
    }

    /// `W_i` for all servers at a throughput below the bottleneck's.
    fn waits(&self, throughput: f64, procs: u32, out: &mut [f64]) {
        let alone_s = self.latency_s * f64::from(procs);
        for ((wait, demand), residual) in out.iter_mut().zip(&self.demand).zip(&self.residual) {
            let load = throughput * demand;
            let others = (load - demand / alone_s).max(0.0);
            *wait = residual * others / (1.0 - load).max(1e-12);
        }
    }
}
