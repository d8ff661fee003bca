//! A process that uses an observed disk.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use stripewise_sys::{
    Dir, Errno, Fd, IoVec, Kind, Listed, LockKind, Mode, OFlags, Real, Result, SeekFrom, SharedMap, Stat,
    StatVfs, Sys, Timestamps,
};

use super::bytes::Change;
use super::disk::{Disk, Inode, NodeNumber, State};
use stripewise_random::Random;

/// The error of all calls of a process that has died.
pub const DEAD: Errno = Errno::OWNERDEAD;

/// A process with faults. See the [module](super).
#[derive(Debug)]
pub struct Faulty {
    disk: Arc<Disk>,
    plan: Mutex<Plan>,
}

#[derive(Debug)]
struct Plan {
    random: Random,
    calls: u64,
    crash_at: Option<u64>,
    faults: Vec<Fault>,
    /// Number of short transfers per 1000.
    short: u64,
    /// The calls so far, for messages of tests.
    log: Vec<String>,
}

#[derive(Debug)]
struct Fault {
    call: &'static str,
    path: String,
    errno: Errno,
    times: u64,
}

/// The decision about a call.
enum Verdict {
    Go,
    /// A transfer of only this number of bytes.
    Cut(usize),
    /// The process dies in a write, after this number of bytes.
    DieAfter(usize),
    Fail(Errno),
}

impl Faulty {
    /// A process without faults. The seed determines the lengths of short transfers and the loss of
    /// a failed fsync.
    pub fn new(disk: &Arc<Disk>, seed: u64) -> Arc<Self> {
        let plan = Plan {
            random: Random(seed),
            calls: 0,
            crash_at: None,
            faults: Vec::new(),
            short: 0,
            log: Vec::new(),
        };
        Arc::new(Self { disk: disk.clone(), plan: Mutex::new(plan) })
    }

    /// Number of calls so far (without clocks, random bytes and messages).
    pub fn calls(&self) -> u64 {
        self.plan().calls
    }

    /// The calls so far, one line each.
    pub fn log(&self) -> Vec<String> {
        self.plan().log.clone()
    }

    /// Makes the process die in place of its call number `call`, counted from 0.
    pub fn crash_at(&self, call: u64) {
        self.plan().crash_at = Some(call);
    }

    /// Whether the process has died.
    pub fn is_dead(&self) -> bool {
        let plan = self.plan();
        plan.crash_at.is_some_and(|crash_at| plan.calls > crash_at)
    }

    /// Makes the next `times` calls named `call` fail if their path contains `path`. Names are
    /// `open`, `pread`, `pwrite`, `ftruncate`, `fallocate`, `fsync`, `stat`, `link`, `rename`,
    /// `unlink`, `mkdir`, `rmdir`, `list`, `lock`, `utimens`, `chmod`, `chown`, `getxattr`,
    /// `setxattr`, and so on; `*` matches any call.
    pub fn fail(&self, call: &'static str, path: &str, errno: Errno, times: u64) {
        self.plan().faults.push(Fault { call, path: path.to_owned(), errno, times });
    }

    /// Makes `per_1000` of 1000 reads and writes short.
    pub fn shorten(&self, per_1000: u64) {
        self.plan().short = per_1000;
    }

    fn plan(&self) -> MutexGuard<'_, Plan> {
        self.plan.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Counts a call and decides its outcome.
    fn begin(&self, call: &'static str, path: &Path, len: Option<usize>) -> Verdict {
        let mut plan = self.plan();
        let number = plan.calls;
        plan.calls += 1;
        plan.log.push(format!("{number} {call} {}", path.display()));
        if let Some(crash_at) = plan.crash_at.filter(|&crash_at| number >= crash_at) {
            return match len {
                Some(len) if number == crash_at && call == "pwrite" && len > 0 => {
                    Verdict::DieAfter(plan.random.below(len as u64) as usize)
                }
                _ => Verdict::Fail(DEAD),
            };
        }
        let text = path.to_string_lossy();
        let hit = |fault: &&mut Fault| {
            fault.times > 0 && (fault.call == call || fault.call == "*") && text.contains(&fault.path)
        };
        if let Some(fault) = plan.faults.iter_mut().find(hit) {
            fault.times -= 1;
            return Verdict::Fail(fault.errno);
        }
        match len {
            Some(len) if len > 1 && plan.random.below(1000) < plan.short => {
                Verdict::Cut(1 + plan.random.below(len as u64 - 1) as usize)
            }
            _ => Verdict::Go,
        }
    }

