//! The index compared with a vector of bytes.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use proptest::prelude::*;
use stripewise_sys::{Real, SysRef};

use super::*;
use crate::lmdb::{Limits, Space};

/// The file is modeled around the boundary of two segments.
const BYTES: usize = 60;
const BASE: u64 = (1 << 20) - BYTES as u64 / 2;

#[derive(Clone, Debug)]
enum Step {
    Change(Range<u64>, u8),
    Only(Range<u64>, u8),
    Commit,
    Want(Range<u64>, u8, bool),
}

fn range() -> impl Strategy<Value = Range<u64>> {
    let end = BASE + BYTES as u64;
    let inside = (0..BYTES as u64, 1..20u64);
    let inside = inside.prop_map(move |(start, len)| BASE + start..(BASE + start + len).min(end));
    prop_oneof![9 => inside, 1 => (0..BYTES as u64).prop_map(|start| BASE + start..u64::MAX)]
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (range(), 1u8..8).prop_map(|(range, mask)| Step::Change(range, mask)),
        2 => (range(), 0u8..3).prop_map(|(range, copy)| Step::Only(range, copy)),
        2 => Just(Step::Commit),
        2 => (range(), 0u8..3, any::<bool>()).prop_map(|(range, copy, on)| Step::Want(range, copy, on)),
    ]
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Byte {
    mask: u8,
    /// Lower bound of the sequence number.
    seq: u64,
    hints: u8,
}

struct Pair {
    sys: SysRef,
    _dir: tempfile::TempDir,
    index: Index,
    allocated: AtomicU64,
    /// `BYTES` elements, and one more for the rest of the file.
    model: Vec<Byte>,
    committed: u64,
}

const DEFAULT: Mask = Mask::from_bits(1);

fn bytes_of(range: &Range<u64>) -> Range<usize> {
    (range.start - BASE) as usize..(range.end - BASE).min(BYTES as u64 + 1) as usize
}

impl Pair {
    fn new() -> Self {
        let sys: SysRef = Arc::new(Real);
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let limits = Limits { map_bytes: 16 << 20, readers: 16 };
        let env = Env::open(&sys, dir.path(), Some(limits)).unwrap();
        let model = vec![Byte { mask: DEFAULT.bits(), seq: 0, hints: 0 }; BYTES + 1];
        let index = Index::new(env, DEFAULT);
        Self { sys, _dir: dir, index, allocated: AtomicU64::new(0), model, committed: 0 }
    }

