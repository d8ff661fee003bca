//! Regions of files: parts in which the work is even, and layouts composed of theirs.
//!
//! The work of a request is the time that it would take longer on the slowest class of servers than
//! on the fastest. A file is cut where the work per stored byte changes.

use std::sync::Arc;

use stripewise_cluster::Cluster;
use stripewise_layout::{Layout, MAX_OFFSET, Region};
use stripewise_model::{Access, Op};
use stripewise_trace::summary::Past;

use crate::problem::{PAGE, Problem};
use crate::servers::Servers;
use crate::workload::{File, FileSet, Group, Request};

/// Number of bins in which the requests are counted before neighbors are joined.
const BINS: u64 = 256;
/// Maximum number of regions of a file.
const REGIONS_MAX: usize = 8;
/// Neighbors whose work per byte differs by less than this factor are one region.
const FACTOR: f64 = 2.0;
/// Neighbors are one region, too, if a sample shows such a difference by chance with a probability
/// above e^-12. There are up to 255 pairs of neighbors.
pub const EVIDENCE: f64 = 12.0;

/// A part of all files of a set, by offset.
pub struct Part {
    /// First byte.
    pub start: u64,
    /// One past the last byte; `None` in the last part.
    pub end: Option<u64>,
    /// The part of every file, as files of their own, and the requests on it.
    pub set: FileSet,
}

/// The parts of a set's files, in file order; a single one if the work is even.
pub fn parts(problem: &Problem<'_>) -> Vec<Part> {
    divided(problem.set, &starts(problem))
}

/// The parts of a set's files that begin at these bytes, in file order. The first begins at byte 0.
pub fn divided(set: &FileSet, starts: &[u64]) -> Vec<Part> {
    let ends = starts.iter().skip(1).map(|&start| Some(start)).chain([None]);
    starts.iter().zip(ends).map(|(&start, end)| part(set, start, end)).collect()
}

/// Equal parts of the files of a set. Bins are whole requests, so that few requests lie in two of
/// them.
pub struct Bins {
    width: u64,
    count: u64,
}

impl Bins {
    /// At most [`BINS`] bins for the files of a problem.
    pub fn new(problem: &Problem<'_>) -> Self {
        let largest = problem.set.largest();
        let unit = problem.size.max(1).next_multiple_of(problem.align().max(PAGE));
        let width = largest.div_ceil(BINS).max(1).next_multiple_of(unit);
        Self { width, count: largest.div_ceil(width).max(1) }
    }

    /// The first byte of every bin.
    pub fn starts(&self) -> impl Iterator<Item = u64> {
        (0..self.count).map(|bin| bin * self.width)
    }

    /// The bin in which a request begins.
    pub fn bin_of(&self, request: &Request) -> usize {
        (request.offset / self.width).min(self.count - 1) as usize
    }
}

/// Joins neighbors, those that differ least first, until at most [`REGIONS_MAX`] are left and all
/// of these differ. `differs` tells by how much, where [`EVIDENCE`] is enough.
pub fn joined<S>(mut spans: Vec<S>, differs: impl Fn(&S, &S) -> f64, join: impl Fn(&mut S, S)) -> Vec<S> {
    loop {
        let pairs = spans.windows(2).map(|pair| differs(&pair[0], &pair[1])).enumerate();
        match pairs.min_by(|a, b| a.1.total_cmp(&b.1)) {
            Some((index, differs)) if differs < EVIDENCE || spans.len() > REGIONS_MAX => {
                let next = spans.remove(index + 1);
                join(&mut spans[index], next);
            }
            _ => return spans,
        }
    }
}

/// Where a part is, and how much of the whole it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outline {
    /// First byte.
    pub start: u64,
    /// One past the last byte; `None` in the last part.
    pub end: Option<u64>,
    /// The fraction of the work on all files of the set.
    pub work: f64,
    /// The fraction of the bytes of all files of the set.
    pub bytes: f64,
}

/// The outlines of the parts of a set's files, in file order.
pub fn outline(problem: &Problem<'_>) -> Vec<Outline> {
    let spans = uneven(problem);
    let work_s: f64 = spans.iter().map(|span| span.work.work_s).sum();
    let stored = spans.iter().map(|span| span.work.stored).sum::<f64>().max(1.0);
    let ends = spans.iter().skip(1).map(|span| Some(span.start)).chain([None]);
    let of = |(span, end): (&Span, Option<u64>)| {
        let (work, bytes) = (span.work.work_s / work_s, span.work.stored / stored);
        Outline { start: span.start, end, work, bytes }
    };
    spans.iter().zip(ends).map(of).collect()
}

