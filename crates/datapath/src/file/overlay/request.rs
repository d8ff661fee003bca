//! Transfers one request from or to several copies at once.

use std::ops::Range;

use smallvec::smallvec;
use stripewise_extents::{Copier, CopyId, Mask};
use stripewise_policy::yielding::PROBE_BYTES;
use stripewise_sys::{Action, IoVec, raw};
use stripewise_target::{Few, Outcome, Piece};

use super::choice::Part;
use super::copy_set::CopySet;
use crate::error::{Errno, Logged, Result};
use crate::file::copy::{IoOptions, OpenCopy};
use crate::file::split::{leading, lens, split};

/// An application's request. Its memory is the first `len` bytes of the buffers.
#[derive(Clone, Copy)]
pub(crate) struct Request<'a> {
    pub buffers: &'a [IoVec],
    pub offset: u64,
    pub len: u64,
    pub options: IoOptions,
}

impl Request<'_> {
    pub fn range(&self) -> Range<u64> {
        self.offset..self.offset + self.len
    }
}

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Read,
    /// A read with a known file size, bytes: below the size, zeros are filled in where an object
    /// has ended.
    ReadBelow(u64),
    Write,
}

/// The share of a request that one copy serves.
struct Share<'f> {
    copy: &'f OpenCopy,
    /// Indexes of its ranges.
    parts: Few<usize>,
    pieces: Few<Piece>,
    /// Per range, the end index of its pieces.
    ends: Few<usize>,
}

impl<'f> CopySet<'f> {
    /// Transfers all ranges at once, each from or to its copy, and returns the outcome of each. A
    /// short read without an error met the end of an object. A lost copy gives EIO. Marks the
    /// servers as in use, so that background work yields.
    ///
    /// # Safety
    /// Same as `LogicalFile::read_at` or `LogicalFile::write_at`.
    pub(super) unsafe fn transfer(
        &self,
        what: Transfer,
        request: &Request<'_>,
        parts: &[Part],
    ) -> Few<Outcome> {
        let shares = self.shares(request, parts);
        let mark = |now_ns| {
            for share in &shares {
                let objects = share.pieces.iter().map(|piece| piece.object);
                self.overlay.activity.mark(share.copy.number(), objects, now_ns);
            }
        };
        let began_ns = self.file.sys().now_ns();
        mark(began_ns);
        // SAFETY: as promised by the caller.
        let ended = unsafe { self.transfer_shares(what, request.options, &shares, parts) };
        let now_ns = self.file.sys().now_ns();
        self.overlay.activity.took(now_ns.saturating_sub(began_ns));
        mark(now_ns);
        ended
    }

    /// Same as [`CopySet::transfer`] for background work, which does not mark the servers as in
    /// use.
    ///
    /// # Safety
    /// Same as [`CopySet::transfer`].
    pub(super) unsafe fn transfer_unmarked(
        &self,
        what: Transfer,
        request: &Request<'_>,
        parts: &[Part],
    ) -> Few<Outcome> {
        // SAFETY: as promised by the caller.
        unsafe { self.transfer_shares(what, request.options, &self.shares(request, parts), parts) }
    }

