//! A small io_uring: runs a batch of vectored transfers or syncs, which are submitted together and
//! awaited together.
//!
//! A ring belongs to the process that made it. A forked child must not use it, because its memory
//! is shared with the parent. Dropping it in the child is allowed: that unmaps and closes the
//! child's copies, and does not affect the parent's ring.

use std::os::fd::{AsFd, RawFd};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::io_uring::{
    IORING_OFF_SQ_RING, IORING_OFF_SQES, IoringEnterFlags, IoringFeatureFlags, IoringFsyncFlags, IoringOp,
    addr_or_splice_off_in_union, io_uring_cqe, io_uring_enter, io_uring_params, io_uring_ptr, io_uring_setup,
    io_uring_sqe, io_uring_user_data, len_union, off_or_addr2_union, op_flags_union,
};
use rustix::mm::MapFlags;

use crate::map::Mapping;
use crate::{Fd, IoVec, Result};

/// The operation of a batch entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// preadv(2)
    Read,
    /// pwritev(2)
    Write,
    /// fsync(2)
    Sync,
    /// fdatasync(2)
    SyncData,
}

/// One entry of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Entry<'a> {
    /// The operation.
    pub action: Action,
    /// The descriptor of the file.
    pub fd: RawFd,
    /// The buffers, at most [`crate::raw::IOV_MAX`]; none for syncs.
    pub vectors: &'a [IoVec],
    /// Offset in the file, bytes.
    pub offset: u64,
}

/// The result of an entry: the number of bytes transferred, or 0 for a sync.
pub type Completion = Result<usize>;

impl Mapping {
    /// A pointer to the position `offset` bytes after the start.
    fn at<T>(&self, offset: u32) -> *mut T {
        // SAFETY: the kernel has returned these offsets for this mapping.
        unsafe { self.base.as_ptr().add(offset as usize).cast() }
    }

    fn word(&self, offset: u32) -> &AtomicU32 {
        // SAFETY: an aligned word of the mapping, which lives as long as `self`.
        unsafe { &*self.at::<AtomicU32>(offset) }
    }
}

/// A ring that one thread at a time can use.
#[derive(Debug)]
pub struct Ring {
    fd: Fd,
    rings: Mapping,
    entries: Mapping,
    params: io_uring_params,
}

// SAFETY: no other value refers to the mappings.
unsafe impl Send for Ring {}

impl Ring {
    /// A ring for batches of up to `capacity` entries (the kernel rounds up to a power of two).
    ///
    /// # Errors
    /// ENOSYS, EPERM or EACCES if io_uring is missing, too old (before Linux 5.12) or not
    /// permitted. ENOMEM if the limit of locked memory is too small.
    pub fn new(capacity: u32) -> Result<Self> {
        let mut params = io_uring_params::default();
        // SAFETY: sets up a new ring.
        let fd = Fd::adopt(unsafe { io_uring_setup(capacity, &mut params)? })?;
        // Before Linux 5.12 the kernel's workers were not threads of the process, which causes
        // problems.
        if !params.features.contains(IoringFeatureFlags::SINGLE_MMAP | IoringFeatureFlags::NATIVE_WORKERS) {
            return Err(Errno::NOSYS);
        }
        let completions = params.cq_off.cqes as usize + params.cq_entries as usize * size_of::<io_uring_cqe>();
        let submissions = params.sq_off.array as usize + params.sq_entries as usize * size_of::<u32>();
        let rings =
            Mapping::new(fd.as_fd(), completions.max(submissions), IORING_OFF_SQ_RING, MapFlags::POPULATE)?;
        let bytes = params.sq_entries as usize * size_of::<io_uring_sqe>();
        let entries = Mapping::new(fd.as_fd(), bytes, IORING_OFF_SQES, MapFlags::POPULATE)?;
        Ok(Self { fd, rings, entries, params })
    }

    /// Number of entries of the largest batch.
    pub fn capacity(&self) -> usize {
        self.params.sq_entries as usize
    }

