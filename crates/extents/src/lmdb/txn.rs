//! Transactions, tables, cursors.

use std::ops::Deref;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use lmdb_master_sys as ffi;
use stripewise_sys::SysRef;

use super::{Env, Failure, IDLE_MAX, Outcome, READ, Table, check, failed};
use crate::{MapError, Result, hooks};

/// A transaction of either kind.
pub(crate) struct Txn<'e> {
    env: &'e Env,
    /// Null once the transaction has ended.
    raw: *mut ffi::MDB_txn,
    /// The operation that errors name.
    what: &'static str,
}

/// A read transaction: a snapshot of the tables.
pub(crate) struct ReadTxn<'e>(Txn<'e>);

/// A write transaction, the only one of the environment in all processes. Dropping it discards the
/// changes.
pub(crate) struct WriteTxn<'e> {
    txn: Txn<'e>,
    space: Space<'e>,
    /// Number of pages that [`WriteTxn::room`] was called for.
    pages: u64,
    /// The scheduler's model of the writer lock, in tests.
    turn: hooks::Turn,
}

/// Allocates the space of an environment's data file.
#[derive(Clone, Copy)]
pub(crate) struct Space<'e> {
    pub sys: &'e SysRef,
    /// Bytes of the data file that have space allocated; changed only under the writer lock.
    pub allocated: &'e AtomicU64,
}

/// The file grows by an eighth of its size, at most by this, bytes.
const GROW_BYTES_MAX: u64 = 16 << 20;

impl Env {
    /// Begins a read transaction.
    pub fn read(&self) -> Result<ReadTxn<'_>> {
        let idle = self.idle.lock().0.pop();
        if let Some(raw) = idle {
            // SAFETY: an idle transaction of this environment, which no other thread has since it
            // was taken out.
            match check(unsafe { ffi::mdb_txn_renew(raw) }) {
                Ok(()) => return Ok(ReadTxn(Txn { env: self, raw, what: READ })),
                // SAFETY: as above.
                Err(_) => unsafe { ffi::mdb_txn_abort(raw) },
            }
        }
        let begin = || {
            let mut raw = ptr::null_mut();
            // SAFETY: an open environment.
            check(unsafe { ffi::mdb_txn_begin(self.raw, ptr::null_mut(), ffi::MDB_RDONLY, &raw mut raw) })
                .map(|()| ReadTxn(Txn { env: self, raw, what: READ }))
        };
        let begun = match begin() {
            Err(Failure(ffi::MDB_READERS_FULL)) => {
                self.clear_dead_readers();
                begin()
            }
            begun => begun,
        };
        begun.map_err(|failure| failure.of(&self.path, READ))
    }

    /// Waits for the writer lock and begins a write transaction. `what` names it in errors.
    pub fn write<'e>(&'e self, space: Space<'e>, what: &'static str) -> Result<WriteTxn<'e>> {
        let mut turn = hooks::Turn::wait();
        let mut raw = ptr::null_mut();
        // SAFETY: an open environment.
        if let Err(failure) = check(unsafe { ffi::mdb_txn_begin(self.raw, ptr::null_mut(), 0, &raw mut raw) }) {
            turn.end();
            return Err(failure.of(&self.path, what));
        }
        Ok(WriteTxn { txn: Txn { env: self, raw, what }, space, pages: 0, turn })
    }
}

