//! Writes to several copies.

use std::ops::Range;

use smallvec::smallvec;
use stripewise_cluster::Durability;
use stripewise_extents::{CopyId, Counter, Map, Span, WriteGuard};
use stripewise_model::Op;
use stripewise_policy::{Kind, ORIGINAL, possible_copy};
use stripewise_target::Few;

use super::super::LogicalFile;
use super::Overlay;
use super::choice::{Part, spans_of};
use super::read::is_of_device;
use super::request::{Ended, Request, Transfer, whole};
use super::space::Room;
use crate::{Errno, Result, notice, trouble};

/// The errno with which the map refuses a write to a copy that is the destination of a running
/// copier.
const BEING_MADE: Errno = Errno::BUSY;
/// Pause between polls for a copier to finish, ns: the first, and the maximum.
const LOOK_NS: u64 = 50_000;
const LOOK_NS_MAX: u64 = 1_600_000;

impl LogicalFile {
    /// Writes at least one byte.
    ///
    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    pub(in super::super) unsafe fn write_copies(
        &self,
        overlay: &Overlay,
        request: &Request<'_>,
    ) -> Result<usize> {
        let map = overlay.map()?;
        let map = &*map;
        let _under_way = overlay.begin(map);
        let kind = Kind { op: Op::Write, access: overlay.streams.access(request.offset, request.len) };
        // SAFETY: the caller's promise.
        let (done, changed) = unsafe { self.write_guarded(overlay, map, kind, request)? };
        if changed && overlay.copies.durability == Durability::EachWrite {
            self.sync_map(overlay, true)?;
        }
        Ok(done)
    }

    /// Returns the bytes written, and whether the map was changed.
    ///
    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    unsafe fn write_guarded(
        &self,
        overlay: &Overlay,
        map: &Map,
        kind: Kind,
        request: &Request<'_>,
    ) -> Result<(usize, bool)> {
        let (mut room, mut look_ns) = (Room::of(self, overlay, map), LOOK_NS);
        loop {
            let mut guard = map.begin_write(request.range()).map_err(|error| trouble::map_told(&error))?;
            let parts = self.choose_write(overlay, map, kind, request, guard.spans(), &mut room);
            let mut written = Few::new();
            if let Some(parts) = parts {
                let mut writer = Writer { file: self, overlay, map, guard: &mut guard, request, written };
                // SAFETY: the caller's promise.
                let ended = unsafe { writer.write(&parts) };
                written = writer.written;
                let (done, last) = whole(&parts, &ended);
                let error = last.and_then(|last| ended[last].error);
                if done > 0 || error != Some(BEING_MADE) {
                    let changed = guard.changed_map();
                    drop(guard);
                    self.give_back(overlay, &mut room, &written);
                    if done == 0 && last.is_some() {
                        return Err(error.unwrap_or(Errno::NOSPC));
                    }
                    super::count_hits(map, &parts);
                    return Ok((done as usize, changed));
                }
            }
            // A copier is working on the only copy that could be written to, or on the only one
            // left after another copy was full. Copies are short: wait and try again.
            drop(guard);
            self.give_back(overlay, &mut room, &written);
            self.sys().sleep_until_ns(self.sys().now_ns() + look_ns);
            look_ns = (look_ns * 2).min(LOOK_NS_MAX);
        }
    }

    /// Chooses the copy to which each range goes; `None` if the write must be tried again.
    fn choose_write(
        &self,
        overlay: &Overlay,
        map: &Map,
        kind: Kind,
        request: &Request<'_>,
        known: &[Span],
        room: &mut Room<'_>,
    ) -> Option<Few<Part>> {
        let all = self.present_mask();
        let present = overlay.preferred(all);
        let forbidden = |span: &Span| span.forbidden.map_or(0, |copy| 1 << copy.index());
        if overlay.is_mapped(map) {
            let whole = Part { start: request.offset, end: request.offset + request.len, copy: ORIGINAL };
            return known.iter().all(|span| forbidden(span) & 1 == 0).then(|| smallvec![whole]);
        }
        // A range that is valid only where it cannot be written may go to any copy, because it is
        // overwritten.
        let spans = spans_of(known, |span| match span.mask.bits() & present & !forbidden(span) {
            0 => 1,
            mask => mask,
        });
        let allowed = known.iter().fold(present, |allowed, span| allowed & !forbidden(span));
        let asked = overlay.request(kind, request.offset, request.len);
        let mut parts = Few::new();
        let redirected =
            overlay.choice(map).write(&overlay.surroundings.data, &asked, &spans, allowed, room, &mut parts);
        if redirected.critical.is_some() {
            map.count(Counter::Critical, 1);
        }
        let mut possible = Few::new();
        for part in parts {
            for span in known.iter().filter(|span| span.start < part.end && part.start < span.end) {
                let range = part.start.max(span.start)..part.end.min(span.end);
                let valid = span.mask.bits();
                let copy = possible_copy(part.copy, present & !forbidden(span), valid);
                // A copy that has failed is better than none.
                let copy = copy.or_else(|| possible_copy(part.copy, all & !forbidden(span), valid))?;
                push(&mut possible, Part { start: range.start, end: range.end, copy });
            }
        }
        Some(possible)
    }

