//! The operations of a process in a run.

use std::ops::Range;

use super::Process;
use crate::hooks::reach;
use crate::shared::Word;
use crate::tests::support::copy;
use crate::{CopyId, Map, Span};

impl Process {
    pub fn with_map<T>(&self, what: impl FnOnce(&Map) -> T) -> T {
        let guard = self.map.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        what(guard.as_ref().unwrap())
    }

    fn copies(&self) -> usize {
        self.spec.copies
    }

    /// Writes a unique value, to the copy `prefer` unless it is forbidden.
    pub fn write(&self, range: Range<u64>, prefer: usize) {
        let (id, value) = self.world.begin_write(range.clone(), None);
        *self.writing.lock().unwrap() = Some(id);
        self.with_map(|map| {
            let mut guard = map.begin_write(range).unwrap();
            let spans: Vec<Span> = guard.spans().to_vec();
            for span in spans {
                let may = |&number: &usize| !span.forbidden.contains(copy(number));
                let chosen = [prefer].into_iter().chain(0..self.copies()).find(may).unwrap();
                guard.prepare(span.range(), copy(chosen)).unwrap();
                (span.start..span.end).for_each(|byte| self.world.put(chosen, byte, value));
                guard.wrote(span.range(), copy(chosen)).unwrap();
            }
        });
        self.world.acknowledge(id);
        *self.writing.lock().unwrap() = None;
    }

    /// Reads from the copy `prefer` where it is valid.
    pub fn read(&self, range: Range<u64>, prefer: usize) {
        let begun = self.world.begin();
        self.with_map(|map| {
            let chosen = |span: &Span| {
                if span.mask.contains(copy(prefer)) { copy(prefer) } else { span.mask.lowest().unwrap() }
            };
            loop {
                let guard = map.begin_read(range.clone()).unwrap();
                let from = |span: &Span| (chosen(span), span.range());
                let parts: Vec<(CopyId, Range<u64>)> = guard.spans().iter().map(from).collect();
                let bytes = parts.into_iter().flat_map(|(copy, range)| range.map(move |byte| (copy, byte)));
                let bytes: Vec<u8> = bytes.map(|(copy, byte)| self.world.get(copy.index(), byte)).collect();
                if guard.still_valid(chosen).unwrap() {
                    self.world.end_read(begun, range, &bytes).unwrap_or_else(|what| panic!("{what}"));
                    return;
                }
            }
        });
    }

    /// Tries once to copy a range.
    pub fn copy(&self, range: Range<u64>, from: usize, to: usize) {
        self.with_map(|map| {
            let Some(mut copier) = map.copier().unwrap() else { return };
            let Some(guard) = copier.begin(range, copy(from), copy(to)).unwrap() else { return };
            for byte in guard.parts().iter().cloned().flatten() {
                let value = self.world.get(from, byte);
                self.world.put(to, byte, value);
            }
            guard.finish(|| Ok(())).unwrap();
        });
    }

    pub fn evict(&self, range: Range<u64>, from: usize) {
        let punch = |parts: &[Range<u64>]| {
            parts.iter().cloned().flatten().for_each(|byte| self.world.put(from, byte, 0));
            Ok(())
        };
        self.with_map(|map| {
            let Some(mut copier) = map.copier().unwrap() else { return };
            copier.evict(range, copy(from), || self.sync_data(), punch).unwrap();
        });
    }

    fn sync_data(&self) -> stripewise_sys::Result<()> {
        self.world.sync_all();
        Ok(())
    }

    pub fn sync(&self) {
        let begun = self.world.begin();
        self.with_map(|map| map.sync(|| self.sync_data()).unwrap());
        reach("sync is over");
        self.world.end_sync(begun);
    }

    /// Truncates the file to `to` bytes; the bytes after that read as zeros.
    pub fn truncate(&self, to: u64) {
        let size = self.world.lock().size;
        let (id, _) = self.world.begin_write(to..size, Some(0));
        *self.writing.lock().unwrap() = Some(id);
        self.with_map(|map| {
            let _guard = map.begin_truncate(to).unwrap();
            self.world.cut(to);
        });
        self.world.acknowledge(id);
        *self.writing.lock().unwrap() = None;
    }

    /// Forgets the masks after `to`. No other process needs the size lock in these runs.
    pub fn forget_behind(&self, to: u64) {
        let size = || {
            reach("size");
            Ok(self.world.file_size())
        };
        self.with_map(|map| {
            map.truncated(to, size).unwrap();
        });
    }

    /// Makes the next sync rewrite the journal, as after a failed append.
    pub fn break_journal(&self) {
        self.with_map(|map| map.joined().unwrap().shared.set(Word::JournalBroken, 1));
    }

    pub fn leave(&self) {
        let map = self.map.lock().unwrap().take();
        map.unwrap().leave(|| self.sync_data()).unwrap();
    }

    pub fn join(&self) {
        let map = Map::join_tuned(self.sys.clone(), self.spec.clone(), crate::tests::support::SMALL).unwrap();
        *self.map.lock().unwrap() = Some(map);
    }
}
