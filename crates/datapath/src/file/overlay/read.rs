//! Reads from several copies.

use stripewise_extents::{CopyId, Counter, Mask, ReadGuard, Span};
use stripewise_model::Op;
use stripewise_policy::Kind;
use stripewise_target::{Few, Outcome};

use super::choice::{Part, spans_of};
use super::copy_set::CopySet;
use super::request::{Request, Transfer, whole};
use super::space::Reservation;
use crate::error::Logged;
use crate::file::copy::log_lost;
use crate::{Errno, Result, notice};

impl CopySet<'_> {
    /// Reads a range that does not reach past the last known size. Reads again if the map changed
    /// meanwhile in a way that matters (the read protocol in `docs/formats/extents.md`).
    ///
    /// # Safety
    /// Same as `LogicalFile::read_at`.
    pub(crate) unsafe fn read(&self, request: &Request<'_>) -> Result<usize> {
        let _under_way = self.begin();
        let kind = Kind { op: Op::Read, access: self.overlay.streams.access(request.offset, request.len) };
        let mut what = Transfer::Read;
        let mut lock = None;
        loop {
            let guard = self.map.begin_read(request.range()).logged()?;
            let (parts, end) = self.choose_read(kind, request, guard.spans());
            // SAFETY: the caller's promise.
            let ended = unsafe { self.transfer(what, request, &parts) };
            if !still_valid(&guard, &parts)? {
                continue;
            }
            let (done, last) = whole(&parts, &ended);
            match last {
                Some((index, Outcome { error: Some(error), done: of_part })) => {
                    if self.may_avoid(&guard, &parts[index], of_part as u64, error) {
                        continue;
                    }
                    return if done > 0 { Ok(done) } else { Err(error) };
                }
                // The gap is a hole, the end of the file, or data that another process is writing
                // right now.
                Some(_) if lock.is_none() => {
                    lock = Some(self.file.lock_size_shared()?);
                    what = Transfer::ReadBelow(self.file.size()?);
                }
                _ if done == 0 && end.is_some() => return Err(end.unwrap_or(Errno::IO)),
                _ => {
                    self.count_read(&parts, &ended);
                    return Ok(done);
                }
            }
        }
    }

    /// Chooses the copy from which each range is read. Also returns the error that ends the request
    /// early, if a range has no usable copy.
    fn choose_read(&self, kind: Kind, request: &Request<'_>, known: &[Span]) -> (Few<Part>, Option<Errno>) {
        let present = self.present_mask();
        let mut spans = spans_of(known, |span| self.preferred(span.mask.and(present)));
        let lost = spans.iter().position(|span| span.mask == 0);
        if let Some(first) = lost {
            spans.truncate(first);
        }
        let log_lost = |first| known.get(first).map_or(Errno::IO, |span| self.log_lost(span));
        let mut parts = Few::new();
        let Some(end) = spans.last().map(|last| last.end) else { return (parts, Some(log_lost(0))) };
        let range = request.offset..end;
        let no_space = &mut Reservation::none();
        let redirected = self.redirect(kind, range.clone(), &spans, Mask::NONE, no_space, &mut parts);
        if let (true, Some(copy)) = (redirected.newly_wanted, redirected.critical) {
            // A range that cannot be queued is not prefetched.
            let _ = self.map.add_hint(range, CopyId::new(copy));
        }
        (parts, lost.map(log_lost))
    }

    fn count_read(&self, parts: &[Part], ended: &[Outcome]) {
        for (part, ended) in parts.iter().zip(ended) {
            self.map.count(Counter::Read(CopyId::new(part.copy)), ended.done as u64);
        }
        self.count_hits(parts);
    }

    /// Logs that a range is valid only in lost copies, and returns the errno.
    pub(crate) fn log_lost(&self, span: &Span) -> Errno {
        let extra = |copy: CopyId| self.file.parts.extra.get(copy.index().checked_sub(1)?)?.as_ref().err();
        notice::warn_once(&format!(
            "{}: bytes {} to {} are only in a copy that is lost; `stripewise fsck` says which",
            self.file.path().display(),
            span.start,
            span.end
        ));
        span.mask.iter().filter_map(extra).map(log_lost).last().unwrap_or(Errno::IO)
    }

    /// After a copy failed: if other copies can serve the range, avoids the failed copy from now on
    /// and returns true.
    fn may_avoid(&self, guard: &ReadGuard<'_>, part: &Part, done: u64, error: Errno) -> bool {
        let (at, copy) = (part.start + done, CopyId::new(part.copy));
        let Some(span) = guard.spans().iter().find(|span| span.range().contains(&at)) else { return false };
        let others = span.mask.and(self.present_mask()).without(copy);
        is_of_device(error) && !others.is_empty() && self.avoid(copy, error)
    }
}

fn still_valid(guard: &ReadGuard<'_>, parts: &[Part]) -> Result<bool> {
    let from = |span: &Span| {
        let part = parts.iter().find(|part| part.start <= span.start && span.start < part.end);
        // A range that was not read needs no check: any valid copy will do.
        part.map_or_else(|| span.mask.lowest().unwrap_or(CopyId::ORIGINAL), |part| CopyId::new(part.copy))
    };
    guard.still_valid(from).logged()
}

/// Whether an error comes from the device or the file system, not from the arguments of the call or
/// the limits of the process.
pub(super) fn is_of_device(error: Errno) -> bool {
    !matches!(
        error,
        Errno::FAULT
            | Errno::INVAL
            | Errno::INTR
            | Errno::AGAIN
            | Errno::FBIG
            | Errno::NOMEM
            | Errno::MFILE
            | Errno::NFILE
    )
}
