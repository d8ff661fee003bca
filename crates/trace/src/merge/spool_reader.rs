//! Reads the spool of one process, complete or cut off.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::mem::offset_of;
use std::path::{Path, PathBuf};

use crate::spool::{
    BLOCK_MAGIC, BLOCK_NAME, BLOCK_RECORDS, BlockHeader, HEADER_BYTES, Header, Instant, LIVE, LOG, MAGIC,
    NO_WINDOW, Record, WINDOW_BYTES, WINDOW_RECORDS, WindowHeader,
};

/// Maximum length of a file name in a log, bytes; a longer one is damage.
const NAME_BYTES_MAX: usize = 64 * 1024;

/// Everything known of a process before its records are read.
#[derive(Debug)]
pub(super) struct Spool {
    /// Path without extension.
    base: PathBuf,
    pub(super) pid: u32,
    pub(super) rank: i32,
    /// Number of processes of the job; 0 if unknown.
    pub(super) ranks: u32,
    /// 1 + the number of the node in the job; 0 if unknown.
    pub(super) node: u32,
    pub(super) host: String,
    pub(super) program: String,
    /// File name of the parent's spool, without extension.
    pub(super) parent: Option<String>,
    pub(super) clock_is_tsc: bool,
    pub(super) start: Instant,
    pub(super) start_realtime_ns: u64,
    pub(super) dropped_limit: u64,
    pub(super) dropped_failed: u64,
    pub(super) failure: i32,
    pub(super) lost_children: u32,
}

