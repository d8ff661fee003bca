//! The parameters of a read or write.

use std::ffi::{c_int, c_void};
use std::slice;

use libc::{iovec, off_t};
use rustix::fs::OFlags;
use stripewise_recorder::{Flags, Op};
use stripewise_sys::{Errno, IoVec, Result, raw};

use crate::descriptors::Call;
use crate::process::kernel;

/// The offset of a transfer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// At the descriptor's offset, which the transfer moves.
    Offset,
    /// At this offset, bytes.
    At(off_t),
}

impl Place {
    /// The place for calls in which an offset of -1 means the descriptor's offset (preadv2).
    pub fn of_v2(offset: off_t) -> Self {
        if offset == -1 { Self::Offset } else { Self::At(offset) }
    }
}

pub struct Transfer {
    op: Op,
    buffers: Buffers,
    pub place: Place,
    rwf: c_int,
}

enum Buffers {
    One(IoVec),
    /// The application's array.
    Many(&'static [IoVec]),
    /// A copy of the array, for a call that returns before the transfer.
    Copied(Vec<IoVec>),
    /// The array is too long, or cannot be read.
    Invalid(Errno),
}

// SAFETY: the application promises that the pointers stay valid. Only the kernel accesses the data,
// and an array that another thread uses is a copy.
unsafe impl Send for Transfer {}

/// Largest number of bytes that the kernel moves in one call (MAX_RW_COUNT).
pub const MOST: usize = 0x7fff_f000;
impl Transfer {
    pub fn one(op: Op, buffer: *mut c_void, len: usize, place: Place) -> Self {
        Self { op, buffers: Buffers::One(IoVec { base: buffer.cast(), len }), place, rwf: 0 }
    }

    /// `rwf` are the `RWF_` flags.
    pub fn many(op: Op, vectors: *const iovec, count: c_int, place: Place, rwf: c_int) -> Self {
        let buffers = match count as usize {
            0 => Buffers::Many(&[]),
            count @ 1..=raw::IOV_MAX if kernel::is_readable(vectors.cast(), count * size_of::<iovec>()) => {
                // SAFETY: the application passes this many; both types are C's `struct iovec`.
                Buffers::Many(unsafe { slice::from_raw_parts(vectors.cast(), count) })
            }
            1..=raw::IOV_MAX => Buffers::Invalid(Errno::FAULT),
            // The kernel does not read an array that is too long, so neither does this function.
            _ => Buffers::Invalid(Errno::INVAL),
        };
        Self { op, buffers, place, rwf }
    }

    /// The same transfer with these flags and without the application's array.
    pub fn detached(mut self, rwf: c_int) -> Result<Self> {
        if !matches!(self.buffers, Buffers::One(_)) {
            self.buffers = Buffers::Copied(self.vectors()?.to_vec());
        }
        self.rwf = rwf;
        Ok(self)
    }

    pub fn op(&self) -> Op {
        self.op
    }

    /// The `RWF_` flags.
    pub fn rwf(&self) -> c_int {
        self.rwf
    }

    /// The buffer, if there is only one and no flag, and the kernel may move all of it at once.
    #[inline]
    pub fn only_buffer(&self) -> Option<IoVec> {
        match &self.buffers {
            Buffers::One(one) if self.rwf == 0 && (1..=MOST).contains(&one.len) => Some(*one),
            _ => None,
        }
    }

    pub fn vectors(&self) -> Result<&[IoVec]> {
        match &self.buffers {
            Buffers::One(one) => Ok(slice::from_ref(one)),
            Buffers::Many(vectors) => Ok(vectors),
            Buffers::Copied(vectors) => Ok(vectors),
            Buffers::Invalid(error) => Err(*error),
        }
    }

    pub fn call(&self) -> Call {
        let (offset, positional) = match self.place {
            Place::At(offset) => (offset.max(0) as u64, Flags::POSITIONAL),
            Place::Offset => (0, Flags::NONE),
        };
        let vector = if matches!(self.buffers, Buffers::One(_)) { Flags::NONE } else { Flags::VECTOR };
        let size = self.vectors().map_or(0, |vectors| vectors.iter().map(|v| v.len as u64).sum());
        Call { op: self.op, flags: positional.with(vector), offset, size }
    }
}

/// Errors: EBADF for status flags that do not permit the operation.
pub fn check_mode(flags: OFlags, op: Op) -> Result<()> {
    let wrong = if op == Op::Read { OFlags::WRONLY } else { OFlags::RDONLY };
    if flags & OFlags::RWMODE == wrong { Err(Errno::BADF) } else { Ok(()) }
}
