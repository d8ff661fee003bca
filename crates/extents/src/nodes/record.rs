//! The records of the log and their encoding: batches of version 2 (`docs/formats/nodes.md`).

use std::ops::Range;

use crate::journal::{number, put_changes, put_varint, take_changes, take_varint};
use crate::{CopyId, Node, Span};

/// The number of a session: the use of the file by one node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Session(pub u32);

impl Session {
    /// The author of what a rewrite of the log restates.
    pub const NONE: Self = Self(0);
}

/// What a session does in a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HoldKind {
    /// It has, or may have, uncommitted bytes of the copy. Others may write to that copy as well.
    Write(CopyId),
    /// It copies or truncates.
    Exclusive,
    /// It punches a copy once every other session has acknowledged.
    Evict,
    /// Anything; other sessions do nothing at all.
    Alone,
}

impl HoldKind {
    fn encode(self) -> u8 {
        match self {
            Self::Write(copy) => copy.index() as u8,
            Self::Exclusive => 16,
            Self::Evict => 17,
            Self::Alone => 18,
        }
    }

    fn decode(byte: u8, copies: u8) -> Option<Self> {
        match byte {
            16 => Some(Self::Exclusive),
            17 => Some(Self::Evict),
            18 => Some(Self::Alone),
            copy if copy < copies => Some(Self::Write(CopyId::new(copy.into()))),
            _ => None,
        }
    }
}

/// A range that a session has announced.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Hold {
    /// Bytes of the file.
    pub range: Range<u64>,
    /// What the session does there.
    pub kind: HoldKind,
}

impl Hold {
    /// The hold of a session that is alone.
    pub const ALONE: Self = Self { range: 0..u64::MAX, kind: HoldKind::Alone };
}

/// A change of the log's state.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Record {
    /// New masks of ranges, in order.
    Changes(Vec<Span>),
    /// A session begins.
    Joined(Session, Node),
    /// All holds that a session has from now on.
    Holds(Session, Vec<Hold>),
    /// A session ends: it has left, or its author has recovered it.
    Left(Session),
}

/// A record and the session that appended it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Batch {
    /// [`Session::NONE`] for what a rewrite restates.
    pub author: Session,
    /// What it says.
    pub record: Record,
}

impl Batch {
    /// Batches of one author.
    pub fn by(author: Session, records: Vec<Record>) -> Vec<Self> {
        records.into_iter().map(|record| Self { author, record }).collect()
    }
}

const MAGIC: [u8; 4] = *b"swb\x02";
const HEADER_BYTES: usize = 28;
const CHECKSUM_BYTES: usize = 4;
/// A reader treats a longer payload as damage, bytes.
const PAYLOAD_BYTES_MAX: usize = 1 << 24;
const NODE_NAME_BYTES_MAX: usize = 255;

/// A batch of changes has at most this number of ranges, each of at most 21 bytes.
const RANGES_MAX: usize = 1 << 15;

const CHANGES: u8 = 2;
const JOINED: u8 = 4;
const HOLDS: u8 = 5;
const LEFT: u8 = 6;

/// Encodes batches, of which the first has sequence number `next`, and returns the bytes and the
/// number of the following batch. Long changes become several batches.
pub(crate) fn encode_batches(batches: &[Batch], mut next: u64) -> (Vec<u8>, u64) {
    let mut bytes = Vec::new();
    let mut put = |batch: &Batch| {
        bytes.extend(encode_batch(batch, next));
        next += 1;
    };
    for batch in batches {
        match &batch.record {
            Record::Changes(spans) if spans.len() > RANGES_MAX => {
                let part =
                    |part: &[Span]| Batch { record: Record::Changes(part.to_vec()), author: batch.author };
                spans.chunks(RANGES_MAX).for_each(|spans| put(&part(spans)));
            }
            _ => put(batch),
        }
    }
    (bytes, next)
}

