//! Best division of requests between two kinds of servers, one of which has little space.

/// Requests of one size.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Bytes per request.
    pub size: u64,
    /// Number of requests.
    pub count: u64,
    /// Seconds for which one request keeps all HServers together busy, if they alone serve it.
    pub slow_s: f64,
    /// Seconds for which one request keeps all SServers together busy, if they alone serve it.
    pub fast_s: f64,
    /// Startup time included in `slow_s`.
    pub slow_startups_s: f64,
}

impl Work {
    fn bytes(&self) -> f64 {
        self.size as f64 * self.count as f64
    }
}

/// Returns a lower bound on the seconds until both kinds of servers are done, with at most `space`
/// bytes on the SServers.
///
/// The bound is exact for requests of one size: a fraction x of them on SServers takes
/// `max((1 - x)·slow, x·fast)`, and x is limited by space. For several sizes it is the larger of
/// two bounds: one that considers only the space, and one that considers only the SServers' time.
pub(super) fn work_s(work: &[Work], space: f64) -> f64 {
    limited_by_space_s(work, space).max(balanced_s(work))
}

/// Returns the HServers' time if the requests that save most time per byte are on SServers until
/// these are full.
fn limited_by_space_s(work: &[Work], space: f64) -> f64 {
    let mut left = space;
    let mut slow_s = all_slow_s(work);
    for work in sorted(work, |work| work.slow_s / work.size as f64) {
        let share = (left / work.bytes()).min(1.0);
        slow_s -= share * work.count as f64 * work.slow_s;
        left -= share * work.bytes();
    }
    slow_s.max(0.0)
}

/// Returns the time of both kinds of servers if the requests that save most per second of SServer
/// time are on SServers, until both kinds take equally long.
fn balanced_s(work: &[Work]) -> f64 {
    let mut slow_s = all_slow_s(work);
    let mut fast_s = 0.0;
    for work in sorted(work, |work| work.slow_s / work.fast_s) {
        let count = work.count as f64;
        // Solves slow - share·count·slow_s = fast + share·count·fast_s for the share.
        let share = ((slow_s - fast_s) / (count * (work.slow_s + work.fast_s))).clamp(0.0, 1.0);
        slow_s -= share * count * work.slow_s;
        fast_s += share * count * work.fast_s;
    }
    slow_s.max(fast_s)
}

/// Returns the HServers' time if they alone serve all requests.
fn all_slow_s(work: &[Work]) -> f64 {
    work.iter().map(|work| work.count as f64 * work.slow_s).sum()
}

/// Returns the requests that SServers can serve, those with the largest `gain` first.
fn sorted(work: &[Work], gain: fn(&Work) -> f64) -> Vec<Work> {
    let possible = |work: &&Work| work.fast_s.is_finite() && work.count > 0 && work.size > 0;
    let mut sorted: Vec<Work> = work.iter().filter(possible).copied().collect();
    sorted.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    sorted
}

/// Returns the seconds if the SServers make space during the run by writing back, with up to
/// `slots` neighbors in one request. With `random` access, each of the `slots` neighbors is in the
/// cache with the same probability as any request; otherwise all of them are in it.
pub(super) fn written_back_s(work: &Work, space: f64, slots: u64, random: bool) -> f64 {
    let held = (space / work.bytes()).min(1.0);
    let slots = slots as f64;
    // Number of runs of neighbors per request in the cache.
    let runs = if random { (1.0 + (slots - 1.0) * (1.0 - held)) / slots } else { 1.0 / slots };
    let back_s = work.slow_s - work.slow_startups_s * (1.0 - runs);
    const STEPS: u32 = 1000;
    let seconds = |step: u32| {
        // A fraction x is written to SServers. The data that does not stay is read there again and
        // written back.
        let x = held + (1.0 - held) * f64::from(step) / f64::from(STEPS);
        let slow_s = (1.0 - x) * work.slow_s + (x - held) * back_s;
        work.count as f64 * slow_s.max((2.0 * x - held) * work.fast_s)
    };
    (0..=STEPS).map(seconds).fold(f64::INFINITY, f64::min)
}

/// Requests of one size without concurrency, each divided over all servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    /// Bytes per request.
    pub size: u64,
    /// Number of requests.
    pub count: u64,
    /// HServers: α, and β of all of them together.
    pub slow: (f64, f64),
    /// SServers: α, and β of all of them together.
    pub fast: Option<(f64, f64)>,
}

/// Returns a lower bound on the summed latencies of all requests, in seconds, with at most `space`
/// bytes on SServers.
pub(super) fn latency_s(requests: &[Latency], space: f64) -> f64 {
    // Each size is given the whole space. The result is at most the sum that all sizes can reach
    // together.
    requests.iter().map(|like| like.count as f64 * mean_latency_s(like, space / like.count as f64)).sum()
}

/// Returns the least mean latency if a request has `space` bytes on SServers on average.
///
/// With y bytes there it takes `max(α_h + (S - y)·β_h, α_s + y·β_s)`, which is convex for
/// 0 < y < S. A request without bytes on one kind of servers saves that kind's startup. The best
/// mixture is on the lower hull of these points, so the corners of the hull are enough.
fn mean_latency_s(like: &Latency, space: f64) -> f64 {
    let size = like.size as f64;
    let slow_s = |y: f64| like.slow.0 + (size - y) * like.slow.1;
    let Some(fast) = like.fast else { return slow_s(0.0) };
    let fast_s = |y: f64| fast.0 + y * fast.1;
    let even = ((slow_s(0.0) - fast_s(0.0)) / (like.slow.1 + fast.1)).clamp(0.0, size);
    let both_s = |y: f64| slow_s(y).max(fast_s(y));
    let points = [
        (0.0, slow_s(0.0)),
        (0.0, both_s(0.0)),
        (even, both_s(even)),
        (size, both_s(size)),
        (size, fast_s(size)),
    ];
    let mut least_s = f64::INFINITY;
    for (y1, s1) in points {
        for (y2, s2) in points {
            if y1 <= space {
                least_s = least_s.min(s1);
            }
            if y1 < space && space < y2 {
                let share = (space - y1) / (y2 - y1);
                least_s = least_s.min(s1 + share * (s2 - s1));
            }
        }
    }
    least_s
}
