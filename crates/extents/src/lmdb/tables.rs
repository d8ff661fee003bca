//! The index's tables, and the failures of LMDB.

use std::ffi::CStr;
use std::path::Path;
use std::ptr;

use lmdb_master_sys as ffi;
use stripewise_sys::Errno;

use crate::MapError;

/// An error code of LMDB: an errno, or one of its own negative codes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failure(pub i32);

pub(super) type Outcome<T> = std::result::Result<T, Failure>;

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

pub(super) fn check(code: i32) -> Outcome<()> {
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
pub(crate) struct Table(pub(super) ffi::MDB_dbi);

/// Opens the tables, or creates them.
pub(super) fn open(env: *mut ffi::MDB_env, create: bool) -> Outcome<Tables> {
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
