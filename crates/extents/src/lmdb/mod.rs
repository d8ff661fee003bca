//! A thin, safe form of the part of LMDB that the index needs.
//!
//! Not `heed`: that keeps a process-wide register of opened environments behind a lock, so a forked child, which must
//! leave its parent's environment alone, could not open one of its own. Here a child forgets the parent's
//! ([`Env::abandon`]) and opens anew.
//!
//! LMDB's rules that callers rely on this module to keep: an environment is open at most once in a process (closing a second
//! one would drop the POSIX locks of the first); transactions of one thread do not nest; nothing is closed by a process that did not open it.

mod txn;

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::{Arc, Weak};

use lmdb_master_sys as ffi;
use stripewise_sys::{Errno, Mode, OFlags, SysRef, fd};

pub(crate) use txn::{ReadTxn, Space, Table, Txn, WriteTxn};

use crate::fork::PidLock;

/// LMDB's names in an environment's directory.
pub(crate) const DATA: &str = "data.mdb";
pub(crate) const LOCK: &str = "lock.mdb";

/// Read transactions kept for the next time.
const IDLE_MAX: usize = 4;

/// What LMDB said: an errno, or one of its own negative codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub i32);

pub(crate) type Outcome<T> = Result<T, Failure>;

impl Failure {
    /// LMDB's own words.
    pub fn text(self) -> String {
        // SAFETY: a static string, or one of libc's.
        unsafe { CStr::from_ptr(ffi::mdb_strerror(self.0)) }.to_string_lossy().into_owned()
    }

    /// What an application is told.
    pub fn errno(self) -> Errno {
        match self.0 {
            code if code > 0 => Errno::from_raw_os_error(code),
            ffi::MDB_MAP_FULL => Errno::NOSPC,
            ffi::MDB_READERS_FULL => Errno::AGAIN,
            _ => Errno::IO,
        }
    }
}

fn check(code: i32) -> Outcome<()> {
    if code == 0 { Ok(()) } else { Err(Failure(code)) }
}

/// How large an environment may become.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of address space.
    pub map_bytes: usize,
    /// Readers at once, in all processes.
    pub readers: u32,
}

/// An open environment: WRITEMAP, NOSYNC, NOTLS.
#[derive(Debug)]
pub(crate) struct Env {
    raw: *mut ffi::MDB_env,
    pid: u32,
    identity: Identity,
    data: RawFd,
    lock: Option<RawFd>,
    idle: PidLock<Idle>,
    /// `map`, `pending`, `wanted`, and the unnamed one.
    tables: Tables,
}

#[derive(Debug, Default)]
struct Idle(Vec<*mut ffi::MDB_txn>);

/// The tables of the index.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub state: Table,
    pub map: Table,
    pub pending: Table,
    pub wanted: Table,
}

// SAFETY: LMDB's environments may be used by all threads; with NOTLS its read transactions, too, by one at a time.
unsafe impl Send for Env {}
// SAFETY: as above.
unsafe impl Sync for Env {}
// SAFETY: as above.
unsafe impl Send for Idle {}

/// (device, inode) of the data file.
type Identity = (u64, u64);

/// The environments of this process: (process, file, environment).
static OPENED: PidLock<Vec<(u32, Identity, Weak<Env>)>> = PidLock::new(Vec::new());

