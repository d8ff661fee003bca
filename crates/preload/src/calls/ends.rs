//! The two ends of a call that moves bytes from one descriptor to another. One or both may be
//! managed.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use libc::{off_t, ssize_t};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Result, raw};

use crate::calls::request::{Place, Transfer, check_mode};
use crate::calls::transfer::move_bytes;
use crate::descriptors::{Managed, Subject};
use crate::process::{borrow, guarded, kernel};

/// One end of such a call.
pub struct End {
    fd: c_int,
    /// Boxed, because callers have little stack.
    pub managed: Option<Box<Managed>>,
}

impl End {
    /// Both ends of a call, whose descriptors may be invalid. `None` if neither file is managed:
    /// the kernel serves the call.
    pub fn both(from: c_int, to: c_int) -> Option<(Self, Self)> {
        if from < 0 || to < 0 {
            return None;
        }
        let of = |fd| Self { fd, managed: Subject::managed(fd).map(Box::new) };
        let (from, to) = (of(from), of(to));
        (from.managed.is_some() || to.managed.is_some()).then_some((from, to))
    }

    pub fn borrow(&self) -> BorrowedFd<'_> {
        borrow(self.fd)
    }

    pub fn read(&self, buffer: &mut [u8], at: off_t) -> Result<usize> {
        let (start, len) = (buffer.as_mut_ptr(), buffer.len());
        match &self.managed {
            Some(managed) => moved(managed, Transfer::one(Op::Read, start.cast(), len, Place::At(at))),
            // SAFETY: the caller's buffer, borrowed for the call.
            None => unsafe { raw::pread(self.borrow(), start, len, at.cast_unsigned()) },
        }
    }

    pub fn write(&self, bytes: &[u8], place: Place) -> Result<usize> {
        let (start, len) = (bytes.as_ptr(), bytes.len());
        match (&self.managed, place) {
            (Some(managed), _) => moved(managed, Transfer::one(Op::Write, start.cast_mut().cast(), len, place)),
            (None, Place::Offset) => rustix::io::write(self.borrow(), bytes),
            // SAFETY: the caller's bytes, borrowed for the call.
            (None, Place::At(at)) => unsafe { raw::pwrite(self.borrow(), start, len, at.cast_unsigned()) },
        }
    }

    /// Errors: EISDIR or EINVAL if it is not a regular file.
    pub fn check_regular(&self) -> Result<()> {
        if self.managed.is_some() {
            return Ok(());
        }
        match FileType::from_raw_mode(fstat(self.borrow())?.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub fn size(&self) -> Result<u64> {
        match &self.managed {
            Some(managed) => guarded(|| managed.file()?.size()),
            None => Ok(fstat(self.borrow())?.st_size.cast_unsigned()),
        }
    }

    pub fn is_same_file(&self, other: &Self) -> Result<bool> {
        let (one, two) = (fstat(self.borrow())?, fstat(other.borrow())?);
        Ok((one.st_dev, one.st_ino) == (two.st_dev, two.st_ino))
    }

    /// Errors: EBADF: not open for this operation. EINVAL: a file without offsets, or in append
    /// mode.
    pub fn check(&self, op: Op) -> Result<()> {
        let flags = match &self.managed {
            Some(managed) => managed.flags()?,
            None => fcntl_getfl(self.borrow())?,
        };
        if flags.contains(OFlags::PATH) {
            return Err(Errno::BADF);
        }
        check_mode(flags, op)?;
        match op {
            Op::Read if self.managed.is_none() => {
                let kind = FileType::from_raw_mode(fstat(self.borrow())?.st_mode);
                let has_places = matches!(kind, FileType::RegularFile | FileType::BlockDevice);
                if has_places { Ok(()) } else { Err(Errno::INVAL) }
            }
            Op::Write if flags.contains(OFlags::APPEND) => Err(Errno::INVAL),
            _ => Ok(()),
        }
    }
}

fn moved(managed: &Managed, request: Transfer) -> Result<usize> {
    guarded(|| move_bytes(managed, &request)).map(|(_, done)| done)
}

/// Moves bytes piece by piece through a buffer until `len` bytes are moved, the source ends, or a
/// write is short. Returns the number of bytes moved, and the error that ended the transfer.
/// `place` maps the distance of a piece from the first byte to its place in the destination.
pub fn pump(
    from: (&End, off_t),
    (to, place): (&End, impl Fn(off_t) -> Place),
    len: usize,
    piece: usize,
) -> (usize, Option<Errno>) {
    let (source, begin) = from;
    let mut buffer = vec![0; len.min(piece)];
    let mut done = 0;
    while done < len {
        let want = buffer.len().min(len - done);
        let moved = source.read(&mut buffer[..want], begin + done as off_t).and_then(|got| {
            let written = if got == 0 { 0 } else { to.write(&buffer[..got], place(done as off_t))? };
            Ok((written, got))
        });
        match moved {
            Ok((0, _)) => break,
            Ok((written, got)) => {
                done += written;
                if written < got {
                    break;
                }
            }
            Err(error) => return (done, Some(error)),
        }
    }
    (done, None)
}

/// The start offset of a call: the application's variable or, if that is null, the descriptor's
/// offset.
pub struct Cursor<'a> {
    /// The end that the offset belongs to.
    pub end: &'a End,
    own: *mut off_t,
    /// Offset at the start of the call, bytes.
    pub begin: off_t,
}

impl<'a> Cursor<'a> {
    /// Safety: no Rust reference to the application's offset is in use. Its address may be invalid
    /// (EFAULT).
    pub unsafe fn new(end: &'a End, own: *mut off_t) -> Result<Self> {
        let begin = if own.is_null() {
            rustix::fs::seek(end.borrow(), rustix::fs::SeekFrom::Current(0))? as off_t
        } else if kernel::is_readable(own.cast(), size_of::<off_t>()) {
            // SAFETY: found readable above.
            unsafe { own.read_unaligned() }
        } else {
            return Err(Errno::FAULT);
        };
        if begin < 0 { Err(Errno::INVAL) } else { Ok(Self { end, own, begin }) }
    }

    /// Stores the offset after `done` bytes.
    /// Safety: the application's offset is still there.
    pub unsafe fn advance(self, done: usize) -> Result<()> {
        let at = self.begin + done as off_t;
        if self.own.is_null() {
            rustix::fs::seek(self.end.borrow(), rustix::fs::SeekFrom::Start(at.cast_unsigned()))?;
        } else {
            // SAFETY: the application's variable, which was readable before.
            unsafe { self.own.write_unaligned(at) };
        }
        Ok(())
    }
}

/// The result of a call that moved `done` bytes and then met `error`.
/// Safety: as [`Cursor::advance`].
pub unsafe fn finish<const N: usize>(
    cursors: [Cursor<'_>; N],
    done: usize,
    error: Option<Errno>,
) -> Result<ssize_t> {
    if let Some(error) = error.filter(|_| done == 0) {
        return Err(error);
    }
    cursors.into_iter().try_for_each(|cursor| unsafe { cursor.advance(done) })?;
    Ok(done as ssize_t)
}