    /// Releases the reserved space of ranges that were then not written there.
    fn give_back(&self, overlay: &Overlay, room: &mut Room<'_>, written: &[Part]) {
        for (number, range) in room.taken.drain(..) {
            let Some(copy) = self.copy(number) else { continue };
            let mut unused = vec![range];
            for part in written.iter().filter(|part| part.copy == number) {
                unused = unused.iter().flat_map(|range| outside(range, &(part.start..part.end))).collect();
            }
            self.give_space(overlay, copy, &unused);
        }
    }

    /// Syncs everything, including the map.
    pub(in super::super) fn sync_map(&self, overlay: &Overlay, data_only: bool) -> Result<()> {
        let map = overlay.map()?;
        map.sync(|| self.sync_components(data_only)).map_err(|error| trouble::map_told(&error))
    }
}

fn push(parts: &mut Few<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.copy == part.copy && last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}

/// The pieces of `range` outside `other`.
fn outside(range: &Range<u64>, other: &Range<u64>) -> impl Iterator<Item = Range<u64>> + use<> {
    let before = range.start..range.end.min(other.start);
    let after = range.start.max(other.end)..range.end;
    let both = if other.is_empty() { [range.clone(), 0..0] } else { [before, after] };
    both.into_iter().filter(|range| !range.is_empty())
}

/// One attempt at a write. The guard has pinned the range (steps 1 to 3 of the write protocol in
/// `docs/formats/extents.md`); `prepare` and `wrote` of the guard are steps 4 and 6.
struct Writer<'a, 'm> {
    file: &'a LogicalFile,
    overlay: &'a Overlay,
    guard: &'a mut WriteGuard<'m>,
    request: &'a Request<'a>,
    map: &'a Map,
    /// The ranges written so far, with their copies.
    written: Few<Part>,
}

impl Writer<'_, '_> {
    /// Writes the ranges and updates the map. A range that a copy does not accept goes to the
    /// original.
    ///
    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    unsafe fn write(&mut self, parts: &[Part]) -> Few<Ended> {
        // SAFETY: the caller's promise.
        let mut ended = unsafe { self.once(parts) };
        for (part, ended) in parts.iter().zip(&mut ended) {
            let Ended { done, error: Some(error) } = *ended else { continue };
            if part.copy == ORIGINAL || !is_of_device(error) {
                continue;
            }
            notice::say(&format!(
                "{}: a copy cannot be written to ({error}); the original is used",
                self.file.path().display()
            ));
            let rest = Part { start: part.start + done, end: part.end, copy: ORIGINAL };
            // SAFETY: the caller's promise.
            let again = unsafe { self.once(&[rest]) }[0];
            *ended = Ended { done: done + again.done, error: again.error };
        }
        ended
    }

    /// # Safety
    /// Same as [`LogicalFile::write_at`].
    unsafe fn once(&mut self, parts: &[Part]) -> Few<Ended> {
        for part in parts {
            let prepared = self.guard.prepare(part.start..part.end, CopyId::new(part.copy));
            if let Err(error) = prepared {
                let error = Some(trouble::map_told(&error));
                return smallvec![Ended { done: 0, error }; parts.len()];
            }
        }
        // SAFETY: the caller's promise.
        let mut ended = unsafe { self.file.transfer(self.overlay, Transfer::Write, self.request, parts) };
        for (part, ended) in parts.iter().zip(&mut ended) {
            if ended.done == 0 {
                continue;
            }
            let (end, copy) = (part.start + ended.done, CopyId::new(part.copy));
            match self.guard.wrote(part.start..end, copy) {
                Ok(()) => {
                    self.map.count(Counter::Written(copy), ended.done);
                    self.written.push(Part { end, ..*part });
                }
                // The range counts as not written.
                Err(error) => *ended = Ended { done: 0, error: Some(trouble::map_told(&error)) },
            }
        }
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outside() {
        let of = |range: Range<u64>, other: Range<u64>| {
            outside(&range, &other).map(|range| (range.start, range.end)).collect::<Vec<_>>()
        };
        assert_eq!(of(10..20, 12..15), [(10, 12), (15, 20)]);
        assert_eq!(of(10..20, 5..15), [(15, 20)]);
        assert_eq!(of(10..20, 15..25), [(10, 15)]);
        assert_eq!(of(10..20, 0..30), []);
        assert_eq!(of(10..20, 30..40), [(10, 20)]);
        assert_eq!(of(10..20, 15..15), [(10, 20)]);
    }
}
