//! The journal's format.

use std::path::Path;

use proptest::prelude::*;

use super::*;
use crate::{MapError, Mask, Node, Span};

const HEADER: Header = Header { id: [3; 16], copies: 3, default: Mask::ORIGINAL, last_session: None };

fn parse(bytes: &[u8]) -> crate::Result<Journal> {
    Journal::parse(bytes, Path::new("f.extents"))
}

fn node() -> Node {
    Node { name: "node".into(), boot: [5; 16] }
}

#[derive(Clone, Debug)]
enum Said {
    Opened,
    Clean,
    /// (distance from the end of the last range, length in bytes, mask).
    Changes(Vec<(u64, u64, u8)>),
}

fn said() -> impl Strategy<Value = Said> {
    let change = (0u64..50, prop_oneof![1u64..50, 1u64..1 << 40], 1u8..8);
    prop_oneof![
        1 => Just(Said::Opened),
        1 => Just(Said::Clean),
        5 => prop::collection::vec(change, 1..8).prop_map(Said::Changes),
    ]
}

fn write(all: &[Said]) -> Vec<u8> {
    let mut writer = Writer::new(1);
    for said in all {
        match said {
            Said::Opened => writer.opened(&node()),
            Said::Clean => writer.clean(),
            Said::Changes(changes) => {
                // A batch of its own for each: otherwise a second `changes` would have to continue
                // after the first.
                let mut at = 0;
                for (gap, len, mask) in changes {
                    let range = at + gap..at + gap + len;
                    at = range.end;
                    writer.change(Span::new(range, Mask::from_bits(*mask)));
                }
                writer.end_changes();
            }
        }
    }
    let mut bytes = HEADER.encode().to_vec();
    bytes.extend(writer.finish().0);
    bytes
}

/// The mask that the batches give to a byte.
fn model(all: &[Said], byte: u64) -> u8 {
    let mut mask = HEADER.default.bits();
    for said in all {
        let Said::Changes(changes) = said else { continue };
        let mut at = 0;
        for (gap, len, new) in changes {
            if (at + gap..at + gap + len).contains(&byte) {
                mask = *new;
            }
            at += gap + len;
        }
    }
    mask
}

fn mask_at(journal: &Journal, byte: u64) -> u8 {
    let at = |span: &&Span| span.start <= byte && byte < span.end;
    journal.spans.iter().find(at).map_or(journal.default.bits(), |span| span.mask.bits())
}

