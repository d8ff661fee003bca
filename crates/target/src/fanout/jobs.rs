//! The pieces of a request, gathered into one job per server, and the progress of each job.

use std::os::fd::RawFd;

use stripewise_sys::raw::IOV_MAX;
use stripewise_sys::{Action, Completion, Errno, IoVec, Sys, fd};

/// A list that usually has one or two elements, such as the pieces of a request or their outcomes.
/// Two elements need no heap allocation, which would cost more than the work on them.
pub type Few<T> = smallvec::SmallVec<[T; 2]>;

/// A run of bytes between the caller's memory and one object.
#[derive(Clone, Copy, Debug)]
pub struct Piece {
    /// Object index.
    pub object: u32,
    /// Offset in the object, bytes.
    pub offset: u64,
    /// The caller's memory; need not be valid.
    pub base: *mut u8,
    /// Length, bytes.
    pub len: usize,
}

/// The result for a piece.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Bytes transferred, from the piece's start on.
    pub done: usize,
    /// Why the transfer is incomplete. `None` with `done < len` is the end of the object (reads) or
    /// a device that accepts no more.
    pub error: Option<Errno>,
}

/// One vectored transfer on one object (or its sync), continued until it is complete, reaches the
/// end, or fails.
#[derive(Debug)]
pub(super) struct Job<'a> {
    pub action: Action,
    pub fd: RawFd,
    pub object: u32,
    /// Offset in the object at which the job began, bytes.
    pub offset: u64,
    /// Total length, bytes.
    pub len: u64,
    /// The remaining vectors; the first one is cut as bytes are transferred.
    vectors: &'a mut [IoVec],
    pub done: u64,
    pub error: Option<Errno>,
    pub finished: bool,
}

impl<'a> Job<'a> {
    /// A transfer of all vectors; without a descriptor it has already failed.
    pub fn transfer(
        action: Action,
        fd: Result<RawFd, Errno>,
        object: u32,
        offset: u64,
        vectors: &'a mut [IoVec],
    ) -> Self {
        let len = vectors.iter().map(|vector| vector.len as u64).sum();
        let finished = len == 0 || fd.is_err();
        let (error, fd) = (fd.err(), fd.unwrap_or(-1));
        Self { action, fd, object, offset, len, vectors, done: 0, error, finished }
    }

    /// The sync of an object.
    pub fn sync(action: Action, fd: Result<RawFd, Errno>, object: u32) -> Self {
        let finished = fd.is_err();
        Self { finished, ..Self::transfer(action, fd, object, 0, &mut []) }
    }

    /// The vectors of the next system call.
    pub fn next_vectors(&self) -> &[IoVec] {
        &self.vectors[..self.vectors.len().min(IOV_MAX)]
    }

    /// The offset of the next system call.
    pub fn next_offset(&self) -> u64 {
        self.offset + self.done
    }

    /// Accounts for the result of a system call.
    pub fn advance(&mut self, result: Completion) {
        match result {
            // An interruptible network file system.
            Err(Errno::INTR) => return,
            Err(errno) => self.error = Some(errno),
            Ok(done) => self.consume(done),
        }
        self.finished = self.error.is_some() || result == Ok(0) || self.vectors.is_empty();
    }

    fn consume(&mut self, mut bytes: usize) {
        self.done += bytes as u64;
        let mut vectors = std::mem::take(&mut self.vectors);
        while let Some(first) = vectors.first_mut() {
            if first.len > bytes {
                first.base = first.base.wrapping_add(bytes);
                first.len -= bytes;
                break;
            }
            bytes -= first.len;
            vectors = &mut vectors[1..];
        }
        self.vectors = vectors;
    }

    /// Runs the job in the calling thread.
    ///
    /// # Safety
    /// The descriptor is open; the caller of the fan-out vouches for the memory.
    pub unsafe fn run(&mut self, sys: &dyn Sys) {
        while !self.finished {
            // SAFETY: as promised by the caller.
            let result = unsafe { self.call(sys) };
            self.advance(result);
        }
    }

    /// Reads as many bytes as the page cache holds. Returns whether that finished the job;
    /// EOPNOTSUPP where the file system cannot tell.
    ///
    /// # Safety
    /// As [`Job::run`].
    pub unsafe fn run_cached(&mut self, sys: &dyn Sys) -> Result<bool, Errno> {
        while !self.finished {
            // SAFETY: as promised by the caller.
            let result =
                unsafe { sys.preadv_cached(fd::borrow(self.fd), self.next_vectors(), self.next_offset()) };
            match result {
                Err(Errno::OPNOTSUPP) => return Err(Errno::OPNOTSUPP),
                // Any other error recurs in the next attempt, which reports it.
                Err(_) => return Ok(false),
                Ok(_) => self.advance(result),
            }
        }
        Ok(true)
    }

