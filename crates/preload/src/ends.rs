//! The two sides of a call that moves bytes from one descriptor to another, of which one or both
//! may be managed.

use std::ffi::c_int;
use std::os::fd::BorrowedFd;

use libc::{off_t, ssize_t};
use rustix::fs::{FileType, OFlags, fcntl_getfl, fstat};
use stripewise_recorder::Op;
use stripewise_sys::{Errno, Result, raw};

use crate::errno::guarded;
use crate::kernel;
use crate::subject::{Managed, Subject};
use crate::transfer::{Place, Transfer, move_bytes};

/// One side.
pub enum End {
    Plain(c_int),
    Managed(c_int, Box<Managed>),
}

impl End {
    /// Of a descriptor, which may be a bad one.
    fn of(fd: c_int) -> Self {
        Subject::managed(fd).map_or(Self::Plain(fd), |managed| Self::Managed(fd, Box::new(managed)))
    }

    /// Both sides of a call; none where no file is managed, and the kernel serves the call.
    pub fn both(from: c_int, to: c_int) -> Option<(Self, Self)> {
        if from < 0 || to < 0 {
            return None;
        }
        let (from, to) = (Self::of(from), Self::of(to));
        (from.is_managed() || to.is_managed()).then_some((from, to))
    }

    fn fd(&self) -> c_int {
        match self {
            Self::Plain(fd) | Self::Managed(fd, _) => *fd,
        }
    }

    /// Whether the kernel cannot serve it.
    pub fn is_managed(&self) -> bool {
        matches!(self, Self::Managed(..))
    }

    /// The descriptor.
    pub fn borrow(&self) -> BorrowedFd<'_> {
        // SAFETY: the application's, for the time of the call; a bad one is EBADF.
        unsafe { BorrowedFd::borrow_raw(self.fd()) }
    }

    /// Reads at a place of a file.
    pub fn read(&self, buffer: &mut [u8], at: off_t) -> Result<usize> {
        match self {
            Self::Managed(_, managed) => {
                let request = Transfer::one(Op::Read, buffer.as_mut_ptr().cast(), buffer.len(), Place::At(at));
                guarded(|| move_bytes(managed, &request)).map(|(_, done)| done)
            }
            // SAFETY: a buffer of our own.
            Self::Plain(_) => unsafe {
                raw::pread(self.borrow(), buffer.as_mut_ptr(), buffer.len(), at.cast_unsigned())
            },
        }
    }

    /// Writes as `write` does, or at a place.
    pub fn write(&self, bytes: &[u8], place: Place) -> Result<usize> {
        match self {
            Self::Managed(_, managed) => {
                let request = Transfer::one(Op::Write, bytes.as_ptr().cast_mut().cast(), bytes.len(), place);
                guarded(|| move_bytes(managed, &request)).map(|(_, done)| done)
            }
            Self::Plain(_) => match place {
                Place::Offset => rustix::io::write(self.borrow(), bytes),
                // SAFETY: bytes of our own.
                Place::At(at) => unsafe {
                    raw::pwrite(self.borrow(), bytes.as_ptr(), bytes.len(), at.cast_unsigned())
                },
            },
        }
    }

    /// # Errors
    /// EISDIR, EINVAL: it is no regular file.
    pub fn check_regular(&self) -> Result<()> {
        if self.is_managed() {
            return Ok(());
        }
        match FileType::from_raw_mode(fstat(self.borrow())?.st_mode) {
            FileType::RegularFile => Ok(()),
            FileType::Directory => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    /// Bytes of a regular file.
    pub fn size(&self) -> Result<u64> {
        match self {
            Self::Managed(_, managed) => guarded(|| managed.file()?.size()),
            Self::Plain(_) => Ok(fstat(self.borrow())?.st_size.cast_unsigned()),
        }
    }

    /// Whether both are one file.
    pub fn is_same_file(&self, other: &Self) -> Result<bool> {
        let (one, two) = (fstat(self.borrow())?, fstat(other.borrow())?);
        Ok((one.st_dev, one.st_ino) == (two.st_dev, two.st_ino))
    }

    /// # Errors
    /// EBADF: it is not open for that. EINVAL: not a file that has places, or in append mode.
    pub fn check(&self, op: Op) -> Result<()> {
        let flags = match self {
            Self::Managed(_, managed) => managed.flags()?,
            Self::Plain(_) => fcntl_getfl(self.borrow())?,
        };
        let wrong = if op == Op::Read { OFlags::WRONLY } else { OFlags::RDONLY };
        if flags.contains(OFlags::PATH) || flags & OFlags::RWMODE == wrong {
            return Err(Errno::BADF);
        }
        match op {
            Op::Read if !self.is_managed() => {
                let kind = FileType::from_raw_mode(fstat(self.borrow())?.st_mode);
                let has_places = matches!(kind, FileType::RegularFile | FileType::BlockDevice);
                if has_places { Ok(()) } else { Err(Errno::INVAL) }
            }
            Op::Write if flags.contains(OFlags::APPEND) => Err(Errno::INVAL),
            _ => Ok(()),
        }
    }
}

/// Moves bytes in pieces through a buffer until `len` are done, the source ends, or less is written
/// than was read. Returns how many bytes were moved, and the error that ended it. `place` says
/// where the piece goes that begins so many bytes after the first.
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

/// Where the application's calls begin: at its own offset, or at the descriptor's.
pub struct Cursor<'a> {
    /// Of what.
    pub end: &'a End,
    own: *mut off_t,
    /// The offset.
    pub begin: off_t,
}

impl<'a> Cursor<'a> {
    /// # Safety
    /// No Rust reference to the application's offset is in use; it need not be there (EFAULT).
    pub unsafe fn new(end: &'a End, own: *mut off_t) -> Result<Self> {
        let begin = if own.is_null() {
            rustix::fs::seek(end.borrow(), rustix::fs::SeekFrom::Current(0))? as off_t
        } else if kernel::is_readable(own.cast(), size_of::<off_t>()) {
            // SAFETY: just asked.
            unsafe { own.read_unaligned() }
        } else {
            return Err(Errno::FAULT);
        };
        if begin < 0 { Err(Errno::INVAL) } else { Ok(Self { end, own, begin }) }
    }

    /// After so many bytes.
    ///
    /// # Safety
    /// The application's offset is still there.
    pub unsafe fn advance(self, done: usize) -> Result<()> {
        let at = self.begin + done as off_t;
        if self.own.is_null() {
            rustix::fs::seek(self.end.borrow(), rustix::fs::SeekFrom::Start(at.cast_unsigned()))?;
        } else {
            // SAFETY: the application's, which was there.
            unsafe { self.own.write_unaligned(at) };
        }
        Ok(())
    }
}

/// What a call returns that has moved so many bytes, and then met the error.
///
/// # Safety
/// As [`Cursor::advance`].
pub unsafe fn finish(cursor: Cursor<'_>, done: usize, error: Option<Errno>) -> Result<ssize_t> {
    match error {
        Some(error) if done == 0 => Err(error),
        _ => {
            unsafe { cursor.advance(done)? };
            Ok(done as ssize_t)
        }
    }
}