    fn txn(&self) -> WriteTxn<'_> {
        self.index.env.write(Space { sys: &self.sys, allocated: &self.allocated }, "change the index").unwrap()
    }

    fn step(&mut self, step: &Step) {
        let mut txn = self.txn();
        let id = txn.id();
        let mut model = self.model.clone();
        let mut committed = self.committed;
        match step {
            Step::Change(range, mask) => {
                self.index
                    .change(&mut txn, range.clone(), Marking::Pending, |_| Some(Mask::from_bits(*mask)))
                    .unwrap();
                for byte in model[bytes_of(range)].iter_mut().filter(|byte| byte.mask != *mask) {
                    (byte.mask, byte.seq) = (*mask, id);
                }
            }
            Step::Only(range, copy) => {
                let copy = CopyId::new(usize::from(*copy));
                let to = |part: Entry| part.mask.contains(copy).then_some(Mask::only(copy));
                self.index.change(&mut txn, range.clone(), Marking::Pending, to).unwrap();
                let bit = Mask::only(copy).bits();
                for byte in model[bytes_of(range)].iter_mut() {
                    if byte.mask & bit != 0 && byte.mask != bit {
                        (byte.mask, byte.seq) = (bit, id);
                    }
                }
            }
            Step::Commit => {
                let segments = self.index.pending_segments(&txn).unwrap();
                self.index.committed(&mut txn, id - 1, &segments).unwrap();
                committed = id - 1;
            }
            Step::Want(range, copy, hints) => {
                let id = CopyId::new(usize::from(*copy));
                if *hints {
                    self.index.add_hint(&mut txn, range.clone(), id).unwrap();
                } else {
                    self.index.remove_hints(&mut txn, range.clone(), Mask::only(id)).unwrap();
                }
                for byte in &mut model[bytes_of(range)] {
                    byte.hints = if *hints { byte.hints | 1 << copy } else { byte.hints & !(1 << copy) };
                }
            }
        }
        txn.commit().unwrap();
        (self.model, self.committed) = (model, committed);
    }

    fn check(&self, before: &[Entry]) -> Vec<Entry> {
        let txn = self.index.env.read().unwrap();
        let mut entries: Vec<Entry> = Vec::new();
        self.index
            .map
            .visit(&txn, 0..u64::MAX, |entry| {
                entries.push(entry);
                true
            })
            .unwrap();
        for pair in entries.windows(2) {
            assert!(pair[0].end <= pair[1].start, "overlap: {pair:?}");
        }
        let (mut listed, mut clean) = ([0u64; CopyId::LIMIT], [0u64; CopyId::LIMIT]);
        for entry in &entries {
            let pending = entry.seq > self.committed;
            assert!(pending || entry.mask != DEFAULT, "needless: {entry:?}");
            for copy in entry.mask.iter() {
                listed[copy.index()] += entry.end - entry.start;
                clean[copy.index()] += if entry.mask.is_only(copy) { 0 } else { entry.end - entry.start };
            }
        }
        let state = self.index.state(&txn).unwrap();
        assert_eq!((state.committed, state.listed, state.clean), (self.committed, listed, clean));
        self.check_bytes(&entries, before);
        self.check_pending(&entries);
        let mut hints = vec![0; BYTES + 1];
        self.index
            .hints
            .visit(&txn, 0..u64::MAX, |entry| {
                assert!(!entry.mask.is_empty());
                hints[bytes_of(&(entry.start..entry.end))].fill(entry.mask.bits());
                true
            })
            .unwrap();
        assert!(self.model.iter().map(|byte| byte.hints).eq(hints));
        entries
    }

    /// Masks are right. Numbers are those of the last change or of a later one of a neighbor, and
    /// never decrease.
    fn check_bytes(&self, entries: &[Entry], before: &[Entry]) {
        let at = |entries: &[Entry], byte: u64| {
            let found = entries.iter().find(|entry| entry.start <= byte && byte < entry.end);
            found.map_or((DEFAULT.bits(), 0), |entry| (entry.mask.bits(), entry.seq))
        };
        for (number, byte) in self.model.iter().enumerate() {
            let position = if number == BYTES { u64::MAX - 1 } else { BASE + number as u64 };
            let (mask, seq) = at(entries, position);
            assert_eq!(mask, byte.mask, "byte {number}");
            let (was, was_seq) = at(before, position);
            if mask != was {
                assert!(seq > was_seq, "byte {number}");
            } else if seq != 0 {
                assert!(seq >= was_seq, "byte {number}");
            }
            assert!(seq > self.committed || byte.seq <= self.committed, "byte {number}");
        }
    }

    fn check_pending(&self, entries: &[Entry]) {
        let txn = self.index.env.read().unwrap();
        let mut found = Vec::new();
        for segment in self.index.pending_segments(&txn).unwrap() {
            self.index.pending_in(&txn, segment, self.committed, |entry| found.push(entry)).unwrap();
        }
        let pending: Vec<Entry> = entries.iter().copied().filter(|entry| entry.seq > self.committed).collect();
        assert_eq!(found, pending);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("STRIPEWISE_LONG").is_some() { 5000 } else { 200 }))]

    #[test]
    fn the_index_is_like_a_vector_of_bytes(steps in prop::collection::vec(step(), 0..40)) {
        let mut pair = Pair::new();
        let mut entries = Vec::new();
        for step in &steps {
            pair.step(step);
            entries = pair.check(&entries);
        }
    }

    #[test]
    fn parts_cover_a_range_without_gaps(steps in prop::collection::vec(step(), 0..20), range in range()) {
        let mut pair = Pair::new();
        steps.iter().for_each(|step| pair.step(step));
        let txn = pair.index.env.read().unwrap();
        let mut at = range.start;
        pair.index.map.parts(&txn, range.clone(), |part| {
            assert_eq!(part.start, at);
            at = part.end;
            true
        }).unwrap();
        prop_assert_eq!(at, range.end);
    }
}

#[test]
fn sequential_small_writes_are_one_entry_per_segment() {
    let pair = Pair::new();
    for number in 0..1024u64 {
        let mut txn = pair.txn();
        let range = number * 4096..(number + 1) * 4096;
        pair.index.change(&mut txn, range, Marking::Pending, |_| Some(Mask::from_bits(2))).unwrap();
        txn.commit().unwrap();
    }
    let txn = pair.index.env.read().unwrap();
    assert_eq!(pair.index.size(&txn).unwrap().0, 4);
}

#[test]
fn a_change_that_finds_no_space_fails_and_changes_nothing() {
    let pair = Pair::new();
    let full = crate::tests::support::Failing::new("allocate", stripewise_sys::Errno::NOSPC);
    let allocated = AtomicU64::new(0);
    let mut txn =
        pair.index.env.write(Space { sys: &full, allocated: &allocated }, "change the index").unwrap();
    let failure =
        pair.index.change(&mut txn, 0..10, Marking::Pending, |_| Some(Mask::from_bits(2))).unwrap_err();
    assert_eq!(failure.errno(), stripewise_sys::Errno::NOSPC);
    drop(txn);
    let txn = pair.index.env.read().unwrap();
    assert_eq!(pair.index.size(&txn).unwrap().0, 0);
}
