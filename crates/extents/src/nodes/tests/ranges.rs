//! Values of ranges, against an array.

use proptest::prelude::*;

use crate::nodes::Ranges;

const BYTES: u64 = 20;

proptest! {
    #[test]
    fn each_byte_has_the_value_that_it_was_given_last(
        changes in prop::collection::vec((0..BYTES, 0..BYTES, prop::option::of(0u8..3)), 0..20),
        asked in (0..BYTES, 0..BYTES),
    ) {
        let (mut ranges, mut model) = (Ranges::default(), [None; BYTES as usize]);
        for (start, end, value) in changes {
            ranges.set(&(start..end), value);
            (start..end).for_each(|byte| model[byte as usize] = value);
        }
        let mut all = [None; BYTES as usize];
        let mut before: Option<(u64, u8)> = None;
        for (range, value) in ranges.iter() {
            prop_assert!(!range.is_empty());
            prop_assert!(before.is_none_or(|(end, other)| end < range.start || end == range.start && other != value));
            before = Some((range.end, value));
            range.for_each(|byte| all[byte as usize] = Some(value));
        }
        prop_assert_eq!(all, model);
        let asked = asked.0..asked.1;
        let pieces = ranges.pieces(&asked);
        let mut at = asked.start;
        for (piece, value) in &pieces {
            prop_assert_eq!(piece.start, at);
            at = piece.end;
            prop_assert!(piece.clone().all(|byte| model[byte as usize] == *value));
        }
        prop_assert_eq!(at, asked.end.max(asked.start));
        let values = || asked.clone().map(|byte| model[byte as usize]);
        prop_assert_eq!(ranges.overlaps(&asked), values().any(|value| value.is_some()));
        prop_assert_eq!(ranges.covers(&asked), values().all(|value| value.is_some()));
    }
}
