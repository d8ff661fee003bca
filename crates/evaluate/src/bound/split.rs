//! The best that can be made of two kinds of servers and little space on one of them.

/// Like requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Bytes of each.
    pub size: u64,
    /// How many.
    pub count: u64,
    /// Seconds that one keeps all HServers busy together, if they alone serve it.
    pub slow_s: f64,
    /// The same of the SServers.
    pub fast_s: f64,
    /// What of `slow_s` are startups.
    pub slow_startups_s: f64,
}

impl Work {
    fn bytes(&self) -> f64 {
        self.size as f64 * self.count as f64
    }
}

/// Seconds until both kinds of servers are done at best, with no more than `space` bytes on the SServers.
///
/// With requests of one size it is exact: x of them on SServers take `max((1 - x)·slow, x·fast)`, and x is limited by space.
/// With several sizes it is the larger of what the space alone and what the SServers' time alone allow.
pub(super) fn work_s(work: &[Work], space: f64) -> f64 {
    limited_by_space_s(work, space).max(balanced_s(work))
}

/// The HServers' time when those that save most per byte are on SServers until these are full.
fn limited_by_space_s(work: &[Work], space: f64) -> f64 {
    let mut sorted = possible(work);
    sorted.sort_by(|a, b| (b.slow_s / b.size as f64).total_cmp(&(a.slow_s / a.size as f64)));
    let mut left = space;
    let mut slow_s: f64 = work.iter().map(|work| work.count as f64 * work.slow_s).sum();
    for work in sorted {
        let share = (left / work.bytes()).min(1.0);
        slow_s -= share * work.count as f64 * work.slow_s;
        left -= share * work.bytes();
    }
    slow_s.max(0.0)
}

/// Both kinds of servers' time when those that save most for the SServers' time are there until both take the same.
fn balanced_s(work: &[Work]) -> f64 {
    let mut sorted = possible(work);
    sorted.sort_by(|a, b| (b.slow_s / b.fast_s).total_cmp(&(a.slow_s / a.fast_s)));
    let mut slow_s: f64 = work.iter().map(|work| work.count as f64 * work.slow_s).sum();
    let mut fast_s = 0.0;
    for work in sorted {
        let count = work.count as f64;
        // The share with which slow - share·count·slow_s = fast + share·count·fast_s.
        let share = ((slow_s - fast_s) / (count * (work.slow_s + work.fast_s))).clamp(0.0, 1.0);
        slow_s -= share * count * work.slow_s;
        fast_s += share * count * work.fast_s;
    }
    slow_s.max(fast_s)
}

fn possible(work: &[Work]) -> Vec<Work> {
    work.iter().copied().filter(|work| work.fast_s.is_finite() && work.count > 0 && work.size > 0).collect()
}

/// Seconds when the SServers make room during the run by writing back, `slots` neighbours as one request if they are there.
/// At `random` places of `slots` neighbours each is in the cache with the chance of all; otherwise all of them are.
pub(super) fn written_back_s(work: &Work, space: f64, slots: u64, random: bool) -> f64 {
    let held = (space / work.bytes()).min(1.0);
    let slots = slots as f64;
    // How many runs of neighbours there are for each request that is in the cache.
    let runs = if random { (1.0 + (slots - 1.0) * (1.0 - held)) / slots } else { 1.0 / slots };
    let back_s = work.slow_s - work.slow_startups_s * (1.0 - runs);
    const STEPS: u32 = 1000;
    let seconds = |step: u32| {
        // A share x is written to SServers, and what does not stay is read there again and written back.
        let x = held + (1.0 - held) * f64::from(step) / f64::from(STEPS);
        let slow_s = (1.0 - x) * work.slow_s + (x - held) * back_s;
        work.count as f64 * slow_s.max((2.0 * x - held) * work.fast_s)
    };
    (0..=STEPS).map(seconds).fold(f64::INFINITY, f64::min)
}

/// Like requests that are alone, each divided over all servers: α and, of all servers of a kind together, β.
#[derive(Clone, Copy, Debug)]
pub(super) struct Latency {
    /// Bytes of each.
    pub size: u64,
    /// How many.
    pub count: u64,
    /// HServers.
    pub slow: (f64, f64),
    /// SServers.
    pub fast: Option<(f64, f64)>,
}

/// The sum of the latencies of all requests, seconds, with no more than `space` bytes on SServers.
pub(super) fn latency_s(requests: &[Latency], space: f64) -> f64 {
    // What sizes that are alone in using the space could do is no more than what they can together.
    requests.iter().map(|like| like.count as f64 * mean_latency_s(like, space / like.count as f64)).sum()
}

/// The least mean latency when a request has `space` bytes on SServers on average.
///
/// With y bytes there it takes `max(α_h + (S - y)·β_h, α_s + y·β_s)`, which is convex for 0 < y < S; without a part on one kind
/// its startup is saved. The best mixture is on the lower hull of these points, of which the corners are enough.
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
