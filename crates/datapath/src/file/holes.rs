//! SEEK_DATA and SEEK_HOLE: a byte is in a hole if its object has a hole there or has ended.

use std::os::fd::BorrowedFd;

use stripewise_extents::{CopyId, Span};
use stripewise_sys::SeekFrom;

use super::LogicalFile;
use super::copy::OpenCopy;
use super::overlay::CopySet;
use crate::error::{Errno, Logged, Result};

/// The lseek(2) search mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE.
    Hole,
}

impl LogicalFile {
    /// Returns the offset of the next data or hole at or after `offset`; the end of the file counts
    /// as a hole. The caller sets its descriptor's offset to the result. Asks each object once.
    ///
    /// The result is as exact as the targets' file systems, which track holes in blocks: every byte
    /// that shares a block of an object with data counts as data. Bytes written before the call are
    /// never reported as a hole.
    ///
    /// # Errors
    /// ENXIO at or past the end of the file, and for [`Whence::Data`] if no data follows.
    pub fn seek(&self, whence: Whence, offset: u64) -> Result<u64> {
        let size = self.size()?;
        if offset >= size {
            return Err(Errno::NXIO);
        }
        match whence {
            Whence::Data => {
                self.next_data(offset).and_then(|at| if at < size { Ok(at) } else { Err(Errno::NXIO) })
            }
            Whence::Hole => Ok(self.first(Whence::Hole, offset)?.map_or(size, |at| at.min(size))),
        }
    }

    /// The offset of the first byte at or after `offset` that lies outside the holes of its object.
    pub(crate) fn next_data(&self, offset: u64) -> Result<u64> {
        self.first(Whence::Data, offset)?.ok_or(Errno::NXIO)
    }

    fn first(&self, whence: Whence, offset: u64) -> Result<Option<u64>> {
        match self.copies()? {
            Some(copies) => copies.first(whence, offset),
            None => self.first_in(self.original(), whence, offset),
        }
    }

    /// Searches each object of one copy, from the object offset that corresponds to file offset
    /// `offset`. Returns the smallest result, as a file offset.
    pub(super) fn first_in(&self, copy: &OpenCopy, whence: Whence, offset: u64) -> Result<Option<u64>> {
        let (objects, layout) = (copy.objects(), copy.layout());
        let mut first: Option<u64> = None;
        for index in 0..objects.len() {
            let target = index as u32;
            let fd = objects.fd(index).logged()?;
            let found = self.find(fd, whence, layout.object_size(target, offset))?;
            let found = found.and_then(|found| layout.file_offset(target, found));
            // `chain` skips `None`; `min` on `Option` would prefer it.
            first = first.into_iter().chain(found).min();
        }
        Ok(first)
    }

    fn find(&self, fd: BorrowedFd<'_>, whence: Whence, from: u64) -> Result<Option<u64>> {
        let to = match whence {
            Whence::Data => SeekFrom::Data(from),
            Whence::Hole => SeekFrom::Hole(from),
        };
        let size = || Ok(self.sys().stat(fd)?.st_size as u64);
        match (self.sys().seek(fd, to), whence) {
            // The file system does not support SEEK_DATA and SEEK_HOLE: the whole object is data.
            (Err(Errno::INVAL), Whence::Data) => Ok((size()? > from).then_some(from)),
            (Err(Errno::INVAL), Whence::Hole) => Ok(Some(from.max(size()?))),
            (Err(Errno::NXIO), Whence::Data) => Ok(None),
            // The object ends before `from`.
            (Err(Errno::NXIO), Whence::Hole) => Ok(Some(from)),
            (found, _) => found.map(Some),
        }
    }
}

/// Bytes of the file for which the map is read at a time.
const WINDOW_BYTES: u64 = 1 << 30;

impl CopySet<'_> {
    /// The first data or hole at or after `offset`, searched up to the file size; a hole that is
    /// found may start past the size.
    fn first(&self, whence: Whence, offset: u64) -> Result<Option<u64>> {
        let size = self.file.size()?;
        let mut at = offset;
        while at < size {
            let end = at.saturating_add(WINDOW_BYTES).min(size);
            let found = self.first_between(whence, at, end)?;
            if found.is_some() {
                return Ok(found);
            }
            at = end;
        }
        Ok(None)
    }

    fn first_between(&self, whence: Whence, from: u64, to: u64) -> Result<Option<u64>> {
        loop {
            let guard = self.map.begin_read(from..to).logged()?;
            let mut found = None;
            for span in guard.spans() {
                found = self.first_of(span, whence)?.filter(|&found| found < span.end);
                if found.is_some() {
                    break;
                }
            }
            let from = |span: &Span| self.copy_of(span).or(span.mask.lowest()).unwrap_or(CopyId::ORIGINAL);
            if guard.still_valid(from).logged()? {
                return Ok(found);
            }
        }
    }

    /// A range that only lost copies hold counts as data.
    fn first_of(&self, span: &Span, whence: Whence) -> Result<Option<u64>> {
        match self.copy_of(span).and_then(|number| self.copy(number)) {
            Some(copy) => self.file.first_in(copy, whence, span.start),
            None => Ok((whence == Whence::Data).then_some(span.start)),
        }
    }

    fn copy_of(&self, span: &Span) -> Option<CopyId> {
        span.mask.and(self.present_mask()).lowest()
    }
}
