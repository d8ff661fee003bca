//! Write requests.

use std::ops::Range;

use crate::error::caller;
use crate::hooks::reach;
use crate::joined::{Joined, Pinned};
use crate::shared::{Extent, Working};
use crate::{CopyId, Map, Mask, Result, Span};

/// A write of a range in progress, from before its first byte is written until the guard is
/// dropped.
///
/// For each span the caller chooses a copy, calls [`WriteGuard::prepare`], writes the data, and
/// calls [`WriteGuard::wrote`]. While the guard exists, no copy, fetch or eviction changes the map
/// in its range.
pub struct WriteGuard<'m> {
    joined: &'m Joined,
    range: Range<u64>,
    /// `None` if the range is empty.
    pin: Option<Pinned<'m>>,
    spans: Vec<Span>,
    forbidden: Option<(CopyId, Vec<Range<u64>>)>,
    changed: bool,
}

impl Map {
    /// Begins a write of `range`.
    ///
    /// # Errors
    /// EIO, ENOSPC or another errno if the journal cannot take the write intent; EBUSY if another
    /// node has the file open; EIO if the index is gone.
    pub fn begin_write(&self, range: Range<u64>) -> Result<WriteGuard<'_>> {
        let joined = self.joined()?;
        joined.ensure_opened()?;
        WriteGuard::begin(joined, range)
    }
}

impl<'m> WriteGuard<'m> {
    fn begin(joined: &'m Joined, range: Range<u64>) -> Result<Self> {
        let spans = Vec::new();
        let mut guard =
            Self { joined, range: range.clone(), pin: None, spans, forbidden: None, changed: false };
        if range.is_empty() {
            return Ok(guard);
        }
        reach("pin");
        guard.pin = Some(joined.pin(&range));
        while !guard.look()? {}
        if let Some(span) = guard.spans.iter().find(|span| span.mask != joined.index.map.default) {
            joined.touch(&(span.start..range.end));
        }
        Ok(guard)
    }

    /// Looks at the copier slot, and then at the map. Returns false if both must be looked at
    /// again, because the copied range has become valid meanwhile.
    fn look(&mut self) -> Result<bool> {
        let joined = self.joined;
        let met = joined.meet_copier(&self.range);
        self.spans = joined.spans(&self.range, true)?.0;
        self.mark_forced();
        let Some(Working { copy, part, work, extent }) = met else { return Ok(true) };
        let parts = match (extent, copy) {
            (Extent::WhereInvalid, Some(copy)) => {
                // Nothing is copied to the destination where it is already valid.
                let invalid = self.overlapping(&part).filter(|span| !span.mask.contains(copy));
                let parts: Vec<_> =
                    invalid.filter_map(|span| span.cut(&part)).map(|span| span.range()).collect();
                reach("taint");
                if !parts.is_empty() && !joined.shared.slot().taint(work) {
                    return Ok(false);
                }
                parts
            }
            _ => vec![part],
        };
        self.forbidden = copy.map(|copy| (copy, parts));
        self.mark_forbidden();
        Ok(true)
    }

    /// Splits the spans where a forbidden range begins and ends, and marks the forbidden ones.
    fn mark_forbidden(&mut self) {
        let Some((copy, parts)) = self.forbidden.take() else { return };
        parts.iter().for_each(|part| self.forbid(part, Mask::only(copy)));
        self.forbidden = Some((copy, parts));
    }

    /// Marks the copies that may not be written to because other nodes write to another one.
    fn mark_forced(&mut self) {
        for (part, copies) in self.joined.forced(&self.range) {
            self.forbid(&part, copies);
        }
    }

    fn forbid(&mut self, part: &Range<u64>, copies: Mask) {
        let cut = |span: &Span| {
            let forbidden = Mask::from_bits(span.forbidden.bits() | copies.bits());
            let inside = span.cut(part).map(|span| Span { forbidden, ..span });
            [span.cut(&(0..part.start)), inside, span.cut(&(part.end..u64::MAX))].into_iter().flatten()
        };
        self.spans = self.spans.iter().flat_map(cut).collect();
    }

