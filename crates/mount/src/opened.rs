//! Descriptors that programs have open through the mount.

use std::collections::HashMap;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use nix::errno::Errno;

use crate::directory::Listing;

/// An open file or directory.
pub struct Opened {
    file: File,
    /// The number of its node.
    pub node: u64,
    /// Of a directory: its entries, as they were when the program began to read them.
    pub listing: Listing,
}

impl Opened {
    /// Of this descriptor of the node with this number.
    pub fn new(file: File, node: u64) -> Arc<Self> {
        Arc::new(Self { file, node, listing: Listing::default() })
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// All open files, by the number that the kernel has for each.
#[derive(Default)]
pub struct Table {
    next: AtomicU64,
    all: RwLock<HashMap<u64, Arc<Opened>>>,
}

impl Table {
    /// Enters an open file. Returns its number.
    pub fn insert(&self, opened: Arc<Opened>) -> u64 {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        self.all.write().unwrap_or_else(PoisonError::into_inner).insert(number, opened);
        number
    }

    /// The open file of this number.
    ///
    /// # Errors
    /// EBADF: there is none.
    pub fn get(&self, number: u64) -> Result<Arc<Opened>, Errno> {
        let all = self.all.read().unwrap_or_else(PoisonError::into_inner);
        all.get(&number).cloned().ok_or(Errno::EBADF)
    }

    /// Takes out an open file. It is closed when the last call on it ends.
    pub fn remove(&self, number: u64) -> Option<Arc<Opened>> {
        self.all.write().unwrap_or_else(PoisonError::into_inner).remove(&number)
    }
}
