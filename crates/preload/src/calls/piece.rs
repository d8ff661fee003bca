//! Reads and writes of managed files that one system call on one object serves.
//!
//! They are made while other threads fork, and all but one kind while signals arrive: no lock is
//! held and no memory is allocated, so a handler may use the file meanwhile, and a forked child
//! finds no data half moved. (What such a child, or a handler that does not return, keeps is a
//! reference to the descriptor's entry: `calls/close.rs` says why that does no harm.) A handler
//! that does not return (`siglongjmp`), or ends the process, leaves the file as the kernel's own
//! call does: before or after the transfer.
//!
//! A `write` at the descriptor's offset first reserves its range. A signal that ended it then would
//! leave a hole, so signals wait from the reservation to the end of the write. They need not wait
//! for a `read`: a range that was reserved and not read is as one whose bytes the program lost,
//! which also happens without the library.

use std::sync::atomic::Ordering;

use rustix::fs::{OFlags, SeekFrom, seek};
use stripewise_datapath::{LogicalFile, OnePiece};
use stripewise_recorder::Op;
use stripewise_sys::{IoVec, Result};

use crate::calls::lifetime;
use crate::calls::limit::is_below_limit;
use crate::calls::request::{Place, Transfer, check_mode};
use crate::descriptors::Managed;
use crate::process::errno::quietly;
use crate::process::{Blocked, SignalForkGuard};

/// What was done of a request.
pub enum Piece {
    /// All: its offset and the number of bytes moved, or its error.
    Done(Result<(u64, usize)>),
    /// The range at this offset was taken for the request from the descriptor's offset, and has to
    /// be moved with [`move_reserved`](super::transfer::move_reserved). It is not given back: other
    /// threads and processes may have taken the next ones. For a write, signals wait.
    Reserved(u64, Option<Blocked>),
}

/// Serves a request. `None`: nothing was done, and it has to be made with
/// [`move_bytes`](super::transfer::move_bytes). Leaves errno unchanged.
#[inline]
pub fn move_piece(managed: &Managed, request: &Transfer) -> Option<Piece> {
    let buffer = request.only_buffer()?;
    if request.op() == Op::Read {
        return read(managed, buffer, request.place);
    }
    let flags = managed.flags().ok()?;
    let special = OFlags::APPEND | OFlags::SYNC | OFlags::DSYNC | OFlags::DIRECT;
    if flags.intersects(special) || check_mode(flags, Op::Write).is_err() || lifetime::is_ending() {
        return None;
    }
    let file = managed.file().ok()?;
    match request.place {
        Place::Offset => write_at_descriptor(managed, file, buffer),
        Place::At(offset) => {
            let offset = u64::try_from(offset).ok()?;
            let done = write(file, buffer, offset)?;
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
    let (offset, piece) = match place {
        Place::At(offset) => {
            let offset = u64::try_from(offset).ok()?;
            (offset, file.piece_to_read(offset, buffer.len))
        }
        // A range past the end is not reserved here, because a handler that wrote at the offset
        // meanwhile would leave a hole. (Where the offset is not the one known, another thread or
        // process moves it, and may meet the same.)
        Place::Offset => {
            let expected = known_offset(managed);
            let piece = file.piece_to_read(expected, buffer.len)?;
            let offset = reserve(managed, buffer.len).ok()?;
            managed.entry().offset.store(offset + buffer.len as u64, Ordering::Relaxed);
            let is_there = offset == expected;
            (offset, if is_there { Some(piece) } else { file.piece_to_read(offset, buffer.len) })
        }
    };
    // SAFETY: the application's buffer, which only the kernel accesses.
    let done = piece.is_some_and(|piece| unsafe { piece.read(buffer) } == Ok(true));
    match place {
        _ if done => Some(Piece::Done(Ok((offset, buffer.len)))),
        Place::Offset => Some(Piece::Reserved(offset, None)),
        Place::At(_) => None,
    }
}

/// The descriptor's offset, as far as this process knows.
#[inline]
fn known_offset(managed: &Managed) -> u64 {
    managed.entry().offset.load(Ordering::Relaxed)
}

/// Takes a range of `len` bytes from the descriptor's offset, in one step for all threads and
/// processes that share the descriptor. Returns where the range begins.
/// Errors: the range exceeds the largest offset of the anchor's file system.
#[inline]
pub fn reserve(managed: &Managed, len: usize) -> Result<u64> {
    let end = seek(managed.fd(), SeekFrom::Current(len as i64))?;
    Ok(end - len as u64)
}

/// Ends a transfer in a range of `len` bytes that was reserved: after a short one, moves the
/// descriptor's offset back.
#[inline]
pub fn end_reserved(managed: &Managed, offset: u64, len: usize, done: Result<usize>) -> Result<(u64, usize)> {
    let moved = done.as_ref().copied().unwrap_or(0);
    let next = match len - moved {
        0 => offset + moved as u64,
        missing => seek(managed.fd(), SeekFrom::Current(-(missing as i64)))?,
    };
    managed.entry().offset.store(next, Ordering::Relaxed);
    Ok((offset, done?))
}

/// Writes at the descriptor's offset. Signals wait until the write has ended.
#[inline]
fn write_at_descriptor(managed: &Managed, file: &LogicalFile, buffer: IoVec) -> Option<Piece> {
    let expected = known_offset(managed);
    let piece = file.piece_to_write(expected, buffer.len)?;
    let signals = Blocked::new();
    let offset = reserve(managed, buffer.len).ok()?;
    let piece = if offset == expected { Some(piece) } else { file.piece_to_write(offset, buffer.len) };
    let Some(done) = piece.and_then(|piece| write_piece(&piece, buffer, offset)) else {
        return Some(Piece::Reserved(offset, Some(signals)));
    };
    let done = end_reserved(managed, offset, buffer.len, done);
    drop(signals);
    if let Ok((offset, moved)) = done {
        grow_mapped(file, offset + moved as u64);
    }
    Some(Piece::Done(done))
}

/// Writes at an offset. `None`: nothing was written, and [`LogicalFile::write_at`] has to do it.
#[inline]
pub fn write(file: &LogicalFile, buffer: IoVec, offset: u64) -> Option<Result<usize>> {
    let done = write_piece(&file.piece_to_write(offset, buffer.len)?, buffer, offset)?;
    if let Ok(moved) = done {
        grow_mapped(file, offset + moved as u64);
    }
    Some(done)
}

/// As [`write`], without what follows if another thread has mapped the file meanwhile.
///
/// What was written, even a part, is not written again: another writer may have seen and replaced
/// it. An error is not tried again either: the kernel may report an earlier loss only once.
#[inline]
fn write_piece(piece: &OnePiece, buffer: IoVec, offset: u64) -> Option<Result<usize>> {
    // At the same offset in its object, the kernel applies the limit, which takes a call to ask.
    let is_checked = piece.is_at(offset);
    if !is_checked && !is_below_limit(offset + buffer.len as u64) {
        return None;
    }
    // SAFETY: the application's buffer, which only the kernel accesses.
    Some(unsafe { piece.write(buffer) })
}

/// Another thread may have mapped the file during a write that ends at `end`.
#[inline]
fn grow_mapped(file: &LogicalFile, end: u64) {
    if file.outgrows_mapping(end) {
        let _guard = SignalForkGuard::new();
        quietly(|| file.grow_mapped_after(end).unwrap_or_default());
    }
}
