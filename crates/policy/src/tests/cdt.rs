use proptest::prelude::*;

use super::cases;
use crate::{Cdt, Critical};

fn entry(offset: u64, len: u64, copy: usize, wanted: bool) -> Critical {
    Critical { file: 1, offset, len, copy, wanted }
}

impl Cdt {
    pub(super) fn get(&self, file: u64, offset: u64) -> Option<&Critical> {
        self.index.get(&(file, offset)).map(|&slot| &self.slots[slot as usize].entry)
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// All entries, the least recently used first.
    fn oldest_first(&self) -> Vec<Critical> {
        let slot = |slot: u32| self.slots.get(slot as usize);
        std::iter::successors(slot(self.oldest), |last| slot(last.newer)).map(|slot| slot.entry).collect()
    }
}

#[test]
fn a_full_table_forgets_what_was_used_least_recently() {
    let mut cdt = Cdt::new(2);
    cdt.note(1, 0, 10, 1);
    cdt.note(1, 10, 10, 2);
    cdt.note(1, 0, 10, 1);
    cdt.note(1, 20, 10, 1);
    assert_eq!(cdt.get(1, 10), None);
    assert_eq!(cdt.get(1, 0), Some(&entry(0, 10, 1, false)));
    assert_eq!(cdt.len(), 2);
}

#[test]
fn the_flag_is_set_once() {
    let mut cdt = Cdt::new(8);
    assert!(cdt.want(1, 0, 10, 1));
    assert!(!cdt.want(1, 0, 10, 1), "it is set already");
    assert!(cdt.want(1, 0, 20, 1), "another request");
    cdt.note(1, 0, 20, 1);
    assert!(cdt.get(1, 0).unwrap().wanted, "a use does not clear it");
}

/// The table as a list in order of use.
struct Naive {
    entries: Vec<Critical>,
    capacity: usize,
}

impl Naive {
    fn touch(&mut self, file: u64, offset: u64, len: u64, copy: usize, want: bool) -> bool {
        let at = self.entries.iter().position(|entry| (entry.file, entry.offset) == (file, offset));
        let fresh = Critical { file, offset, len, copy, wanted: false };
        let mut entry = at.map(|at| self.entries.remove(at)).unwrap_or(fresh);
        if (entry.len, entry.copy) != (len, copy) {
            entry = fresh;
        }
        let newly = want && !entry.wanted;
        entry.wanted |= want;
        if at.is_none() && self.entries.len() == self.capacity {
            self.entries.remove(0);
        }
        self.entries.push(entry);
        newly
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn is_a_bounded_list_in_order_of_use(
        capacity in 1usize..6,
        steps in prop::collection::vec((0u8..10, 1u64..3, 0u64..6, 1u64..3, 1usize..3), 1..200),
    ) {
        let mut cdt = Cdt::new(capacity);
        let mut naive = Naive { entries: Vec::new(), capacity };
        for (what, file, offset, len, copy) in steps {
            match what {
                0..4 => {
                    cdt.note(file, offset, len, copy);
                    naive.touch(file, offset, len, copy, false);
                }
                _ => prop_assert_eq!(
                    cdt.want(file, offset, len, copy),
                    naive.touch(file, offset, len, copy, true)
                ),
            }
            prop_assert_eq!(cdt.len(), naive.entries.len());
            prop_assert_eq!(cdt.oldest_first(), naive.entries.clone());
            for entry in &naive.entries {
                prop_assert_eq!(cdt.get(entry.file, entry.offset), Some(entry));
            }
        }
    }
}