impl Txn<'_> {
    fn error(&self, failure: Failure) -> MapError {
        failure.of(&self.env.path, self.what)
    }

    /// The result of a call of LMDB.
    fn check(&self, code: i32) -> Result<()> {
        check(code).map_err(|failure| self.error(failure))
    }

    /// The error of a value that the index cannot contain.
    pub fn corrupt(&self) -> MapError {
        self.error(Failure(ffi::MDB_CORRUPTED))
    }

    /// Of a snapshot: the number of the last change in it. Of a write transaction: the number that
    /// its change will have.
    pub fn id(&self) -> u64 {
        // SAFETY: live.
        unsafe { ffi::mdb_txn_id(self.raw) as u64 }
    }

    pub fn cursor(&self, table: Table) -> Result<Cursor<'_>> {
        let mut raw = ptr::null_mut();
        // SAFETY: live; the lifetime makes the transaction outlive the cursor, which is closed on
        // drop.
        self.check(unsafe { ffi::mdb_cursor_open(self.raw, table.0, &raw mut raw) })?;
        Ok(Cursor { raw, txn: self })
    }

    /// A value of the unnamed table.
    pub fn named(&self, table: Table, name: &[u8]) -> Result<Option<&[u8]>> {
        let (mut key, mut data) = (val(name), val(&[]));
        // SAFETY: live; the value lives until the transaction ends or changes the table.
        unsafe {
            match ffi::mdb_get(self.raw, table.0, &raw mut key, &raw mut data) {
                ffi::MDB_NOTFOUND => Ok(None),
                code => self.check(code).map(|()| Some(bytes(&data))),
            }
        }
    }

    /// Number of entries, and bytes of the pages in use.
    pub fn size(&self, table: Table) -> Result<(u64, u64)> {
        let mut stat = std::mem::MaybeUninit::uninit();
        // SAFETY: live; read only after success.
        let stat = unsafe {
            self.check(ffi::mdb_stat(self.raw, table.0, stat.as_mut_ptr()))?;
            stat.assume_init()
        };
        let pages = stat.ms_branch_pages + stat.ms_leaf_pages + stat.ms_overflow_pages;
        Ok((stat.ms_entries as u64, pages as u64 * u64::from(stat.ms_psize)))
    }
}

impl<'e> Deref for ReadTxn<'e> {
    type Target = Txn<'e>;

    fn deref(&self) -> &Txn<'e> {
        &self.0
    }
}

impl<'e> Deref for WriteTxn<'e> {
    type Target = Txn<'e>;

    fn deref(&self) -> &Txn<'e> {
        &self.txn
    }
}

impl Drop for ReadTxn<'_> {
    fn drop(&mut self) {
        // SAFETY: live; after this it is only renewed or aborted.
        unsafe { ffi::mdb_txn_reset(self.raw) };
        let mut idle = self.env.idle.lock();
        if idle.0.len() < IDLE_MAX {
            idle.0.push(self.raw);
        } else {
            // SAFETY: as above.
            unsafe { ffi::mdb_txn_abort(self.raw) };
        }
    }
}

impl WriteTxn<'_> {
    /// Allocates space for `pages` more pages, an upper bound of what the caller will write. On a
    /// full file system this call fails; without it, writing to the mapping would raise SIGBUS.
    pub fn room(&mut self, pages: u64) -> Result<()> {
        self.pages += pages;
        self.allocate().map_err(|failure| self.error(failure))
    }

    fn allocate(&self) -> Outcome<()> {
        let (last, page) = self.env.extent()?;
        let needed = (last + 1 + self.pages) * page;
        let allocated = self.space.allocated.load(Ordering::Relaxed);
        if needed <= allocated {
            return Ok(());
        }
        // Pages that dead readers keep from being reused would make the file grow forever.
        self.env.clear_dead_readers();
        let ahead = needed + ((last + 1) * page / 8).min(GROW_BYTES_MAX);
        let fd = self.env.data_fd();
        let grow = |to: u64| self.space.sys.allocate(fd, allocated, to - allocated, true).map(|()| to);
        let grown = grow(ahead).or_else(|_| grow(needed)).map_err(failed)?;
        self.space.allocated.store(grown, Ordering::Relaxed);
        Ok(())
    }

    pub fn put_named(&mut self, table: Table, name: &[u8], value: &[u8]) -> Result<()> {
        self.put_with(table, name, value, 0)
    }

    pub fn put(&mut self, table: Table, key: u64, value: &[u8]) -> Result<()> {
        self.put_with(table, &key.to_ne_bytes(), value, 0)
    }

    /// Adds an entry whose key is higher than all others; pages are filled completely.
    pub fn append(&mut self, table: Table, key: u64, value: &[u8]) -> Result<()> {
        self.put_with(table, &key.to_ne_bytes(), value, ffi::MDB_APPEND)
    }

    fn put_with(&mut self, table: Table, key: &[u8], value: &[u8], flags: u32) -> Result<()> {
        let (mut key, mut data) = (val(key), val(value));
        // SAFETY: live; LMDB copies key and value.
        self.check(unsafe { ffi::mdb_put(self.raw, table.0, &raw mut key, &raw mut data, flags) })
    }

    /// Removes an entry, if it exists.
    pub fn delete(&mut self, table: Table, key: u64) -> Result<()> {
        let key = key.to_ne_bytes();
        let mut key = val(&key);
        // SAFETY: live.
        match unsafe { ffi::mdb_del(self.raw, table.0, &raw mut key, ptr::null_mut()) } {
            ffi::MDB_NOTFOUND => Ok(()),
            code => self.check(code),
        }
    }

    /// Commits the transaction: all of its changes become visible at once to all processes.
    pub fn commit(mut self) -> Result<()> {
        let raw = std::mem::replace(&mut self.txn.raw, ptr::null_mut());
        // SAFETY: live; this call frees it whatever it returns.
        let code = unsafe { ffi::mdb_txn_commit(raw) };
        self.turn.end();
        self.check(code)
    }
}

