//! Times of a log as times of a trace.

use crate::Job;

/// Converts seconds since the start of the job, and counts what cannot be.
pub(super) struct Clock {
    /// Start of the job, nanoseconds since 1970.
    start_ns: i128,
    backwards: u64,
    unusable: u64,
}

impl Clock {
    pub(super) fn new(job: &Job) -> Clock {
        let (seconds, nanoseconds) = job.start;
        let start_ns = i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds);
        Clock { start_ns, backwards: 0, unusable: 0 }
    }

    /// Start and end, nanoseconds since 1970, of a call that a log has.
    #[inline]
    pub(super) fn recorded(&mut self, start_s: f64, end_s: f64) -> (u64, u64) {
        self.unusable += u64::from(!start_s.is_finite() || !end_s.is_finite());
        let (start_ns, end_ns) = (self.at(start_s), self.at(end_s));
        self.backwards += u64::from(end_ns < start_ns);
        (start_ns, end_ns.max(start_ns))
    }

    /// Nanoseconds since 1970. Before 1970 is 1970.
    #[inline]
    pub(super) fn at(&self, seconds: f64) -> u64 {
        // The cast saturates, and makes 0 of what is not a number.
        (self.start_ns + (seconds * 1e9) as i64 as i128).clamp(0, i64::MAX.into()) as u64
    }

    pub(super) fn odd(&self) -> impl Iterator<Item = String> {
        let backwards = (self.backwards > 0).then(|| {
            format!(
                "{} calls end before they start: the clock was set back, and they count as taking no time",
                self.backwards
            )
        });
        let unusable = (self.unusable > 0).then(|| {
            format!("{} calls have times that are no numbers: they count as made at the start", self.unusable)
        });
        backwards.into_iter().chain(unusable)
    }
}
