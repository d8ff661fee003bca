//! A group's totals and its evenly spaced runs of requests.

use stripewise_model::Access;
use stripewise_trace::summary::Past;

use crate::workload::{RUN, Request};

/// The totals of some requests, and all of them or evenly spaced runs.
#[derive(Default)]
pub(crate) struct Sampled {
    count: u64,
    bytes: u64,
    /// Requests that begin in the file where their process's previous request there ended.
    in_order: u64,
    /// The requests counted in `in_order`, and those that keep a constant distance to their
    /// process's previous ones.
    regular: u64,
    /// Number of requests so far, by which runs are counted; the kept runs begin at multiples of
    /// `RUN << thinned`. Where samples were joined, requests are missing from it.
    position: u64,
    /// Every `2^thinned`-th run of `RUN` requests is kept.
    thinned: u32,
    requests: Vec<Request>,
}

/// The value of `thinned` if no run is kept, not even the first one.
const FORGOTTEN: u32 = u64::BITS + 1;

/// In a group where a smaller fraction of the requests than this follows their process's previous
/// ones in a regular way, the regularity is taken for chance.
const STRAY: f64 = 0.05;

impl Sampled {
    /// Adds the next request, and keeps at most `limit`.
    #[inline]
    pub(crate) fn push(&mut self, request: Request, limit: usize) {
        self.count += 1;
        self.bytes = self.bytes.saturating_add(request.size);
        let in_order = request.access() == Access::Sequential;
        self.in_order += u64::from(in_order);
        self.regular += u64::from(in_order || request.past.count > 1);
        self.keep(request, limit);
    }

    #[inline]
    fn keep(&mut self, request: Request, limit: usize) {
        let run = self.position / RUN as u64;
        self.position += 1;
        if self.keeps(run) && self.requests.len() >= limit {
            self.thin(limit);
        }
        // Thinning may just have dropped the run that this request belongs to.
        if self.keeps(run) && self.requests.len() < limit {
            self.requests.push(request);
        }
    }

    /// Adds requests that follow these, and keeps at most `limit` of all.
    pub(crate) fn join(&mut self, mut next: Sampled, limit: usize) {
        if self.count == 0 {
            *self = next;
            return;
        }
        self.count += next.count;
        self.bytes = self.bytes.saturating_add(next.bytes);
        self.in_order += next.in_order;
        self.regular += next.regular;
        if next.thinned == FORGOTTEN {
            return;
        }
        if self.thinned == FORGOTTEN {
            (self.position, self.thinned, self.requests) = (next.position, next.thinned, next.requests);
            return;
        }
        if next.thinned == 0 {
            next.requests.into_iter().for_each(|request| self.keep(request, limit));
            return;
        }
        let thinned = self.thinned.max(next.thinned);
        [&mut *self, &mut next].into_iter().for_each(|sampled| {
            while sampled.thinned < thinned {
                sampled.drop_every_other_run();
            }
        });
        // The runs of `next` begin with a run that is kept. It comes after the last one that is
        // whole here, even if a later one had begun.
        self.requests.truncate(self.requests.len() / RUN * RUN);
        self.position = ((self.requests.len() as u64) << thinned) + next.position;
        self.requests.append(&mut next.requests);
        if self.requests.len() > limit {
            self.thin(limit);
        }
    }

    fn keeps(&self, run: u64) -> bool {
        run.trailing_zeros() >= self.thinned
    }

    /// Keeps no request, also of those to come. The totals stay.
    pub(crate) fn forget(&mut self) {
        (self.thinned, self.requests) = (FORGOTTEN, Vec::new());
    }

    /// Keeps at most `limit` requests, and memory for no more.
    pub(crate) fn shrink(&mut self, limit: usize) {
        if self.requests.len() > limit {
            self.thin(limit);
        }
        self.requests.shrink_to(limit);
    }

    /// Drops every other run until fewer than `limit` requests are left.
    fn thin(&mut self, limit: usize) {
        while self.requests.len() >= limit && self.requests.len() > RUN {
            self.drop_every_other_run();
        }
        self.requests.truncate(limit);
    }

    fn drop_every_other_run(&mut self) {
        let mut index = 0;
        self.requests.retain(|_| {
            index += 1;
            ((index - 1) / RUN).is_multiple_of(2)
        });
        self.thinned += 1;
    }

    /// Number of requests that are kept.
    pub(crate) fn len(&self) -> usize {
        self.requests.len()
    }

