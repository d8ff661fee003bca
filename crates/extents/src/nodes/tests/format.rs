//! The encoding of batches, and the state that they give.

use std::path::Path;

use proptest::prelude::*;

use crate::journal::{Header, Journal};
use crate::nodes::{Batch, Hold, HoldKind, Log, Record, Session, decode_batch, encode_batch};
use crate::{CopyId, Mask, Node, Span};

pub const COPIES: u8 = 3;

fn session() -> impl Strategy<Value = Session> {
    (1u32..5).prop_map(Session)
}

fn hold() -> impl Strategy<Value = Hold> {
    let kind = prop_oneof![
        (0..usize::from(COPIES)).prop_map(|copy| HoldKind::Write(CopyId::new(copy))),
        Just(HoldKind::Exclusive),
        Just(HoldKind::Evict),
        Just(HoldKind::Alone),
    ];
    let range = (any::<u64>(), any::<u64>()).prop_filter("not empty", |(one, other)| one != other);
    (range, kind).prop_map(|((one, other), kind)| Hold { range: one.min(other)..one.max(other), kind })
}

fn changes() -> impl Strategy<Value = Record> {
    let change = (0u64..50, prop_oneof![1u64..50, 1u64..1 << 40], 1u8..1 << COPIES);
    prop::collection::vec(change, 0..8).prop_map(|changes| {
        let mut at = 0;
        let spans = changes.into_iter().map(|(gap, len, mask)| {
            let start = at + gap;
            at = start + len;
            Span::new(start..at, Mask::from_bits(mask))
        });
        Record::Changes(spans.collect())
    })
}

fn record() -> impl Strategy<Value = Record> {
    let node = ("[a-z/+]{0,40}", any::<[u8; 16]>()).prop_map(|(name, boot)| Node { name, boot });
    prop_oneof![
        changes(),
        (session(), node).prop_map(|(session, node)| Record::Joined(session, node)),
        (session(), prop::collection::vec(hold(), 0..4))
            .prop_map(|(session, holds)| Record::Holds(session, holds)),
        session().prop_map(Record::Left),
    ]
}

pub fn batch() -> impl Strategy<Value = Batch> {
    let author = prop_oneof![1 => Just(Session::NONE), 9 => session()];
    (author, record()).prop_map(|(author, record)| Batch { author, record })
}

/// Adds a checksum to everything before it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(batch in batch(), next: u64, rest in prop::collection::vec(any::<u8>(), 0..9)) {
        let mut bytes = encode_batch(&batch, next);
        let len = bytes.len();
        bytes.extend(rest);
        prop_assert_eq!(decode_batch(&bytes, next, COPIES), Some((batch, len)));
        prop_assert_eq!(decode_batch(&bytes, next.wrapping_add(1), COPIES), None);
    }

    #[test]
    fn a_batch_that_is_short_or_damaged_is_none(batch in batch(), at: prop::sample::Index, flip in 1u8..) {
        let mut bytes = encode_batch(&batch, 7);
        prop_assert_eq!(decode_batch(&bytes[..at.index(bytes.len())], 7, COPIES), None);
        let at = at.index(bytes.len());
        bytes[at] ^= flip;
        prop_assert_eq!(decode_batch(&bytes, 7, COPIES), None);
    }

    #[test]
    fn any_bytes_are_decoded_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode_batch(&bytes, 1, COPIES);
    }

    /// The payload of a batch with a valid checksum may be arbitrary. What is accepted is well
    /// formed, and can be applied.
    #[test]
    fn any_payload_is_well_formed_or_refused(
        kind in 0u8..9, author in 0u32..4, count in 0u32..5, payload in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let mut bytes = b"swb\x02".to_vec();
        bytes.extend([kind, 0, 0, 0]);
        bytes.extend(1u64.to_le_bytes());
        bytes.extend(author.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((payload.len() as u32).to_le_bytes());
        bytes.extend(payload);
        let Some((batch, _)) = decode_batch(&sealed(bytes), 1, COPIES) else { return Ok(()) };
        if let Record::Changes(spans) = &batch.record {
            prop_assert!(spans.iter().all(|span| !span.is_empty() && (1..1 << COPIES).contains(&span.mask.bits())));
        }
        if let Record::Holds(_, holds) = &batch.record {
            prop_assert!(holds.iter().all(|hold| !hold.range.is_empty()));
        }
        Log::new(Mask::ORIGINAL, Session::NONE).apply(&batch);
    }

    /// No batches are invalid, and a rewritten log has the same state but for acknowledgements. As
    /// it has none, it is rewritten to itself.
    #[test]
    fn any_log_can_be_rewritten(batches in prop::collection::vec(batch(), 0..30)) {
        let mut log = Log::new(Mask::ORIGINAL, Session::NONE);
        batches.iter().for_each(|batch| log.apply(batch));
        let rewritten = |log: &Log| {
            let mut new = Log::new(log.default_mask(), log.last_session());
            log.restated().iter().for_each(|batch| new.apply(batch));
            new
        };
        let new = rewritten(&log);
        prop_assert_eq!(new.spans(&(0..u64::MAX)), log.spans(&(0..u64::MAX)));
        prop_assert_eq!(new.last_session(), log.last_session());
        let members = |log: &Log| -> Vec<(Session, Node, Vec<Hold>)> {
            log.members().map(|(session, it)| (session, it.node.clone(), it.holds.clone())).collect()
        };
        prop_assert_eq!(members(&new), members(&log));
        prop_assert_eq!(&rewritten(&new), &new);
    }
}

#[test]
fn a_batch_has_the_documented_bytes() {
    let hold = Hold { range: 300..u64::MAX, kind: HoldKind::Write(CopyId::new(2)) };
    let holds = Record::Holds(Session(5), vec![hold, Hold { range: 1..3, kind: HoldKind::Evict }]);
    let mut bytes = b"swb\x02".to_vec();
    bytes.extend([5, 0, 0, 0]);
    bytes.extend([9, 0, 0, 0, 0, 0, 0, 0]);
    bytes.extend([5, 0, 0, 0]);
    bytes.extend([2, 0, 0, 0]);
    bytes.extend([11, 0, 0, 0]);
    bytes.extend([5, 0, 0, 0, 0xac, 0x02, 0, 2, 1, 2, 17]);
    assert_eq!(encode_batch(&Batch { author: Session(5), record: holds }, 9), sealed(bytes));
}

#[test]
fn a_version_1_reader_stops_at_a_batch_of_version_2() {
    let header = Header { id: [0; 16], copies: COPIES, default: Mask::ORIGINAL, last_session: None };
    let mut bytes = header.encode().to_vec();
    bytes.extend(encode_batch(&Batch { author: Session(1), record: Record::Left(Session(1)) }, 1));
    let journal = Journal::parse(&bytes, Path::new("f.extents")).unwrap();
    assert_eq!(journal.valid_bytes, header.encode().len() as u64);
}