impl Drop for WriteTxn<'_> {
    fn drop(&mut self) {
        if !self.raw.is_null() {
            // SAFETY: live.
            unsafe { ffi::mdb_txn_abort(self.raw) };
            self.turn.end();
        }
    }
}

/// A position in a table.
pub(crate) struct Cursor<'t> {
    raw: *mut ffi::MDB_cursor,
    txn: &'t Txn<'t>,
}

impl Cursor<'_> {
    /// Moves to the first entry with a key of at least `key`.
    pub fn seek(&mut self, key: u64) -> Result<Option<(u64, &[u8])>> {
        self.go(key, ffi::MDB_SET_RANGE)
    }

    pub fn next(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.go(0, ffi::MDB_NEXT)
    }

    pub fn last(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.go(0, ffi::MDB_LAST)
    }

    pub fn previous(&mut self) -> Result<Option<(u64, &[u8])>> {
        self.go(0, ffi::MDB_PREV)
    }

    fn go(&mut self, key: u64, operation: ffi::MDB_cursor_op) -> Result<Option<(u64, &[u8])>> {
        let key = key.to_ne_bytes();
        let (mut key, mut data) = (val(&key), val(&[]));
        // SAFETY: a live cursor; the data lives until the transaction changes or ends, and the
        // borrow of the cursor ends earlier.
        unsafe {
            match ffi::mdb_cursor_get(self.raw, &raw mut key, &raw mut data, operation) {
                ffi::MDB_NOTFOUND => Ok(None),
                0 => match bytes(&key).try_into() {
                    Ok(key) => Ok(Some((u64::from_ne_bytes(key), bytes(&data)))),
                    Err(_) => Err(self.txn.corrupt()),
                },
                code => Err(self.txn.error(Failure(code))),
            }
        }
    }
}

impl Drop for Cursor<'_> {
    fn drop(&mut self) {
        // SAFETY: the transaction is live because it is borrowed.
        unsafe { ffi::mdb_cursor_close(self.raw) };
    }
}

fn val(bytes: &[u8]) -> ffi::MDB_val {
    ffi::MDB_val { mv_size: bytes.len(), mv_data: bytes.as_ptr().cast_mut().cast() }
}

/// # Safety
/// LMDB has filled in `val`, and the memory stays unchanged for the lifetime `'a`.
unsafe fn bytes<'a>(val: &ffi::MDB_val) -> &'a [u8] {
    if val.mv_size == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(val.mv_data.cast(), val.mv_size) }
}