/// Neighboring bins.
#[derive(Clone, Copy, Default)]
struct Span {
    start: u64,
    work: Work,
}

/// The work on some bytes of files.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Seconds of work.
    pub work_s: f64,
    /// Bytes of the files that it is on.
    pub stored: f64,
}

impl Work {
    /// How surely the work per byte differs from that on other bytes by more than [`FACTOR`]: the
    /// negative logarithm of the probability (Chernoff's bound) that a sample shows this if it does
    /// not; negative if the sample shows less. `one_s` is the mean work of a sampled request.
    pub fn differs(&self, other: &Self, one_s: f64) -> f64 {
        let density = |work: &Self| work.work_s / work.stored.max(1.0);
        let (more, less) = if density(self) > density(other) { (self, other) } else { (other, self) };
        let count = (more.work_s + less.work_s) / one_s;
        if count == 0.0 {
            return f64::NEG_INFINITY;
        }
        // The denser one gets each request with at most this probability.
        let expected = FACTOR * more.stored / (FACTOR * more.stored + less.stored);
        let seen = more.work_s / (more.work_s + less.work_s);
        let divergence =
            |seen: f64, expected: f64| if seen > 0.0 { seen * (seen / expected).ln() } else { 0.0 };
        let sum = divergence(seen, expected) + divergence(1.0 - seen, 1.0 - expected);
        if seen > expected { count * sum } else { -count * sum }
    }

    /// Adds the work on other bytes.
    pub fn join(&mut self, other: Self) {
        self.work_s += other.work_s;
        self.stored += other.stored;
    }
}

/// The first bytes of the parts.
fn starts(problem: &Problem<'_>) -> Vec<u64> {
    outline(problem).iter().map(|of| of.start).collect()
}

/// The parts as spans; a single one if there is no work.
fn uneven(problem: &Problem<'_>) -> Vec<Span> {
    let spans = spans(problem);
    let work_s: f64 = spans.iter().map(|span| span.work.work_s).sum();
    if work_s <= 0.0 {
        return vec![Span { start: 0, work: Work { work_s: 1.0, stored: 1.0 } }];
    }
    let one_s = work_s / problem.set.groups.iter().map(|group| group.sample.len() as f64).sum::<f64>();
    joined(spans, |one, next| one.work.differs(&next.work, one_s), |one, next| one.work.join(next.work))
}

/// The work in each bin.
fn spans(problem: &Problem<'_>) -> Vec<Span> {
    let set = problem.set;
    let bins = Bins::new(problem);
    let mut spans: Vec<Span> = bins.starts().map(|start| Span { start, ..Span::default() }).collect();
    for file in &set.files {
        for span in spans.iter_mut().take_while(|span| span.start < file.size) {
            span.work.stored += file.count() as f64 * (file.size - span.start).min(bins.width) as f64;
        }
    }
    let place = (problem.cluster, problem.servers);
    for group in &set.groups {
        let weight = group.weight(group.sample.len());
        for request in &group.sample {
            let work_s = work_s(place, group.op, request.access(), request.size);
            spans[bins.bin_of(request)].work.work_s += weight * work_s;
        }
    }
    spans
}

/// The seconds that a request of `size` bytes takes longer on the slowest server than on the
/// fastest.
pub fn work_s((cluster, servers): (&Cluster, &Servers), op: Op, access: Access, size: u64) -> f64 {
    let busy_s = |tier| Some(servers.busy_s(cluster.targets_of(tier).next()?, op, access, size));
    let all = (0..cluster.tiers.len()).filter_map(busy_s);
    let (least, most) = all.fold((f64::INFINITY, 0.0f64), |(least, most), s| (least.min(s), most.max(s)));
    (most - least).max(0.0)
}

fn part(set: &FileSet, start: u64, end: Option<u64>) -> Part {
    let end_or_last = end.unwrap_or(u64::MAX);
    let file = |file: &File| File {
        name: Arc::clone(&file.name),
        size: file.size.min(end_or_last).saturating_sub(start),
        others: file.others,
    };
    let groups = set.groups.iter().filter_map(|group| group_in(group, start, end_or_last)).collect();
    let files = set.files.iter().map(file).collect();
    let (pattern, private, mapped) = (set.pattern.clone(), set.private, set.mapped);
    let set = FileSet { pattern, files, groups, private, mapped, ..FileSet::default() };
    Part { start, end, set }
}

