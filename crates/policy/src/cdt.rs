//! The critical data table (SLA §3.3): recent performance-critical requests. Its size is bounded,
//! and the least recently used entry is replaced first.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};

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
    slots: Vec<Slot>,
    index: HashMap<(u64, u64), u32, BuildHasherDefault<Mixer>>,
    /// The most and the least recently used slots.
    newest: u32,
    oldest: u32,
    capacity: usize,
    /// Slots whose C_flag was set, with the time of that, oldest first. Pairs whose flag has been
    /// cleared or set again since are skipped.
    wanted: VecDeque<(u32, u64)>,
    /// Number of times that a flag was set.
    clock: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    entry: Critical,
    /// Time when the flag was last set.
    flagged: u64,
    newer: u32,
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
        let (slots, index, wanted) = (Vec::new(), HashMap::default(), VecDeque::new());
        Self { slots, index, newest: NONE, oldest: NONE, capacity, wanted, clock: 0 }
    }

    /// Number of entries.
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the table is empty.
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// The entry at a place. This does not count as a use.
    pub fn get(&self, file: u64, offset: u64) -> Option<&Critical> {
        self.index.get(&(file, offset)).map(|&slot| &self.slots[slot as usize].entry)
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
        let newly = !self.slots[slot as usize].entry.wanted;
        if newly {
            self.flag(slot);
        }
        newly
    }

    /// Returns the entry whose C_flag has been set for the longest time, for fetching. Its flag is
    /// cleared, and the entry stays in the table.
    pub fn next_wanted(&mut self) -> Option<Critical> {
        while let Some((slot, flagged)) = self.wanted.pop_front() {
            if self.slots[slot as usize].is_wanted_since(flagged) {
                let entry = &mut self.slots[slot as usize].entry;
                entry.wanted = false;
                return Some(*entry);
            }
        }
        None
    }

    /// Removes all entries of a file, for example when it is deleted. O(capacity).
    pub fn forget(&mut self, file: u64) {
        let mut rest = Self::new(self.capacity);
        for entry in self.oldest_first().filter(|entry| entry.file != file) {
            rest.note(entry.file, entry.offset, entry.len, entry.copy);
        }
        while let Some(entry) = self.next_wanted() {
            if let Some(&slot) = rest.index.get(&(entry.file, entry.offset)) {
                rest.flag(slot);
            }
        }
        *self = rest;
    }

    /// All entries, the least recently used first.
    pub fn oldest_first(&self) -> impl Iterator<Item = &Critical> {
        let slot = |slot: u32| self.slots.get(slot as usize);
        std::iter::successors(slot(self.oldest), move |last| slot(last.newer)).map(|slot| &slot.entry)
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
            self.slots.push(Slot { entry, flagged: 0, newer: NONE, older: NONE });
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

    fn flag(&mut self, slot: u32) {
        self.clock += 1;
        let flagged = &mut self.slots[slot as usize];
        (flagged.entry.wanted, flagged.flagged) = (true, self.clock);
        self.wanted.push_back((slot, self.clock));
        if self.wanted.len() > 2 * self.capacity {
            let slots = &self.slots;
            self.wanted.retain(|&(slot, flagged)| slots[slot as usize].is_wanted_since(flagged));
        }
    }
}

impl Slot {
    fn is_wanted_since(&self, flagged: u64) -> bool {
        self.entry.wanted && self.flagged == flagged
    }
}

/// A fast hash for a few numbers (multiply and fold). It does not resist numbers chosen by an
/// adversary, who could only slow down their own requests.
#[derive(Clone, Default)]
struct Mixer(u64);

impl Hasher for Mixer {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number ^ 0x2545_f491_4f6c_dd1d) * 0x9e37_79b9_7f4a_7c15;
        self.0 = (product >> 64) as u64 ^ product as u64;
    }
}
