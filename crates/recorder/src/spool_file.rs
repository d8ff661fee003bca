//! The spool's files. They are open only while they are extended or appended to.

use std::ffi::CStr;
use std::fmt::Write;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::path::Path;
use std::ptr::NonNull;
use std::slice;

use rustix::fs::{self, Mode, OFlags};
use rustix::io::{Errno, Result, retry_on_intr};
use rustix::process::{Resource, getpid, getrlimit};
use rustix::time::ClockId;
use stripewise_sys::Fd;
use stripewise_trace::spool::{
    BLOCK_MAGIC, BlockHeader, HEADER_BYTES, HOST_BYTES, Header, Instant, LIVE, LOG, MAGIC, PROGRAM_BYTES,
    STEM_BYTES, WINDOW_BYTES, Window,
};

use crate::clock::{Clock, Ticks, ns};
use crate::memory::{self, Bytes};

/// Largest length of the directory's path and of each list of patterns, bytes.
pub const TEXT_BYTES: usize = 4096;

/// Largest length of a path in the directory, bytes.
const PATH_BYTES: usize = TEXT_BYTES + STEM_BYTES + 16;

/// The names of a spool, made in advance so that an append needs little stack: it may run on the
/// small stack of a signal handler.
pub struct Paths {
    pub stem: Bytes<STEM_BYTES>,
    /// Terminated by a 0 byte.
    pub live: Bytes<PATH_BYTES>,
    /// Terminated by a 0 byte.
    pub log: Bytes<PATH_BYTES>,
}

/// Values that forked children share.
pub struct Fixed {
    pub clock: Clock,
    /// Start of the recorder.
    pub started: Ticks,
    pub limit_bytes: u64,
    pub dir: Bytes<TEXT_BYTES>,
    pub only: Bytes<TEXT_BYTES>,
    pub exclude: Bytes<TEXT_BYTES>,
    /// The directory for temporary files in addition to `/tmp`.
    pub temporary: Bytes<TEXT_BYTES>,
    pub host: Bytes<HOST_BYTES>,
    pub program: Bytes<PROGRAM_BYTES>,
}

/// The process's place in its job, as the spool's header stores it.
#[derive(Clone, Copy)]
pub struct Job {
    /// -1 if not known.
    pub rank: i32,
    /// 0 if not known.
    pub ranks: u32,
    /// 1 + the index of the node; 0 if not known.
    pub node: u32,
}

const OWNER_ONLY: Mode = Mode::RUSR.union(Mode::WUSR);

/// Makes the spool of the calling process. On entry `paths` has the names of the parent's spool, if
/// the parent is recorded; they are replaced by those of the new one.
pub fn create(fixed: &Fixed, job: Job, paths: &mut Paths) -> Result<NonNull<Header>> {
    let pid = getpid().as_raw_nonzero().get() as u32;
    let start = fixed.clock.moment();
    let start_realtime_ns = ns(ClockId::Realtime);
    let parent = paths.stem;
    let mut stem = Bytes::cut(fixed.host.get());
    let written = write!(stem, "-{pid}-{start_realtime_ns}");
    debug_assert!(written.is_ok(), "STEM_BYTES leaves room for two numbers");
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
    page[..size_of::<Header>()].copy_from_slice(bytes_of(&header));
    let fd = open(&paths.live, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL)?;
    grow(&fd, 0, &page)?;
    memory::shared(fd.as_fd(), 0).inspect_err(|errno| {
        // The merged trace says that this process is missing. If this fails, too, nothing can.
        header.failure = errno.raw_os_error() as u32;
        let _ = rustix::io::pwrite(&fd, bytes_of(&header), 0);
    })
}

/// Does in a directory what [`create`] does: makes a file and maps it.
///
/// # Errors
/// As open(2), pwrite(2) and mmap(2): ENODEV where files cannot be mapped shared.
pub fn probe(dir: &Path) -> Result<()> {
    let path = dir.join(format!("probe-{}", getpid().as_raw_nonzero()));
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = Fd::adopt(fs::open(&path, flags, OWNER_ONLY)?)?;
    let mapped = grow(&fd, 0, &[0; HEADER_BYTES]).and_then(|()| memory::shared::<Header>(fd.as_fd(), 0));
    fs::unlink(&path)?;
    mapped.map(drop)
}

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

/// Makes window number `index`, empty.
pub fn make_window(paths: &Paths, index: usize) -> Result<NonNull<Window>> {
    static ZEROS: [u8; WINDOW_BYTES] = [0; WINDOW_BYTES];
    let offset = (HEADER_BYTES + index * WINDOW_BYTES) as u64;
    let fd = open(&paths.live, OFlags::RDWR)?;
    grow(&fd, offset, &ZEROS)?;
    memory::shared(fd.as_fd(), offset)
}

/// The header of a block with this payload; the fields for records are empty.
pub fn block(kind: u32, number: u32, payload: &[u8]) -> BlockHeader {
    let payload_bytes = payload.len() as u32;
    let moment = Instant::default();
    BlockHeader { magic: BLOCK_MAGIC, kind, payload_bytes, number, first: 0, moment, tid: 0, reserved: 0 }
}

/// Appends a block to the log in one call. Returns the number of bytes written.
pub fn append(paths: &Paths, header: &BlockHeader, payload: &[u8]) -> Result<usize> {
    let fd = open(&paths.log, OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE)?;
    let bytes = size_of::<BlockHeader>() + payload.len();
    if !may_grow_to(fs::fstat(&fd)?.st_size as u64 + bytes as u64) {
        return Err(Errno::FBIG);
    }
    retry_on_intr(|| rustix::io::writev(&fd, &[IoSlice::new(bytes_of(header)), IoSlice::new(payload)]))
}

/// The bytes of a structure of the spool, or of several.
pub fn bytes_of<T: ?Sized>(structure: &T) -> &[u8] {
    // SAFETY: the structures of the spool have no padding.
    unsafe { slice::from_raw_parts(std::ptr::from_ref(structure).cast::<u8>(), size_of_val(structure)) }
}
