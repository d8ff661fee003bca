//! Converts a process's ticks to nanoseconds since 1970.

use std::collections::HashMap;

use crate::spool::Instant;

/// Known moments closer together than this add no information, nanoseconds.
const MOMENT_DISTANCE_NS: u64 = 10_000_000;

/// Known moments on the clocks of one process.
#[derive(Clone, Debug)]
pub(super) struct Moments {
    /// Ticks are already nanoseconds of `CLOCK_MONOTONIC`.
    is_monotonic: bool,
    moments: Vec<Instant>,
}

impl Moments {
    pub(super) fn new(clock_is_tsc: bool, start: Instant) -> Moments {
        Moments { is_monotonic: !clock_is_tsc, moments: vec![start] }
    }

    /// Adds a moment; the order does not matter.
    pub(super) fn add(&mut self, moment: Instant) {
        if !self.is_monotonic && moment != Instant::default() {
            self.moments.push(moment);
            // A long run has a moment per thousand calls, so they are thinned regularly.
            if self.moments.len() >= 1 << 16 {
                self.thin();
            }
        }
    }

    /// Sorts the moments and keeps the first, the last, and some in between. Both clocks advance
    /// between any two that are kept.
    fn thin(&mut self) {
        self.moments.sort_unstable_by_key(|moment| (moment.ticks, moment.monotonic_ns));
        self.moments
            .dedup_by(|later, kept| later.ticks <= kept.ticks || later.monotonic_ns <= kept.monotonic_ns);
        let last = self.moments.last().copied();
        self.moments.dedup_by(|later, kept| {
            Some(*later) != last && later.monotonic_ns - kept.monotonic_ns < MOMENT_DISTANCE_NS
        });
    }

    /// Ticks and nanoseconds between the first and the last moment.
    fn span(&self) -> (u64, u64) {
        match (self.moments.first(), self.moments.last()) {
            (Some(first), Some(last)) => (last.ticks - first.ticks, last.monotonic_ns - first.monotonic_ns),
            _ => (0, 0),
        }
    }
}

/// Converts the ticks of one process.
#[derive(Clone, Debug)]
pub(super) struct Clock {
    moments: Moments,
    ns_per_tick: f64,
    /// Offset from `CLOCK_MONOTONIC` to real time, nanoseconds.
    realtime_offset_ns: i128,
    /// Index of the moment that the last conversion started from; times are nearly sorted.
    last: usize,
}

/// Creates the clocks of all processes. `processes` are (node, start, start in real time, moments).
///
/// All processes of a node share the real-time offset of its first process, so the order within a
/// node is that of the monotonic clock. The order between nodes is as good as their clock
/// synchronization, until `alignment` improves it. The processes of a node also share the rate of
/// the time stamp counter as the process with the longest span saw it.
pub(super) fn clocks(processes: Vec<(&str, Instant, u64, Moments)>) -> Vec<Clock> {
    let mut offsets: HashMap<&str, (u64, i128)> = HashMap::new();
    let mut rates: HashMap<&str, (u64, u64)> = HashMap::new();
    let mut thinned = Vec::with_capacity(processes.len());
    for (host, start, realtime_ns, mut moments) in processes {
        moments.thin();
        let offset = i128::from(realtime_ns) - i128::from(start.monotonic_ns);
        let first = offsets.entry(host).or_insert((start.monotonic_ns, offset));
        if start.monotonic_ns < first.0 {
            *first = (start.monotonic_ns, offset);
        }
        let longest = rates.entry(host).or_insert((0, 0));
        *longest = (*longest).max(moments.span());
        thinned.push((host, moments));
    }
    thinned
        .into_iter()
        .map(|(host, moments)| {
            let (ticks, ns) = rates[host];
            // A job that ended at once gives no rate, but its calls do not need one.
            let ns_per_tick = if ticks > 0 && ns > 0 { ns as f64 / ticks as f64 } else { 1.0 };
            Clock { moments, ns_per_tick, realtime_offset_ns: offsets[host].1, last: 0 }
        })
        .collect()
}

