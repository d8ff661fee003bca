//! A thin, safe wrapper of the part of LMDB that the index needs.
//!
//! The crate `heed` is not used because it keeps a process-wide registry of open environments
//! behind a lock. A forked child must leave its parent's environment alone, so with `heed` it could
//! not open one of its own. Here a child forgets the parent's environment ([`Env::abandon`]) and
//! opens a new one.
//!
//! This module keeps the following rules of LMDB for its callers. A process opens an environment at
//! most once, because closing a second one would drop the POSIX locks of the first. Transactions of
//! one thread do not nest. Only the process that opened an environment closes it.

mod txn;

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Weak};

use lmdb_master_sys as ffi;
use stripewise_sys::{Errno, ForkLock, Mode, OFlags, SysRef, fd};

pub(crate) use txn::{ReadTxn, Space, Txn, WriteTxn};

use crate::{MapError, Result};

/// The operations that errors name.
pub(crate) const READ: &str = "read the index";
pub(crate) const CHANGE: &str = "change the index";

/// File names that LMDB uses in an environment's directory.
pub(crate) const DATA: &str = "data.mdb";
pub(crate) const LOCK: &str = "lock.mdb";

/// Maximum number of idle read transactions kept for reuse.
const IDLE_MAX: usize = 4;

/// Size limits of an environment.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Address space of the mapping, bytes.
    pub map_bytes: usize,
    /// Maximum number of concurrent read transactions in all processes.
    pub readers: u32,
}

/// An open environment, with the flags WRITEMAP, NOSYNC and NOTLS.
#[derive(Debug)]
pub(crate) struct Env {
    raw: *mut ffi::MDB_env,
    path: PathBuf,
    pid: u32,
    identity: Identity,
    data: RawFd,
    lock: Option<RawFd>,
    idle: ForkLock<Idle>,
    /// The tables `map`, `pending` and `hints`, and the unnamed one.
    tables: Tables,
}

#[derive(Debug, Default)]
struct Idle(Vec<*mut ffi::MDB_txn>);

// SAFETY: all threads may use an LMDB environment; with NOTLS, any thread may use a read
// transaction, one at a time.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}
// SAFETY: as above.
unsafe impl Send for Idle {}

/// The (device, inode) of the data file.
type Identity = (u64, u64);

/// The open environments of this process: (process id, file, environment).
static OPENED: ForkLock<Vec<(u32, Identity, Weak<Env>)>> = ForkLock::new(Vec::new());

impl Env {
    /// Opens the environment in the directory `path`, or returns the one that this process already
    /// has open there. `create`: creates it, in a directory without one. Only one process at a time
    /// may call this with `create`.
    pub fn open(sys: &SysRef, path: &Path, create: Option<Limits>) -> Result<Arc<Self>> {
        let what = if create.is_some() { "make the index" } else { "open the index" };
        Self::find_or_open(sys, path, create).map_err(|failure| failure.of(path, what))
    }

    fn find_or_open(sys: &SysRef, path: &Path, create: Option<Limits>) -> Outcome<Arc<Self>> {
        let me = stripewise_sys::process::id();
        loop {
            let mut opened = OPENED.lock();
            forget_parents(&mut opened, me);
            let identity = identity(sys, &path.join(DATA));
            match opened.iter().find(|(_, known, _)| Some(*known) == identity).map(|(.., env)| env.upgrade()) {
                Some(Some(env)) => return Ok(env),
                // Another thread is closing it, which would release the locks of a new one.
                Some(None) => {}
                None => {
                    if let Some(limits) = create {
                        allocate_lock(sys, path, limits.readers).map_err(failed)?;
                    }
                    let env = Arc::new(Self::open_new(sys, path, create)?);
                    opened.push((me, env.identity, Arc::downgrade(&env)));
                    return Ok(env);
                }
            }
            drop(opened);
            std::thread::yield_now();
        }
    }