/// Encodes the batch with sequence number `next`.
pub fn encode_batch(batch: &Batch, next: u64) -> Vec<u8> {
    let mut payload = Vec::new();
    let (kind, count) = match &batch.record {
        Record::Changes(spans) => (CHANGES, put_changes(&mut payload, spans)),
        Record::Joined(session, node) => {
            payload.extend(session.0.to_le_bytes());
            payload.extend(node.boot);
            let name = node.name.as_bytes();
            payload.extend(&name[..name.len().min(NODE_NAME_BYTES_MAX)]);
            (JOINED, 1)
        }
        Record::Holds(session, holds) => {
            payload.extend(session.0.to_le_bytes());
            holds.iter().for_each(|hold| put_hold(&mut payload, hold));
            (HOLDS, holds.len() as u32)
        }
        Record::Left(session) => {
            payload.extend(session.0.to_le_bytes());
            (LEFT, 1)
        }
    };
    let mut bytes = MAGIC.to_vec();
    bytes.extend([kind, 0, 0, 0]);
    bytes.extend(next.to_le_bytes());
    bytes.extend(batch.author.0.to_le_bytes());
    bytes.extend(count.to_le_bytes());
    bytes.extend((payload.len() as u32).to_le_bytes());
    bytes.extend(payload);
    bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
    bytes
}

fn put_hold(payload: &mut Vec<u8>, hold: &Hold) {
    put_varint(payload, hold.range.start);
    // Length 0, which no hold has, stands for a range without end.
    put_varint(payload, if hold.range.end == u64::MAX { 0 } else { hold.range.end - hold.range.start });
    payload.push(hold.kind.encode());
}

/// Decodes the batch with sequence number `next` at the start of `bytes`, and returns it with its
/// length in bytes. `None` if there is no complete and valid batch of a file with 1 to 8 copies.
/// Never panics.
pub fn decode_batch(bytes: &[u8], next: u64, copies: u8) -> Option<(Batch, usize)> {
    let header = bytes.get(..HEADER_BYTES)?;
    if header[..4] != MAGIC || header[5..8] != [0; 3] || number(&header[8..16]) != next {
        return None;
    }
    let author = Session(number(&header[16..20]) as u32);
    let (count, len) = (number(&header[20..24]), number(&header[24..28]) as usize);
    let end = HEADER_BYTES + Some(len).filter(|&len| len <= PAYLOAD_BYTES_MAX)?;
    let checksum = bytes.get(end..end + CHECKSUM_BYTES)?;
    if u64::from(crc32fast::hash(&bytes[..end])) != number(checksum) {
        return None;
    }
    let record = decode_record(header[4], count, &bytes[HEADER_BYTES..end], copies)?;
    Some((Batch { author, record }, end + CHECKSUM_BYTES))
}

/// Whether a reader takes `bytes` for batches, of which the first has sequence number `next`.
pub(crate) fn is_readable(mut bytes: &[u8], mut next: u64, copies: u8) -> bool {
    while let Some((_, len)) = decode_batch(bytes, next, copies) {
        bytes = &bytes[len..];
        next += 1;
    }
    bytes.is_empty()
}

fn decode_record(kind: u8, count: u64, payload: &[u8], copies: u8) -> Option<Record> {
    if kind == CHANGES {
        return take_changes(payload, count, copies).map(Record::Changes);
    }
    let (session, rest) = payload.split_at_checked(4)?;
    let session = Some(Session(number(session) as u32)).filter(|&session| session != Session::NONE)?;
    match kind {
        JOINED if count == 1 => {
            let (boot, name) = rest.split_at_checked(16)?;
            let name = String::from_utf8_lossy(name).into_owned();
            Some(Record::Joined(session, Node { name, boot: boot.try_into().ok()? }))
        }
        HOLDS => take_holds(rest, count, copies).map(|holds| Record::Holds(session, holds)),
        LEFT if count == 1 && rest.is_empty() => Some(Record::Left(session)),
        _ => None,
    }
}

fn take_holds(mut payload: &[u8], count: u64, copies: u8) -> Option<Vec<Hold>> {
    let mut holds = Vec::new();
    while !payload.is_empty() {
        let start = take_varint(&mut payload)?;
        let end = match take_varint(&mut payload)? {
            0 => u64::MAX,
            len => start.checked_add(len)?,
        };
        let (&kind, rest) = payload.split_first()?;
        payload = rest;
        let kind = HoldKind::decode(kind, copies)?;
        if start >= end {
            return None;
        }
        holds.push(Hold { range: start..end, kind });
    }
    (holds.len() as u64 == count).then_some(holds)
}
