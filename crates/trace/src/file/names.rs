//! The names of all files of a trace, by number.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use hashbrown::HashTable;

use crate::spool;

/// Maximum length of a file name in a trace, bytes. The merge replaces each byte that is not UTF-8
/// by a character of 3 bytes.
const NAME_BYTES_MAX: usize = 3 * spool::NAME_BYTES_MAX;

/// File names in order of first appearance in the row groups' dictionaries. Memory: the names, and
/// some 60 bytes for each.
#[derive(Default)]
pub(super) struct Names {
    names: Vec<Arc<str>>,
    /// Numbers, by hash of the name.
    numbers: HashTable<u32>,
    hasher: RandomState,
}

impl Names {
    /// All names, by number.
    pub(super) fn all(&self) -> &[Arc<str>] {
        &self.names
    }

    /// The number of a name that was added.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.numbers.find(self.hasher.hash_one(name), |number| self.is(*number, name)).copied()
    }

    /// The number of a name, which is added if it is new; `None` if it is longer than
    /// [`NAME_BYTES_MAX`]. All names are in memory at once, and compressed names take little space
    /// in the file, so long ones would exhaust the memory.
    pub(super) fn add(&mut self, name: &str) -> Option<u32> {
        if name.len() > NAME_BYTES_MAX {
            return None;
        }
        Some(self.find(name).unwrap_or_else(|| {
            let number = self.names.len() as u32;
            self.names.push(name.into());
            let Self { names, numbers, hasher } = self;
            let hash = |number: &u32| hasher.hash_one(&*names[*number as usize]);
            numbers.insert_unique(hash(&number), number, hash);
            number
        }))
    }

    fn is(&self, number: u32, name: &str) -> bool {
        *self.names[number as usize] == *name
    }
}
