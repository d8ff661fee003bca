//! The Redirector (SLA §3.5, Algorithm 1), for requests that may be cached in part.

use crate::balance::Sent;
use crate::cdt::Cdt;
use crate::costs::{in_mask, with_bytes_per_target};
use crate::identify::Identifier;
use crate::kind::Kind;
use crate::span::{ORIGINAL, Part, Span, cover, runs};
use stripewise_model::Op;

/// A request on a file with cache copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number of the file.
    pub file: u64,
    /// Direction and order.
    pub kind: Kind,
    /// First byte, a file offset.
    pub offset: u64,
    /// Length, bytes.
    pub len: u64,
}

/// The space that a range of a write needs in a cache copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// The file.
    pub file: u64,
    /// The copy.
    pub copy: usize,
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Bytes of the range on each target of the copy's layout, by target index.
    pub bytes: &'a [u64],
}

/// The space of the cache. Each call takes all of the space that `want` describes, or none of it.
pub trait Space {
    /// Takes free space (Algorithm 1, lines 4-6); false if a server has too little.
    fn take_free(&mut self, want: &Want<'_>) -> bool;

    /// Evicts clean data, the least recently used first, and takes their space (lines 11-13); false
    /// if a server would still have too little. Data of the request itself must not be evicted.
    fn take_clean(&mut self, want: &Want<'_>) -> bool;
}

/// The reason for the choice of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The range is cached (line 26).
    Hit,
    /// A critical write that misses; free space was taken for it (lines 5-9).
    Free,
    /// A critical write that misses; space of clean data was taken for it (lines 12-16).
    Clean,
    /// A critical write that misses, but there is no space (line 17); it goes to the original.
    Full,
    /// A critical write that misses, but the cache's servers already have more to do
    /// ([`crate::balance`]); it goes to the original.
    Busy,
    /// A miss that is not critical, or a read (lines 20-24); it goes to the original.
    Miss,
    /// A read that is partly cached. All of it is valid in the original, where a single request is
    /// cheaper.
    Whole,
}

/// A range of a request, the copy that serves it, and the reason for the choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chosen {
    pub part: Part,
    pub why: Why,
}

/// What the Redirector finds out about a request in addition to its destinations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirected {
    /// The copy that should cache the request's data, if it is critical. Not determined if
    /// everything is cached already.
    pub critical: Option<usize>,
    /// Whether this request has set the C_flag of its data, which should be fetched and were not
    /// marked before.
    pub newly_wanted: bool,
}

impl Identifier {
    /// Decides where each range of a request goes, and appends the ranges to `parts` in file order,
    /// adjacent ones on the same copy joined. `spans` cover the request. In mode `off` only ranges
    /// that are cached go to the cache.
    ///
    /// Whether the request is critical is determined for the request as a whole, as the application
    /// makes it, and only if a range of it misses; only the missing ranges are admitted. A range
    /// that is cached in several copies goes to the cheapest of them, and among equal ones to the
    /// first. Space taken for a range must be given back if the write fails. `sent` is the work
    /// that this process has sent for the file; it is used and updated only with a
    /// [`crate::Balance`].
    pub fn redirect(
        &self,
        cdt: &mut Cdt,
        sent: &Sent,
        request: &Request,
        spans: &[Span],
        space: &mut impl Space,
        parts: &mut impl Extend<Part>,
    ) -> Redirected {
        let (redirected, chosen) = self.choose(cdt, sent, request, spans, space);
        parts.extend(runs(chosen.into_iter().map(|chosen| chosen.part)));
        redirected
    }