    /// As [`Faulty::begin`], for a call that is not a transfer.
    fn allow(&self, call: &'static str, path: &Path) -> Result<()> {
        match self.begin(call, path, None) {
            Verdict::Fail(errno) => Err(errno),
            _ => Ok(()),
        }
    }

    fn allow_fd(&self, call: &'static str, fd: BorrowedFd<'_>) -> Result<()> {
        self.allow(call, &path_of(fd))
    }

    fn allow_kind(&self, call: &'static str, of: Kind<'_>) -> Result<()> {
        match of {
            Kind::Open(fd) => self.allow_fd(call, fd),
            Kind::Named(_, path) => self.allow(call, path),
        }
    }

    /// Transfers `vectors`, or as many of their leading bytes as allowed.
    ///
    /// # Safety
    /// As [`Sys::preadv`] or [`Sys::pwritev`].
    unsafe fn transfer(
        &self,
        write: bool,
        fd: BorrowedFd<'_>,
        vectors: &[IoVec],
        offset: u64,
    ) -> Result<usize> {
        let len = vectors.iter().map(|vector| vector.len).sum();
        let call = if write { "pwrite" } else { "pread" };
        let (part, dies) = match self.begin(call, &path_of(fd), Some(len)) {
            Verdict::Go => (len, false),
            Verdict::Cut(part) => (part, false),
            Verdict::DieAfter(part) => (part, true),
            Verdict::Fail(errno) => return Err(errno),
        };
        let vectors = leading(vectors, part);
        let mut state = self.disk.state();
        // SAFETY: as the caller promises.
        let done = unsafe {
            if write { Real.pwritev(fd, &vectors, offset)? } else { Real.preadv(fd, &vectors, offset)? }
        };
        if write && let Some(node) = node_of(&state, fd) {
            // SAFETY: the kernel has just read these bytes.
            let data = unsafe { copy(&leading(&vectors, done)) };
            if !data.is_empty() {
                state.content_changed(node, Change::Write { offset, data });
            }
        }
        if dies { Err(DEAD) } else { Ok(done) }
    }

    /// Opens a file with `open`, and informs the disk.
    fn opened(
        &self,
        dir: Dir<'_>,
        path: &Path,
        flags: OFlags,
        open: impl FnOnce() -> Result<Fd>,
    ) -> Result<Fd> {
        self.allow("open", path)?;
        let mut state = self.disk.state();
        let place = place(&state, dir, path);
        let existed = Real.stat_at(dir, path, true).is_ok();
        let fd = open()?;
        if let Some((directory, name)) = place.filter(|_| !existed && flags.contains(OFlags::CREATE)) {
            let stat = Real.stat(fd.as_fd())?;
            state.created(directory, &name, inode(&stat), stat.st_mode, false);
        } else if flags.contains(OFlags::TRUNC)
            && let Some(node) = node_of(&state, fd.as_fd())
        {
            state.content_changed(node, Change::Size(0));
        }
        Ok(fd)
    }

    fn sync_file(&self, fd: BorrowedFd<'_>) -> Result<()> {
        let allowed = self.allow_fd("fsync", fd);
        let mut state = self.disk.state();
        let Some(node) = node_of(&state, fd) else { return allowed };
        match allowed {
            Ok(()) => state.synced(node, self.disk.journal()),
            Err(DEAD) => {}
            Err(_) => state.sync_failed(node, &mut self.plan().random),
        }
        allowed
    }
}

/// The path of a descriptor in /proc, for messages and faults.
fn path_of(fd: BorrowedFd<'_>) -> PathBuf {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default()
}

fn inode(stat: &Stat) -> Inode {
    (stat.st_dev, stat.st_ino)
}

fn node_of(state: &State, fd: BorrowedFd<'_>) -> Option<NodeNumber> {
    state.node(inode(&Real.stat(fd).ok()?))
}

/// The directory on the disk, and the name in it, that a path refers to.
fn place(state: &State, dir: Dir<'_>, path: &Path) -> Option<(NodeNumber, OsString)> {
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let directory = state.node(inode(&Real.stat_at(dir, parent, true).ok()?))?;
    Some((directory, path.file_name()?.to_owned()))
}

/// Records that the name `old` was removed, the name `new` was added, or both.
fn renamed(
    state: &mut State,
    old: Option<(NodeNumber, OsString)>,
    new: Option<(NodeNumber, OsString)>,
    node: Option<NodeNumber>,
) {
    let gone = old.map(|(directory, name)| (directory, name, None));
    let come = new.map(|(directory, name)| (directory, name, node));
    state.names_changed(gone.into_iter().chain(come).collect());
}

