use proptest::prelude::*;

use super::cases;
use crate::{Cdt, Critical};

fn entry(offset: u64, len: u64, copy: usize, wanted: bool) -> Critical {
    Critical { file: 1, offset, len, copy, wanted }
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
fn the_flag_is_set_once_and_taken_once() {
    let mut cdt = Cdt::new(8);
    assert!(cdt.want(1, 0, 10, 1));
    assert!(!cdt.want(1, 0, 10, 1), "it is set already");
    assert!(cdt.want(1, 0, 20, 1), "another request");
    cdt.note(1, 0, 20, 1);
    assert!(cdt.get(1, 0).unwrap().wanted, "a use does not clear it");
    assert_eq!(cdt.next_wanted(), Some(entry(0, 20, 1, true)).map(|e| Critical { wanted: false, ..e }));
    assert_eq!(cdt.next_wanted(), None);
    assert!(cdt.want(1, 0, 20, 1), "fetched, and wanted again");
}

/// The table as a list in order of use, and the flagged places in the order in which they were
/// flagged.
struct Naive {
    entries: Vec<Critical>,
    wanted: Vec<(u64, u64)>,
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
        if newly {
            self.wanted.retain(|&place| place != (file, offset));
            self.wanted.push((file, offset));
        }
        let wanted = |place: &(u64, u64)| self.entries.iter().any(|e| (e.file, e.offset) == *place && e.wanted);
        self.wanted.retain(wanted);
        newly
    }

    fn next_wanted(&mut self) -> Option<Critical> {
        let place = (!self.wanted.is_empty()).then(|| self.wanted.remove(0))?;
        let entry = self.entries.iter_mut().find(|entry| (entry.file, entry.offset) == place).unwrap();
        entry.wanted = false;
        Some(*entry)
    }
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn is_a_bounded_list_in_order_of_use(
        capacity in 1usize..6,
        steps in prop::collection::vec((0u8..12, 1u64..3, 0u64..6, 1u64..3, 1usize..3), 1..200),
    ) {
        let mut cdt = Cdt::new(capacity);
        let mut naive = Naive { entries: Vec::new(), wanted: Vec::new(), capacity };
        for (what, file, offset, len, copy) in steps {
            match what {
                0 => prop_assert_eq!(cdt.next_wanted(), naive.next_wanted()),
                1 => {
                    cdt.forget(file);
                    naive.entries.retain(|entry| entry.file != file);
                    naive.wanted.retain(|place| place.0 != file);
                }
                2..6 => {
                    cdt.note(file, offset, len, copy);
                    naive.touch(file, offset, len, copy, false);
                }
                _ => prop_assert_eq!(
                    cdt.want(file, offset, len, copy),
                    naive.touch(file, offset, len, copy, true)
                ),
            }
            prop_assert_eq!(cdt.len(), naive.entries.len());
            prop_assert_eq!(cdt.is_empty(), naive.entries.is_empty());
            prop_assert_eq!(cdt.oldest_first().copied().collect::<Vec<_>>(), naive.entries.clone());
            for entry in &naive.entries {
                prop_assert_eq!(cdt.get(entry.file, entry.offset), Some(entry));
            }
        }
    }
}
