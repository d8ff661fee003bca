//! Divides files where the sizes of requests change.

use crate::problem::Problem;
use crate::regions::{Bins, joined};
use crate::workload::Request;

/// Neighbors whose mean sizes of requests (geometric means) differ by less than this factor are
/// one region.
const FACTOR: f64 = 2.0;

/// Number of classes of sizes: one for each power of two.
const CLASSES: usize = u64::BITS as usize;

/// The first bytes of the regions of a problem's files, the first of which is 0. Every other one is
/// the offset of a request, rounded down to the width unit if there is one.
pub fn starts(problem: &Problem<'_>) -> Vec<u64> {
    let spans = joined(spans(problem), Span::differs, Span::join);
    let requests = problem.set.groups.iter().flat_map(|group| &group.sample);
    let mut requests: Vec<(u64, u64)> = requests.map(|request| (request.offset, request.size)).collect();
    requests.sort_unstable();
    let from = |offset: u64| requests.partition_point(|request| request.0 < offset);
    let unit = problem.width_unit().unwrap_or(1);
    let mut starts = vec![0];
    for (index, pair) in spans.windows(2).enumerate() {
        let last = starts[starts.len() - 1];
        let end = spans.get(index + 2).map_or(requests.len(), |after| from(after.start));
        let cut = boundary(&pair[0], &pair[1], &requests[from(last).min(end)..end]);
        starts.extend(cut.map(|cut| cut / unit * unit).filter(|&cut| cut > last));
    }
    starts
}

/// The sizes of the sampled requests in neighboring bins.
struct Span {
    /// First byte.
    start: u64,
    count: f64,
    /// The sum of the logarithms, to base 2.
    logs: f64,
    by_class: [f64; CLASSES],
}

impl Span {
    fn empty(start: u64) -> Self {
        Self { start, count: 0.0, logs: 0.0, by_class: [0.0; CLASSES] }
    }

    fn add(&mut self, request: &Request) {
        self.count += 1.0;
        self.logs += (request.size as f64).log2();
        self.by_class[class(request.size)] += 1.0;
    }

    fn join(&mut self, next: Self) {
        self.count += next.count;
        self.logs += next.logs;
        self.by_class.iter_mut().zip(next.by_class).for_each(|(sum, count)| *sum += count);
    }

    /// How surely the sizes differ from the next span's: the likelihood ratio of two distributions
    /// of sizes against one (natural logarithm). Negative if the means differ by less than
    /// [`FACTOR`].
    fn differs(&self, next: &Self) -> f64 {
        if self.count == 0.0 || next.count == 0.0 {
            return f64::NEG_INFINITY;
        }
        let by = (self.logs / self.count - next.logs / next.count).abs() - FACTOR.log2();
        if by < 0.0 {
            return by;
        }
        let term = |seen: f64, expected: f64| if seen > 0.0 { seen * (seen / expected).ln() } else { 0.0 };
        let all = self.count + next.count;
        let of_class = |(&own, &others): (&f64, &f64)| {
            let fraction = (own + others) / all;
            term(own, fraction * self.count) + term(others, fraction * next.count)
        };
        self.by_class.iter().zip(&next.by_class).map(of_class).sum()
    }

    /// Estimated probability of a class of sizes, above 0 for each.
    fn probability(&self, class: usize) -> f64 {
        (self.by_class[class] + 0.5) / (self.count + 0.5 * CLASSES as f64)
    }
}

fn class(size: u64) -> usize {
    size.max(1).ilog2() as usize
}

fn spans(problem: &Problem<'_>) -> Vec<Span> {
    let bins = Bins::new(problem);
    let mut spans: Vec<Span> = bins.starts().map(Span::empty).collect();
    for request in problem.set.groups.iter().flat_map(|group| &group.sample) {
        spans[bins.bin_of(request)].add(request);
    }
    spans
}

/// Where the second of two spans begins most probably: the offset of one of `requests`, which are
/// (offset, size) in order of offset and lie in the two. `None` if all have the same offset.
fn boundary(one: &Span, next: &Span, requests: &[(u64, u64)]) -> Option<u64> {
    let odds: Vec<f64> =
        (0..CLASSES).map(|class| (one.probability(class) / next.probability(class)).ln()).collect();
    let (mut sum, mut best) = (0.0, None::<(f64, u64)>);
    for pair in requests.windows(2) {
        let [(before, size), (offset, _)] = pair else { continue };
        sum += odds[class(*size)];
        if before < offset && best.is_none_or(|(most, _)| sum > most) {
            best = Some((sum, *offset));
        }
    }
    best.map(|(_, offset)| offset)
}
