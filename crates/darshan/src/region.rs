//! The decompressed bytes of a region, streamed. A region is a sequence of compressed streams:
//! every process of a job compresses its own records. Source: Darshan 3.5 `darshan_log_dzread` in
//! `darshan-util/darshan-logutils.c`.

use std::io::{Read, Seek, SeekFrom};

use crate::Error;
use crate::header::{Compression, Extent};

/// Compressed bytes read at a time.
const INPUT_BYTES: usize = 128 << 10;

/// Decompressed bytes kept. Every record, or what is needed of it at a time, is shorter.
pub(crate) const BUFFER_BYTES: usize = 256 << 10;

/// A region that is being read.
pub(crate) struct Region<'a, R> {
    source: &'a mut R,
    name: &'static str,
    /// Compressed bytes that are not read yet.
    remaining: u64,
    codec: Codec,
    /// The region is within a compressed stream.
    is_in_stream: bool,
    input: Box<[u8]>,
    unused: std::ops::Range<usize>,
    buffer: Box<[u8]>,
    filled: std::ops::Range<usize>,
    /// Decompressed bytes before those of the buffer.
    consumed: u64,
    end: End,
}

/// How a region goes on.
enum End {
    NotYet,
    Whole,
    CutOff,
    Damaged(String),
}

enum Codec {
    Zlib(flate2::Decompress),
    Bzip2(bzip2::Decompress),
    None,
}

impl Codec {
    fn new(compression: Compression) -> Codec {
        match compression {
            Compression::Zlib => Codec::Zlib(flate2::Decompress::new(true)),
            Compression::Bzip2 => Codec::Bzip2(bzip2::Decompress::new(false)),
            Compression::None => Codec::None,
        }
    }

    /// Decompresses some bytes. Returns how many it took, how many it gave, and whether the stream
    /// ends there.
    fn step(&mut self, input: &[u8], output: &mut [u8]) -> Result<(usize, usize, bool), String> {
        match self {
            Codec::Zlib(codec) => {
                let before = (codec.total_in(), codec.total_out());
                let status = codec.decompress(input, output, flate2::FlushDecompress::None);
                let is_end = status.map_err(|error| error.to_string())? == flate2::Status::StreamEnd;
                let (taken, given) = (codec.total_in() - before.0, codec.total_out() - before.1);
                if is_end {
                    codec.reset(true);
                }
                Ok((taken as usize, given as usize, is_end))
            }
            Codec::Bzip2(codec) => {
                let before = (codec.total_in(), codec.total_out());
                let status = codec.decompress(input, output).map_err(|error| error.to_string())?;
                let (taken, given) = (codec.total_in() - before.0, codec.total_out() - before.1);
                let is_end = status == bzip2::Status::StreamEnd;
                if is_end {
                    *codec = bzip2::Decompress::new(false);
                }
                Ok((taken as usize, given as usize, is_end))
            }
            Codec::None => {
                let len = input.len().min(output.len());
                output[..len].copy_from_slice(&input[..len]);
                Ok((len, len, true))
            }
        }
    }
}

impl<'a, R: Read + Seek> Region<'a, R> {
    pub(crate) fn new(
        source: &'a mut R,
        name: &'static str,
        compression: Compression,
        extent: Extent,
    ) -> Result<Region<'a, R>, Error> {
        if extent.len > 0 {
            source.seek(SeekFrom::Start(extent.offset))?;
        }
        Ok(Region {
            source,
            name,
            remaining: extent.len,
            codec: Codec::new(compression),
            is_in_stream: false,
            input: vec![0; INPUT_BYTES].into(),
            unused: 0..0,
            buffer: vec![0; BUFFER_BYTES].into(),
            filled: 0..0,
            consumed: 0,
            end: End::NotYet,
        })
    }

    /// Makes at least `len` bytes available, at most [`BUFFER_BYTES`]. Returns `false` at the end
    /// of the region.
    ///
    /// # Errors
    /// The region ends or is damaged before `len` bytes. All bytes before that have been available.
    pub(crate) fn need(&mut self, len: usize) -> Result<bool, Error> {
        if self.filled.len() < len {
            self.fill(len)?;
        }
        if self.filled.len() >= len {
            return Ok(true);
        }
        match &self.end {
            End::Whole if self.filled.is_empty() => Ok(false),
            End::Damaged(what) => Err(self.damaged(what.clone())),
            _ => Err(Error::Truncated { region: self.name, bytes: self.consumed + self.filled.len() as u64 }),
        }
    }

    /// As [`Region::need`], where the region must not end.
    pub(crate) fn must(&mut self, len: usize) -> Result<(), Error> {
        if self.need(len)? { Ok(()) } else { Err(Error::Truncated { region: self.name, bytes: self.consumed }) }
    }

    /// Whether the region was read to its regular end.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self.end, End::Whole)
    }

    /// The bytes that are available.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[self.filled.clone()]
    }

    /// Drops the next `len` available bytes.
    pub(crate) fn consume(&mut self, len: usize) {
        self.filled.start += len;
        self.consumed += len as u64;
    }

    /// An error at the present position.
    pub(crate) fn damaged(&self, what: String) -> Error {
        Error::Damaged { region: self.name, bytes: self.consumed, what }
    }

    /// Decompresses until `len` bytes are available or the region ends.
    fn fill(&mut self, len: usize) -> Result<(), Error> {
        self.buffer.copy_within(self.filled.clone(), 0);
        self.filled = 0..self.filled.len();
        while self.filled.len() < len && matches!(self.end, End::NotYet) {
            if self.unused.is_empty() && !self.read()? {
                break;
            }
            let (input, output) = (&self.input[self.unused.clone()], &mut self.buffer[self.filled.end..]);
            match self.codec.step(input, output) {
                Ok((0, 0, false)) => self.end = End::Damaged("the compressed data do not go on".into()),
                Ok((taken, given, is_end)) => {
                    self.unused.start += taken;
                    self.filled.end += given;
                    self.is_in_stream = !is_end;
                }
                Err(what) => self.end = End::Damaged(what),
            }
        }
        Ok(())
    }

    /// Reads compressed bytes. Returns `false` at the end of the region.
    fn read(&mut self) -> Result<bool, Error> {
        let len = self.remaining.min(INPUT_BYTES as u64) as usize;
        let read = loop {
            match self.source.read(&mut self.input[..len]) {
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        if read == 0 {
            self.end = if self.remaining > 0 || self.is_in_stream { End::CutOff } else { End::Whole };
        }
        self.remaining -= read as u64;
        self.unused = 0..read;
        Ok(read > 0)
    }
}
