//! One copy of an open file: its layout and its objects.

use std::ops::Range;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};

use stripewise_extents::CopyId;
use stripewise_layout::Layout;
use stripewise_sys::{OFlags, SysRef};
use stripewise_target::{ObjectSet, Opening, Piece, Server, TargetError};

use crate::error::{Errno, FileError, FileResult, LogOnce, Logged, Result};
use crate::manifest::{CopyRef, Manifest};

/// The smallest alignment that any device accepts for direct I/O, bytes.
const DIRECT_ALIGNMENT_LEAST: u64 = 512;

/// Options of one read or write.
#[derive(Clone, Copy, Debug, Default)]
pub struct IoOptions {
    /// The application's descriptor has O_DIRECT. The objects are then accessed with direct I/O if
    /// stripe widths, offset, lengths and addresses are aligned for it, else through the page
    /// cache.
    pub direct: bool,
}

pub(crate) struct OpenCopy {
    manifest: Arc<Manifest>,
    number: CopyId,
    layout: Layout,
    objects: ObjectSet,
    /// The objects opened a second time, with O_DIRECT. The inner `None` means that the file system
    /// does not support it.
    direct: OnceLock<Option<Direct>>,
    servers: Vec<Option<Server>>,
    writable: bool,
}

struct Direct {
    objects: ObjectSet,
    /// Memory addresses, offsets and lengths must be multiples of this number of bytes, for every
    /// object.
    alignment: u64,
}

impl OpenCopy {
    /// Creates copy `number` of the file described by `manifest`, which must list that copy.
    pub fn new(
        manifest: Arc<Manifest>,
        number: CopyId,
        objects: ObjectSet,
        servers: Vec<Option<Server>>,
        writable: bool,
    ) -> Self {
        let objects = objects.with_servers(servers.clone());
        let layout = described(&manifest, number).layout.clone();
        Self { manifest, number, layout, objects, direct: OnceLock::new(), servers, writable }
    }

    pub fn number(&self) -> CopyId {
        self.number
    }

    pub fn is_cache(&self) -> bool {
        described(&self.manifest, self.number).is_cache
    }

    #[inline]
    pub fn objects(&self) -> &ObjectSet {
        &self.objects
    }

    #[inline]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The logical file size that follows from the sizes of this copy's objects.
    pub fn file_size(&self) -> Result<u64> {
        let sizes = self.objects.sizes().logged()?;
        Ok(self.layout().file_size(&sizes))
    }

    /// The set of objects on which to do `pieces`: the O_DIRECT set if it was requested and the
    /// pieces are aligned, else the buffered set.
    pub fn set_for(&self, sys: &SysRef, pieces: &[Piece], options: IoOptions) -> &ObjectSet {
        let aligned = |to: u64| {
            let all = |piece: &Piece| piece.offset | piece.base as u64 | piece.len as u64;
            pieces.iter().all(|piece| all(piece).is_multiple_of(to))
        };
        let direct = options.direct && aligned(DIRECT_ALIGNMENT_LEAST);
        let direct = direct.then(|| self.direct(sys)).flatten();
        direct.filter(|direct| aligned(direct.alignment)).map_or(&self.objects, |direct| &direct.objects)
    }

    fn direct(&self, sys: &SysRef) -> Option<&Direct> {
        if self.direct.get().is_none() {
            // If another thread was first, this set is closed again.
            let _ = self.direct.set(self.open_direct(sys).ok());
        }
        self.direct.get().and_then(Option::as_ref)
    }

    fn open_direct(&self, sys: &SysRef) -> std::result::Result<Direct, TargetError> {
        let opening = Opening { read_only: !self.writable, flags: OFlags::DIRECT };
        let targets = self.objects.targets().to_vec();
        let objects = ObjectSet::open(sys, targets, self.objects.objects(), opening)?;
        let fds = (0..objects.len()).map(|index| objects.fd(index));
        let mut alignments = fds.map(|fd| fd.map(|fd| sys.direct_alignment(fd)));
        // Alignments are powers of two, so a multiple of the largest is a multiple of all.
        let alignment =
            alignments.try_fold(DIRECT_ALIGNMENT_LEAST, |most, each| each.map(|each| most.max(each)))?;
        Ok(Direct { objects: objects.with_servers(self.servers.clone()), alignment })
    }

    /// Truncates each object to its size in a file of `size` bytes. Never grows an object.
    pub fn cut(&self, size: u64) -> Result<()> {
        let sizes = self.objects.sizes().logged()?;
        for (index, now) in sizes.into_iter().enumerate() {
            let then = self.layout().object_size(index as u32, size);
            if now > then {
                self.objects.truncate(index, then).logged()?;
            }
        }
        Ok(())
    }

    /// Calls `call` with each object that has bytes of `range`: its descriptor, and offset and
    /// length of those bytes in it.
    pub fn each_extent(
        &self,
        range: &Range<u64>,
        mut call: impl FnMut(BorrowedFd<'_>, u64, u64) -> Result<()>,
    ) -> Result<()> {
        for index in 0..self.objects.len() {
            let start = self.layout().object_size(index as u32, range.start);
            let end = self.layout().object_size(index as u32, range.end);
            if start < end {
                call(self.objects.fd(index).logged()?, start, end - start)?;
            }
        }
        Ok(())
    }

    /// Grows the file to at least `size` bytes. Concurrent writes cannot make it shorter.
    pub fn grow_to(&self, size: u64) -> Result<()> {
        let Some(last) = size.checked_sub(1) else { return Ok(()) };
        let (target, offset) = self.layout().locate(last);
        self.objects.grow(target as usize, offset + 1).logged()
    }
}

/// The error of a copy with a missing target or object is why it is lost.
pub(crate) type OpenOrLost = FileResult<OpenCopy>;

/// Logs once on stderr why a copy is lost, and returns the errno for an application that needs it.
pub(crate) fn log_lost(error: &FileError) -> Errno {
    error.log_once();
    Errno::IO
}

fn described(manifest: &Manifest, number: CopyId) -> CopyRef<'_> {
    manifest.all_copies().nth(number.index()).unwrap_or_else(|| manifest.original())
}
