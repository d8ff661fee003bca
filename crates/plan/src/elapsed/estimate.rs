//! Lower bounds, and a closed form for requests that meet by chance.

use super::{Flow, Sub};

/// Lower bounds on the time of any run of a group, seconds per request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Bounds {
    /// The busiest server's mean busy time per request.
    pub bottleneck_s: f64,
    /// Target index of that server.
    pub busiest: u32,
    /// The mean latency of a request without contention, divided by the number of processes.
    pub latency_s: f64,
}

impl Bounds {
    /// The larger of the two bounds, seconds per request.
    pub fn most_s(&self) -> f64 {
        self.bottleneck_s.max(self.latency_s)
    }
}

/// The two lower bounds for `procs` processes (at least 1), in seconds per request.
pub fn bounds(flow: &Flow, procs: u32) -> Bounds {
    let mut demand = vec![0.0f64; flow.servers()];
    let mut latency_s = 0.0;
    for (share, subs) in flow.shapes() {
        latency_s += share * longest(subs);
        for sub in subs {
            demand[sub.server as usize] += share * sub.busy_s;
        }
    }
    let busiest = (0..demand.len()).reduce(|a, b| if demand[b] > demand[a] { b } else { a }).unwrap_or(0);
    Bounds {
        bottleneck_s: demand.get(busiest).copied().unwrap_or(0.0),
        busiest: busiest as u32,
        latency_s: latency_s / f64::from(procs.max(1)),
    }
}

fn longest(subs: &[Sub]) -> f64 {
    subs.iter().map(|sub| sub.busy_s).fold(0.0, f64::max)
}

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
    let bounds = bounds(flow, procs);
    let floor_s = bounds.most_s();
    if floor_s <= 0.0 || procs <= 1 {
        return floor_s;
    }
    let servers = Servers::of(flow, bounds.latency_s * f64::from(procs));
    // Bisection for the throughput, as a fraction of the most that the bounds allow.
    let (mut low, mut high) = (0.0f64, 1.0f64);
    let mut waits = vec![0.0; servers.demand.len()];
    for _ in 0..40 {
        let share = 0.5 * (low + high);
        let throughput = share / floor_s;
        servers.waits(throughput, &mut waits);
        let response_s: f64 = flow.shapes().map(|(weight, subs)| weight * response(subs, &waits)).sum();
        if throughput * response_s < f64::from(procs) { low = share } else { high = share }
    }
    floor_s / high
}

fn response(subs: &[Sub], waits: &[f64]) -> f64 {
    subs.iter().map(|sub| waits[sub.server as usize] + sub.busy_s).fold(0.0, f64::max)
}

/// First and second moments of the busy time per request, by server, and the latency of a request
/// without contention.
struct Servers {
    demand: Vec<f64>,
    residual: Vec<f64>,
    alone_s: f64,
}

impl Servers {
    fn of(flow: &Flow, alone_s: f64) -> Self {
        let mut demand = vec![0.0; flow.servers()];
        let mut square = demand.clone();
        for (share, subs) in flow.shapes() {
            for sub in subs {
                demand[sub.server as usize] += share * sub.busy_s;
                square[sub.server as usize] += share * sub.busy_s * sub.busy_s;
            }
        }
        let residual = demand.iter().zip(square);
        let residual = residual.map(|(&d, square)| if d > 0.0 { square / (2.0 * d) } else { 0.0 }).collect();
        Self { demand, residual, alone_s }
    }

    /// `W_i` for all servers at a throughput below the bottleneck's.
    fn waits(&self, throughput: f64, out: &mut [f64]) {
        for ((wait, demand), residual) in out.iter_mut().zip(&self.demand).zip(&self.residual) {
            let load = throughput * demand;
            let others = (load - demand / self.alone_s).max(0.0);
            *wait = residual * others / (1.0 - load).max(1e-12);
        }
    }
}
