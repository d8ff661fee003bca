//! The journal's bytes. All numbers are little-endian.

use std::path::Path;

use crate::{MapError, Mask, Node, Result, Span};

/// Version of the format of a file that one node uses at a time.
pub(crate) const VERSION: u32 = 1;
/// Version of the format of a file that several nodes may use at the same time.
const VERSION_NODES: u32 = 2;
const MAGIC: [u8; 8] = *b"swextent";
pub(crate) const HEADER_BYTES: usize = 64;
const BATCH_MAGIC: [u8; 4] = *b"swb\x01";
const BATCH_HEADER_BYTES: usize = 24;
const CHECKSUM_BYTES: usize = 4;
/// A writer begins a new batch once the payload has reached this size, bytes.
const PAYLOAD_BYTES: usize = 1 << 20;
/// A reader treats a longer payload as damage, bytes.
const PAYLOAD_BYTES_MAX: usize = 1 << 24;
const NODE_NAME_BYTES_MAX: usize = 255;

/// The header of a journal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub id: [u8; 16],
    pub copies: u8,
    pub default: Mask,
    /// In version 2, the highest session number that was given before the journal was last
    /// rewritten. `None` in version 1.
    pub last_session: Option<u32>,
}

impl Header {
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        let version = if self.last_session.is_some() { VERSION_NODES } else { VERSION };
        bytes[8..12].copy_from_slice(&version.to_le_bytes());
        bytes[12..28].copy_from_slice(&self.id);
        bytes[28] = self.copies;
        bytes[29] = self.default.bits();
        bytes[30..34].copy_from_slice(&self.last_session.unwrap_or(0).to_le_bytes());
        let checksum = crc32fast::hash(&bytes[..HEADER_BYTES - CHECKSUM_BYTES]);
        bytes[HEADER_BYTES - CHECKSUM_BYTES..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// Decodes the header of the journal at `path`.
    pub fn decode(bytes: &[u8], path: &Path) -> Result<Self> {
        let damaged = |problem: &str| MapError::Damaged { path: path.to_owned(), problem: problem.to_owned() };
        let bytes = bytes.get(..HEADER_BYTES).ok_or_else(|| damaged("shorter than its header"))?;
        if bytes[..8] != MAGIC {
            return Err(damaged("not a journal of extents"));
        }
        let version = number(&bytes[8..12]);
        if ![VERSION, VERSION_NODES].map(u64::from).contains(&version) {
            let known = VERSION_NODES.into();
            return Err(MapError::Version { path: path.to_owned(), found: version, known });
        }
        let (body, checksum) = bytes.split_at(HEADER_BYTES - CHECKSUM_BYTES);
        if u64::from(crc32fast::hash(body)) != number(checksum) {
            return Err(damaged("wrong checksum of the header"));
        }
        let header = Self {
            id: bytes[12..28].try_into().unwrap_or_default(),
            copies: bytes[28],
            default: Mask::from_bits(bytes[29]),
            last_session: (version == VERSION_NODES.into()).then(|| number(&bytes[30..34]) as u32),
        };
        let all = u16::from(header.default.bits()) < 1 << header.copies.min(8);
        if !(1..=8).contains(&header.copies) || header.default.is_empty() || !all {
            return Err(damaged("impossible copies in the header"));
        }
        Ok(header)
    }
}

/// A decoded batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Batch {
    /// This node has opened the file for writing.
    Opened(Node),
    /// New masks of ranges, in order.
    Changes(Vec<Span>),
    /// The file is closed, and everything written to it is synced.
    Clean,
}

/// The kinds of batches.
const OPENED: u8 = 1;
const CHANGES: u8 = 2;
const CLEAN: u8 = 3;

/// Encodes batches that will be appended to a journal.
#[derive(Clone, Debug)]
pub(crate) struct Writer {
    bytes: Vec<u8>,
    next: u64,
    /// The batch of changes that is being written.
    open: Option<Changes>,
    /// Whether the file is open after these batches; `None` if they leave that unchanged.
    pub opens: Option<bool>,
}

/// An incomplete batch of changes.
#[derive(Clone, Debug)]
struct Changes {
    /// Offsets of the payload, and of the last range in it.
    payload: usize,
    last_at: usize,
    count: u32,
    /// The end of the range before the last one.
    before: u64,
    last: Span,
}

