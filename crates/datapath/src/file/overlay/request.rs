//! One request, done on several copies.

use stripewise_sys::{IoVec, raw};
use stripewise_target::{Outcome, Piece};

use super::super::split::{grouped, leading, split};
use super::super::{IoOptions, LogicalFile, OpenCopy};
use super::choice::Part;
use crate::Errno;

/// What the application asks for; the memory is that of the buffers' first `len` bytes.
#[derive(Clone, Copy)]
pub(in super::super) struct Request<'a> {
    pub buffers: &'a [IoVec],
    pub offset: u64,
    pub len: u64,
    pub options: IoOptions,
}

/// What became of a part: bytes from its start on, and why not all. Without an error a read found the end of a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Ended {
    pub done: u64,
    pub error: Option<Errno>,
}

/// What to do with the parts of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transfer {
    Read,
    /// A read whose size is known to be this: what components do not have below it is zeros.
    ReadBelow(u64),
    Write,
}

impl LogicalFile {
    /// Does the parts, each on its copy; how each ended. A copy that is not there gives EIO.
    ///
    /// # Safety
    /// As [`LogicalFile::read_at`] or [`LogicalFile::write_at`].
    pub(super) unsafe fn transfer(&self, what: Transfer, request: &Request<'_>, parts: &[Part]) -> Vec<Ended> {
        let mut ended = vec![Ended { done: 0, error: Some(Errno::IO) }; parts.len()];
        let used = parts.iter().fold(0u8, |used, part| used | 1 << part.copy);
        for number in (0..8).filter(|number| used & 1 << number != 0) {
            let Some(copy) = self.copy(number) else { continue };
            let of_copy: Vec<usize> = (0..parts.len()).filter(|&index| parts[index].copy == number).collect();
            let mut pieces = Vec::new();
            let mut ends = Vec::new();
            for &index in &of_copy {
                let part = &parts[index];
                let memory = cut(request.buffers, part.start - request.offset);
                pieces.extend(split(copy.layout(), part.start, part.end - part.start, &memory));
                ends.push(pieces.len());
            }
            // SAFETY: as promised by the caller.
            let mut outcomes = unsafe { self.run(what, copy, &pieces, request.options) };
            let mut first = 0;
            for (&index, end) in of_copy.iter().zip(ends) {
                let (pieces, outcomes) = (&pieces[first..end], &mut outcomes[first..end]);
                if let Transfer::ReadBelow(size) = what {
                    // SAFETY: as promised by the caller.
                    unsafe { fill(pieces, outcomes, parts[index].start, size) };
                }
                let (done, last) = leading(pieces, outcomes);
                ended[index] = Ended { done: done as u64, error: last.and_then(|last| last.error) };
                first = end;
            }
        }
        ended
    }

    /// # Safety
    /// As [`LogicalFile::transfer`].
    unsafe fn run(
        &self,
        what: Transfer,
        copy: &OpenCopy,
        pieces: &[Piece],
        options: IoOptions,
    ) -> Vec<Outcome> {
        let set = copy.set_for(self.sys(), pieces, options);
        let fan_out = &self.shared.fan_out;
        grouped(pieces, |pieces| {
            // SAFETY: as promised by the caller.
            unsafe {
                match what {
                    Transfer::Read | Transfer::ReadBelow(_) => fan_out.read(set, pieces),
                    Transfer::Write => fan_out.write(set, pieces),
                }
            }
        })
    }
}

/// Zeros where a component ended below the size; and nothing counts that lies behind it.
///
/// # Safety
/// As [`LogicalFile::transfer`].
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
fn cut(buffers: &[IoVec], mut skip: u64) -> Vec<IoVec> {
    let mut rest = Vec::with_capacity(buffers.len());
    for buffer in buffers {
        let past = skip.min(buffer.len as u64) as usize;
        skip -= past as u64;
        if past < buffer.len {
            rest.push(IoVec { base: buffer.base.wrapping_add(past), len: buffer.len - past });
        }
    }
    rest
}

/// How the request as a whole ended: bytes from its start on, and the part that ended it.
pub(super) fn whole(parts: &[Part], ended: &[Ended]) -> (u64, Option<usize>) {
    let mut done = 0;
    for (index, (part, ended)) in parts.iter().zip(ended).enumerate() {
        done += ended.done;
        if ended.done < part.end - part.start {
            return (done, Some(index));
        }
    }
    (done, None)
}
