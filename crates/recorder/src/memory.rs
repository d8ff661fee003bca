//! Memory from the kernel, never from `malloc`: an allocator may call the recorder while it starts.

use std::fmt;
use std::os::fd::BorrowedFd;
use std::ptr::{NonNull, null_mut};

use rustix::io::Result;
use rustix::mm::{Advice, MapFlags, ProtFlags, madvise, mmap, mmap_anonymous};

const READ_WRITE: ProtFlags = ProtFlags::READ.union(ProtFlags::WRITE);

/// Zeroed private memory for a `T`, for the rest of the process's life.
pub fn private<T>() -> Result<NonNull<T>> {
    // SAFETY: a new mapping.
    let memory = unsafe { mmap_anonymous(null_mut(), size_of::<T>(), READ_WRITE, MapFlags::PRIVATE)? };
    NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)
}

/// Like [`private`], but cleared in a forked child. Kernels before 4.14 do not clear it.
pub fn wiped_on_fork<T>() -> Result<NonNull<T>> {
    let memory = private::<T>()?;
    // SAFETY: the range is the mapping that was just made.
    let _ = unsafe { madvise(memory.as_ptr().cast(), size_of::<T>(), Advice::LinuxWipeOnFork) };
    Ok(memory)
}

/// Maps a `T` shared with the file at `offset`, for the rest of the process's life; also in forked
/// children.
pub fn shared<T>(fd: BorrowedFd<'_>, offset: u64) -> Result<NonNull<T>> {
    // SAFETY: a new mapping.
    let memory = unsafe { mmap(null_mut(), size_of::<T>(), READ_WRITE, MapFlags::SHARED, fd, offset)? };
    NonNull::new(memory.cast()).ok_or(rustix::io::Errno::NOMEM)
}

/// A byte string of at most `N` bytes, without allocation.
#[derive(Clone, Copy)]
pub struct Bytes<const N: usize> {
    len: usize,
    bytes: [u8; N],
}

impl<const N: usize> Bytes<N> {
    pub const EMPTY: Bytes<N> = Bytes { len: 0, bytes: [0; N] };

    /// `None` if the text is too long.
    pub fn new(text: &[u8]) -> Option<Bytes<N>> {
        let mut bytes = Bytes::EMPTY;
        bytes.push(text).then_some(bytes)
    }

    /// The first `N` bytes of the text.
    pub fn cut(text: &[u8]) -> Bytes<N> {
        let mut bytes = Bytes::EMPTY;
        bytes.push(&text[..text.len().min(N)]);
        bytes
    }

    /// Appends; `false` if it does not fit.
    pub fn push(&mut self, text: &[u8]) -> bool {
        let Some(free) = self.bytes.get_mut(self.len..self.len + text.len()) else { return false };
        free.copy_from_slice(text);
        self.len += text.len();
        true
    }

    pub fn get(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl<const N: usize> fmt::Write for Bytes<N> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.push(text.as_bytes()) { Ok(()) } else { Err(fmt::Error) }
    }
}