    /// Spans that cover the range in order without gaps. Their masks are those from the creation of
    /// the guard, or from the last `prepare` or `wrote` there.
    pub fn spans(&self) -> &[Span] {
        &self.spans
    }

    /// Whether `part` may be written to `copy` as far as other nodes are concerned. If not, the
    /// caller drops this guard, calls [`Map::announce`], and begins anew.
    pub fn may_write(&self, part: &Range<u64>, copy: CopyId) -> bool {
        !self.joined.is_sharing() || self.joined.shared.is_held(part, copy)
    }

    /// Must be called before `part` is written to `copy`, which must not be forbidden there. Where
    /// other copies are valid as well, this call first makes them invalid. Also required before
    /// `part` is mapped shared and writable.
    ///
    /// # Errors
    /// ENOSPC if the index cannot grow, EIO if it is gone, EBUSY where `copy` is forbidden or
    /// [`WriteGuard::may_write`] says no. `part` must then not be written.
    pub fn prepare(&mut self, part: Range<u64>, copy: CopyId) -> Result<()> {
        let part = self.clip(part);
        if self.overlapping(&part).any(|span| span.forbidden.contains(copy)) {
            return Err(caller("write to a copy that is being made")(stripewise_sys::Errno::BUSY));
        }
        if !self.may_write(&part, copy) {
            return Err(caller("write where other nodes may write")(stripewise_sys::Errno::BUSY));
        }
        let shared = self.overlapping(&part).any(|span| span.mask.contains(copy) && !span.mask.is_only(copy));
        if !shared {
            return Ok(());
        }
        self.make_only(part, copy, |span| span.mask.contains(copy))
    }

    /// Must be called after `part` was written to `copy`, which becomes the only valid copy. After
    /// a short write the caller passes the range that was written; after a failed one it does not
    /// call this.
    ///
    /// # Errors
    /// As [`WriteGuard::prepare`]. The map then ignores the write, as if it had failed.
    pub fn wrote(&mut self, part: Range<u64>, copy: CopyId) -> Result<()> {
        let part = self.clip(part);
        if part.is_empty() {
            return Ok(());
        }
        reach("wrote");
        // If a mask has changed since, a concurrent writer changed it, and the two writes may take
        // effect in either order.
        if self.overlapping(&part).all(|span| span.mask.is_only(copy)) {
            return Ok(());
        }
        self.make_only(part, copy, |_| true)
    }

    /// Whether this guard has changed the map. If so, a file with `durability = "each-write"` needs
    /// a [`Map::sync`] next.
    pub fn changed_map(&self) -> bool {
        self.changed
    }

    fn clip(&self, part: Range<u64>) -> Range<u64> {
        debug_assert!(
            self.range.start <= part.start && part.end <= self.range.end,
            "{part:?} of {:?}",
            self.range
        );
        part.start.max(self.range.start)..part.end.min(self.range.end)
    }

    fn overlapping<'s>(&'s self, part: &Range<u64>) -> impl Iterator<Item = &'s Span> + use<'s> {
        let part = part.clone();
        self.spans.iter().filter(move |span| span.start < part.end && part.start < span.end)
    }

    /// In one transaction, makes `copy` the only valid copy where `which` accepts the current
    /// masks.
    fn make_only(&mut self, part: Range<u64>, copy: CopyId, which: impl Fn(&Span) -> bool) -> Result<()> {
        let (now, changed) =
            self.joined.change(part.clone(), |entry| which(&entry.span()).then_some(Mask::only(copy)))?;
        self.changed |= changed;
        let (mut spans, mut behind) = (Vec::new(), Vec::new());
        for span in &self.spans {
            spans.extend(span.cut(&(0..part.start)));
            behind.extend(span.cut(&(part.end..u64::MAX)));
        }
        spans.extend(now);
        spans.extend(behind);
        self.spans = spans;
        self.mark_forced();
        self.mark_forbidden();
        Ok(())
    }
}

impl Joined {
    /// Records the time of use of a range, in ms.
    pub fn touch(&self, range: &Range<u64>) {
        const NS_OF_MS: u64 = 1_000_000;
        self.shared.touch(range, self.sys.now_ns() / NS_OF_MS);
    }
}
