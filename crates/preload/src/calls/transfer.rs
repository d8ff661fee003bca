//! Reads and writes of managed files.

use rustix::fs::OFlags;
use stripewise_datapath::IoOptions;
use stripewise_recorder::Op;
use stripewise_sys::{Errno, IoVec, Result};

use crate::calls::limit::room_below_limit;
use crate::calls::request::{MOST, Place, Transfer, check_mode};
use crate::calls::{lifetime, piece};
use crate::descriptors::Managed;

/// Serves a transfer on a managed file. Returns its offset and the number of bytes moved.
pub fn move_bytes(managed: &Managed, request: &Transfer) -> Result<(u64, usize)> {
    // The checks have the kernel's order, so that of several errors the same one is reported.
    if matches!(request.place, Place::At(..0)) {
        return Err(Errno::INVAL);
    }
    move_with_flags(managed, request, managed.flags()?)
}

/// As [`move_bytes`], with the status flags that the descriptor had. A transfer at [`Place::At`]
/// does not touch the descriptor, which may be closed by now.
pub fn move_with_flags(managed: &Managed, request: &Transfer, flags: OFlags) -> Result<(u64, usize)> {
    if matches!(request.place, Place::At(..0)) {
        return Err(Errno::INVAL);
    }
    check_mode(flags, request.op())?;
    // RWF_NOWAIT, RWF_ATOMIC and future flags are refused: ignoring them would break a guarantee.
    let known = libc::RWF_HIPRI | libc::RWF_DSYNC | libc::RWF_SYNC | libc::RWF_APPEND | libc::RWF_NOAPPEND;
    let rwf = request.rwf();
    if rwf & !known != 0 {
        return Err(Errno::OPNOTSUPP);
    }
    let vectors = request.vectors()?;
    let total =
        vectors.iter().try_fold(0usize, |sum, v| sum.checked_add(v.len)).filter(|&t| t <= isize::MAX as usize);
    let total = total.ok_or(Errno::INVAL)?;
    if let Place::At(offset) = request.place
        && offset.checked_add(total as i64).is_none()
    {
        return Err(Errno::INVAL);
    }
    if total == 0 {
        managed.file()?;
        return Ok((0, 0));
    }
    let shortened = if total > MOST { Some(shorten(vectors, MOST)) } else { None };
    let vectors = shortened.as_deref().unwrap_or(vectors);
    let job = Job {
        managed,
        vectors,
        total: total.min(MOST),
        options: IoOptions { direct: flags.contains(OFlags::DIRECT) },
    };
    if request.op() == Op::Read {
        return job.at_place(request.place, Job::read);
    }
    let appends =
        rwf & libc::RWF_APPEND != 0 || (flags.contains(OFlags::APPEND) && rwf & libc::RWF_NOAPPEND == 0);
    let done = if appends { job.append(request.place)? } else { job.at_place(request.place, Job::write)? };
    if lifetime::is_ending() {
        lifetime::settle(managed.file()?);
    }
    let synchronous = flags.contains(OFlags::SYNC) || rwf & libc::RWF_SYNC != 0;
    if synchronous || flags.contains(OFlags::DSYNC) || rwf & libc::RWF_DSYNC != 0 {
        managed.file()?.sync(!synchronous)?;
    }
    Ok(done)
}

/// Moves a range that was taken from the descriptor's offset for the request, which has one buffer
/// and is none that [`move_bytes`] would append, or sync afterwards.
pub fn move_reserved(managed: &Managed, request: &Transfer, offset: u64) -> Result<(u64, usize)> {
    let vectors = request.vectors()?;
    let total = vectors.iter().map(|vector| vector.len).sum();
    let job = Job { managed, vectors, total, options: IoOptions { direct: false } };
    job.in_reserved(offset, if request.op() == Op::Read { Job::read } else { Job::write })
}

fn shorten(vectors: &[IoVec], most: usize) -> Vec<IoVec> {
    let mut left = most;
    let cut = |v: &IoVec| {
        let len = v.len.min(left);
        left -= len;
        IoVec { base: v.base, len }
    };
    vectors.iter().map(cut).collect()
}

struct Job<'a> {
    managed: &'a Managed,
    vectors: &'a [IoVec],
    total: usize,
    options: IoOptions,
}

impl Job<'_> {
    fn read(&self, offset: u64) -> Result<usize> {
        // SAFETY: the application's buffers, which only the kernel accesses.
        unsafe { self.managed.file()?.read_at(self.vectors, offset, self.options) }
    }

    fn write(&self, offset: u64) -> Result<usize> {
        if let ([buffer], false) = (self.vectors, self.options.direct)
            && let Some(done) = piece::write(self.managed.file()?, *buffer, offset)
        {
            return done;
        }
        let room = room_below_limit(offset)?;
        let shortened = (room < self.total as u64).then(|| shorten(self.vectors, room as usize));
        let vectors = shortened.as_deref().unwrap_or(self.vectors);
        // SAFETY: the application's buffers, which only the kernel accesses.
        unsafe { self.managed.file()?.write_at(vectors, offset, self.options) }
    }

    fn append(&self, place: Place) -> Result<(u64, usize)> {
        let file = self.managed.file()?;
        room_below_limit(file.size()?)?;
        // SAFETY: as above.
        let (offset, moved) = unsafe { file.append(self.vectors, self.options)? };
        if place == Place::Offset {
            self.managed.set_offset(offset + moved as u64)?;
        }
        Ok((offset, moved))
    }

    /// Runs a transfer at its offset. At the descriptor's offset it first reserves the range.
    fn at_place(&self, place: Place, run: impl Fn(&Self, u64) -> Result<usize>) -> Result<(u64, usize)> {
        if let Place::At(offset) = place {
            return Ok((offset as u64, run(self, offset as u64)?));
        }
        let Ok(reserved) = piece::reserve(self.managed, self.total) else {
            // The range exceeds the largest offset of the anchor's file system.
            let offset = self.managed.offset()?;
            let moved = run(self, offset)?;
            self.managed.set_offset(offset + moved as u64)?;
            return Ok((offset, moved));
        };
        self.in_reserved(reserved, run)
    }

    /// Runs a transfer in the range that was reserved for it.
    fn in_reserved(&self, offset: u64, run: impl Fn(&Self, u64) -> Result<usize>) -> Result<(u64, usize)> {
        piece::end_reserved(self.managed, offset, self.total, run(self, offset))
    }
}