proptest! {
    #[test]
    fn what_is_written_is_read(all in prop::collection::vec(said(), 0..10)) {
        let bytes = write(&all);
        let journal = parse(&bytes).unwrap();
        prop_assert_eq!((journal.valid_bytes, journal.cut_bytes), (bytes.len() as u64, 0));
        let last = all.iter().rev().find(|said| !matches!(said, Said::Changes(_)));
        prop_assert_eq!(journal.opened.clone(), matches!(last, Some(Said::Opened)).then(node));
        for byte in 0..300 {
            prop_assert_eq!(mask_at(&journal, byte), model(&all, byte), "byte {}", byte);
        }
        for pair in journal.spans.windows(2) {
            prop_assert!(pair[0].end <= pair[1].start);
        }
    }

    /// In a journal cut at any byte, exactly the complete batches before the cut count.
    #[test]
    fn a_journal_cut_short_is_an_earlier_one(all in prop::collection::vec(said(), 1..8), keep in 0.0..1.0) {
        let bytes = write(&all);
        let ends: Vec<usize> = (0..=all.len()).map(|count| write(&all[..count]).len()).collect();
        let cut = HEADER_BYTES + ((bytes.len() - HEADER_BYTES) as f64 * keep) as usize;
        let journal = parse(&bytes[..cut]).unwrap();
        let whole = ends.iter().rposition(|&end| end <= cut).unwrap();
        prop_assert_eq!(journal.valid_bytes as usize, ends[whole]);
        let earlier = parse(&write(&all[..whole])).unwrap();
        prop_assert_eq!((journal.spans, journal.opened), (earlier.spans, earlier.opened));
    }

    /// A damaged journal ends before the damage, or is refused: no mask is read that was never
    /// written.
    #[test]
    fn damage_ends_the_journal_or_is_refused(
        all in prop::collection::vec(said(), 1..8),
        changes in prop::collection::vec((any::<prop::sample::Index>(), 1u8..), 1..6),
    ) {
        let right = write(&all);
        let mut bytes = right.clone();
        let mut first = bytes.len();
        for (at, flip) in changes {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            if bytes[at] != right[at] { first = first.min(at); }
        }
        if let Ok(journal) = parse(&bytes) {
            let ends: Vec<usize> = (0..=all.len()).map(|count| write(&all[..count]).len()).collect();
            // Two flips of one byte may undo each other.
            let first = right.iter().zip(&bytes).position(|(one, other)| one != other).unwrap_or(first.max(right.len()));
            let whole = ends.iter().rposition(|&end| end <= first).unwrap_or(0);
            prop_assert_eq!(journal.valid_bytes as usize, ends[whole]);
        }
    }

    #[test]
    fn any_bytes_are_parsed_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400), headed: bool) {
        let mut all = if headed { HEADER.encode().to_vec() } else { Vec::new() };
        all.extend(bytes);
        let _ = parse(&all);
    }

    /// The payload of a batch with a valid checksum may be arbitrary.
    #[test]
    fn any_payload_is_parsed_or_ends_the_journal(kind: u8, count in 0u32..20, payload in prop::collection::vec(any::<u8>(), 0..60)) {
        let mut batch = b"swb\x01".to_vec();
        batch.extend([kind % 5, 0, 0, 0]);
        batch.extend(1u64.to_le_bytes());
        batch.extend(count.to_le_bytes());
        batch.extend((payload.len() as u32).to_le_bytes());
        batch.extend(payload);
        batch.extend(crc32fast::hash(&batch).to_le_bytes());
        let mut bytes = HEADER.encode().to_vec();
        bytes.extend(batch);
        let journal = parse(&bytes).unwrap();
        for span in &journal.spans {
            prop_assert!(span.start < span.end && !span.mask.is_empty() && span.mask.bits() < 8);
        }
    }
}

#[test]
fn headers_that_cannot_be_are_refused_by_name() {
    let mut bytes = HEADER.encode();
    bytes[8] = 9;
    assert!(matches!(parse(&bytes), Err(MapError::Version { found: 9, known: 2, .. })));
    assert!(matches!(parse(b"swextent"), Err(MapError::Damaged { .. })));
    let damaged = parse(&[0; 64]).unwrap_err().to_string();
    assert!(
        damaged.starts_with("f.extents: damaged (not a journal of extents); `stripewise fsck --repair`"),
        "{damaged}"
    );
    for (copies, default) in [(0, 1), (9, 1), (2, 4), (2, 0)] {
        let header = Header { copies, default: Mask::from_bits(default), ..HEADER };
        assert!(matches!(parse(&header.encode()), Err(MapError::Damaged { .. })), "{copies} {default}");
    }
}

#[test]
fn a_range_to_the_end_of_everything() {
    let mut writer = Writer::new(1);
    writer.change(Span::new(7..u64::MAX, Mask::from_bits(2)));
    let mut bytes = HEADER.encode().to_vec();
    bytes.extend(writer.finish().0);
    assert_eq!(parse(&bytes).unwrap().spans, [Span::new(7..u64::MAX, Mask::from_bits(2))]);
}

#[test]
fn a_random_4_kib_extent_takes_about_5_bytes() {
    let mut writer = Writer::new(1);
    for number in 0..10_000u64 {
        writer.change(Span::new(number * 16384..number * 16384 + 4096, Mask::from_bits(2)));
    }
    let bytes = writer.finish().0.len();
    assert!(bytes < 10_000 * 6, "{bytes}");
}

#[test]
fn a_damaged_mask_is_not_believed() {
    let mut writer = Writer::new(1);
    writer.change(Span::new(0..10, Mask::from_bits(2)));
    let mut bytes = HEADER.encode().to_vec();
    bytes.extend(writer.finish().0);
    let mask = bytes.len() - 5;
    assert_eq!(bytes[mask], 2);
    bytes[mask] = 4;
    assert_eq!(parse(&bytes).unwrap().spans, []);
}
