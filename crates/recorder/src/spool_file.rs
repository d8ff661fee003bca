//! The spool's files. They are open only while they are extended or appended to.

use std::ffi::CStr;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::ptr::NonNull;
use std::slice;
use std::sync::atomic::Ordering;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::process::{Resource, getpid, getrlimit};
use rustix::time::ClockId;
use stripewise_sys::Fd;
use stripewise_trace::spool::{
    BlockHeader, HEADER_BYTES, Header, LIVE, LOG, MAGIC, STEM_BYTES, WINDOW_BYTES, Window,
};

use crate::clock::ns;
use crate::memory::{self, Bytes};
use crate::state::{Fixed, Job, Paths, Refused, Spool};

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Makes the spool of the calling process. On entry `paths` has the names of the parent's spool, if
/// the parent is recorded; they are replaced by those of the new one.
pub fn create(fixed: &Fixed, job: Job, paths: &mut Paths) -> Result<NonNull<Header>> {
    let pid = getpid().as_raw_nonzero().get() as u32;
    let start = fixed.clock.moment();
    let start_realtime_ns = ns(ClockId::Realtime);
    let parent = paths.stem;
    let mut stem = Bytes::cut(fixed.host.get());
    let whole = stem.push(b"-")
        && stem.push_number(pid.into())
        && stem.push(b"-")
        && stem.push_number(start_realtime_ns);
    debug_assert!(whole, "STEM_BYTES leaves room for two numbers");
    *paths = Paths { stem, live: path(fixed, &stem, LIVE)?, log: path(fixed, &stem, LOG)? };

    let mut header = Header {
        magic: MAGIC,
        pid,
        rank: job.rank,
        clock: fixed.clock as u32,
        ranks: job.ranks,
        start,
        start_realtime_ns,
        spooled_bytes: 0,
        dropped_limit: 0,
        dropped_failed: 0,
        failure: 0,
        lost_children: 0,
        host_len: fixed.host.get().len() as u32,
        program_len: fixed.program.get().len() as u32,
        parent_len: parent.get().len() as u32,
        node: job.node,
        host: [0; _],
        program: [0; _],
        parent: [0; _],
    };
    header.host[..fixed.host.get().len()].copy_from_slice(fixed.host.get());
    header.program[..fixed.program.get().len()].copy_from_slice(fixed.program.get());
    header.parent[..parent.get().len()].copy_from_slice(parent.get());

    let mut page = [0; HEADER_BYTES];
    // SAFETY: the struct has no padding, and is shorter than a page.
    let bytes = unsafe { slice::from_raw_parts((&raw const header).cast::<u8>(), size_of::<Header>()) };
    page[..bytes.len()].copy_from_slice(bytes);
    let fd = open(&paths.live, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
    grow(&fd, 0, &page)?;
    memory::shared(fd.as_fd(), 0)
}

/// The path of one of a spool's files, terminated by a 0 byte.
fn path<const N: usize>(fixed: &Fixed, stem: &Bytes<STEM_BYTES>, extension: &str) -> Result<Bytes<N>> {
    let mut path = Bytes::EMPTY;
    let parts = [fixed.dir.get(), b"/", stem.get(), b".", extension.as_bytes(), b"\0"];
    if parts.into_iter().all(|part| path.push(part)) { Ok(path) } else { Err(Errno::NAMETOOLONG) }
}

fn open<const N: usize>(path: &Bytes<N>, flags: OFlags) -> Result<Fd> {
    let path = CStr::from_bytes_with_nul(path.get()).map_err(|_| Errno::INVAL)?;
    Fd::adopt(retry_on_intr(|| fs::open(path, flags | OFlags::CLOEXEC | OFlags::NOFOLLOW, OWNER_ONLY))?)
}

/// Whether RLIMIT_FSIZE permits a file of this size. (Beyond it the kernel would send a fatal
/// signal.)
fn may_grow_to(bytes: u64) -> bool {
    getrlimit(Resource::Fsize).current.is_none_or(|limit| bytes <= limit)
}

/// Writes all of `bytes`, so that memory that is mapped there later has space on the disk.
/// Otherwise a full disk would cause a fatal signal.
fn grow(fd: &Fd, offset: u64, bytes: &[u8]) -> Result<()> {
    if !may_grow_to(offset + bytes.len() as u64) {
        return Err(Errno::FBIG);
    }
    let mut done = 0;
    while done < bytes.len() {
        match retry_on_intr(|| rustix::io::pwrite(fd, &bytes[done..], offset + done as u64))? {
            0 => return Err(Errno::NOSPC),
            n => done += n,
        }
    }
    Ok(())
}

impl Spool<'_> {
    /// Makes window number `index`, empty.
    pub fn make_window(self, index: usize) -> core::result::Result<NonNull<Window>, Refused> {
        static ZEROS: [u8; WINDOW_BYTES] = [0; WINDOW_BYTES];
        self.reserve(WINDOW_BYTES as u64)?;
        let offset = (HEADER_BYTES + index * WINDOW_BYTES) as u64;
        let window = || {
            let fd = open(&self.paths().live, OFlags::RDWR)?;
            grow(&fd, offset, &ZEROS)?;
            memory::shared(fd.as_fd(), offset)
        };
        window().map_err(Refused::Failed)
    }

    /// Appends a block to the log in one piece, even if other threads append at the same time.
    pub fn append(self, header: &BlockHeader, payload: &[u8]) -> core::result::Result<(), Refused> {
        let bytes = size_of::<BlockHeader>() + payload.len();
        if self.state.log_broken.load(Ordering::Relaxed) != 0 {
            return Err(Refused::Failed(Errno::NOSPC));
        }
        self.reserve(bytes as u64)?;
        let written = self.append_bytes(header, payload).map_err(Refused::Failed)?;
        if written < bytes {
            self.state.log_broken.store(1, Ordering::Relaxed);
            return Err(Refused::Failed(Errno::NOSPC));
        }
        Ok(())
    }

    fn append_bytes(self, header: &BlockHeader, payload: &[u8]) -> Result<usize> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        let fd = open(&self.paths().log, flags)?;
        let bytes = size_of::<BlockHeader>() + payload.len();
        if !may_grow_to(fs::fstat(&fd)?.st_size as u64 + bytes as u64) {
            return Err(Errno::FBIG);
        }
        // SAFETY: the struct has no padding.
        let header =
            unsafe { slice::from_raw_parts((&raw const *header).cast::<u8>(), size_of::<BlockHeader>()) };
        retry_on_intr(|| rustix::io::writev(&fd, &[IoSlice::new(header), IoSlice::new(payload)]))
    }
}
