//! A model of the copies, of the operations performed on them, and of the values that a byte may
//! have.
//!
//! Copies are bytes in memory. Each byte also has the set of values that it may have after a power
//! cut: its value at the last sync, and every value written since.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard};

use crate::Mask;
use crate::hooks::reach;

/// Initial value of every byte.
pub const FIRST: u8 = 9;
/// Value of a byte in a copy where it is not valid. No read may ever return it.
pub const GARBAGE: u8 = 77;

pub struct World(Mutex<Inner>);

pub struct Inner {
    pub size: u64,
    copies: Vec<Data>,
    writes: Vec<Write>,
    clock: u64,
    /// The size that the file is being truncated to. The copies differ after it.
    cutting: Option<u64>,
    /// Time when the last successful sync began.
    synced: u64,
}

struct Data {
    /// Length of the object.
    size: u64,
    now: Vec<u8>,
    /// The possible values of each byte.
    after_power_cut: Vec<BTreeSet<u8>>,
}

/// A write, with a value that no other write has.
struct Write {
    value: u8,
    range: Range<u64>,
    begun: u64,
    /// Time when the write was acknowledged, or its writer died.
    ended: Option<u64>,
    /// Time when each byte was acknowledged or seen by a read.
    effective: Vec<Option<u64>>,
}

impl World {
    /// Copies of `size` bytes, of which those in `mask` are valid.
    pub fn new(size: u64, copies: usize, mask: Mask) -> Self {
        let data = |copy| {
            let value = if mask.contains(crate::CopyId::new(copy)) { FIRST } else { GARBAGE };
            let after_power_cut = vec![BTreeSet::from([value]); size as usize];
            Data { size, now: vec![value; size as usize], after_power_cut }
        };
        let first = Write {
            value: FIRST,
            range: 0..size,
            begun: 0,
            ended: Some(0),
            effective: vec![Some(0); size as usize],
        };
        let copies = (0..copies).map(data).collect();
        Self(Mutex::new(Inner { size, copies, writes: vec![first], clock: 1, cutting: None, synced: 0 }))
    }

    pub fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Writes a byte to a copy.
    pub fn put(&self, copy: usize, byte: u64, value: u8) {
        reach("data");
        let data = &mut self.lock().copies[copy];
        data.now[byte as usize] = value;
        data.size = data.size.max(byte + 1);
        data.after_power_cut[byte as usize].insert(value);
    }

    pub fn get(&self, copy: usize, byte: u64) -> u8 {
        reach("data read");
        self.lock().copies[copy].now[byte as usize]
    }

    /// Syncs all copies, one after the other.
    pub fn sync_all(&self) {
        let count = self.lock().copies.len();
        for copy in 0..count {
            reach("fsync of a copy");
            let data = &mut self.lock().copies[copy];
            for (now, after) in data.now.iter().zip(&mut data.after_power_cut) {
                *after = BTreeSet::from([*now]);
            }
        }
    }

    /// Truncates all copies to `to` bytes, one after the other; each cut is immediate and durable.
    pub fn cut(&self, to: u64) {
        let count = self.lock().copies.len();
        for copy in 0..count {
            reach("cut a copy");
            let mut inner = self.lock();
            inner.cutting = Some(to);
            inner.cut(copy, to);
        }
        self.lock().cutting = None;
    }

    /// The file's size, derived from the objects.
    pub fn file_size(&self) -> u64 {
        self.lock().copies.iter().map(|data| data.size).max().unwrap_or(0)
    }

    /// Begins a write. Returns its number and its value.
    pub fn begin_write(&self, range: Range<u64>, value: Option<u8>) -> (usize, u8) {
        let mut inner = self.lock();
        let value = value.unwrap_or(100 + inner.writes.len() as u8);
        let begun = inner.tick();
        let effective = vec![None; inner.size as usize];
        inner.writes.push(Write { value, range, begun, ended: None, effective });
        (inner.writes.len() - 1, value)
    }

    pub fn acknowledge(&self, write: usize) {
        let mut inner = self.lock();
        let now = inner.tick();
        inner.writes[write].ended = Some(now);
        for at in &mut inner.writes[write].effective {
            at.get_or_insert(now);
        }
    }

    /// Ends the write of a process that died.
    pub fn died(&self, write: Option<usize>) {
        let mut inner = self.lock();
        let now = inner.tick();
        if let Some(write) = write {
            inner.writes[write].ended.get_or_insert(now);
        }
        // The next process that opens the file finishes a truncate. The model does so at once.
        if let Some(to) = inner.cutting.take() {
            (0..inner.copies.len()).for_each(|copy| inner.cut(copy, to));
        }
    }