    /// Runs all entries in parallel and waits for all of them. `completions[i]` becomes the result
    /// of `batch[i]`.
    ///
    /// Returns the number of entries that were started: all of them, or leading ones if the kernel
    /// refuses more (a seccomp filter, no memory). The others had no effect, and their completions
    /// are unchanged. No entry is still running after the call.
    ///
    /// `batch` must not be longer than [`Ring::capacity`], nor `completions` shorter than `batch`.
    ///
    /// # Safety
    /// The descriptors stay open, and no Rust reference to the buffers is alive. The buffers need
    /// not be valid memory.
    pub unsafe fn run(&mut self, batch: &[Entry<'_>], completions: &mut [Completion]) -> usize {
        assert!(batch.len() <= self.capacity() && batch.len() <= completions.len());
        let head = self.rings.word(self.params.sq_off.head);
        let start = head.load(Ordering::Acquire);
        self.push(start, batch);
        let (mut ended, mut tries_left) = (0, 1000);
        loop {
            ended += self.reap(completions);
            let begun = head.load(Ordering::Acquire).wrapping_sub(start) as usize;
            let rest = if tries_left == 0 { 0 } else { batch.len() - begun };
            if ended == begun && rest == 0 {
                self.withdraw();
                return begun;
            }
            let wait = begun + rest - ended;
            // SAFETY: the entries describe files and buffers as the caller has promised.
            match unsafe { io_uring_enter(&self.fd, rest as u32, wait as u32, IoringEnterFlags::GETEVENTS) } {
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN | Errno::BUSY) if tries_left > 1 => tries_left -= 1,
                Err(_) => {
                    tries_left = 0;
                    // The kernel may refuse to wait, too. The buffers are in use until it has
                    // finished with them.
                    let pause = rustix::time::Timespec { tv_sec: 0, tv_nsec: 50_000 };
                    let _ = rustix::thread::nanosleep(&pause);
                }
            }
        }
    }