    fn open_new(sys: &SysRef, path: &Path, create: Option<Limits>) -> Outcome<Self> {
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Failure(libc::EINVAL))?;
        let mut raw = ptr::null_mut();
        // SAFETY: out pointer of this frame.
        check(unsafe { ffi::mdb_env_create(&raw mut raw) })?;
        let opened = (|| {
            let flags = ffi::MDB_WRITEMAP | ffi::MDB_NOSYNC | ffi::MDB_NOTLS | ffi::MDB_NORDAHEAD;
            // SAFETY: an environment that is not open yet, and a terminated string. Without
            // `create`, the file determines the sizes.
            unsafe {
                if let Some(limits) = create {
                    check(ffi::mdb_env_set_mapsize(raw, limits.map_bytes))?;
                    check(ffi::mdb_env_set_maxreaders(raw, limits.readers))?;
                }
                check(ffi::mdb_env_set_maxdbs(raw, 4))?;
                check(ffi::mdb_env_open(raw, name.as_ptr(), flags, 0o600))?;
                let mut data = -1;
                check(ffi::mdb_env_get_fd(raw, &raw mut data))?;
                Ok(data)
            }
        })();
        let opened = opened.and_then(|data| Ok((data, open_tables(raw, create.is_some())?)));
        match opened {
            Ok((data, tables)) => {
                let identity = identity(sys, &path.join(DATA)).unwrap_or_default();
                let lock = descriptor_of(sys, &path.join(LOCK));
                // Only now, because LMDB must have taken its locks on the files.
                [Some(data), lock].into_iter().flatten().for_each(fd::own);
                let (path, pid, idle) = (path.to_owned(), stripewise_sys::process::id(), ForkLock::default());
                Ok(Self { raw, path, pid, identity, data, lock, idle, tables })
            }
            Err(failure) => {
                // SAFETY: created above, and not used elsewhere.
                unsafe { ffi::mdb_env_close(raw) };
                Err(failure)
            }
        }
    }

    /// The descriptor of the data file.
    pub fn data_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: open as long as the environment.
        unsafe { fd::borrow(self.data) }
    }

    pub fn tables(&self) -> Tables {
        self.tables
    }

    /// Frees the reader slots of dead processes. LMDB itself does so only after a writer died.
    pub fn clear_dead_readers(&self) {
        // SAFETY: an open environment.
        unsafe { ffi::mdb_reader_check(self.raw, ptr::null_mut()) };
    }

    /// Number of the last page in use, and bytes of a page. Exact only inside a write transaction.
    fn extent(&self) -> Outcome<(u64, u64)> {
        let (mut info, mut stat) = (MaybeUninit::uninit(), MaybeUninit::uninit());
        // SAFETY: an open environment, out pointers of this frame, read after success.
        unsafe {
            check(ffi::mdb_env_info(self.raw, info.as_mut_ptr()))?;
            check(ffi::mdb_env_stat(self.raw, stat.as_mut_ptr()))?;
            let (info, stat) = (info.assume_init(), stat.assume_init());
            Ok((info.me_last_pgno as u64, u64::from(stat.ms_psize)))
        }
    }

    /// Bytes of the data file that are in use, free pages included.
    pub fn used_bytes(&self) -> Result<u64> {
        let (last, page) = self.extent().map_err(|failure| failure.of(&self.path, READ))?;
        Ok((last + 1) * page)
    }

    /// Closes the inherited descriptors in a forked child. The environment itself belongs to the
    /// parent and must be leaked.
    pub fn abandon(&self) {
        [Some(self.data), self.lock].into_iter().flatten().for_each(fd::close_inherited);
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        if self.pid != stripewise_sys::process::id() {
            return;
        }
        // Locked so that no other thread opens the environment meanwhile.
        let mut opened = OPENED.lock();
        for txn in std::mem::take(&mut self.idle.lock().0) {
            // SAFETY: an idle transaction of this environment.
            unsafe { ffi::mdb_txn_abort(txn) };
        }
        [Some(self.data), self.lock].into_iter().flatten().for_each(fd::disown);
        // SAFETY: opened by this process, and no transaction is left.
        unsafe { ffi::mdb_env_close(self.raw) };
        opened.retain(|(_, identity, env)| *identity != self.identity || env.strong_count() > 0);
    }
}

/// Forgets a parent process's environments without touching them.
fn forget_parents(opened: &mut Vec<(u32, Identity, Weak<Env>)>, me: u32) {
    opened.extract_if(.., |(pid, ..)| *pid != me).for_each(|(.., env)| std::mem::forget(env));
}