    pub fn begin(&self) -> u64 {
        self.lock().tick()
    }

    pub fn end_sync(&self, begun: u64) {
        let mut inner = self.lock();
        inner.synced = inner.synced.max(begun);
    }

    /// Checks the bytes returned by a read that began at `begun`.
    pub fn end_read(&self, begun: u64, range: Range<u64>, bytes: &[u8]) -> Result<(), String> {
        let mut inner = self.lock();
        let now = inner.tick();
        for (byte, &value) in range.zip(bytes) {
            let allowed = inner.allowed(byte, begun);
            if !allowed.contains(&value) {
                return Err(format!("a read of byte {byte} saw {value}, and not one of {allowed:?}"));
            }
            let seen =
                inner.writes.iter_mut().filter(|write| write.value == value && write.range.contains(&byte));
            for write in seen {
                write.effective[byte as usize].get_or_insert(now);
            }
        }
        Ok(())
    }
}

impl Inner {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn cut(&mut self, copy: usize, to: u64) {
        let data = &mut self.copies[copy];
        data.size = data.size.min(to);
        for byte in to as usize..data.now.len() {
            data.now[byte] = 0;
            data.after_power_cut[byte] = BTreeSet::from([0]);
        }
    }

    /// The values that a byte may have for a process that looked at time `since` or later. A write
    /// is excluded if it ended before another write began, and that one had taken effect by
    /// `since`.
    fn allowed(&self, byte: u64, since: u64) -> BTreeSet<u8> {
        let here = || self.writes.iter().filter(move |write| write.range.contains(&byte));
        let replaced = |write: &Write| {
            let Some(ended) = write.ended else { return false };
            here().any(|other| {
                other.begun > ended
                    && other.effective[byte as usize].is_some_and(|effective| effective <= since)
            })
        };
        here().filter(|write| !replaced(write)).map(|write| write.value).collect()
    }

    /// Checks the current state of the copies against `masks`, the mask of each byte.
    pub fn check_now(&self, masks: &[Mask]) -> Result<(), String> {
        for (byte, mask) in masks.iter().enumerate() {
            let allowed = self.allowed(byte as u64, self.clock);
            let values: Vec<u8> = mask.iter().map(|copy| self.copies[copy.index()].now[byte]).collect();
            if let Some(value) = values.iter().find(|value| !allowed.contains(value)) {
                return Err(format!("byte {byte} is {value} in one of {mask:?}, and not one of {allowed:?}"));
            }
            let cutting = self.cutting.is_some_and(|to| byte as u64 >= to);
            if values.iter().any(|value| *value != values[0]) && !cutting {
                return Err(format!("byte {byte} is {values:?} in {mask:?}"));
            }
        }
        Ok(())
    }

    /// Checks the state that a power cut now would leave, if `masks` were the map then. Several
    /// valid copies must have the same content.
    pub fn check_power_cut(&self, masks: &[Mask]) -> Result<(), String> {
        for (byte, mask) in masks.iter().enumerate() {
            let allowed = self.allowed(byte as u64, self.synced);
            let may: Vec<&BTreeSet<u8>> =
                mask.iter().map(|copy| &self.copies[copy.index()].after_power_cut[byte]).collect();
            let all: BTreeSet<u8> = may.iter().flat_map(|may| may.iter().copied()).collect();
            if !all.is_subset(&allowed) {
                return Err(format!(
                    "after a power cut byte {byte} may be {all:?} in {mask:?}, and not only {allowed:?}"
                ));
            }
            let cutting = self.cutting.is_some_and(|to| byte as u64 >= to);
            if may.len() > 1 && all.len() > 1 && !cutting {
                return Err(format!("after a power cut byte {byte} may be {may:?} in {mask:?}"));
            }
        }
        Ok(())
    }

    /// Performs a power cut: each byte of each copy gets one of its possible values.
    pub fn power_cut(&mut self, mut choose: impl FnMut(usize) -> usize) {
        for data in &mut self.copies {
            for (now, may) in data.now.iter_mut().zip(&mut data.after_power_cut) {
                let chosen = choose(may.len());
                *now = may.iter().copied().nth(chosen).unwrap_or(GARBAGE);
                *may = BTreeSet::from([*now]);
            }
        }
        let now = self.tick();
        for write in &mut self.writes {
            write.ended.get_or_insert(now);
        }
    }
}
