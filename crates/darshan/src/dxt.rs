//! Extended traces (DXT): every read and write of a process to a file. Source:
//! `include/darshan-dxt-log-format.h` and `darshan-util/darshan-dxt-logutils.c` of Darshan 3.5.0,
//! which reads the records of all versions since 3.1. The newest versions, whose segments have a
//! thread, are those of the development branch (commit 45bcba8e).

use std::io::{Read, Seek};

use crate::bytes::{ByteOrder, Fields, text};
use crate::region::Region;
use crate::{Error, Module};

/// `HOSTNAME_SIZE`
const HOST_BYTES: usize = 64;
/// Bytes of a record before its segments.
const HEAD_BYTES: usize = 8 * 5 + HOST_BYTES;
/// Maximum number of segments passed on at a time.
pub const BATCH: usize = 4096;

/// A layer that DXT traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Layer {
    /// System calls.
    Posix,
    /// MPI-IO.
    MpiIo,
}

impl Layer {
    /// The module.
    pub fn module(self) -> Module {
        match self {
            Layer::Posix => Module::DxtPosix,
            Layer::MpiIo => Module::DxtMpiIo,
        }
    }

    /// The newest version of the records that is known.
    pub(crate) fn newest(self) -> u32 {
        self.first_with_threads()
    }

    /// The first version whose segments have a thread.
    fn first_with_threads(self) -> u32 {
        match self {
            Layer::Posix => 2,
            Layer::MpiIo => 3,
        }
    }
}

/// One process's accesses to one file: the writes, then the reads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DxtRecord {
    /// Id of the file's name.
    pub id: u64,
    /// The process.
    pub rank: i64,
    /// Darshan's `shared_record`.
    pub shared: i64,
    /// The process's node.
    pub host: String,
    /// Number of segments that are writes.
    pub writes: u64,
    /// Number of segments that are reads.
    pub reads: u64,
}

/// A read or write. Nothing is checked: offsets may be negative, and times not in order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    /// File offset, bytes; -1 in version 1 of MPI-IO, which does not know it.
    pub offset: i64,
    /// Bytes.
    pub len: i64,
    /// Seconds since the start of the job.
    pub start_s: f64,
    /// Seconds since the start of the job.
    pub end_s: f64,
    /// `pthread_self` of the thread; 0 in versions that do not know it.
    pub thread: u64,
}

/// The DXT records of a layer, streamed.
///
/// ```text
/// while let Some(record) = records.next_record()? {
///     while let Some((is_write, segments)) = records.next_segments()? { .. }
/// }
/// ```
pub struct DxtRecords<'a, R> {
    region: Region<'a, R>,
    order: ByteOrder,
    layer: Layer,
    version: u32,
    record: DxtRecord,
    /// Segments of the record that the caller has not had.
    writes: u64,
    reads: u64,
    batch: Vec<Segment>,
}

impl<'a, R: Read + Seek> DxtRecords<'a, R> {
    pub(crate) fn new(
        region: Region<'a, R>,
        order: ByteOrder,
        layer: Layer,
        version: u32,
    ) -> DxtRecords<'a, R> {
        let (record, batch) = (DxtRecord::default(), Vec::with_capacity(BATCH));
        DxtRecords { region, order, layer, version, record, writes: 0, reads: 0, batch }
    }

    /// The next record, or `None` after the last. Skips segments of the record before.
    ///
    /// # Errors
    /// The region is cut off or damaged here.
    pub fn next_record(&mut self) -> Result<Option<&DxtRecord>, Error> {
        while self.next_segments()?.is_some() {}
        if !self.region.need(HEAD_BYTES)? {
            return Ok(None);
        }
        let mut fields = Fields::new(self.order, self.region.bytes());
        let (id, rank, shared) = (fields.u64(), fields.i64(), fields.i64());
        let host = text(fields.take(HOST_BYTES));
        let counts = [fields.i64(), fields.i64()];
        let [Ok(writes), Ok(reads)] = counts.map(u64::try_from) else {
            return Err(self
                .region
                .damaged(format!("a record of {} writes and {} reads", counts[0], counts[1])));
        };
        self.region.consume(HEAD_BYTES);
        (self.writes, self.reads) = (writes, reads);
        self.record = DxtRecord { id, rank, shared, host, writes, reads };
        Ok(Some(&self.record))
    }

    /// Up to [`BATCH`] segments of the record, and whether they are writes; `None` after the last.
    ///
    /// # Errors
    /// The region is cut off or damaged here. All segments before that have been passed on.
    pub fn next_segments(&mut self) -> Result<Option<(bool, &[Segment])>, Error> {
        let is_write = self.writes > 0;
        let left = if is_write { &mut self.writes } else { &mut self.reads };
        if *left == 0 {
            return Ok(None);
        }
        let bytes = if self.version < self.layer.first_with_threads() { 32 } else { 40 };
        let wanted = (*left).min(BATCH as u64) as usize;
        let result = self.region.need(bytes * wanted);
        let there = wanted.min(self.region.bytes().len() / bytes);
        if there == 0 {
            // Such a record ends with the region, or earlier.
            (self.writes, self.reads) = (0, 0);
            result?;
            self.region.must(bytes)?;
            return Ok(None);
        }
        *left -= there as u64;
        let has_offset = self.layer == Layer::Posix || self.version > 1;
        self.batch.clear();
        let segments = self.region.bytes()[..bytes * there].chunks_exact(bytes);
        self.batch.extend(segments.map(|segment| parse(self.order, segment, has_offset)));
        self.region.consume(bytes * there);
        Ok(Some((is_write, &self.batch)))
    }
}

#[inline]
fn parse(order: ByteOrder, segment: &[u8], has_offset: bool) -> Segment {
    let mut fields = Fields::new(order, segment);
    let (offset, len, start_s, end_s) = (fields.i64(), fields.i64(), fields.f64(), fields.f64());
    let thread = if segment.len() > 32 { fields.u64() } else { 0 };
    Segment { offset: if has_offset { offset } else { -1 }, len, start_s, end_s, thread }
}
