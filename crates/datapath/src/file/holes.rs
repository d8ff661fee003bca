//! Where a file has data, and where holes: a byte is in a hole where its component has one or has ended.

use std::os::fd::BorrowedFd;

use stripewise_sys::SeekFrom;

use super::{LogicalFile, OpenCopy};
use crate::{Errno, Result, trouble};

/// What lseek(2) looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whence {
    /// SEEK_DATA.
    Data,
    /// SEEK_HOLE.
    Hole,
}

impl LogicalFile {
    /// Where the next data or hole at or after `offset` begins (the caller sets its descriptor's offset to it); the end of
    /// the file is a hole. Asks each component once.
    ///
    /// As exact as the targets' file systems are, which count in blocks: what lies in one block of a component with data counts
    /// as data. What was written before the call is never called a hole.
    ///
    /// # Errors
    /// ENXIO at or past the end, and of [`Whence::Data`] where no more data comes.
    pub fn seek(&self, whence: Whence, offset: u64) -> Result<u64> {
        let size = self.size()?;
        if offset >= size {
            return Err(Errno::NXIO);
        }
        match whence {
            Whence::Data => {
                self.next_data(offset).and_then(|at| if at < size { Ok(at) } else { Err(Errno::NXIO) })
            }
            Whence::Hole => Ok(self.next_hole(offset)?.map_or(size, |at| at.min(size))),
        }
    }

    /// The offset of the first byte at or after `offset` that no hole of a component holds.
    ///
    /// # Errors
    /// ENXIO when there is none.
    pub(crate) fn next_data(&self, offset: u64) -> Result<u64> {
        let found = match self.overlay() {
            Some(overlay) => self.first_in_copies(overlay, Whence::Data, offset),
            None => self.first_in(self.original(), Whence::Data, offset),
        };
        found?.ok_or(Errno::NXIO)
    }

    /// The offset of the first byte at or after `offset` that its component has not.
    fn next_hole(&self, offset: u64) -> Result<Option<u64>> {
        match self.overlay() {
            Some(overlay) => self.first_in_copies(overlay, Whence::Hole, offset),
            None => self.first_in(self.original(), Whence::Hole, offset),
        }
    }

    /// The smallest offset, in the file, of the places that are found in the components of a copy from the first byte at or
    /// after `offset` on.
    pub(super) fn first_in(&self, copy: &OpenCopy, whence: Whence, offset: u64) -> Result<Option<u64>> {
        let (components, layout) = (copy.components(), copy.layout());
        let mut first: Option<u64> = None;
        for index in 0..components.len() {
            let target = index as u32;
            let fd = components.fd(index).map_err(|error| trouble::told(&error))?;
            let found = self.find(fd, whence, layout.component_size(target, offset))?;
            let found = found.and_then(|found| layout.file_offset(target, found));
            // `None` is less than any.
            first = first.into_iter().chain(found).min();
        }
        Ok(first)
    }

    /// In one component.
    fn find(&self, fd: BorrowedFd<'_>, whence: Whence, from: u64) -> Result<Option<u64>> {
        let to = match whence {
            Whence::Data => SeekFrom::Data(from),
            Whence::Hole => SeekFrom::Hole(from),
        };
        let size = || Ok(self.sys().stat(fd)?.st_size as u64);
        match (self.sys().seek(fd, to), whence) {
            // The file system knows no holes.
            (Err(Errno::INVAL), Whence::Data) => Ok((size()? > from).then_some(from)),
            (Err(Errno::INVAL), Whence::Hole) => Ok(Some(from.max(size()?))),
            (Err(Errno::NXIO), Whence::Data) => Ok(None),
            // It ends before.
            (Err(Errno::NXIO), Whence::Hole) => Ok(Some(from)),
            (found, _) => found.map(Some),
        }
    }
}
