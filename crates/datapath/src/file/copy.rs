//! One copy of an open file: its layout and its components.

use std::sync::{Arc, OnceLock};

use stripewise_layout::Layout;
use stripewise_sys::{OFlags, SysRef};
use stripewise_target::{ComponentSet, Opening, Piece, Server};

use super::io::IoOptions;
use crate::manifest::{CopyRef, Manifest};
use crate::trouble::{self, Trouble};
use crate::{Errno, Result};

/// Memory, offsets and lengths of direct I/O are multiples of this: the largest block size of devices in use.
const DIRECT_ALIGNMENT: u64 = 4096;

/// A copy whose components are open.
pub(crate) struct OpenCopy {
    manifest: Arc<Manifest>,
    number: usize,
    components: ComponentSet,
    /// The components once more, with O_DIRECT; `None` inside: the file system does not permit it.
    direct: OnceLock<Option<ComponentSet>>,
    /// The emulated server of each component.
    servers: Vec<Option<Server>>,
    writable: bool,
}

impl OpenCopy {
    /// Of copy `number` of the file that `manifest` is of; it has that many.
    pub fn new(
        manifest: Arc<Manifest>,
        number: usize,
        components: ComponentSet,
        servers: Vec<Option<Server>>,
        writable: bool,
    ) -> Self {
        let components = components.with_servers(servers.clone());
        Self { manifest, number, components, direct: OnceLock::new(), servers, writable }
    }

    /// Its number among the copies: 0 is the original.
    pub fn number(&self) -> usize {
        self.number
    }

    pub fn is_cache(&self) -> bool {
        self.manifest.is_cache(self.number)
    }

    pub fn components(&self) -> &ComponentSet {
        &self.components
    }

    pub fn layout(&self) -> &Layout {
        self.manifest.copy(self.number).map_or(&self.manifest.layout, |copy| copy.layout)
    }

    /// The size of the file that the components give.
    pub fn file_size(&self) -> Result<u64> {
        let sizes = self.components.sizes().map_err(|error| trouble::told(&error))?;
        Ok(self.layout().file_size(&sizes))
    }

    /// The components to do `pieces` on: those with O_DIRECT where that was asked for and can be done.
    pub fn set_for(&self, sys: &SysRef, pieces: &[Piece], options: IoOptions) -> &ComponentSet {
        let aligned = |piece: &Piece| {
            let all = piece.offset | piece.base as u64 | piece.len as u64;
            all.is_multiple_of(DIRECT_ALIGNMENT)
        };
        let direct = options.direct && pieces.iter().all(aligned);
        direct.then(|| self.direct_components(sys)).flatten().unwrap_or(&self.components)
    }

    fn direct_components(&self, sys: &SysRef) -> Option<&ComponentSet> {
        if self.direct.get().is_none() {
            let opening = Opening { read_only: !self.writable, flags: OFlags::DIRECT };
            let targets = self.components.targets().to_vec();
            let set = ComponentSet::open(sys, targets, self.components.id(), opening).ok();
            // Another thread may have been first: then this set is closed again.
            let _ = self.direct.set(set.map(|set| set.with_servers(self.servers.clone())));
        }
        self.direct.get().and_then(Option::as_ref)
    }

    /// Cuts the components to what a file of `size` bytes has.
    pub fn cut(&self, size: u64) -> Result<()> {
        let sizes = self.components.sizes().map_err(|error| trouble::told(&error))?;
        for (index, now) in sizes.into_iter().enumerate() {
            let then = self.layout().component_size(index as u32, size);
            if now > then {
                self.components.truncate(index, then).map_err(|error| trouble::told(&error))?;
            }
        }
        Ok(())
    }

    /// Makes the file at least `size` bytes long, whoever else writes.
    pub fn grow_to(&self, size: u64) -> Result<()> {
        let Some(last) = size.checked_sub(1) else { return Ok(()) };
        let (target, offset) = self.layout().locate(last);
        self.components.grow(target as usize, offset + 1).map_err(|error| trouble::told(&error))
    }
}

/// A further copy of a file that is open, or why it cannot be used.
pub(crate) type Further = std::result::Result<OpenCopy, Lost>;

/// A copy of which a target or component is missing.
#[derive(Clone, Debug)]
pub(crate) struct Lost {
    pub trouble: Trouble,
}

impl Lost {
    /// What an application is told that needs it, and a line on stderr.
    pub fn told(&self) -> Errno {
        self.trouble.told();
        Errno::IO
    }
}

impl Manifest {
    /// Copy `number`: 0 is the original.
    pub(crate) fn copy(&self, number: usize) -> Option<CopyRef<'_>> {
        self.all_copies().nth(number)
    }
}