    /// Number of requests.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Bytes of the requests.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether most requests begin where their process's previous one ended.
    pub(crate) fn is_in_order(&self) -> bool {
        2 * self.in_order >= self.count
    }

    /// The kept requests. Their pasts are empty if the group has no regularity.
    pub(crate) fn into_requests(mut self) -> Vec<Request> {
        if (self.regular as f64) < STRAY * self.count as f64 {
            self.requests.iter_mut().for_each(|request| request.past = Past::default());
        }
        self.requests
    }
}

/// The sample that a group keeps of `requests` under a limit of `limit` requests.
#[cfg(test)]
pub(crate) fn sampled(requests: &[Request], limit: usize) -> Vec<Request> {
    let mut sampled = Sampled::default();
    requests.iter().for_each(|request| sampled.push(*request, limit));
    sampled.requests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(offset: u64) -> Request {
        Request { offset, size: 1, ..Request::default() }
    }

    #[test]
    fn small_groups_are_kept_whole_and_large_ones_evenly() {
        let limit = 16 * RUN;
        for count in [1usize, RUN, 20 * RUN, 100_000, 1_000_000] {
            let mut group = Sampled::default();
            (0..count as u64).for_each(|offset| group.push(request(offset), limit));
            assert_eq!(group.count, count as u64);
            assert!(group.requests.len() <= limit);
            if count <= limit {
                assert_eq!(group.requests.len(), count);
            } else {
                assert!(group.requests.len() >= limit / 2 - RUN, "{count}: {}", group.requests.len());
                let mean: f64 =
                    group.requests.iter().map(|r| r.offset as f64).sum::<f64>() / group.requests.len() as f64;
                let half = count as f64 / 2.0;
                assert!((mean / half - 1.0).abs() < 0.15, "{count}: mean {mean}");
            }
            let runs = group.requests.chunks(RUN);
            assert!(runs.into_iter().all(|run| run.windows(2).all(|w| w[1].offset == w[0].offset + 1)));
        }
    }

    #[test]
    fn joined_samples_are_runs_of_both() {
        let limit = 16 * RUN;
        let sampled = |from: u64, count: u64| {
            let mut sampled = Sampled::default();
            (from..from + count).for_each(|offset| sampled.push(request(offset), limit));
            sampled
        };
        let many = [[300_000, 400_000], [295_000, 360_500]];
        for counts in [[10, 20], [RUN as u64 + 3, 500_000], [500_000, 70]].into_iter().chain(many) {
            let (mut joined, mut more) = (sampled(0, counts[0]), sampled(counts[0], counts[1]));
            joined.join(std::mem::take(&mut more), limit);
            let total = counts[0] + counts[1];
            assert_eq!((joined.count(), joined.bytes()), (total, total));
            (total..total + 200_000).for_each(|offset| joined.push(request(offset), limit));
            assert!(joined.len() <= limit && joined.len() >= limit / 4, "{counts:?}: {}", joined.len());
            let runs = joined.requests.chunks(RUN);
            assert!(runs.into_iter().all(|run| run.windows(2).all(|w| w[1].offset == w[0].offset + 1)));
            assert!(joined.requests.is_sorted_by_key(|request| request.offset));
        }
    }

    #[test]
    fn of_a_forgotten_sample_only_the_totals_are_left() {
        let sampled = |count: u64| {
            let mut sampled = Sampled::default();
            (0..count).for_each(|offset| sampled.push(request(offset), 100));
            sampled
        };
        let forgotten = || {
            let mut forgotten = sampled(3);
            forgotten.forget();
            (0..5000).for_each(|offset| forgotten.push(request(offset), 100));
            forgotten
        };
        assert_eq!((forgotten().len(), forgotten().count()), (0, 5003));
        for (mut joined, next) in [(forgotten(), sampled(7)), (sampled(7), forgotten())] {
            joined.join(next, 100);
            assert_eq!((joined.len(), joined.count()), (7, 5010));
        }
    }

    #[test]
    fn small_samples_are_joined_whole() {
        let mut joined = Sampled::default();
        for start in [0, 3, 6] {
            let mut three = Sampled::default();
            (start..start + 3).for_each(|offset| three.push(request(offset), 100));
            joined.join(three, 100);
        }
        let offsets: Vec<u64> = joined.requests.iter().map(|request| request.offset).collect();
        assert_eq!(offsets, (0..9).collect::<Vec<u64>>());
    }
}
