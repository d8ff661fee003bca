//! The Redirector (SLA §3.5, Algorithm 1), for requests of which any part may be cached.

use crate::balance::Sent;
use crate::cdt::Cdt;
use crate::costs::{Kind, in_mask};
use crate::identify::Identifier;
use crate::span::{ORIGINAL, Span, cover, runs};
use stripewise_model::Op;

/// Targets of a copy whose needs fit on the stack.
const TARGETS_ON_STACK: usize = 64;

/// One request on a file with cache copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The caller's number of the file.
    pub file: u64,
    /// Direction and order.
    pub kind: Kind,
    /// First byte.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Space that a part of a write needs in a cache copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want<'a> {
    /// The file.
    pub file: u64,
    /// The copy.
    pub copy: u8,
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// Bytes of it on every target of the copy's layout, by target index.
    pub bytes: &'a [u64],
}

/// The space of the cache. Both calls take all of what is wanted, or nothing.
pub trait Space {
    /// Takes free space (Algorithm 1, lines 4-6); false if a server has too little.
    fn take_free(&mut self, want: &Want<'_>) -> bool;

    /// Makes room by giving up clean data, the least recently used first, and takes it (lines 11-13); false if a server
    /// would have too little even so. Data of the request itself must not be given up.
    fn take_clean(&mut self, want: &Want<'_>) -> bool;
}

/// Why a part goes where it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It is cached (line 26).
    Hit,
    /// A critical write that misses: free space was taken for it (lines 5-9).
    Free,
    /// The same: space of clean data was taken (lines 12-16).
    Clean,
    /// The same, but there was no space (line 17): the original.
    Full,
    /// The same, but the cache's servers have more to do already ([`crate::balance`]): the original.
    Busy,
    /// A miss that is not critical, or a read (lines 20-24): the original.
    Miss,
    /// A read of which a part is cached, but all of it is valid in the original, and cheaper there in one go.
    Whole,
}

/// Bytes of a request that one copy serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// First byte, a file offset.
    pub start: u64,
    /// One past the last byte.
    pub end: u64,
    /// The copy: 0 is the original.
    pub copy: u8,
    /// Why there.
    pub why: Why,
}

/// What was found out about a request besides where it goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Redirected {
    /// The copy that its data should be cached in, if it is critical; not asked where everything is cached.
    pub critical: Option<u8>,
    /// The data are to be fetched (the C_flag was set), and were not known to be before this request.
    pub newly_wanted: bool,
}

impl Identifier {
    /// Decides where every part of a request goes: appended to `parts` in file order. `spans` cover the request. With mode
    /// `off` only what is cached goes to the cache.
    ///
    /// Whether it is critical is asked of the request as a whole, as the application makes it, and only where a part of
    /// it misses; that part alone is admitted. A part that is cached in several copies goes to the cheapest of them,
    /// the first of equal ones. Space that was taken for a part must be given back if the write fails. `sent` is what this
    /// process has sent to the file; it is asked, and grows, only where there is a [`crate::Balance`].
    pub fn redirect(
        &self,
        cdt: &mut Cdt,
        sent: &Sent,
        request: &Request,
        spans: &[Span],
        space: &mut impl Space,
        parts: &mut Vec<Part>,
    ) -> Redirected {
        let &Request { file, kind, offset, len } = request;
        debug_assert!(cover(spans, offset, offset.saturating_add(len)), "{request:?} {spans:?}");
        let mut redirected = Redirected::default();
        let from = parts.len();
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
        for span in spans {
            let (copy, why) = match to_admit {
                _ if span.is_cached() => (self.cheapest_hit(kind, span), Why::Hit),
                Some(_) if busy => (ORIGINAL, Why::Busy),
                Some(copy) => self.admit(copy, file, span, space),
                None => (ORIGINAL, Why::Miss),
            };
            push(parts, from, Part { start: span.start, end: span.end, copy, why });
        }
        let split = kind.op == Op::Read && misses && parts.len() > from + 1;
        if split && self.whole_is_cheaper(request, spans, &parts[from..]) {
            let end = parts.last().map_or(offset, |last| last.end);
            parts.truncate(from);
            parts.push(Part { start: offset, end, copy: ORIGINAL, why: Why::Whole });
        }
        if let Some(balance) = self.balance() {
            parts[from..]
                .iter()
                .for_each(|part| balance.send(sent, part.copy, kind, part.start, part.end - part.start));
        }
        redirected
    }

    /// The cache copy that serves a cached span.
    fn cheapest_hit(&self, kind: Kind, span: &Span) -> u8 {
        let mut cached = in_mask(span.mask & !(1 << ORIGINAL), self.copies());
        let Some(mut best) = cached.next() else { return span.mask.trailing_zeros() as u8 };
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

    /// Lines 4 to 18: space for a part of a critical write.
    fn admit(&self, copy: u8, file: u64, span: &Span, space: &mut impl Space) -> (u8, Why) {
        let layout = self.layout(copy);
        let (mut on_stack, mut on_heap) = ([0; TARGETS_ON_STACK], Vec::new());
        let bytes = match layout.target_count() {
            count @ 0..=TARGETS_ON_STACK => &mut on_stack[..count],
            count => {
                on_heap.resize(count, 0);
                &mut on_heap[..]
            }
        };
        let &Span { start, end, .. } = span;
        layout.bytes_per_target(start, end - start, bytes);
        let want = Want { file, copy, start, end, bytes };
        if space.take_free(&want) {
            (copy, Why::Free)
        } else if space.take_clean(&want) {
            (copy, Why::Clean)
        } else {
            (ORIGINAL, Why::Full)
        }
    }

    /// Whether a read in several parts had better be one read of the original, which must be valid throughout.
    fn whole_is_cheaper(&self, request: &Request, spans: &[Span], parts: &[Part]) -> bool {
        let &Request { kind, offset, len, .. } = request;
        let cost_s = |(start, end, copy): (u64, u64, u8)| self.cost_s(copy, kind, start, end - start);
        let parts = parts.iter().map(|part| (part.start, part.end, part.copy));
        spans.iter().all(|span| span.mask & (1 << ORIGINAL) != 0)
            && cost_s((offset, offset.saturating_add(len), ORIGINAL)) < runs(parts).map(cost_s).sum()
    }
}

/// Appends a part, joined with the one before it (from index `from` on) where both go to the same place for the same
/// reason.
fn push(parts: &mut Vec<Part>, from: usize, part: Part) {
    match parts[from..].last_mut() {
        Some(last) if (last.copy, last.why) == (part.copy, part.why) => last.end = part.end,
        _ => parts.push(part),
    }
}