    /// Writes the entries into the submission queue, whose next position is `start`.
    fn push(&self, start: u32, batch: &[Entry<'_>]) {
        let mask = self.params.sq_entries - 1;
        let array = self.rings.at::<u32>(self.params.sq_off.array);
        let entries = self.entries.at::<io_uring_sqe>(0);
        for (index, entry) in (0u32..).zip(batch) {
            let place = start.wrapping_add(index) & mask;
            // SAFETY: `place` is less than the number of entries. The queue is empty, so the kernel
            // does not read it.
            unsafe {
                entries.add(place as usize).write(submission(entry, index));
                array.add(place as usize).write(place);
            }
        }
        let tail = start.wrapping_add(batch.len() as u32);
        self.rings.word(self.params.sq_off.tail).store(tail, Ordering::Release);
    }

    /// Removes entries that the kernel has not started from the submission queue.
    fn withdraw(&self) {
        let head = self.rings.word(self.params.sq_off.head).load(Ordering::Acquire);
        self.rings.word(self.params.sq_off.tail).store(head, Ordering::Release);
    }

    /// Takes the available completions, and returns their number.
    fn reap(&self, completions: &mut [Completion]) -> usize {
        let offsets = &self.params.cq_off;
        let head = self.rings.word(offsets.head);
        let (first, last) =
            (head.load(Ordering::Relaxed), self.rings.word(offsets.tail).load(Ordering::Acquire));
        let entries = self.rings.at::<io_uring_cqe>(offsets.cqes);
        let count = last.wrapping_sub(first);
        for index in 0..count {
            let place = first.wrapping_add(index) & (self.params.cq_entries - 1);
            // SAFETY: the kernel has filled the entries between head and tail, and does not change
            // them.
            let entry = unsafe { &*entries.add(place as usize) };
            let result = match usize::try_from(entry.res) {
                Ok(done) => Ok(done),
                Err(_) => Err(Errno::from_raw_os_error(-entry.res)),
            };
            completions[entry.user_data.u64_() as usize] = result;
        }
        head.store(last, Ordering::Release);
        count as usize
    }
}

fn submission(entry: &Entry<'_>, index: u32) -> io_uring_sqe {
    let opcode = match entry.action {
        Action::Read => IoringOp::Readv,
        Action::Write => IoringOp::Writev,
        Action::Sync | Action::SyncData => IoringOp::Fsync,
    };
    let fsync_flags = match entry.action {
        Action::SyncData => IoringFsyncFlags::DATASYNC,
        _ => IoringFsyncFlags::empty(),
    };
    // The kernel refuses a sync with an address.
    let vectors = if entry.vectors.is_empty() { std::ptr::null() } else { entry.vectors.as_ptr() };
    let vectors = io_uring_ptr::new(vectors.cast_mut().cast());
    io_uring_sqe {
        opcode,
        fd: entry.fd,
        off_or_addr2: off_or_addr2_union { off: entry.offset },
        addr_or_splice_off_in: addr_or_splice_off_in_union { addr: vectors },
        len: len_union { len: entry.vectors.len() as u32 },
        op_flags: op_flags_union { fsync_flags },
        user_data: io_uring_user_data::from_u64(u64::from(index)),
        ..io_uring_sqe::default()
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd;

    use super::*;

    fn vector(bytes: &mut [u8]) -> IoVec {
        IoVec { base: bytes.as_mut_ptr(), len: bytes.len() }
    }

    /// `None` if io_uring is not permitted.
    fn ring(capacity: u32) -> Option<Ring> {
        match Ring::new(capacity) {
            Ok(ring) => Some(ring),
            Err(error) => {
                eprintln!("io_uring is not available here: {error}");
                None
            }
        }
    }

    #[test]
    fn a_batch_gives_every_entry_its_own_result() {
        let Some(mut ring) = ring(4) else { return };
        let file = tempfile::tempfile().unwrap();
        let fd = file.as_raw_fd();
        let bad = IoVec { base: 16 as *mut u8, len: 8 };
        for round in 0..10u8 {
            let (mut one, mut two) = (vec![round; 5000], vec![round + 100; 3000]);
            let (first, second) = ([vector(&mut one)], [vector(&mut two)]);
            let entry = |vectors, offset, action, fd| Entry { action, fd, vectors, offset };
            let batch = [
                entry(&first[..], 0, Action::Write, fd),
                entry(&second, 5000, Action::Write, fd),
                entry(&[], 0, Action::Sync, -1),
                entry(std::slice::from_ref(&bad), 0, Action::Read, fd),
            ];
            let mut completions = [Ok(0); 4];
            // SAFETY: buffers of this frame.
            assert_eq!(unsafe { ring.run(&batch, &mut completions) }, 4);
            assert_eq!(completions[..3], [Ok(5000), Ok(3000), Err(Errno::BADF)]);
            assert!(matches!(completions[3], Err(Errno::FAULT) | Ok(0)), "{:?}", completions[3]);

            let (mut one, mut two) = (vec![0; 3000], vec![0; 9000]);
            let (first, second) = ([vector(&mut one)], [vector(&mut two)]);
            let batch = [
                entry(&first, 5000, Action::Read, fd),
                entry(&second, 100, Action::Read, fd),
                entry(&[], 0, Action::SyncData, fd),
            ];
            // SAFETY: buffers of this frame.
            assert_eq!(unsafe { ring.run(&batch, &mut completions) }, 3);
            assert_eq!(completions[..3], [Ok(3000), Ok(7900), Ok(0)]);
            assert!(one.iter().all(|&byte| byte == round + 100));
            assert!(two[..4900].iter().all(|&byte| byte == round));
        }
    }

    #[test]
    fn the_rings_descriptor_is_private() {
        let Some(ring) = ring(2) else { return };
        assert!(crate::fd::is_private(ring.fd.as_raw_fd()));
    }
}
