//! Reads and writes of managed files that one system call on one object serves.
//!
//! They are made while signals arrive and other threads fork: no lock is held and no memory is
//! allocated, so a handler may use the file meanwhile, and a forked child finds no data half moved.
//! (What such a child, or a handler that does not return, keeps is a reference to the descriptor's
//! entry: `calls/close.rs` says why that does no harm.) A handler that does not return
//! (`siglongjmp`), or ends the process, leaves the file as the kernel's own call does: before or
//! after the transfer. Therefore a `write` at the descriptor's offset, which first reserves its
//! range, is not among them: ended in between, it would leave a hole. A `read` is: a range that was
//! reserved and not read is as one whose bytes the program lost, which also happens without the
//! library.

use std::sync::atomic::Ordering;

use rustix::fs::{OFlags, SeekFrom, seek};
use stripewise_datapath::LogicalFile;
use stripewise_recorder::Op;
use stripewise_sys::{IoVec, Result};

use crate::calls::lifetime;
use crate::calls::limit::is_below_limit;
use crate::calls::request::{Place, Transfer, check_mode};
use crate::descriptors::Managed;
use crate::process::SignalForkGuard;

/// What was done of a request.
pub enum Piece {
    /// All: its offset and the number of bytes moved, or its error.
    Done(Result<(u64, usize)>),
    /// The range at this offset was taken for the request from the descriptor's offset, and has to
    /// be read with [`read_reserved`](super::transfer::read_reserved). It is not given back: other
    /// threads and processes may have taken the next ones.
    Reserved(u64),
}

/// Serves a request. `None`: nothing was done, and it has to be made with
/// [`move_bytes`](super::transfer::move_bytes).
#[inline]
pub fn move_piece(managed: &Managed, request: &Transfer) -> Option<Piece> {
    let buffer = request.only_buffer()?;
    match (request.op(), request.place) {
        (Op::Read, place) => read(managed, buffer, place),
        (_, Place::Offset) => None,
        (_, Place::At(offset)) => {
            let offset = u64::try_from(offset).ok()?;
            let flags = managed.flags().ok()?;
            let special = OFlags::APPEND | OFlags::SYNC | OFlags::DSYNC | OFlags::DIRECT;
            if flags.intersects(special) || check_mode(flags, Op::Write).is_err() || lifetime::is_ending() {
                return None;
            }
            let done = write(managed.file().ok()?, buffer, offset)?;
            Some(Piece::Done(done.map(|moved| (offset, moved))))
        }
    }
}

/// The flags are those that this process knows. Another one that shares the description may have
/// changed O_DIRECT, which says how to read and not what.
#[inline]
fn read(managed: &Managed, buffer: IoVec, place: Place) -> Option<Piece> {
    let flags = managed.known_flags().ok()?;
    if flags.contains(OFlags::DIRECT) || check_mode(flags, Op::Read).is_err() {
        return None;
    }
    let file = managed.file().ok()?;
    let offset = match place {
        Place::At(offset) => u64::try_from(offset).ok()?,
        Place::Offset => reserve(managed, file, buffer.len)?,
    };
    // SAFETY: the application's buffer, which only the kernel accesses.
    let piece = file.piece_to_read(offset, buffer.len);
    let done = piece.is_some_and(|piece| unsafe { piece.read(buffer) } == Ok(true));
    match place {
        _ if done => Some(Piece::Done(Ok((offset, buffer.len)))),
        Place::Offset => Some(Piece::Reserved(offset)),
        Place::At(_) => None,
    }
}

/// Moves the descriptor's offset by `len` and returns the former one, if `len` bytes should be
/// there: a range past the end is not reserved here, because a handler that wrote at the offset
/// meanwhile would leave a hole. (Where the offset is not the one known, another thread or process
/// moves it, and may meet the same.)
#[inline]
fn reserve(managed: &Managed, file: &LogicalFile, len: usize) -> Option<u64> {
    file.piece_to_read(managed.entry().offset.load(Ordering::Relaxed), len)?;
    let end = seek(managed.fd(), SeekFrom::Current(len as i64)).ok()?;
    managed.entry().offset.store(end, Ordering::Relaxed);
    end.checked_sub(len as u64)
}

/// Writes at an offset. `None`: nothing was written, and [`LogicalFile::write_at`] has to do it.
/// What was written, even a part, is not written again: another writer may have seen and replaced
/// it. An error is not tried again either: the kernel may report an earlier loss only once.
pub fn write(file: &LogicalFile, buffer: IoVec, offset: u64) -> Option<Result<usize>> {
    let piece = file.piece_to_write(offset, buffer.len)?;
    // At the same offset in its object, the kernel applies the limit, which takes a call to ask.
    let is_checked = piece.is_at(offset);
    if !is_checked && !is_below_limit(offset + buffer.len as u64) {
        return None;
    }
    // SAFETY: the application's buffer, which only the kernel accesses.
    let done = unsafe { piece.write(buffer) };
    if let Ok(moved) = done {
        grow_mapped(file, offset + moved as u64);
    }
    Some(done)
}

/// Another thread may have mapped the file during a write that ends at `end`.
#[inline]
fn grow_mapped(file: &LogicalFile, end: u64) {
    if file.outgrows_mapping(end) {
        let _guard = SignalForkGuard::new();
        let _ = file.grow_mapped_after(end);
    }
}
