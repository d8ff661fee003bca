//! All functions compared with a map of the file computed byte by byte.

use proptest::prelude::*;

use super::{cases, small, targets_byte_by_byte};
use crate::{Layout, MAX_OFFSET, Piece};

const FILE: u64 = 300;

/// The (target, offset in its object) of each of the first `FILE` bytes.
fn map(layout: &Layout) -> Vec<(u32, u64)> {
    let mut next = vec![0; layout.target_count()];
    let place = |target: u32| {
        next[target as usize] += 1;
        (target, next[target as usize] - 1)
    };
    targets_byte_by_byte(layout, FILE).into_iter().map(place).collect()
}

/// Pieces assembled from the map; a new one begins where the target changes.
fn pieces_of(map: &[(u32, u64)], from: usize, to: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for (at, &(target, target_offset)) in map.iter().enumerate().take(to).skip(from) {
        match pieces.last_mut().filter(|piece| piece.target == target) {
            Some(piece) => piece.len += 1,
            None => pieces.push(Piece { target, target_offset, file_offset: at as u64, len: 1 }),
        }
    }
    pieces
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn locate_and_file_offset(layout in small()) {
        for (offset, place) in (0..).zip(map(&layout)) {
            prop_assert_eq!(layout.locate(offset), place);
            prop_assert_eq!(layout.file_offset(place.0, place.1), Some(offset));
        }
    }

    #[test]
    fn pieces(layout in small(), from in 0..FILE, len in 0..FILE) {
        let to = (from + len).min(FILE);
        let expected = pieces_of(&map(&layout), from as usize, to as usize);
        let pieces: Vec<Piece> = layout.pieces(from, to - from).collect();
        prop_assert_eq!(pieces, expected);
    }

    #[test]
    fn a_piece_in_a_stripe_is_the_only_one(layout in small(), from in 0..FILE, len in 0..FILE) {
        let to = (from + len).min(FILE);
        let expected = pieces_of(&map(&layout), from as usize, to as usize);
        match layout.piece_in_stripe(from, to - from) {
            Some(piece) => prop_assert_eq!(&expected, &[piece]),
            // It may end where the next turn or region goes on in the same object.
            None => prop_assert!(len == 0 || to - from > 1),
        }
    }

    #[test]
    fn bytes_of_an_extent(layout in small(), from in 0..FILE, len in 0..FILE) {
        let to = (from + len).min(FILE);
        let mut expected = vec![0; layout.target_count() + 2];
        for &(target, _) in &map(&layout)[from as usize..to as usize] {
            expected[target as usize] += 1;
        }
        let mut bytes = vec![u64::MAX; expected.len()];
        layout.bytes_per_target(from, to - from, &mut bytes);
        prop_assert_eq!(&bytes, &expected);
        for (target, &expected) in (0..).zip(&expected) {
            prop_assert_eq!(layout.bytes_on(target, from, to - from), expected);
        }
        let touched: Vec<(u32, u64)> = (0..).zip(expected).filter(|of_target| of_target.1 > 0).collect();
        prop_assert_eq!(layout.targets_touched(from, to - from), touched.len());
        let mut found = vec![(0, 0)];
        layout.bytes_by_target(from, to - from, &mut found);
        prop_assert_eq!(found, touched);
    }

    #[test]
    fn object_sizes_of_a_full_file(layout in small(), size in 0..=FILE) {
        let mut expected = vec![0; layout.target_count()];
        for &(target, _) in &map(&layout)[..size as usize] {
            expected[target as usize] += 1;
        }
        let sizes: Vec<u64> =
            (0..layout.target_count() as u32).map(|target| layout.object_size(target, size)).collect();
        prop_assert_eq!(&sizes, &expected);
        prop_assert_eq!(layout.file_size(&sizes), size);
    }

    #[test]
    fn object_sizes_of_full_files(
        layout in small(),
        files in prop::collection::vec((0..=FILE, 0u64..4), 0..20),
    ) {
        let mut expected = vec![7; layout.target_count() + 1];
        for &(size, count) in &files {
            for &(target, _) in &map(&layout)[..size as usize] {
                expected[target as usize] += count;
            }
        }
        let mut sums = vec![7; expected.len()];
        layout.add_object_sizes(&files, &mut sums);
        prop_assert_eq!(sums, expected);
    }

    /// Objects of arbitrary lengths, as writes at any offset leave them.
    #[test]
    fn file_size_of_any_objects(layout in small(), sizes in prop::collection::vec(0u64..40, 9)) {
        let map = map(&layout);
        // The last byte of the file is the last one for which its object is long enough. An object
        // whose last byte is past the end of the map would need a larger map, so such cases are
        // skipped.
        let beyond = |target: usize| layout.object_size(target as u32, MAX_OFFSET);
        let in_map = |target: usize| layout.object_size(target as u32, FILE);
        prop_assume!((0..layout.target_count()).all(|t| sizes[t].min(beyond(t)) <= in_map(t)));
        let has = |&(target, offset): &(u32, u64)| offset < sizes[target as usize];
        let expected = map.iter().rposition(has).map_or(0, |last| last as u64 + 1);
        prop_assert_eq!(layout.file_size(&sizes), expected);
    }

    #[test]
    fn targets_are_those_of_the_cycles(layout in small()) {
        let mut expected: Vec<u32> =
            layout.regions().iter().flat_map(|region| &region.cycle).map(|stripe| stripe.target).collect();
        expected.sort_unstable();
        expected.dedup();
        prop_assert_eq!(layout.targets().collect::<Vec<_>>(), expected);
    }
}