    /// The choice with its reasons. Adjacent ranges differ in their copies or in their reasons.
    pub(crate) fn choose(
        &self,
        cdt: &mut Cdt,
        sent: &Sent,
        request: &Request,
        spans: &[Span],
        space: &mut impl Space,
    ) -> (Redirected, Vec<Chosen>) {
        let &Request { file, kind, offset, len } = request;
        debug_assert!(cover(spans, offset, offset.saturating_add(len)), "{request:?} {spans:?}");
        let mut redirected = Redirected::default();
        let misses = spans.iter().any(|span| !span.is_cached());
        if misses {
            redirected.critical = self.critical(kind, offset, len);
            match (redirected.critical, kind.op) {
                (Some(copy), Op::Write) => cdt.note(file, offset, len, copy),
                (Some(copy), Op::Read) => redirected.newly_wanted = cdt.want(file, offset, len, copy),
                (None, _) => {}
            }
        }
        let to_admit = redirected.critical.filter(|_| kind.op == Op::Write);
        let busy = match (to_admit, self.balance()) {
            (Some(copy), Some(balance)) => !balance.takes(sent, copy, kind, offset, len),
            _ => false,
        };
        let mut parts = Vec::new();
        for span in spans {
            let (copy, why) = match to_admit {
                _ if span.is_cached() => (self.cheapest_hit(kind, span), Why::Hit),
                Some(_) if busy => (ORIGINAL, Why::Busy),
                Some(copy) => self.admit(copy, file, span, space),
                None => (ORIGINAL, Why::Miss),
            };
            push(&mut parts, Chosen { part: span.by(copy), why });
        }
        let split = kind.op == Op::Read && misses && parts.len() > 1;
        if split && self.whole_is_cheaper(request, spans, &parts) {
            let end = parts.last().map_or(offset, |last| last.part.end);
            parts.clear();
            parts.push(Chosen { part: Part { start: offset, end, copy: ORIGINAL }, why: Why::Whole });
        }
        if let Some(balance) = self.balance() {
            let send = |part: &Part| balance.send(sent, part.copy, kind, part.start, part.end - part.start);
            parts.iter().for_each(|chosen| send(&chosen.part));
        }
        (redirected, parts)
    }

    /// The cache copy that serves a cached span.
    fn cheapest_hit(&self, kind: Kind, span: &Span) -> usize {
        let mut cached = in_mask(span.mask & !(1 << ORIGINAL), self.copies.len());
        let Some(mut best) = cached.next() else { return span.mask.trailing_zeros() as usize };
        let mut least_s = None;
        for copy in cached {
            let cost_s = |copy| self.cost_s(copy, kind, span.start, span.end - span.start);
            let (known_s, cost_s) = (*least_s.get_or_insert_with(|| cost_s(best)), cost_s(copy));
            if cost_s < known_s {
                (best, least_s) = (copy, Some(cost_s));
            }
        }
        best
    }

    /// Lines 4 to 18: takes space for a range of a critical write.
    fn admit(&self, copy: usize, file: u64, span: &Span, space: &mut impl Space) -> (usize, Why) {
        let &Span { start, end, .. } = span;
        with_bytes_per_target(&self.copies[copy].layout, start, end - start, |bytes| {
            let want = Want { file, copy, start, end, bytes };
            if space.take_free(&want) {
                (copy, Why::Free)
            } else if space.take_clean(&want) {
                (copy, Why::Clean)
            } else {
                (ORIGINAL, Why::Full)
            }
        })
    }

    /// Whether one read of the original, which must be valid throughout, is cheaper than a read in
    /// several ranges.
    fn whole_is_cheaper(&self, request: &Request, spans: &[Span], parts: &[Chosen]) -> bool {
        let &Request { kind, offset, len, .. } = request;
        let cost_s = |part: Part| self.cost_s(part.copy, kind, part.start, part.end - part.start);
        let whole = Part { start: offset, end: offset.saturating_add(len), copy: ORIGINAL };
        spans.iter().all(|span| span.mask & (1 << ORIGINAL) != 0)
            && cost_s(whole) < runs(parts.iter().map(|chosen| chosen.part)).map(cost_s).sum()
    }
}

/// Appends a range, or extends the last one if it has the same copy and reason.
fn push(parts: &mut Vec<Chosen>, chosen: Chosen) {
    match parts.last_mut() {
        Some(last) if (last.part.copy, last.why) == (chosen.part.copy, chosen.why) => {
            last.part.end = chosen.part.end;
        }
        _ => parts.push(chosen),
    }
}