/// The requests of a group in a range of the files; `None` if there are none.
fn group_in(group: &Group, start: u64, end: u64) -> Option<Group> {
    let clip = |request: &Request| {
        let first = request.offset.max(start);
        let size = request.offset.saturating_add(request.size).min(end).saturating_sub(first);
        (size > 0).then(|| {
            let offset = first - start;
            Request { offset, size, past: clipped(request.past, offset), ..*request }
        })
    };
    let sample: Vec<Request> = group.sample.iter().filter_map(clip).collect();
    let weight = group.count as f64 / group.sample.len().max(1) as f64;
    let bytes = sample.iter().map(|request| request.size as f64).sum::<f64>() * weight;
    let count = (sample.len() as f64 * weight).round() as u64;
    (!sample.is_empty()).then(|| Group {
        count,
        bytes: bytes.round() as u64,
        sample,
        ..group.clone_without_sample()
    })
}

/// What a past says about the bytes before a request at `offset`.
fn clipped(past: Past, offset: u64) -> Past {
    let run = past.run.min(offset);
    let runs = (offset - run) / past.stride.max(1);
    let count = u64::from(past.count).min(runs) as u32;
    if count == 0 { Past { run, ..Past::default() } } else { Past { run, count, ..past } }
}

/// A layout for a part of a file: another one up to a fraction of it, if it is cut.
pub struct Piece<'l> {
    /// The part.
    pub part: &'l Part,
    /// The layouts, one after the other, each with the fraction of the part that it has. They begin
    /// at the first byte that they have.
    pub layouts: Vec<(&'l Layout, f64)>,
}