fn identity(sys: &SysRef, path: &Path) -> Option<Identity> {
    sys.stat_at(None, path, false).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

fn failed(errno: Errno) -> Failure {
    Failure(errno.raw_os_error())
}

/// Creates the lock file at its full size with all its space allocated. LMDB writes to it through a
/// mapping, and without space a full file system would kill the process with SIGBUS.
fn allocate_lock(sys: &SysRef, path: &Path, readers: u32) -> stripewise_sys::Result<()> {
    /// Bytes allocated for a reader slot, which takes a cache line, and for LMDB's header, which
    /// takes two.
    const LINE: u64 = 64;
    const HEADER: u64 = 4096;
    let file = sys.open(None, &path.join(LOCK), OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?;
    sys.allocate(file.as_fd(), 0, HEADER + u64::from(readers) * LINE, false)
}

/// The descriptor of this process that is open on `path`. LMDB does not report that of its lock
/// file.
fn descriptor_of(sys: &SysRef, path: &Path) -> Option<RawFd> {
    let wanted = identity(sys, path)?;
    let list = PathBuf::from("/proc/self/fd");
    let dir = sys.open(None, &list, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let names = sys.list(dir.as_fd()).ok()?;
    let numbers = names.iter().filter_map(|entry| entry.name.to_str()?.parse::<RawFd>().ok());
    // Looked up by name, so that a descriptor that another thread closes meanwhile is merely not
    // found. Others may lie on a parallel file system, where each stat would cost some ms.
    numbers.into_iter().find(|raw| {
        let link = list.join(raw.to_string());
        let is_named_so =
            sys.read_link(None, &link).is_ok_and(|of| Path::new(&of).file_name() == path.file_name());
        let stat = || sys.stat_at(None, &link, true);
        is_named_so && stat().is_ok_and(|stat| (stat.st_dev, stat.st_ino) == wanted)
    })
}

/// An error code of LMDB: an errno, or one of its own negative codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(i32);

type Outcome<T> = std::result::Result<T, Failure>;

impl Failure {
    /// The error of an operation on the index in the run directory `path`.
    pub fn of(self, path: &Path, what: &'static str) -> MapError {
        let errno = match self.0 {
            code if code > 0 => Errno::from_raw_os_error(code),
            ffi::MDB_MAP_FULL => Errno::NOSPC,
            ffi::MDB_READERS_FULL => Errno::AGAIN,
            _ => Errno::IO,
        };
        // SAFETY: a static string, or one of libc's.
        let problem = unsafe { CStr::from_ptr(ffi::mdb_strerror(self.0)) }.to_string_lossy().into_owned();
        MapError::Index { path: path.to_owned(), what, problem, errno }
    }
}

fn check(code: i32) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(Failure(code)) }
}

/// Handles of the index's tables.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub state: Table,
    pub map: Table,
    pub pending: Table,
    pub hints: Table,
}

/// A table with 64-bit integer keys, or the unnamed table, whose keys are names.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table(ffi::MDB_dbi);

/// Opens the tables, or creates them.
fn open_tables(env: *mut ffi::MDB_env, create: bool) -> Outcome<Tables> {
    let (txn_flags, table_flags) = if create { (0, ffi::MDB_CREATE) } else { (ffi::MDB_RDONLY, 0) };
    let mut txn = ptr::null_mut();
    // SAFETY: an open environment; the transaction is ended below.
    check(unsafe { ffi::mdb_txn_begin(env, ptr::null_mut(), txn_flags, &raw mut txn) })?;
    let one = |name: Option<&CStr>| {
        let mut table = 0;
        let flags = if name.is_some() { table_flags | ffi::MDB_INTEGERKEY } else { 0 };
        let name = name.map_or(ptr::null(), CStr::as_ptr);
        // SAFETY: a live transaction, and a terminated string or null.
        check(unsafe { ffi::mdb_dbi_open(txn, name, flags, &raw mut table) }).map(|()| Table(table))
    };
    let tables = (|| {
        Ok(Tables {
            state: one(None)?,
            map: one(Some(c"map"))?,
            pending: one(Some(c"pending"))?,
            hints: one(Some(c"wanted"))?,
        })
    })();
    // SAFETY: the live transaction, not used again.
    unsafe {
        match tables {
            Ok(tables) => check(ffi::mdb_txn_commit(txn)).map(|()| tables),
            Err(failure) => {
                ffi::mdb_txn_abort(txn);
                Err(failure)
            }
        }
    }
}
