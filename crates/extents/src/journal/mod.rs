//! The journal: the map as of the last sync. It survives a power cut.

mod commit;
mod format;
mod place;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;

use stripewise_sys::{Errno, OFlags, SysRef};

use crate::error::io;
use crate::nodes::{Log, Session};
use crate::{MapError, MapSpec, Mask, Node, Result, Span};

pub(crate) use commit::{Commit, Position, is_changed, limit_bytes, write_new};
use format::{Batch, decode_batch};
pub(crate) use format::{HEADER_BYTES, Header, Writer};
pub(crate) use format::{number, put_changes, put_varint, take_changes, take_varint};
pub(crate) use place::{COMMIT_BYTE, JOIN_BYTE, Kept, Locked, Place};

/// A journal as read: the map as of the last commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Journal {
    /// The file's id.
    pub id: [u8; 16],
    /// Number of copies of the file.
    pub copies: usize,
    /// The copies that are valid for a byte that is not listed.
    pub default: Mask,
    /// The node and boot that have the file open for writing, or had it open and never closed it.
    /// `None`: the file is closed, and everything is synced. Of the sessions of several nodes, the
    /// first.
    pub opened: Option<Node>,
    /// The sessions of several nodes, and the map. `None`: the journal has version 1.
    pub nodes: Option<Log>,
    /// The listed ranges, in order, with adjacent ones of equal masks joined.
    pub spans: Vec<Span>,
    /// Length of the valid content, bytes.
    pub valid_bytes: u64,
    /// Bytes after the valid content: an incomplete batch.
    pub cut_bytes: u64,
    /// Sequence number of the next batch.
    pub(crate) next: u64,
}

impl Journal {
    /// Reads the journal, which other processes may be writing. This joins nothing, takes no lock
    /// and changes nothing.
    ///
    /// # Errors
    /// [`MapError::Missing`], [`MapError::Damaged`], [`MapError::Version`], or as read(2).
    pub fn read(sys: &SysRef, spec: &MapSpec) -> Result<Self> {
        let place = Place::new(sys, spec)?;
        let file = match place.open(Path::new(&place.name), OFlags::RDONLY) {
            Err(Errno::NOENT) => return Err(MapError::Missing { path: place.path }),
            file => file.map_err(io(&place.path, "open"))?,
        };
        Self::read_from(sys, file.as_fd(), &place.path)
    }

    pub(crate) fn read_from(sys: &SysRef, file: BorrowedFd<'_>, path: &Path) -> Result<Self> {
        let bytes = sys.read_start(file, usize::MAX).map_err(io(path, "read"))?;
        Self::parse(&bytes, path)
    }

    /// Parses the content of the journal at `path`. Never panics, whatever the bytes are.
    ///
    /// # Errors
    /// Only for a bad header: any damage after the header ends the journal there.
    pub fn parse(bytes: &[u8], path: &Path) -> Result<Self> {
        let header = Header::decode(bytes, path)?;
        let mut journal = Self {
            id: header.id,
            copies: usize::from(header.copies),
            default: header.default,
            opened: None,
            nodes: None,
            spans: Vec::new(),
            valid_bytes: HEADER_BYTES as u64,
            cut_bytes: 0,
            next: 1,
        };
        let batches = &bytes[HEADER_BYTES..];
        match header.last_session {
            None => journal.take(batches, header.copies),
            Some(last) => journal.take_log(batches, header.copies, Log::new(header.default, Session(last))),
        }
        journal.cut_bytes = bytes.len() as u64 - journal.valid_bytes;
        Ok(journal)
    }

    fn take(&mut self, bytes: &[u8], copies: u8) {
        let (mut known, mut at) = (BTreeMap::new(), 0);
        while let Some((batch, len)) = decode_batch(&bytes[at..], self.next, copies) {
            match batch {
                Batch::Opened(node) => self.opened = Some(node),
                Batch::Clean => self.opened = None,
                Batch::Changes(changes) => changes.into_iter().for_each(|span| assign(&mut known, span)),
            }
            at += len;
            self.next += 1;
        }
        self.valid_bytes += at as u64;
        let listed = known.into_values().filter(|span| span.mask != self.default);
        listed.for_each(|span| span.add_to(&mut self.spans));
    }

    fn take_log(&mut self, bytes: &[u8], copies: u8, mut log: Log) {
        self.valid_bytes += log.take(bytes, &mut self.next, copies, |_| {}) as u64;
        self.opened = log.members().next().map(|(_, member)| member.node.clone());
        self.spans = log.listed();
        self.nodes = Some(log);
    }

    pub(crate) fn header(&self) -> Header {
        let last_session = self.nodes.as_ref().map(|log| log.last_session().0);
        Header { id: self.id, copies: self.copies as u8, default: self.default, last_session }
    }

    /// A writer of a new journal that lists the same map.
    fn writer(&self) -> Writer {
        let mut writer = Writer::new(1);
        self.spans.iter().for_each(|&span| writer.change(span));
        writer
    }

    /// Length in bytes of a journal that lists the same map and nothing else.
    pub(crate) fn needed_bytes(&self) -> u64 {
        (HEADER_BYTES + self.writer().finish().0.len()) as u64
    }

    /// Spans that cover the whole file without end, gaps included.
    pub(crate) fn parts(&self) -> Vec<Span> {
        let (mut parts, mut at) = (Vec::new(), 0);
        for span in &self.spans {
            if span.start > at {
                parts.push(Span::new(at..span.start, self.default));
            }
            parts.push(*span);
            at = span.end;
        }
        if at < u64::MAX {
            parts.push(Span::new(at..u64::MAX, self.default));
        }
        parts
    }
}

/// Replaces what is known about the range of `new`. The spans, by their starts, never overlap.
fn assign(spans: &mut BTreeMap<u64, Span>, new: Span) {
    let before = spans.range(..new.end).rev().map(|(_, &old)| old);
    let overlapping: Vec<Span> = before.take_while(|old| old.end > new.start).collect();
    for old in overlapping {
        spans.remove(&old.start);
        let rest = [old.cut(&(0..new.start)), old.cut(&(new.end..u64::MAX))];
        spans.extend(rest.into_iter().flatten().map(|rest| (rest.start, rest)));
    }
    spans.insert(new.start, new);
}
