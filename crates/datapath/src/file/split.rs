//! Splits a request into pieces for its objects, and combines their results.

use stripewise_layout::Layout;
use stripewise_sys::IoVec;
use stripewise_target::{Few, Outcome, Piece};

/// Maximum size of a request in bytes, the same as the kernel's MAX_RW_COUNT.
const REQUEST_BYTES_MAX: u64 = 0x7fff_f000;

/// Total bytes of a request, capped at the kernel's limit for one transfer.
pub(super) fn total(buffers: &[IoVec]) -> u64 {
    let sum = buffers.iter().fold(0u64, |sum, buffer| sum.saturating_add(buffer.len as u64));
    sum.min(REQUEST_BYTES_MAX)
}

/// Splits the first `len` bytes of `buffers`, which lie at `offset` of the file, into pieces in
/// file order. Each piece lies in one object and one buffer.
pub(super) fn split(layout: &Layout, offset: u64, len: u64, buffers: &[IoVec]) -> Few<Piece> {
    let mut pieces = Few::new();
    let mut buffers = buffers.iter().copied();
    let mut buffer = IoVec { base: std::ptr::null_mut(), len: 0 };
    for piece in layout.pieces(offset, len) {
        let (mut at, mut left) = (piece.target_offset, piece.len);
        while left > 0 {
            while buffer.len == 0 {
                match buffers.next() {
                    Some(next) => buffer = next,
                    None => return pieces,
                }
            }
            let take = left.min(buffer.len as u64) as usize;
            pieces.push(Piece { object: piece.target, offset: at, base: buffer.base, len: take });
            buffer = IoVec { base: buffer.base.wrapping_add(take), len: buffer.len - take };
            at += take as u64;
            left -= take as u64;
        }
    }
    pieces
}

/// Length of the leading part of the request that was done in full, and the first outcome with its
/// index that ended it (`None` if all was done). `lens` are the lengths that were asked for.
pub(super) fn leading(
    lens: impl IntoIterator<Item = usize>,
    outcomes: &[Outcome],
) -> (usize, Option<(usize, Outcome)>) {
    let mut done = 0;
    for (index, (len, outcome)) in lens.into_iter().zip(outcomes).enumerate() {
        done += outcome.done;
        if outcome.done < len {
            return (done, Some((index, *outcome)));
        }
    }
    (done, None)
}

pub(super) fn lens(pieces: &[Piece]) -> impl Iterator<Item = usize> {
    pieces.iter().map(|piece| piece.len)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use stripewise_layout::constructors::two_part;

    use super::*;

    proptest! {
        /// Every byte of every buffer is in exactly one piece, at the position that the layout
        /// gives it.
        #[test]
        fn pieces_cover_the_buffers(
            lens in vec(0..40usize, 0..6),
            offset in 0..200u64,
            cut in 0..300u64,
        ) {
            let layout = two_part(&[(0, 3), (2, 7), (0, 5)], 100, &[(1, 4), (2, 6)]).unwrap();
            let mut memory: Vec<Vec<u8>> = lens.iter().map(|&len| vec![0; len]).collect();
            let buffers: Vec<IoVec> =
                memory.iter_mut().map(|m| IoVec { base: m.as_mut_ptr(), len: m.len() }).collect();
            let len = cut.min(total(&buffers));
            let addresses: Vec<usize> =
                buffers.iter().flat_map(|b| (0..b.len).map(|i| b.base as usize + i)).collect();
            let mut at = 0;
            for piece in split(&layout, offset, len, &buffers) {
                for byte in 0..piece.len {
                    prop_assert_eq!(piece.base as usize + byte, addresses[at]);
                    let place = (piece.object, piece.offset + byte as u64);
                    prop_assert_eq!(place, layout.locate(offset + at as u64));
                    at += 1;
                }
            }
            prop_assert_eq!(at as u64, len);
        }
    }
}
