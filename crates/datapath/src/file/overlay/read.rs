//! Reading from several copies.

use stripewise_extents::{CopyId, Counter, Map, ReadGuard, Span};
use stripewise_model::Op;
use stripewise_policy::Kind;
use stripewise_target::Few;

use super::super::LogicalFile;
use super::Overlay;
use super::choice::{Part, spans_of};
use super::request::{Ended, Request, Transfer, whole};
use crate::{Errno, Result, trouble};

impl LogicalFile {
    /// A read below what may be the size.
    ///
    /// # Safety
    /// As [`LogicalFile::read_at`].
    pub(in super::super) unsafe fn read_copies(
        &self,
        overlay: &Overlay,
        request: &Request<'_>,
    ) -> Result<usize> {
        let map = overlay.map()?;
        let map = &*map;
        let _under_way = overlay.begin(map);
        let kind = Kind { op: Op::Read, access: overlay.streams.access(request.offset, request.len) };
        let mut what = Transfer::Read;
        let mut lock = None;
        loop {
            let guard = map.begin_read(request.range()).map_err(|error| trouble::map_told(&error))?;
            let (parts, end) = self.choose_read(overlay, map, kind, request, guard.spans());
            // SAFETY: the caller's promise.
            let ended = unsafe { self.transfer(overlay, what, request, &parts) };
            if !still_valid(&guard, &parts)? {
                continue;
            }
            let (done, last) = whole(&parts, &ended);
            match last.map(|last| (&parts[last], ended[last])) {
                Some((part, Ended { error: Some(error), done: of_part })) => {
                    if self.may_avoid(overlay, &guard, part, of_part, error) {
                        continue;
                    }
                    return if done > 0 { Ok(done as usize) } else { Err(error) };
                }
                // A hole, the end of the file, or somebody is just writing there.
                Some(_) if lock.is_none() => {
                    lock = Some(self.lock_size_shared()?);
                    what = Transfer::ReadBelow(self.size()?);
                }
                _ if done == 0 && end.is_some() => return Err(end.unwrap_or(Errno::IO)),
                _ => {
                    count(map, &parts, &ended);
                    return Ok(done as usize);
                }
            }
        }
    }

    /// Where each part is read from; and why that is not all of the request, if it is not.
    fn choose_read(
        &self,
        overlay: &Overlay,
        map: &Map,
        kind: Kind,
        request: &Request<'_>,
        known: &[Span],
    ) -> (Few<Part>, Option<Errno>) {
        let present = self.present_mask();
        let mut spans = spans_of(known, |span| overlay.preferred(span.mask.bits() & present));
        let lost = spans.iter().position(|span| span.mask == 0);
        if let Some(first) = lost {
            spans.truncate(first);
        }
        let mut parts = Few::new();
        let Some(end) = spans.last().map(|last| last.end) else {
            return (parts, Some(self.say_lost(known, 0)));
        };
        let asked = overlay.request(kind, request.offset, end - request.offset);
        let redirected = overlay.choice(map).read(&overlay.surroundings.data, &asked, &spans, &mut parts);
        if redirected.critical.is_some() {
            map.count(Counter::Critical, 1);
        }
        if let (true, Some(copy)) = (redirected.newly_wanted, redirected.critical) {
            // What cannot be noted is not fetched.
            let _ = map.want(request.offset..end, CopyId::new(usize::from(copy)));
        }
        (parts, lost.map(|first| self.say_lost(known, first)))
    }

    /// A part whose only valid copy is lost.
    pub(super) fn say_lost(&self, known: &[Span], first: usize) -> Errno {
        let Some(span) = known.get(first) else { return Errno::IO };
        let lost = (0..8usize).filter(|&number| span.mask.bits() & 1 << number != 0);
        let lost = lost.filter_map(|number| self.parts.further.get(number.checked_sub(1)?)?.as_ref().err());
        crate::notice::say(&format!(
            "{}: bytes {} to {} are only in a copy that is lost; `stripewise fsck` says which",
            self.path().display(),
            span.start,
            span.end
        ));
        lost.map(super::super::Lost::told).last().unwrap_or(Errno::IO)
    }

    /// After a copy failed: whether others can do what it should have done. It is avoided from now on then.
    fn may_avoid(
        &self,
        overlay: &Overlay,
        guard: &ReadGuard<'_>,
        part: &Part,
        done: u64,
        error: Errno,
    ) -> bool {
        let at = part.start + done;
        let Some(span) = guard.spans().iter().find(|span| (span.start..span.end).contains(&at)) else {
            return false;
        };
        let others = span.mask.bits() & self.present_mask() & !(1 << part.copy);
        is_of_device(error) && others != 0 && overlay.avoid(self, part.copy, error)
    }
}

fn still_valid(guard: &ReadGuard<'_>, parts: &[Part]) -> Result<bool> {
    let from = |span: &Span| {
        let part = parts.iter().find(|part| part.start <= span.start && span.start < part.end);
        // What was not read is not asked for.
        part.map_or_else(|| span.mask.lowest().unwrap_or(CopyId::ORIGINAL), |part| CopyId::new(part.copy))
    };
    guard.still_valid(from).map_err(|error| trouble::map_told(&error))
}

fn count(map: &Map, parts: &[Part], ended: &[Ended]) {
    for (part, ended) in parts.iter().zip(ended) {
        map.count(Counter::Read(CopyId::new(part.copy)), ended.done);
    }
    super::count_hits(map, parts);
}

/// Whether an error tells of the device or the file system, not of the call.
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
