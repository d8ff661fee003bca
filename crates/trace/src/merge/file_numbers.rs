//! The trace's numbers of the files that a spool names.

use std::collections::HashMap;

/// Numbers by a spool's own file numbers. Memory: 4 bytes for each if they are consecutive, as a
/// recorder numbers files.
#[derive(Default)]
pub(super) struct FileNumbers {
    /// The spool's number of the first of `dense`.
    first: u32,
    dense: Vec<u32>,
    /// Numbers before the first and far behind the last of `dense`.
    sparse: HashMap<u32, u32>,
}

/// A spool's number without a file in [`FileNumbers::dense`].
const NONE: u32 = u32::MAX;

/// Maximum number of missing files before a number that still goes to [`FileNumbers::dense`].
const GAP_MAX: usize = 1024;

impl FileNumbers {
    /// Sets the number of file `id` of the spool.
    pub(super) fn insert(&mut self, id: u32, number: u32) {
        if self.dense.is_empty() {
            self.first = id;
        }
        match id.checked_sub(self.first).map(|index| index as usize) {
            Some(index) if index <= self.dense.len() + GAP_MAX => {
                if index >= self.dense.len() {
                    self.dense.resize(index + 1, NONE);
                }
                self.dense[index] = number;
                // A number that was far behind has come near.
                self.sparse.remove(&id);
            }
            _ => _ = self.sparse.insert(id, number),
        }
    }

    /// The number of file `id` of the spool.
    pub(super) fn get(&self, id: u32) -> Option<u32> {
        let dense = id.checked_sub(self.first).and_then(|index| self.dense.get(index as usize));
        dense.copied().filter(|&number| number != NONE).or_else(|| self.sparse.get(&id).copied())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn numbers_are_those_of_a_map(
            ids in prop::collection::vec(prop_oneof![0u32..50, 0u32..5000, any::<u32>()], 0..200),
        ) {
            let (mut numbers, mut expected) = (FileNumbers::default(), HashMap::new());
            for (&id, number) in ids.iter().zip(0..) {
                numbers.insert(id, number);
                expected.insert(id, number);
                prop_assert!(expected.iter().all(|(&id, &number)| numbers.get(id) == Some(number)));
            }
            prop_assert!((0..5100).all(|id| numbers.get(id) == expected.get(&id).copied()));
        }
    }

    #[test]
    fn consecutive_numbers_take_4_bytes_each() {
        let mut numbers = FileNumbers::default();
        (1000..2000).for_each(|id| numbers.insert(id, id));
        assert_eq!((numbers.dense.len(), numbers.sparse.len()), (1000, 0));
        numbers.insert(u32::MAX, 7);
        assert_eq!((numbers.dense.len(), numbers.get(u32::MAX)), (1000, Some(7)));
    }
}
