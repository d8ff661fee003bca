//! Writes to several copies.

use std::ops::Range;

use smallvec::smallvec;
use stripewise_cluster::Durability;
use stripewise_extents::{CopyId, Counter, Mask, Span, WriteGuard};
use stripewise_model::Op;
use stripewise_policy::{Kind, ORIGINAL, possible_copy};
use stripewise_target::{Few, Outcome};

use super::choice::{Part, spans_of};
use super::copy_set::CopySet;
use super::read::is_of_device;
use super::request::{Request, Transfer, whole};
use super::space::{Reservation, without};
use crate::error::{LogOnce, Logged};
use crate::{Errno, Result, notice};

/// The errno with which the map refuses a write to a copy that is the destination of a running
/// copier, or to another copy than other nodes know of. The write is tried again.
const BEING_MADE: Errno = Errno::BUSY;
/// Pause between polls for a copier to finish, ns: the first, and the maximum.
const LOOK_NS: u64 = 50_000;
const LOOK_NS_MAX: u64 = 1_600_000;

impl CopySet<'_> {
    /// Writes at least one byte.
    ///
    /// # Safety
    /// Same as `LogicalFile::write_at`.
    pub(crate) unsafe fn write(&self, request: &Request<'_>) -> Result<usize> {
        let _under_way = self.begin();
        let kind = Kind { op: Op::Write, access: self.overlay.streams.access(request.offset, request.len) };
        // SAFETY: the caller's promise.
        let (done, changed) = unsafe { self.write_guarded(kind, request)? };
        if changed && self.overlay.copies.durability == Durability::EachWrite {
            self.sync(true)?;
        }
        Ok(done)
    }

    /// Returns the bytes written, and whether the map was changed.
    ///
    /// # Safety
    /// Same as `LogicalFile::write_at`.
    unsafe fn write_guarded(&self, kind: Kind, request: &Request<'_>) -> Result<(usize, bool)> {
        let (mut reservation, mut look_ns) = (Reservation::of(self), LOOK_NS);
        let mut refused = Mask::NONE;
        loop {
            let mut guard = self.map.begin_write(request.range()).logged()?;
            let usable = self.present_mask().minus(refused);
            let parts = self.choose_write(kind, request, (guard.spans(), usable), &mut reservation);
            let mut written = Few::new();
            let other = match &parts {
                Ok(parts) => parts.iter().find(|part| !may_write(&guard, part)).map(|part| (part, usable)),
                // Other nodes write to a copy in which there is no space.
                Err(part) => Some((part, Mask::ORIGINAL)).filter(|(part, _)| !may_write(&guard, part)),
            };
            if let Some((part, usable)) = other {
                let (range, copy) = (part.range(), CopyId::new(part.copy));
                drop(guard);
                self.release_unused(&mut reservation, &written);
                self.announce(range, copy, usable)?;
                continue;
            }
            if let Ok(parts) = parts {
                let mut writer = Writer { copies: self, guard: &mut guard, request, written, refused };
                // SAFETY: the caller's promise.
                let ended = unsafe { writer.write(&parts) };
                (written, refused) = (writer.written, writer.refused);
                let (done, last) = whole(&parts, &ended);
                let error = last.and_then(|(_, last)| last.error);
                if done > 0 || error != Some(BEING_MADE) {
                    let changed = guard.changed_map();
                    drop(guard);
                    self.release_unused(&mut reservation, &written);
                    if done == 0 && last.is_some() {
                        return Err(error.unwrap_or(Errno::NOSPC));
                    }
                    self.count_hits(&parts);
                    return Ok((done, changed));
                }
            }
            // A copier is working on the only copy that could be written to, or on the only one
            // left after another copy was full. Copies are short: wait and try again. Or a copy
            // does not accept a write of which other nodes know: the next attempt tells them.
            drop(guard);
            self.release_unused(&mut reservation, &written);
            self.file.sys().sleep_until_ns(self.file.sys().now_ns() + look_ns);
            look_ns = (look_ns * 2).min(LOOK_NS_MAX);
        }
    }

    /// Announces a write to other nodes, which have the file open as well. It goes to `copy`, or to
    /// the one of `usable` to which they write.
    fn announce(&self, range: Range<u64>, copy: CopyId, usable: Mask) -> Result<()> {
        self.map.announce(range, copy, usable, &|| self.file.sync_objects(true)).logged()
    }

    /// Chooses the copy to which each range goes, one of `usable`.
    ///
    /// # Errors
    /// No copy may be written to in a range, the original least of all: the write must be tried
    /// again.
    fn choose_write(
        &self,
        kind: Kind,
        request: &Request<'_>,
        (known, usable): (&[Span], Mask),
        reservation: &mut Reservation<'_>,
    ) -> std::result::Result<Few<Part>, Part> {
        let present = self.preferred(usable);
        if self.is_mapped() {
            let whole = Part { start: request.offset, end: request.offset + request.len, copy: ORIGINAL };
            let allowed = known.iter().all(|span| !span.forbidden.contains(CopyId::ORIGINAL));
            return if allowed { Ok(smallvec![whole]) } else { Err(whole) };
        }
        // A range that is valid only where it cannot be written may go to any copy, because it is
        // overwritten.
        let spans = spans_of(known, |span| match span.mask.and(present).minus(span.forbidden) {
            Mask::NONE => Mask::ORIGINAL,
            mask => mask,
        });
        let allowed = known.iter().fold(present, |allowed, span| allowed.minus(span.forbidden));
        let mut parts = Few::new();
        self.redirect(kind, request.range(), &spans, allowed, reservation, &mut parts);
        let mut chosen = Few::new();
        for part in parts {
            for span in known.iter().filter(|span| span.start < part.end && part.start < span.end) {
                let range = part.start.max(span.start)..part.end.min(span.end);
                let possible = |copies: Mask| {
                    possible_copy(part.copy, copies.minus(span.forbidden).bits(), span.mask.bits())
                };
                // A copy that has failed is better than none.
                let (start, end) = (range.start, range.end);
                let copy = possible(present).or_else(|| possible(usable));
                let copy = copy.ok_or(Part { start, end, copy: ORIGINAL })?;
                push(&mut chosen, Part { start, end, copy });
            }
        }
        Ok(chosen)
    }

    /// Releases the reserved space of ranges that were then not written there.
    fn release_unused(&self, reservation: &mut Reservation<'_>, written: &[Part]) {
        for (number, range) in reservation.taken.drain(..) {
            let Some(copy) = self.copy(number) else { continue };
            let used: Vec<_> =
                written.iter().filter(|part| part.copy == number.index()).map(Part::range).collect();
            self.give_space(copy, &without(&[range], &used));
        }
    }

    /// Syncs everything, including the map.
    pub(crate) fn sync(&self, data_only: bool) -> Result<()> {
        self.map.sync(|| self.file.sync_objects(data_only)).logged()
    }
}

