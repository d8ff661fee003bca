use proptest::prelude::*;

use super::split::{Latency, Work, latency_s, work_s, written_back_s};

/// A few requests on a few servers of two kinds.
#[derive(Clone, Debug)]
struct Small {
    slow: (u32, f64, f64),
    fast: (u32, f64, f64),
    /// Request sizes in bytes, at most 4.
    sizes: Vec<u64>,
    space: u64,
}

fn small() -> impl Strategy<Value = Small> {
    let class = || (1..=2u32, 0.0..3.0f64, 0.1..2.0f64);
    (class(), class(), prop::collection::vec(1..=4u64, 1..=4), 0..=12u64)
        .prop_map(|(slow, fast, sizes, space)| Small { slow, fast, sizes, space })
}

/// Returns all ways to divide `bytes` over `servers` servers.
fn ways(bytes: u64, servers: usize) -> Vec<Vec<u64>> {
    if servers == 0 {
        return if bytes == 0 { vec![vec![]] } else { vec![] };
    }
    let rest = |here: u64| {
        ways(bytes - here, servers - 1).into_iter().map(move |mut way| {
            way.insert(0, here);
            way
        })
    };
    (0..=bytes).flat_map(rest).collect()
}

impl Small {
    fn busy_s(&self, server: usize, bytes: u64) -> f64 {
        let (_, startup_s, per_byte_s) = if server < self.slow.0 as usize { self.slow } else { self.fast };
        if bytes == 0 { 0.0 } else { startup_s + bytes as f64 * per_byte_s }
    }

    /// Returns the least time until the last server is done, and the least sum of latencies, over
    /// all layouts that fit.
    fn brute(&self) -> (f64, f64) {
        let servers = (self.slow.0 + self.fast.0) as usize;
        let mut least = (f64::INFINITY, f64::INFINITY);
        self.place(0, &mut vec![0.0; servers], 0, 0.0, &mut least);
        least
    }

    fn place(&self, next: usize, busy: &mut Vec<f64>, used: u64, latencies_s: f64, least: &mut (f64, f64)) {
        let Some(&size) = self.sizes.get(next) else {
            least.0 = least.0.min(busy.iter().copied().fold(0.0, f64::max));
            least.1 = least.1.min(latencies_s);
            return;
        };
        for way in ways(size, busy.len()) {
            let used = used + way[self.slow.0 as usize..].iter().sum::<u64>();
            if used > self.space {
                continue;
            }
            let before = busy.clone();
            let mut latency_s = 0.0f64;
            for (server, &bytes) in way.iter().enumerate() {
                let busy_s = self.busy_s(server, bytes);
                busy[server] += busy_s;
                latency_s = latency_s.max(busy_s);
            }
            self.place(next + 1, busy, used, latencies_s + latency_s, least);
            *busy = before;
        }
    }

    fn work(&self) -> Vec<Work> {
        let one = |size: u64, (count, startup_s, per_byte_s): (u32, f64, f64)| {
            (startup_s + size as f64 * per_byte_s) / f64::from(count)
        };
        let work = |&size: &u64| Work {
            size,
            count: 1,
            slow_s: one(size, self.slow),
            fast_s: one(size, self.fast),
            slow_startups_s: self.slow.1 / f64::from(self.slow.0),
        };
        self.sizes.iter().map(work).collect()
    }

    fn latencies(&self) -> Vec<Latency> {
        let one = |(count, startup_s, per_byte_s): (u32, f64, f64)| (startup_s, per_byte_s / f64::from(count));
        let like = |&size: &u64| Latency { size, count: 1, slow: one(self.slow), fast: Some(one(self.fast)) };
        self.sizes.iter().map(like).collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn no_layout_is_faster(small in small()) {
        let (least_s, latencies_s) = small.brute();
        let bound_s = work_s(&small.work(), small.space as f64);
        prop_assert!(bound_s <= least_s + 1e-9, "{bound_s} > {least_s}");
        let bound_s = latency_s(&small.latencies(), small.space as f64);
        prop_assert!(bound_s <= latencies_s + 1e-9, "{bound_s} > {latencies_s}");
    }

    #[test]
    fn like_requests_reach_it(slow_s in 0.1..10.0f64, fast_s in 0.1..10.0f64, space in 0..1000u64) {
        // 1000 requests of one byte: the best number of them on SServers reaches the bound within
        // one request.
        let work = Work { size: 1, count: 1000, slow_s, fast_s, slow_startups_s: 0.0 };
        let of = |x: u64| ((1000 - x) as f64 * slow_s).max(x as f64 * fast_s);
        let best_s = (0..=space).map(of).fold(f64::INFINITY, f64::min);
        let bound_s = work_s(&[work], space as f64);
        prop_assert!(bound_s <= best_s + 1e-9 && best_s <= bound_s + slow_s.max(fast_s), "{bound_s} {best_s}");
    }
}

#[test]
fn a_cache_of_30_percent_gains_43_percent_where_hservers_are_what_is_slow() {
    let work = Work { size: 8192, count: 1000, slow_s: 4.6e-5, fast_s: 1.7e-5, slow_startups_s: 3.75e-5 };
    let space = 0.3 * 8192.0 * 1000.0;
    let gain = 1000.0 * work.slow_s / work_s(&[work], space);
    assert!((gain - 1.0 / 0.7).abs() < 1e-9, "{gain}");
    // As computed by bench/copies: at random places, write-back pays with 8 neighbors in a stripe,
    // and does not pay without neighbors.
    let back = |slots, random| 1000.0 * work.slow_s / written_back_s(&work, space, slots, random);
    assert!((back(1, true) - gain).abs() < 1e-9);
    assert!(back(8, true) > gain && back(8, false) > back(8, true), "{} {}", back(8, true), back(8, false));
}