impl Clock {
    /// Nanoseconds since 1970; 0 for earlier times.
    pub(super) fn unix_ns(&mut self, ticks: u64) -> u64 {
        u64::try_from(self.exact_ns(ticks)).unwrap_or(0)
    }

    /// Nanoseconds since 1970; negative for earlier times.
    pub(super) fn exact_ns(&mut self, ticks: u64) -> i128 {
        let monotonic_ns = if self.moments.is_monotonic { i128::from(ticks) } else { self.monotonic_ns(ticks) };
        monotonic_ns + self.realtime_offset_ns
    }

    /// Makes all times later.
    pub(super) fn shift(&mut self, later_ns: i64) {
        self.realtime_offset_ns += i128::from(later_ns);
    }

    fn monotonic_ns(&mut self, ticks: u64) -> i128 {
        let moments = &self.moments.moments;
        let from = |index: usize| moments.get(index).map_or(u64::MAX, |moment| moment.ticks);
        if !(from(self.last) <= ticks && ticks < from(self.last + 1)) {
            self.last = moments.partition_point(|moment| moment.ticks <= ticks).saturating_sub(1);
        }
        let Some(known) = moments.get(self.last) else { return i128::from(ticks) };
        let rate = match moments.get(self.last + 1) {
            Some(next) if ticks >= known.ticks => {
                (next.monotonic_ns - known.monotonic_ns) as f64 / (next.ticks - known.ticks) as f64
            }
            _ => self.ns_per_tick,
        };
        let distance = (i128::from(ticks) - i128::from(known.ticks)) as f64 * rate;
        // `as` saturates, so damaged times become remote times instead of a panic.
        i128::from(known.monotonic_ns) + i128::from(distance as i64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(ticks: u64, monotonic_ns: u64) -> Instant {
        Instant { ticks, monotonic_ns }
    }

    #[test]
    fn between_known_moments_time_is_interpolated_and_beyond_them_the_rate_goes_on() {
        // 2 ticks per ns, then 4.
        let second = 1_000_000_000;
        let start = moment(1000, 500);
        let mut moments = Moments::new(true, start);
        moments.add(moment(1000 + 6 * second, 500 + 2 * second));
        moments.add(moment(1000 + 2 * second, 500 + second));
        let mut clock = clocks(vec![("h", start, 1_000_500, moments)]).remove(0);
        let mut ns = |ticks| clock.unix_ns(ticks) - 1_000_000;
        assert_eq!(ns(1000), 500);
        assert_eq!(ns(1000 + second), 500 + second / 2);
        assert_eq!(ns(1000 + 4 * second), 500 + second + second / 2);
        assert_eq!(ns(1000 + 9 * second), 500 + 3 * second); // 3 ticks per ns on average
        assert_eq!(ns(1000 - 300), 400);
    }

    #[test]
    fn the_processes_of_a_host_share_offset_and_rate() {
        let (early, late) = (moment(10_000, 100), moment(30_000_000, 10_000_000));
        let mut long = Moments::new(true, early);
        long.add(moment(10_000 + 3_000_000_000, 100 + 1_000_000_000));
        let short = Moments::new(true, late);
        // The real-time clock was set back in between; the first process's offset applies.
        let mut clocks = clocks(vec![("h", late, 7, short), ("h", early, 5100, long)]);
        assert_eq!(clocks[0].unix_ns(30_000_000 + 300), 10_000_000 + 5000 + 100);
        assert_eq!(clocks[1].unix_ns(10_000 + 300), 5100 + 100);
    }

    #[test]
    fn a_monotonic_clock_needs_no_conversion() {
        let start = moment(50, 50);
        let mut clock = clocks(vec![("h", start, 1050, Moments::new(false, start))]).remove(0);
        assert_eq!(clock.unix_ns(70), 1070);
    }

    #[test]
    fn nonsense_does_not_panic() {
        let start = moment(u64::MAX, u64::MAX);
        let mut moments = Moments::new(true, start);
        moments.add(moment(0, u64::MAX));
        moments.add(moment(u64::MAX - 1, 1));
        let mut clock = clocks(vec![("h", start, 0, moments)]).remove(0);
        for ticks in [0, 1, u64::MAX / 2, u64::MAX] {
            clock.unix_ns(ticks);
        }
    }
}