fn record_rename(state: &mut State, old: (Dir<'_>, &Path), new: (Dir<'_>, &Path)) -> Result<()> {
    // If both names are links of one file, rename(2) changes nothing.
    if Real.stat_at(old.0, old.1, false).is_err() {
        let node = state.node(inode(&Real.stat_at(new.0, new.1, false)?));
        let (old, new) = (place(state, old.0, old.1), place(state, new.0, new.1));
        renamed(state, old, new, node);
    }
    Ok(())
}

fn leading(vectors: &[IoVec], mut len: usize) -> Vec<IoVec> {
    let cut = |vector: &IoVec| {
        let part = vector.len.min(len);
        len -= part;
        IoVec { base: vector.base, len: part }
    };
    vectors.iter().map(cut).collect()
}

/// # Safety
/// The vectors are readable.
unsafe fn copy(vectors: &[IoVec]) -> Vec<u8> {
    let mut data = Vec::new();
    for vector in vectors.iter().filter(|vector| vector.len > 0) {
        // SAFETY: as the caller promises.
        data.extend_from_slice(unsafe { std::slice::from_raw_parts(vector.base, vector.len) });
    }
    data
}

impl Sys for Faulty {
    crate::without_features!();

    crate::intercept! {
        allow_fd("lseek", fd) fn seek(fd: BorrowedFd<'_>, to: SeekFrom) -> u64;
        allow_fd("stat", fd) fn stat(fd: BorrowedFd<'_>) -> Stat;
        allow("stat", path) fn stat_at(dir: Dir<'_>, path: &Path, follow: bool) -> Stat;
        allow_fd("statvfs", fd) fn stat_fs(fd: BorrowedFd<'_>) -> StatVfs;
        allow("readlink", path) fn read_link(dir: Dir<'_>, path: &Path) -> OsString;
        allow_fd("list", dir) fn list(dir: BorrowedFd<'_>) -> Vec<Listed>;
        allow_fd("lock", fd) fn lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> ();
        allow_fd("lock", fd) fn try_lock(fd: BorrowedFd<'_>, start: u64, len: u64, kind: LockKind) -> bool;
        allow_fd("unlock", fd) fn unlock(fd: BorrowedFd<'_>, start: u64, len: u64) -> ();
        allow_kind("utimens", of) fn set_times(of: Kind<'_>, times: &Timestamps) -> ();
        allow_kind("chown", of) fn set_owner(of: Kind<'_>, user: Option<u32>, group: Option<u32>) -> ();
        allow_kind("getxattr", of) fn xattr(of: Kind<'_>, name: &OsStr) -> Vec<u8>;
        allow_kind("listxattr", of) fn list_xattr(of: Kind<'_>) -> Vec<OsString>;
        allow_kind("setxattr", of) fn set_xattr(of: Kind<'_>, name: &OsStr, value: &[u8]) -> ();
        allow_kind("removexattr", of) fn remove_xattr(of: Kind<'_>, name: &OsStr) -> ();
        allow_fd("mmap", fd) fn map_shared(fd: BorrowedFd<'_>, words: usize) -> SharedMap;
    }

    fn is_real(&self) -> bool {
        false
    }

    fn sync_file_system(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync(fd)
    }

    fn is_open_elsewhere(&self, _fd: BorrowedFd<'_>) -> Result<bool> {
        Err(Errno::OPNOTSUPP)
    }

    fn allocate(&self, fd: BorrowedFd<'_>, offset: u64, len: u64, keep_size: bool) -> Result<()> {
        if keep_size { Ok(()) } else { self.grow(fd, offset.saturating_add(len)) }
    }

    fn open(&self, dir: Dir<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        self.opened(dir, path, flags, || Real.open(dir, path, flags, mode))
    }

    fn open_beneath(&self, dir: BorrowedFd<'_>, path: &Path, flags: OFlags, mode: Mode) -> Result<Fd> {
        self.opened(Some(dir), path, flags, || Real.open_beneath(dir, path, flags, mode))
    }

    fn stat_beneath(&self, dir: BorrowedFd<'_>, path: &Path) -> Result<Stat> {
        self.stat(self.open_beneath(dir, path, OFlags::PATH, Mode::empty())?.as_fd())
    }

    unsafe fn pread(&self, fd: BorrowedFd<'_>, buffer: *mut u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { self.transfer(false, fd, &[IoVec { base: buffer, len }], offset) }
    }

    unsafe fn pwrite(&self, fd: BorrowedFd<'_>, buffer: *const u8, len: usize, offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { self.transfer(true, fd, &[IoVec { base: buffer.cast_mut(), len }], offset) }
    }

    unsafe fn preadv(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { self.transfer(false, fd, vectors, offset) }
    }

    unsafe fn pwritev(&self, fd: BorrowedFd<'_>, vectors: &[IoVec], offset: u64) -> Result<usize> {
        // SAFETY: as the caller promises.
        unsafe { self.transfer(true, fd, vectors, offset) }
    }

    fn truncate(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        self.allow_fd("ftruncate", fd)?;
        let mut state = self.disk.state();
        Real.truncate(fd, size)?;
        if let Some(node) = node_of(&state, fd) {
            state.content_changed(node, Change::Size(size));
        }
        Ok(())
    }

    fn grow(&self, fd: BorrowedFd<'_>, size: u64) -> Result<()> {
        self.allow_fd("fallocate", fd)?;
        let mut state = self.disk.state();
        Real.grow(fd, size)?;
        if let Some(node) = node_of(&state, fd) {
            state.content_changed(node, Change::Grow(size));
        }
        Ok(())
    }

    fn punch_hole(&self, fd: BorrowedFd<'_>, offset: u64, len: u64) -> Result<()> {
        self.allow_fd("fallocate", fd)?;
        let mut state = self.disk.state();
        Real.punch_hole(fd, offset, len)?;
        if let Some(node) = node_of(&state, fd) {
            state.content_changed(node, Change::Zero { offset, len });
        }
        Ok(())
    }

    fn sync(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync_file(fd)
    }

    fn sync_data(&self, fd: BorrowedFd<'_>) -> Result<()> {
        self.sync_file(fd)
    }

    fn link(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        self.allow("link", new)?;
        let mut state = self.disk.state();
        Real.link(old_dir, old, new_dir, new)?;
        let node = state.node(inode(&Real.stat_at(new_dir, new, false)?));
        let new = place(&state, new_dir, new);
        renamed(&mut state, None, new, node);
        Ok(())
    }

    fn rename(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        self.allow("rename", new)?;
        let mut state = self.disk.state();
        Real.rename(old_dir, old, new_dir, new)?;
        record_rename(&mut state, (old_dir, old), (new_dir, new))
    }

    fn rename_noreplace(&self, old_dir: Dir<'_>, old: &Path, new_dir: Dir<'_>, new: &Path) -> Result<()> {
        self.allow("rename", new)?;
        let mut state = self.disk.state();
        Real.rename_noreplace(old_dir, old, new_dir, new)?;
        record_rename(&mut state, (old_dir, old), (new_dir, new))
    }

    fn unlink(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        self.allow("unlink", path)?;
        let mut state = self.disk.state();
        Real.unlink(dir, path)?;
        let old = place(&state, dir, path);
        renamed(&mut state, old, None, None);
        Ok(())
    }

    fn mkdir(&self, dir: Dir<'_>, path: &Path, mode: Mode) -> Result<()> {
        self.allow("mkdir", path)?;
        let mut state = self.disk.state();
        Real.mkdir(dir, path, mode)?;
        let stat = Real.stat_at(dir, path, false)?;
        if let Some((directory, name)) = place(&state, dir, path) {
            state.created(directory, &name, inode(&stat), stat.st_mode, true);
        }
        Ok(())
    }

    fn rmdir(&self, dir: Dir<'_>, path: &Path) -> Result<()> {
        self.allow("rmdir", path)?;
        let mut state = self.disk.state();
        Real.rmdir(dir, path)?;
        let old = place(&state, dir, path);
        renamed(&mut state, old, None, None);
        Ok(())
    }

    fn set_mode(&self, of: Kind<'_>, mode: Mode) -> Result<()> {
        self.allow_kind("chmod", of)?;
        let mut state = self.disk.state();
        Real.set_mode(of, mode)?;
        let stat = match of {
            Kind::Open(fd) => Real.stat(fd)?,
            Kind::Named(dir, path) => Real.stat_at(dir, path, true)?,
        };
        if let Some(node) = state.node(inode(&stat)) {
            state.mode_changed(node, stat.st_mode);
        }
        Ok(())
    }

    fn random(&self, buffer: &mut [u8]) -> Result<()> {
        for byte in buffer {
            *byte = self.plan().random.next_u64() as u8;
        }
        Ok(())
    }
}