    /// # Safety
    /// As [`Job::run`].
    unsafe fn call(&self, sys: &dyn Sys) -> Completion {
        // SAFETY: as promised by the caller.
        unsafe {
            let fd = fd::borrow(self.fd);
            match (self.action, self.next_vectors()) {
                (Action::Sync, _) => sys.sync(fd).map(|()| 0),
                (Action::SyncData, _) => sys.sync_data(fd).map(|()| 0),
                (Action::Read, [one]) => sys.pread(fd, one.base, one.len, self.next_offset()),
                (Action::Write, [one]) => sys.pwrite(fd, one.base, one.len, self.next_offset()),
                (Action::Read, vectors) => sys.preadv(fd, vectors, self.next_offset()),
                (Action::Write, vectors) => sys.pwritev(fd, vectors, self.next_offset()),
            }
        }
    }
}

/// The memory behind a request's jobs: the job of each piece, and the vectors of the jobs.
#[derive(Debug, Default)]
pub(super) struct Gathered {
    /// The job of piece `n`.
    job_of: Vec<u32>,
    /// The vectors of all jobs, grouped by job, in the order of the job's pieces.
    vectors: Vec<IoVec>,
    /// Per job: object, offset, bytes, number of vectors.
    heads: Vec<(u32, u64, u64, usize)>,
}

impl Gathered {
    /// A piece that starts where an earlier piece of the same object ended joins that piece's job.
    pub fn new(pieces: &[Piece]) -> Self {
        let mut gathered = Self::default();
        for piece in pieces {
            let job = gathered.job_for(piece);
            gathered.job_of.push(job as u32);
        }
        gathered.place(pieces);
        gathered
    }

    fn job_for(&mut self, piece: &Piece) -> usize {
        let last = self.heads.iter().rposition(|&(object, ..)| object == piece.object);
        if let Some(job) = last {
            let (_, offset, len, vectors) = &mut self.heads[job];
            if offset.checked_add(*len) == Some(piece.offset) {
                *len += piece.len as u64;
                *vectors += 1;
                return job;
            }
        }
        self.heads.push((piece.object, piece.offset, piece.len as u64, 1));
        self.heads.len() - 1
    }

    fn place(&mut self, pieces: &[Piece]) {
        let mut next = Vec::with_capacity(self.heads.len());
        let mut total = 0;
        for &(.., vectors) in &self.heads {
            next.push(total);
            total += vectors;
        }
        self.vectors = vec![IoVec { base: std::ptr::null_mut(), len: 0 }; total];
        for (piece, &job) in pieces.iter().zip(&self.job_of) {
            let place = &mut next[job as usize];
            self.vectors[*place] = IoVec { base: piece.base, len: piece.len };
            *place += 1;
        }
    }

    /// Adds the jobs to those of other sets. `fd_of` gives the descriptor of an object.
    pub fn add_jobs<'a>(
        &'a mut self,
        jobs: &mut Vec<Job<'a>>,
        action: Action,
        mut fd_of: impl FnMut(u32) -> Result<RawFd, Errno>,
    ) {
        jobs.reserve(self.heads.len());
        let mut rest = self.vectors.as_mut_slice();
        for &(object, offset, _, count) in &self.heads {
            let (vectors, others) = rest.split_at_mut(count);
            rest = others;
            jobs.push(Job::transfer(action, fd_of(object), object, offset, vectors));
        }
    }

    /// Distributes the bytes that the jobs have transferred, in order, over their pieces.
    pub fn outcomes(&self, pieces: &[Piece], ends: &[(u64, Option<Errno>)]) -> Few<Outcome> {
        let mut left: Vec<u64> = ends.iter().map(|&(done, _)| done).collect();
        let outcome = |(piece, &job): (&Piece, &u32)| {
            let left = &mut left[job as usize];
            let done = (piece.len as u64).min(*left);
            *left -= done;
            let error = if done < piece.len as u64 { ends[job as usize].1 } else { None };
            Outcome { done: done as usize, error }
        };
        pieces.iter().zip(&self.job_of).map(outcome).collect()
    }
}
