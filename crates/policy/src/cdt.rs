//! The critical data table (SLA §3.3): recent performance-critical requests. Its size is bounded,
//! and the least recently used entry is replaced first.

use std::collections::HashMap;

use crate::hash::FastHash;

/// An entry, with the paper's D_file, D_offset, Length, Layout and C_flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Critical {
    /// The caller's number of the file.
    pub file: u64,
    /// First byte, a file offset.
    pub offset: u64,
    /// Length, bytes.
    pub len: u64,
    /// The copy that should cache the data: the one whose layout has the largest benefit.
    pub copy: usize,
    /// C_flag: the Rebuilder should fetch the data.
    pub wanted: bool,
}

/// The table. The key of an entry is its file and offset; another request at the same place
/// replaces the entry.
#[derive(Clone, Debug)]
pub struct Cdt {
    pub(crate) slots: Vec<Slot>,
    pub(crate) index: HashMap<(u64, u64), u32, FastHash>,
    /// The most and the least recently used slots.
    newest: u32,
    pub(crate) oldest: u32,
    capacity: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub(crate) entry: Critical,
    pub(crate) newer: u32,
    older: u32,
}

const NONE: u32 = u32::MAX;

/// Maximum entries of the table of a process, about 100 bytes each.
const ENTRIES_MAX: usize = 1 << 16;

impl Default for Cdt {
    /// The table of a process.
    fn default() -> Self {
        Self::new(ENTRIES_MAX)
    }
}

impl Cdt {
    /// An empty table of at most `capacity` entries (1 to 2^31). An entry takes some 100 bytes,
    /// allocated when it is added.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, 1 << 31);
        Self { slots: Vec::new(), index: HashMap::default(), newest: NONE, oldest: NONE, capacity }
    }

    /// Records a critical request, whose entry becomes the most recently used one. An entry with
    /// another length or copy is replaced and loses its flag. If the table is full, the least
    /// recently used entry is removed.
    pub fn note(&mut self, file: u64, offset: u64, len: u64, copy: usize) {
        self.entry(file, offset, len, copy);
    }

    /// Records a critical request and sets its C_flag (Algorithm 1, line 22). Returns whether the
    /// flag was not set before.
    pub fn want(&mut self, file: u64, offset: u64, len: u64, copy: usize) -> bool {
        let slot = self.entry(file, offset, len, copy);
        !std::mem::replace(&mut self.slots[slot as usize].entry.wanted, true)
    }

    /// The slot of the entry for this request, which becomes the most recently used one.
    fn entry(&mut self, file: u64, offset: u64, len: u64, copy: usize) -> u32 {
        let entry = Critical { file, offset, len, copy, wanted: false };
        if let Some(&slot) = self.index.get(&(file, offset)) {
            let known = &mut self.slots[slot as usize].entry;
            if (known.len, known.copy) != (len, copy) {
                *known = entry;
            }
            if self.newest != slot {
                self.unlink(slot);
                self.link(slot);
            }
            return slot;
        }
        let slot = if self.slots.len() < self.capacity {
            self.slots.push(Slot { entry, newer: NONE, older: NONE });
            (self.slots.len() - 1) as u32
        } else {
            let slot = self.oldest;
            let gone = std::mem::replace(&mut self.slots[slot as usize].entry, entry);
            self.index.remove(&(gone.file, gone.offset));
            self.unlink(slot);
            slot
        };
        self.index.insert((file, offset), slot);
        self.link(slot);
        slot
    }

    fn unlink(&mut self, slot: u32) {
        let Slot { newer, older, .. } = self.slots[slot as usize];
        match self.slots.get_mut(newer as usize) {
            Some(newer) => newer.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = newer,
            None => self.oldest = newer,
        }
    }

    fn link(&mut self, slot: u32) {
        let older = std::mem::replace(&mut self.newest, slot);
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = slot,
            None => self.oldest = slot,
        }
        let slot = &mut self.slots[slot as usize];
        (slot.newer, slot.older) = (NONE, older);
    }
}