/// One item of a spool.
pub(super) enum Item<'a> {
    /// A file number and its name.
    Name(u32, &'a [u8]),
    /// One moment on both clocks.
    Moment(Instant),
    /// A thread and its calls, in order of their end.
    Records(u32, &'a [Record]),
}

/// The items to read. Skipping records makes a pass much cheaper.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    NamesAndMoments,
    Records,
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("4 bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("8 bytes"))
}

fn instant_at(bytes: &[u8], at: usize) -> Instant {
    Instant {
        ticks: u64_at(bytes, at + offset_of!(Instant, ticks)),
        monotonic_ns: u64_at(bytes, at + offset_of!(Instant, monotonic_ns)),
    }
}

fn record_at(bytes: &[u8]) -> Record {
    Record {
        start: u64_at(bytes, offset_of!(Record, start)),
        end: u64_at(bytes, offset_of!(Record, end)),
        offset: u64_at(bytes, offset_of!(Record, offset)),
        size: u64_at(bytes, offset_of!(Record, size)),
        result: u64_at(bytes, offset_of!(Record, result)) as i64,
        file: u32_at(bytes, offset_of!(Record, file)),
        op: bytes[offset_of!(Record, op)],
        flags: bytes[offset_of!(Record, flags)],
        reserved: 0,
    }
}

/// Fills the buffer as far as the input reaches.
fn read_up_to(reader: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut done = 0;
    while done < buffer.len() {
        match reader.read(&mut buffer[done..]) {
            Ok(0) => break,
            Ok(n) => done += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(done)
}

impl Spool {
    /// Reads the header of `base.live`. `Ok(None)`: the process ended before it recorded anything.
    /// `Ok(Some(Err))`: the header is damaged; the text says why.
    pub(super) fn open(live: &Path) -> io::Result<Option<Result<Spool, String>>> {
        let mut page = [0; HEADER_BYTES];
        let n = read_up_to(&mut File::open(live)?, &mut page)?;
        if n == 0 {
            return Ok(None);
        }
        if n < HEADER_BYTES || u64_at(&page, offset_of!(Header, magic)) != MAGIC {
            return Ok(Some(Err("it is not a spool of this version of stripewise".into())));
        }
        Ok(Some(Spool::parse(&page, live.with_extension(""))))
    }

    fn parse(page: &[u8], base: PathBuf) -> Result<Spool, String> {
        let text = |len_at: usize, at: usize, max: usize| -> Result<String, String> {
            let len = u32_at(page, len_at) as usize;
            let bytes = page[at..at + max].get(..len).ok_or("a name in its header is too long")?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };
        let parent =
            text(offset_of!(Header, parent_len), offset_of!(Header, parent), crate::spool::STEM_BYTES)?;
        Ok(Spool {
            base,
            pid: u32_at(page, offset_of!(Header, pid)),
            rank: u32_at(page, offset_of!(Header, rank)) as i32,
            ranks: u32_at(page, offset_of!(Header, ranks)),
            node: u32_at(page, offset_of!(Header, node)),
            host: text(offset_of!(Header, host_len), offset_of!(Header, host), crate::spool::HOST_BYTES)?,
            program: text(
                offset_of!(Header, program_len),
                offset_of!(Header, program),
                crate::spool::PROGRAM_BYTES,
            )?,
            parent: (!parent.is_empty()).then_some(parent),
            clock_is_tsc: u32_at(page, offset_of!(Header, clock)) == 1,
            start: instant_at(page, offset_of!(Header, start)),
            start_realtime_ns: u64_at(page, offset_of!(Header, start_realtime_ns)),
            dropped_limit: u64_at(page, offset_of!(Header, dropped_limit)),
            dropped_failed: u64_at(page, offset_of!(Header, dropped_failed)),
            failure: u32_at(page, offset_of!(Header, failure)) as i32,
            lost_children: u32_at(page, offset_of!(Header, lost_children)),
        })
    }

    /// The spool's file name without extension, by which children refer to their parent.
    pub(super) fn stem(&self) -> String {
        self.base.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    fn path(&self, extension: &str) -> PathBuf {
        let mut path = self.base.clone().into_os_string();
        path.push(".");
        path.push(extension);
        path.into()
    }

    /// Passes all `wanted` items of the spool to `take`. If something is damaged, it passes
    /// everything before the damage and returns a description of it.
    pub(super) fn read(
        &self,
        wanted: Wanted,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<Option<String>, crate::TraceError> {
        let log_path = self.path(LOG);
        let log = match File::open(&log_path) {
            Ok(log) => Some(log),
            // There is no log: no file was opened and no window was filled.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            Err(error) => return Err(crate::TraceError::io(&log_path, error)),
        };
        let mut reader =
            Reader { wanted, in_log: Vec::new(), torn: None, buffer: Vec::new(), records: Vec::new() };
        let mut damage = None;
        if let Some(log) = log {
            let len = log.metadata().map_err(|error| crate::TraceError::io(&log_path, error))?.len();
            let mut log = BufReader::with_capacity(256 * 1024, log);
            damage = reader.log(&mut log, len, take).map_err(|error| error.at(&log_path))?;
        }
        let live_path = self.path(LIVE);
        let live = File::open(&live_path).map_err(|error| crate::TraceError::io(&live_path, error))?;
        let live_damage = reader.windows(live, take).map_err(|error| error.at(&live_path))?;
        Ok(damage.or(live_damage).or(reader.torn.map(|_| "its last call was cut off".into())))
    }
}

/// The file could not be read, or `take` failed.
enum Failure {
    Io(io::Error),
    Taker(crate::TraceError),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<crate::TraceError> for Failure {
    fn from(error: crate::TraceError) -> Failure {
        Failure::Taker(error)
    }
}

impl Failure {
    fn at(self, path: &Path) -> crate::TraceError {
        match self {
            Failure::Io(error) => crate::TraceError::io(path, error),
            Failure::Taker(error) => error,
        }
    }
}

/// The state of a pass over a spool.
struct Reader {
    wanted: Wanted,
    /// Per window: number of its first record that is not in the log.
    in_log: Vec<u64>,
    /// If the block at the end of the log is cut off: its window, and the record number up to which
    /// it was read.
    torn: Option<(u32, u64)>,
    buffer: Vec<u8>,
    records: Vec<Record>,
}

impl Reader {
    /// Reads the log up to its end or the first damage.
    fn log(
        &mut self,
        log: &mut BufReader<File>,
        len: u64,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<Option<String>, Failure> {
        let mut header = [0; size_of::<BlockHeader>()];
        let mut position = 0;
        while position < len {
            let n = read_up_to(log, &mut header)?;
            if n < header.len() {
                self.torn = Some((NO_WINDOW, 0));
                return Ok(None);
            }
            position += n as u64;
            let damage =
                |what: &str| Ok(Some(format!("its log is damaged at byte {}: {what}", position - n as u64)));
            if u32_at(&header, offset_of!(BlockHeader, magic)) != BLOCK_MAGIC {
                return damage("no block starts there");
            }
            let payload = u32_at(&header, offset_of!(BlockHeader, payload_bytes)) as usize;
            let here = (len - position).min(payload as u64) as usize;
            match u32_at(&header, offset_of!(BlockHeader, kind)) {
                BLOCK_NAME if payload <= NAME_BYTES_MAX => self.name(log, &header, payload, here, take)?,
                BLOCK_RECORDS if payload <= WINDOW_BYTES && payload.is_multiple_of(size_of::<Record>()) => {
                    if let Some(what) = self.records(log, &header, payload, here, take)? {
                        return damage(&what);
                    }
                }
                _ => return damage("a block of unknown kind or size"),
            }
            position += here as u64;
        }
        Ok(None)
    }

    fn name(
        &mut self,
        log: &mut BufReader<File>,
        header: &[u8],
        payload: usize,
        here: usize,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<(), Failure> {
        if here < payload {
            // The open that needed this name never returned, so no record has its number.
            return Ok(log.seek_relative(here as i64)?);
        }
        if self.wanted == Wanted::Records {
            return Ok(log.seek_relative(payload as i64)?);
        }
        self.buffer.resize(payload, 0);
        log.read_exact(&mut self.buffer)?;
        Ok(take(Item::Name(u32_at(header, offset_of!(BlockHeader, number)), &self.buffer))?)
    }

    /// Reads a block of records, of whose payload only the first `here` bytes exist.
    fn records(
        &mut self,
        log: &mut BufReader<File>,
        header: &[u8],
        payload: usize,
        here: usize,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<Option<String>, Failure> {
        let window = u32_at(header, offset_of!(BlockHeader, number));
        let first = u64_at(header, offset_of!(BlockHeader, first));
        let whole = here / size_of::<Record>();
        let Some(end) = first.checked_add(whole as u64) else {
            return Ok(Some("impossible record number".into()));
        };
        if window != NO_WINDOW {
            if window as usize >= self.in_log.len() {
                if window > 1 << 20 {
                    return Ok(Some("impossible window number".into()));
                }
                self.in_log.resize(window as usize + 1, 0);
            }
            self.in_log[window as usize] = end;
        }
        if here < payload {
            self.torn = Some((window, end));
        }
        if self.wanted == Wanted::NamesAndMoments {
            log.seek_relative(here as i64)?;
            take(Item::Moment(instant_at(header, offset_of!(BlockHeader, moment))))?;
            return Ok(None);
        }
        self.buffer.resize(here, 0);
        log.read_exact(&mut self.buffer)?;
        self.take_records(u32_at(header, offset_of!(BlockHeader, tid)), whole, take)?;
        Ok(None)
    }

    /// Passes on the first `count` records of the buffer.
    fn take_records(
        &mut self,
        tid: u32,
        count: usize,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<(), Failure> {
        self.records.clear();
        self.records.extend(self.buffer.chunks_exact(size_of::<Record>()).take(count).map(record_at));
        Ok(take(Item::Records(tid, &self.records))?)
    }

    /// Reads the windows: the records that are not in the log yet.
    fn windows(
        &mut self,
        mut live: File,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<Option<String>, Failure> {
        live.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
        for window in 0u32.. {
            self.buffer.resize(WINDOW_BYTES, 0);
            let n = read_up_to(&mut live, &mut self.buffer)?;
            if n < WINDOW_BYTES {
                // The process ended while it created the window, which is empty.
                break;
            }
            if let Some(what) = self.window(window, take)? {
                return Ok(Some(what));
            }
        }
        Ok(None)
    }

    /// Reads the window in the buffer.
    fn window(
        &mut self,
        window: u32,
        take: &mut impl FnMut(Item) -> Result<(), crate::TraceError>,
    ) -> Result<Option<String>, Failure> {
        let first = u64_at(&self.buffer, offset_of!(WindowHeader, first));
        let len = u64_at(&self.buffer, offset_of!(WindowHeader, len));
        if len > WINDOW_RECORDS as u64 || first.checked_add(len).is_none() {
            return Ok(Some(format!("its window {window} is damaged")));
        }
        let in_log = self.in_log.get(window as usize).copied().unwrap_or(0);
        if self.torn.is_some_and(|(torn, end)| torn == window && first <= end) {
            // The process ended while it moved the window to the log; the window has the rest.
            self.torn = None;
        }
        let skip = in_log.saturating_sub(first).min(len) as usize;
        if len == 0 {
            return Ok(None);
        }
        if self.wanted == Wanted::NamesAndMoments {
            let latest = u32_at(&self.buffer, offset_of!(WindowHeader, latest)) & 1;
            let at = offset_of!(WindowHeader, moments) + latest as usize * size_of::<Instant>();
            take(Item::Moment(instant_at(&self.buffer, at)))?;
            return Ok(None);
        }
        let tid = u32_at(&self.buffer, offset_of!(WindowHeader, tid));
        let start = size_of::<WindowHeader>() + skip * size_of::<Record>();
        self.buffer.drain(..start);
        self.take_records(tid, len as usize - skip, take)?;
        Ok(None)
    }
}