    fn shares(&self, request: &Request<'_>, parts: &[Part]) -> Few<Share<'f>> {
        let used = parts.iter().fold(Mask::NONE, |used, part| used.with(CopyId::new(part.copy)));
        used.iter().filter_map(|number| self.share(number, request, parts)).collect()
    }

    /// # Safety
    /// Same as [`CopySet::transfer`].
    unsafe fn transfer_shares(
        &self,
        what: Transfer,
        options: IoOptions,
        shares: &[Share<'f>],
        parts: &[Part],
    ) -> Few<Outcome> {
        let mut ended = smallvec![Outcome { done: 0, error: Some(Errno::IO) }; parts.len()];
        let set_for = |share: &Share<'f>| share.copy.set_for(self.file.sys(), &share.pieces, options);
        let requests: Few<_> = shares.iter().map(|share| (set_for(share), &*share.pieces)).collect();
        let fan_out = &self.file.context.fan_out;
        let action = if matches!(what, Transfer::Write) { Action::Write } else { Action::Read };
        // SAFETY: as promised by the caller.
        let outcomes = unsafe { fan_out.transfer_sets(action, &requests) };
        for (share, mut outcomes) in shares.iter().zip(outcomes) {
            let mut first = 0;
            for (&index, &end) in share.parts.iter().zip(&share.ends) {
                let (pieces, outcomes) = (&share.pieces[first..end], &mut outcomes[first..end]);
                if let Transfer::ReadBelow(size) = what {
                    // SAFETY: as promised by the caller.
                    unsafe { fill(pieces, outcomes, parts[index].start, size) };
                }
                let (done, last) = leading(lens(pieces), outcomes);
                ended[index] = Outcome { done, error: last.and_then(|(_, last)| last.error) };
                first = end;
            }
        }
        ended
    }

    /// The share of copy `number`; `None` if the copy is lost.
    fn share(&self, number: CopyId, request: &Request<'_>, parts: &[Part]) -> Option<Share<'f>> {
        let copy = self.copy(number)?;
        let of_copy: Few<usize> =
            (0..parts.len()).filter(|&index| parts[index].copy == number.index()).collect();
        let (mut pieces, mut ends) = (Few::new(), Few::new());
        for &index in &of_copy {
            let part = &parts[index];
            let memory = cut(request.buffers, part.start - request.offset);
            pieces.extend(split(copy.layout(), part.start, part.end - part.start, &memory));
            ends.push(pieces.len());
        }
        Some(Share { copy, parts: of_copy, pieces, ends })
    }
}

/// Fills in zeros where an object ended below the file size, and does not count bytes past the
/// size.
///
/// # Safety
/// Same as [`CopySet::transfer`].
unsafe fn fill(pieces: &[Piece], outcomes: &mut [Outcome], mut start: u64, size: u64) {
    for (piece, outcome) in pieces.iter().zip(outcomes) {
        let below = size.saturating_sub(start).min(piece.len as u64) as usize;
        outcome.done = outcome.done.min(below);
        if outcome.done < below && outcome.error.is_none() {
            // SAFETY: as promised by the caller.
            match unsafe { raw::zero(piece.base.wrapping_add(outcome.done), below - outcome.done) } {
                Ok(()) => outcome.done = below,
                Err(error) => outcome.error = Some(error),
            }
        }
        start += piece.len as u64;
    }
}

/// The buffers without their first `skip` bytes.
fn cut(buffers: &[IoVec], mut skip: u64) -> Few<IoVec> {
    let mut rest = Few::new();
    for buffer in buffers {
        let past = skip.min(buffer.len as u64) as usize;
        skip -= past as u64;
        if past < buffer.len {
            rest.push(IoVec { base: buffer.base.wrapping_add(past), len: buffer.len - past });
        }
    }
    rest
}

/// The leading part of the whole request that was done, see [`leading`].
pub(super) fn whole(parts: &[Part], ended: &[Outcome]) -> (usize, Option<(usize, Outcome)>) {
    leading(parts.iter().map(|part| (part.end - part.start) as usize), ended)
}

impl CopySet<'_> {
    /// Copies the pieces of `range` (at most [`stripewise_policy::background::CHUNK_BYTES`]) that
    /// are valid in copy `from` and invalid in copy `to`. Returns the ranges that became valid:
    /// none if another process writes there, if there is nothing to copy, if a piece lies past the
    /// end of the file, or if it `yields`.
    pub(crate) fn copy_between(
        &self,
        copier: &mut Copier<'_>,
        range: Range<u64>,
        from: CopyId,
        to: CopyId,
        yields: Option<Yields<'_>>,
    ) -> Result<Vec<Range<u64>>> {
        self.map.commit_to_copy(&range, &|| self.file.sync_objects(true)).logged()?;
        let Some(guard) = copier.begin(range, from, to).logged()? else { return Ok(Vec::new()) };
        // Get the size now: a truncate waits for the guard.
        let size = self.file.size()?;
        if guard.parts().iter().any(|part| part.end > size) {
            return Ok(Vec::new());
        }
        let (first, rest) = divided(guard.parts(), if yields.is_some() { PROBE_BYTES } else { u64::MAX });
        let begun_ns = self.file.sys().now_ns();
        self.copy_parts(&first, from, to, size)?;
        if yields.is_some_and(|yields| yields(self.file.sys().now_ns().saturating_sub(begun_ns))) {
            return Ok(Vec::new());
        }
        self.copy_parts(&rest, from, to, size)?;
        let sync = || match self.copy(to) {
            Some(copy) => copy.objects().sync(&self.overlay.context.fan_out, true).logged(),
            None => Ok(()),
        };
        guard.finish(sync).logged()
    }

    /// Copies ranges, in order and all at once, from one copy to another. Every byte below `size`
    /// is copied, including zeros.
    fn copy_parts(&self, ranges: &[Range<u64>], from: CopyId, to: CopyId, size: u64) -> Result<()> {
        let (Some(first), Some(last)) = (ranges.first(), ranges.last()) else { return Ok(()) };
        let (offset, len) = (first.start, last.end - first.start);
        let mut memory = vec![0u8; len as usize];
        let buffers = [IoVec { base: memory.as_mut_ptr(), len: len as usize }];
        let request = Request { buffers: &buffers, offset, len, options: IoOptions::default() };
        let parts = |copy: CopyId| -> Vec<Part> {
            let part = |range: &Range<u64>| Part { start: range.start, end: range.end, copy: copy.index() };
            ranges.iter().map(part).collect()
        };
        let (from, to) = (parts(from), parts(to));
        // SAFETY: `memory` belongs to this frame.
        unsafe {
            complete(&from, &self.transfer_unmarked(Transfer::ReadBelow(size), &request, &from))?;
            complete(&to, &self.transfer_unmarked(Transfer::Write, &request, &to))
        }
    }
}

/// Takes the time that copying the first bytes took, ns, and returns whether to give up the copy.
pub(crate) type Yields<'a> = &'a dyn Fn(u64) -> bool;

/// The first `bytes` bytes of ranges, and the rest.
fn divided(ranges: &[Range<u64>], bytes: u64) -> (Vec<Range<u64>>, Vec<Range<u64>>) {
    let (mut left, mut first, mut rest) = (bytes, Vec::new(), Vec::new());
    for range in ranges {
        let middle = range.end.min(range.start.saturating_add(left));
        left -= middle - range.start;
        first.extend(Some(range.start..middle).filter(|part| !part.is_empty()));
        rest.extend(Some(middle..range.end).filter(|part| !part.is_empty()));
    }
    (first, rest)
}

fn complete(parts: &[Part], ended: &[Outcome]) -> Result<()> {
    whole(parts, ended).1.map_or(Ok(()), |(_, last)| Err(last.error.unwrap_or(Errno::IO)))
}