fn may_write(guard: &WriteGuard<'_>, part: &Part) -> bool {
    guard.may_write(&part.range(), CopyId::new(part.copy))
}

fn push(parts: &mut Few<Part>, part: Part) {
    match parts.last_mut() {
        Some(last) if last.copy == part.copy && last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}

/// One attempt at a write. The guard has pinned the range (steps 1 to 3 of the write protocol in
/// `docs/formats/extents.md`); `prepare` and `wrote` of the guard are steps 4 and 6.
struct Writer<'a, 'm> {
    copies: &'a CopySet<'a>,
    guard: &'a mut WriteGuard<'m>,
    request: &'a Request<'a>,
    /// The ranges written so far, with their copies.
    written: Few<Part>,
    /// The copies that did not accept a range to which other nodes expect this one to write there.
    refused: Mask,
}

impl Writer<'_, '_> {
    /// Writes the ranges and updates the map. A range that a copy does not accept goes to the
    /// original.
    ///
    /// # Safety
    /// Same as `LogicalFile::write_at`.
    unsafe fn write(&mut self, parts: &[Part]) -> Few<Outcome> {
        // SAFETY: the caller's promise.
        let mut ended = unsafe { self.once(parts) };
        for (part, ended) in parts.iter().zip(&mut ended) {
            let Outcome { done, error: Some(error) } = *ended else { continue };
            if part.copy == ORIGINAL || !is_of_device(error) {
                continue;
            }
            notice::warn_once(&format!(
                "{}: a copy cannot be written to ({error}); the original is used",
                self.copies.file.path().display()
            ));
            let rest = Part { start: part.start + done as u64, end: part.end, copy: ORIGINAL };
            if !may_write(self.guard, &rest) {
                self.refused = self.refused.with(CopyId::new(part.copy));
                *ended = Outcome { done, error: Some(BEING_MADE) };
                continue;
            }
            // SAFETY: the caller's promise.
            let again = unsafe { self.once(&[rest]) }[0];
            *ended = Outcome { done: done + again.done, error: again.error };
        }
        ended
    }

    /// # Safety
    /// Same as `LogicalFile::write_at`.
    unsafe fn once(&mut self, parts: &[Part]) -> Few<Outcome> {
        for part in parts {
            let prepared = self.guard.prepare(part.start..part.end, CopyId::new(part.copy));
            if let Err(error) = prepared {
                let error = Some(error.log_once());
                return smallvec![Outcome { done: 0, error }; parts.len()];
            }
        }
        // SAFETY: the caller's promise.
        let mut ended = unsafe { self.copies.transfer(Transfer::Write, self.request, parts) };
        for (part, ended) in parts.iter().zip(&mut ended) {
            if ended.done == 0 {
                continue;
            }
            let (end, copy) = (part.start + ended.done as u64, CopyId::new(part.copy));
            match self.guard.wrote(part.start..end, copy) {
                Ok(()) => {
                    self.copies.map.count(Counter::Written(copy), ended.done as u64);
                    self.written.push(Part { end, ..*part });
                }
                // The range counts as not written.
                Err(error) => *ended = Outcome { done: 0, error: Some(error.log_once()) },
            }
        }
        ended
    }
}