impl Writer {
    /// `next` is the sequence number of the first batch.
    pub fn new(next: u64) -> Self {
        Self { bytes: Vec::new(), next, open: None, opens: None }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    pub fn opened(&mut self, node: &Node) {
        self.close();
        let start = self.begin();
        self.bytes.extend(node.boot);
        let name = node.name.as_bytes();
        self.bytes.extend(&name[..name.len().min(NODE_NAME_BYTES_MAX)]);
        self.end(start, OPENED, 1);
        self.opens = Some(true);
    }

    pub fn clean(&mut self) {
        self.close();
        let start = self.begin();
        self.end(start, CLEAN, 0);
        self.opens = Some(false);
    }

    /// Adds a changed range. Ranges come in order, since the last batch of another kind.
    pub fn change(&mut self, span: Span) {
        let changes = match self.open.take() {
            Some(open) if open.last.end == span.start && open.last.mask == span.mask => {
                self.bytes.truncate(open.last_at);
                Changes { last: Span { end: span.end, ..open.last }, ..open }
            }
            Some(open) if self.bytes.len() - open.payload < PAYLOAD_BYTES => {
                let (last_at, before) = (self.bytes.len(), open.last.end);
                Changes { last_at, count: open.count + 1, before, last: span, ..open }
            }
            full => {
                self.open = full;
                self.close();
                let payload = self.begin();
                Changes { payload, last_at: payload, count: 1, before: 0, last: span }
            }
        };
        put_change(&mut self.bytes, changes.before, &changes.last);
        self.open = Some(changes);
    }

    /// The bytes, and the sequence number of the next batch.
    pub fn finish(mut self) -> (Vec<u8>, u64) {
        self.close();
        (self.bytes, self.next)
    }

    /// Ends the batch of changes. The next change begins a batch of its own and may lie anywhere.
    #[cfg(test)]
    pub fn end_changes(&mut self) {
        self.close();
    }

    fn close(&mut self) {
        if let Some(Changes { payload, count, .. }) = self.open.take() {
            self.end(payload, CHANGES, count);
        }
    }

    /// Begins a batch. Returns the offset of its payload.
    fn begin(&mut self) -> usize {
        self.bytes.extend([0; BATCH_HEADER_BYTES]);
        self.bytes.len()
    }

    fn end(&mut self, payload: usize, kind: u8, count: u32) {
        let len = (self.bytes.len() - payload) as u32;
        let start = payload - BATCH_HEADER_BYTES;
        let header = &mut self.bytes[start..payload];
        header[..4].copy_from_slice(&BATCH_MAGIC);
        header[4] = kind;
        header[8..16].copy_from_slice(&self.next.to_le_bytes());
        header[16..20].copy_from_slice(&count.to_le_bytes());
        header[20..24].copy_from_slice(&len.to_le_bytes());
        let checksum = crc32fast::hash(&self.bytes[start..]);
        self.bytes.extend(checksum.to_le_bytes());
        self.next += 1;
    }
}

/// Decodes the batch with sequence number `next` at the start of `bytes`, and returns it with its
/// length in bytes. `None` if there is no complete and valid batch.
pub(crate) fn decode_batch(bytes: &[u8], next: u64, copies: u8) -> Option<(Batch, usize)> {
    let header = bytes.get(..BATCH_HEADER_BYTES)?;
    if header[..4] != BATCH_MAGIC || header[5..8] != [0; 3] || number(&header[8..16]) != next {
        return None;
    }
    let (count, len) = (number(&header[16..20]), number(&header[20..24]) as usize);
    let end = BATCH_HEADER_BYTES + Some(len).filter(|&len| len <= PAYLOAD_BYTES_MAX)?;
    let checksum = bytes.get(end..end + CHECKSUM_BYTES)?;
    if u64::from(crc32fast::hash(&bytes[..end])) != number(checksum) {
        return None;
    }
    let payload = &bytes[BATCH_HEADER_BYTES..end];
    let batch = match header[4] {
        OPENED => Batch::Opened(Node {
            boot: payload.get(..16)?.try_into().ok()?,
            name: String::from_utf8_lossy(&payload[16..]).into_owned(),
        }),
        CHANGES => Batch::Changes(take_changes(payload, count, copies)?),
        CLEAN => Batch::Clean,
        _ => return None,
    };
    Some((batch, end + CHECKSUM_BYTES))
}

/// Appends a range of changes; `before` is the end of the one before it.
fn put_change(bytes: &mut Vec<u8>, before: u64, span: &Span) {
    let &Span { start, end, mask, .. } = span;
    put_varint(bytes, start - before);
    // Length 0, which no range has, stands for a range without end.
    put_varint(bytes, if end == u64::MAX { 0 } else { end - start });
    bytes.push(mask.bits());
}

/// Appends changes, which come in order, and returns how many there are.
pub(crate) fn put_changes(bytes: &mut Vec<u8>, spans: &[Span]) -> u32 {
    let mut before = 0;
    for span in spans {
        put_change(bytes, before, span);
        before = span.end;
    }
    spans.len() as u32
}

/// Decodes the payload of a batch of changes; `None` if it is damaged.
pub(crate) fn take_changes(mut payload: &[u8], count: u64, copies: u8) -> Option<Vec<Span>> {
    let mut changes = Vec::new();
    let mut at = 0u64;
    while !payload.is_empty() {
        let start = at.checked_add(take_varint(&mut payload)?)?;
        at = match take_varint(&mut payload)? {
            0 => u64::MAX,
            len => start.checked_add(len)?,
        };
        let (&mask, rest) = payload.split_first()?;
        payload = rest;
        let mask = Some(mask).filter(|&mask| mask != 0 && u16::from(mask) < 1 << copies)?;
        if start >= at {
            return None;
        }
        changes.push(Span::new(start..at, Mask::from_bits(mask)));
    }
    (changes.len() as u64 == count).then_some(changes)
}

pub(crate) fn number(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Appends a number in LEB128 encoding.
pub(crate) fn put_varint(bytes: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

pub(crate) fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        let part = u64::from(byte & 0x7f);
        if part << shift >> shift != part {
            return None;
        }
        value |= part << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}