impl Env {
    /// Opens the environment in the directory `path`, or the one that this process has open there. `create`: makes it, in a
    /// directory where there is none. To be called by one process at a time.
    pub fn open(sys: &SysRef, path: &Path, create: Option<Limits>) -> Outcome<Arc<Self>> {
        let me = stripewise_sys::process::id();
        loop {
            let mut opened = OPENED.lock();
            forget_parents(&mut opened, me);
            let identity = identity(sys, &path.join(DATA));
            match opened.iter().find(|(_, known, _)| Some(*known) == identity).map(|(.., env)| env.upgrade()) {
                Some(Some(env)) => return Ok(env),
                // It is being closed, which would take our locks with it.
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
            // SAFETY: an environment that is not open yet, and a terminated string. The others have the size from the file.
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
        let opened = opened.and_then(|data| {
            let tables = if create.is_some() { txn::create_tables(raw) } else { txn::open_tables(raw) }?;
            Ok((data, tables))
        });
        match opened {
            Ok((data, tables)) => {
                let identity = identity(sys, &path.join(DATA)).unwrap_or_default();
                let lock = descriptor_of(sys, &path.join(LOCK));
                // Last: LMDB must have taken its locks on them.
                [Some(data), lock].into_iter().flatten().for_each(fd::own);
                let idle = PidLock::default();
                Ok(Self { raw, pid: stripewise_sys::process::id(), identity, data, lock, idle, tables })
            }
            Err(failure) => {
                // SAFETY: created above, used by nobody.
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

    /// Frees what readers held that have died. (LMDB does it by itself only when a writer died.)
    pub fn clear_dead_readers(&self) -> Outcome<()> {
        // SAFETY: an open environment.
        check(unsafe { ffi::mdb_reader_check(self.raw, ptr::null_mut()) })
    }

    /// Last page in use, and bytes of a page. Exact only inside a write transaction.
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
    pub fn used_bytes(&self) -> Outcome<u64> {
        self.extent().map(|(last, page)| (last + 1) * page)
    }

    /// In a forked child: closes the descriptors that it inherited. The environment itself is the parent's and must be leaked.
    pub fn abandon(&self) {
        [Some(self.data), self.lock].into_iter().flatten().for_each(fd::close_inherited);
    }
}

impl Drop for Env {
    fn drop(&mut self) {
        if self.pid != stripewise_sys::process::id() {
            return;
        }
        // Nobody opens it anew meanwhile.
        let mut opened = OPENED.lock();
        for txn in std::mem::take(&mut self.idle.lock().0) {
            // SAFETY: idle, and of this environment.
            unsafe { ffi::mdb_txn_abort(txn) };
        }
        [Some(self.data), self.lock].into_iter().flatten().for_each(fd::disown);
        // SAFETY: opened by this process, and no transaction is left.
        unsafe { ffi::mdb_env_close(self.raw) };
        opened.retain(|(_, identity, env)| *identity != self.identity || env.strong_count() > 0);
    }
}

/// Forgets, without touching them, the environments of a parent process.
fn forget_parents(opened: &mut Vec<(u32, Identity, Weak<Env>)>, me: u32) {
    opened.extract_if(.., |(pid, ..)| *pid != me).for_each(|(.., env)| std::mem::forget(env));
}

fn identity(sys: &SysRef, path: &Path) -> Option<Identity> {
    sys.stat_at(None, path, false).ok().map(|stat| (stat.st_dev, stat.st_ino))
}

fn failed(errno: Errno) -> Failure {
    Failure(errno.raw_os_error())
}

/// Makes the lock file at its full size, with all its space: LMDB writes to it through a mapping, where a file system that is full
/// would end the process.
fn allocate_lock(sys: &SysRef, path: &Path, readers: u32) -> stripewise_sys::Result<()> {
    /// Of a reader, and of LMDB's header: one cache line each, and two for the header.
    const LINE: u64 = 64;
    const HEADER: u64 = 4096;
    let file = sys.open(None, &path.join(LOCK), OFlags::RDWR | OFlags::CREATE, Mode::RUSR | Mode::WUSR)?;
    sys.allocate(file.as_fd(), 0, HEADER + u64::from(readers) * LINE, false)
}

/// The descriptor of this process that is open on `path`: LMDB does not tell that of its lock file.
fn descriptor_of(sys: &SysRef, path: &Path) -> Option<RawFd> {
    let wanted = identity(sys, path)?;
    let list = PathBuf::from("/proc/self/fd");
    let dir = sys.open(None, &list, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty()).ok()?;
    let names = sys.list(dir.as_fd()).ok()?;
    let numbers = names.iter().filter_map(|entry| entry.name.to_str()?.parse::<RawFd>().ok());
    // By name, so that a descriptor that another thread closes meanwhile is only not found.
    numbers.into_iter().find(|raw| {
        let stat = sys.stat_at(None, &list.join(raw.to_string()), true);
        stat.is_ok_and(|stat| (stat.st_dev, stat.st_ino) == wanted)
    })
}
