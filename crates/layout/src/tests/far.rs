//! Wide stripes and offsets up to 2^63, where sums may overflow.

use proptest::prelude::*;

use super::{cases, layout, object_size_slowly};
use crate::{Layout, MAX_OFFSET, Stripe};

/// Lengths of every magnitude up to 2^`bits`.
fn any_magnitude(bits: u32) -> impl Strategy<Value = u64> + Clone {
    (0..bits, any::<u64>()).prop_map(move |(shift, bits_of)| {
        let ceiling = 1u64 << (shift + 1);
        bits_of % ceiling + 1
    })
}

/// Four regions of at most 2^60 bytes; cycles of at most 7 stripes of 2^59, so that a cycle is
/// always below 2^63.
fn large() -> impl Strategy<Value = Layout> {
    layout(any_magnitude(60), any_magnitude(59))
}

/// Offsets of every magnitude, and those just below 2^63 - 1.
fn offset() -> impl Strategy<Value = u64> {
    let near_end = (1u64..1_000_000).prop_map(|before| MAX_OFFSET - before);
    prop_oneof![any_magnitude(62).prop_map(|offset| offset.min(MAX_OFFSET - 1)), near_end]
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn locate_agrees_with_the_object_sizes_and_back(layout in large(), offset in offset()) {
        let (target, target_offset) = layout.locate(offset);
        prop_assert_eq!(target_offset, object_size_slowly(&layout, target, offset));
        prop_assert_eq!(object_size_slowly(&layout, target, offset + 1), target_offset + 1);
        prop_assert_eq!(layout.file_offset(target, target_offset), Some(offset));
    }

    #[test]
    fn bytes_per_target_and_object_sizes(layout in large(), offset in offset(), len in offset()) {
        let end = (offset + len).min(MAX_OFFSET);
        let mut bytes = vec![0; layout.target_count()];
        layout.bytes_per_target(offset, len, &mut bytes);
        for (target, &bytes) in (0..).zip(&bytes) {
            let before = object_size_slowly(&layout, target, offset);
            let after = object_size_slowly(&layout, target, end);
            prop_assert_eq!(layout.object_size(target, offset), before);
            prop_assert_eq!(layout.object_size(target, end), after);
            prop_assert_eq!(layout.bytes_on(target, offset, len), after - before);
            prop_assert_eq!(bytes, after - before);
        }
        prop_assert_eq!(bytes.iter().sum::<u64>(), end - offset);
    }

    #[test]
    fn object_sizes_of_many_files(
        layout in large(),
        files in prop::collection::vec((offset(), any_magnitude(58)), 0..20),
    ) {
        let mut sums = vec![0; layout.target_count()];
        layout.add_object_sizes(&files, &mut sums);
        for (target, &sum) in (0..).zip(&sums) {
            let of_file = |&(size, count): &(u64, u64)| layout.object_size(target, size).saturating_mul(count);
            prop_assert_eq!(sum, files.iter().map(of_file).fold(0, u64::saturating_add));
        }
    }

    /// The byte after the longest object that a target can have is at no file offset, also if a
    /// region ends there.
    #[test]
    fn nothing_lies_past_the_end_of_an_object(layout in large(), past in offset()) {
        for target in 0..layout.target_count() as u32 {
            let longest = object_size_slowly(&layout, target, MAX_OFFSET);
            prop_assert_eq!(layout.file_offset(target, longest), None);
            prop_assert_eq!(layout.file_offset(target, longest.saturating_add(past)), None);
        }
    }

    /// Pieces are adjacent without gap or overlap, change the target, and are where `locate` says.
    #[test]
    fn pieces_are_a_partition(layout in large(), offset in offset(), len in offset()) {
        let mut next = offset;
        let mut before = None;
        for piece in layout.pieces(offset, len).take(50) {
            prop_assert_eq!(piece.file_offset, next);
            prop_assert_eq!(layout.locate(next), (piece.target, piece.target_offset));
            let last = piece.len - 1;
            prop_assert_eq!(layout.locate(next + last), (piece.target, piece.target_offset + last));
            prop_assert_eq!(layout.bytes_on(piece.target, next, piece.len), piece.len);
            prop_assert!(before != Some(piece.target));
            before = Some(piece.target);
            next += piece.len;
        }
        let end = (offset + len).min(MAX_OFFSET);
        prop_assert!(next == end || layout.pieces(offset, len).nth(50).is_some());
    }

    /// Objects of any length give a file size, which is consistent with the layout.
    #[test]
    fn file_size_never_loses_an_object(layout in large(), sizes in prop::collection::vec(any::<u64>(), 9)) {
        let size = layout.file_size(&sizes);
        for (target, &has) in (0..layout.target_count() as u32).zip(&sizes) {
            let reached = object_size_slowly(&layout, target, size);
            prop_assert!(reached >= has.min(object_size_slowly(&layout, target, MAX_OFFSET)));
        }
        let last_is_held = size == 0 || {
            let (target, target_offset) = layout.locate(size - 1);
            target_offset < sizes[target as usize]
        };
        prop_assert!(last_is_held);
    }
}

#[test]
fn the_last_byte_of_the_largest_file() {
    let layout =
        Layout::single(vec![Stripe { target: 0, width: 4096 }, Stripe { target: 1, width: 4096 }]).unwrap();
    // 2^63 - 1 bytes are 2^50 whole turns, except for the last byte of target 1.
    assert_eq!(layout.object_size(0, MAX_OFFSET), 1 << 62);
    assert_eq!(layout.object_size(1, MAX_OFFSET), (1 << 62) - 1);
    assert_eq!(layout.object_size(1, u64::MAX), (1 << 62) - 1);
    assert_eq!(layout.locate(MAX_OFFSET - 1), (1, (1 << 62) - 2));
    assert_eq!(layout.file_offset(1, (1 << 62) - 2), Some(MAX_OFFSET - 1));
    assert_eq!(layout.file_offset(1, (1 << 62) - 1), None);
    assert_eq!(layout.file_offset(1, u64::MAX), None);
    assert_eq!(layout.file_offset(2, 0), None);
    assert_eq!(layout.pieces(MAX_OFFSET - 1, u64::MAX).map(|piece| piece.len).collect::<Vec<_>>(), [1]);
    assert_eq!(layout.pieces(MAX_OFFSET, 1).count(), 0);
    assert_eq!(layout.pieces(u64::MAX, u64::MAX).count(), 0);
}

#[test]
fn a_cycle_on_one_target_is_one_piece_however_long() {
    let stripe = Stripe { target: 3, width: 1 };
    let layout = Layout::single(vec![stripe; 3]).unwrap();
    let pieces: Vec<_> = layout.pieces(7, MAX_OFFSET).collect();
    assert_eq!(pieces.len(), 1);
    assert_eq!((pieces[0].target_offset, pieces[0].len), (7, MAX_OFFSET - 7));
}