/// The layout of whole files that consists of these pieces; `None` if it is not valid. Cuts are
/// rounded down to whole cycles, or at least to multiples of `align` bytes.
pub fn composed(pieces: &[Piece<'_>], largest: u64, align: u64) -> Option<Layout> {
    let mut regions: Vec<Region> = Vec::new();
    for Piece { part, layouts } in pieces {
        let len = part.end.unwrap_or(largest.max(part.start)) - part.start;
        let (mut from, mut fraction) = (part.start, 0.0);
        for (index, (layout, of_part)) in layouts.iter().enumerate() {
            fraction += of_part;
            let is_last = index + 1 == layouts.len();
            let cut = part.start + fraction_of(len, fraction, &layout.regions()[0], align);
            let end = if is_last { part.end } else { Some(cut) };
            if end.is_none_or(|end| end > from) {
                regions.extend(shifted(scaled(layout, *of_part, align), from, end));
                from = end.unwrap_or(from);
            }
        }
    }
    // Neighbors with the same cycle are one region if the cycle goes on.
    let mut joined: Vec<Region> = Vec::new();
    for region in regions {
        match joined.last_mut() {
            Some(last)
                if last.cycle == region.cycle
                    && (region.start - last.start).is_multiple_of(last.cycle_len()) =>
            {
                last.end = region.end;
            }
            _ => joined.push(region),
        }
    }
    Layout::new(joined).ok()
}

/// A fraction of `len` bytes, in whole cycles of a region, or at least in multiples of `align`.
fn fraction_of(len: u64, fraction: f64, region: &Region, align: u64) -> u64 {
    let (bytes, cycle) = ((len as f64 * fraction) as u64, region.cycle_len());
    let unit = if cycle <= bytes { cycle.next_multiple_of(align) } else { align };
    bytes / unit * unit
}

/// The regions of a layout, each with a fraction of its length. So a part that is cut uses that
/// fraction of the space of each server, even if its layout changes to other servers on the way.
fn scaled(layout: &Layout, fraction: f64, align: u64) -> impl Iterator<Item = Region> {
    let mut start = 0;
    layout.regions().iter().map(move |region| {
        let len = |end: u64| match fraction {
            1.0 => end - region.start,
            _ => fraction_of(end - region.start, fraction, region, align),
        };
        let scaled = Region { start, end: region.end.map(|end| start + len(end)), cycle: region.cycle.clone() };
        start = scaled.end.unwrap_or(start);
        scaled
    })
}

/// Regions from byte `from` of a file to `end`, as if the file began at `from`.
fn shifted(regions: impl Iterator<Item = Region>, from: u64, end: Option<u64>) -> impl Iterator<Item = Region> {
    regions.filter_map(move |region| {
        let at = |own: u64| from.saturating_add(own).min(MAX_OFFSET);
        let (start, own_end) = (at(region.start), region.end.map(at));
        let ends = match (own_end, end) {
            (Some(own), Some(end)) => Some(own.min(end)),
            (own, end) => own.or(end),
        };
        let is_there = ends.is_none_or(|end| start < end);
        is_there.then_some(Region { start, end: ends, cycle: region.cycle })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{Pattern, cluster, ior};
    use crate::{Options, Servers};
    use stripewise_layout::constructors::{striped, two_part};
    use stripewise_model::Op;

    /// The starts of the parts of a file with these requests, (offset, count) of 4 KiB each.
    fn starts_of(size: u64, ranges: &[(u64, u64, u64)]) -> Vec<u64> {
        let cluster = cluster((4, 6e-3, 8e-9), (2, 5e-5, 2e-9), ("1G", "1M"), (0.0, 0.0));
        let mut set = ior(Pattern::Random, Op::Read, 4, 4096, 1).file_sets.remove(0);
        set.files[0].size = size;
        let mut random = stripewise_random::Random(7);
        let sample: Vec<Request> = (ranges.iter())
            .flat_map(|&(from, to, count)| (0..count).map(move |_| (from, to)))
            .map(|(from, to)| Request {
                offset: from + random.below((to - from) / 4096) * 4096,
                size: 4096,
                ..Request::default()
            })
            .collect();
        let group = &mut set.groups[0];
        (group.count, group.bytes) = (sample.len() as u64, sample.len() as u64 * 4096);
        group.sample = sample;
        let (servers, options) = (Servers::of(&cluster).unwrap(), Options::default());
        outline(&Problem::new(&set, &cluster, &servers, &options, size)).iter().map(|of| of.start).collect()
    }

    const M: u64 = 1 << 20;

    #[test]
    fn even_work_is_one_region() {
        for count in [1, 10, 1000, 50_000] {
            assert_eq!(starts_of(256 * M, &[(0, 256 * M, count)]), [0], "{count} requests");
        }
    }

    #[test]
    fn a_hot_part_is_a_region() {
        assert_eq!(starts_of(256 * M, &[(0, 256 * M, 1000), (96 * M, 112 * M, 8000)]), [0, 96 * M, 112 * M]);
        assert_eq!(starts_of(256 * M, &[(0, 64 * M, 2000)]), [0, 64 * M], "the rest is cold");
        assert_eq!(starts_of(256 * M, &[(240 * M, 256 * M, 2000)]), [0, 240 * M]);
    }

    #[test]
    fn regions_are_few() {
        let hot: Vec<(u64, u64, u64)> = (0..64).map(|i| (i * 4 * M, (i * 4 + 2) * M, 2000)).collect();
        assert!(starts_of(256 * M, &hot).len() <= REGIONS_MAX);
    }

    #[test]
    fn parts_have_all_bytes_and_requests() {
        let set = ior(Pattern::Strided, Op::Write, 4, 10_000, 64).file_sets.remove(0);
        let cuts = [0, 77_777, 1_000_000];
        let parts: Vec<Part> = (0..3).map(|i| part(&set, cuts[i], cuts.get(i + 1).copied())).collect();
        assert_eq!(parts.iter().map(|part| part.set.total_size()).sum::<u64>(), set.total_size());
        assert_eq!(parts.iter().map(|part| part.set.bytes()).sum::<u64>(), set.bytes());
        for request in parts.iter().flat_map(|part| &part.set.groups[0].sample) {
            assert!(request.past.reach() <= request.offset, "{request:?}");
        }
    }

    #[test]
    fn layouts_of_parts_are_composed() {
        let set = FileSet::default();
        let part = |start, end| Part { start, end, set: set.clone() };
        let (slow, fast) = (striped(&[0, 1], 10).unwrap(), striped(&[4, 5], 5).unwrap());
        let until_full = two_part(&[(4, 5)], 20, &[(0, 10)]).unwrap();
        let parts = [part(0, Some(100)), part(100, Some(200)), part(200, None)];
        let layouts =
            [vec![(&slow, 1.0)], vec![(&until_full, 0.5), (&slow, 0.5)], vec![(&fast, 0.25), (&slow, 0.75)]];
        let pieces: Vec<Piece<'_>> =
            parts.iter().zip(layouts).map(|(part, layouts)| Piece { part, layouts }).collect();
        let layout = composed(&pieces, 400, 10).unwrap();
        let bounds: Vec<(u64, Option<u64>, u32)> =
            layout.regions().iter().map(|region| (region.start, region.end, region.cycle[0].target)).collect();
        let expected = [
            (0, Some(100), 0),
            (100, Some(110), 4),
            (110, Some(150), 0),
            (150, Some(200), 0),
            (200, Some(250), 4),
            (250, None, 0),
        ];
        assert_eq!(bounds, expected);
        let same = [
            Piece { part: &parts[0], layouts: vec![(&slow, 1.0)] },
            Piece { part: &parts[1], layouts: vec![(&slow, 1.0)] },
        ];
        let last = Piece { part: &parts[2], layouts: vec![(&slow, 1.0)] };
        let [first, second] = same;
        assert_eq!(composed(&[first, second, last], 400, 10).unwrap().regions().len(), 1, "it is one layout");
    }
}
