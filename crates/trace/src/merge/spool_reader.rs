//! Reads the spool of one process, complete or cut off.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use zerocopy::FromBytes;

use crate::TraceError;
use crate::spool::{
    BLOCK_MAGIC, BLOCK_NAME, BLOCK_RECORDS, BlockHeader, HEADER_BYTES, Header, Instant, LIVE, LOG, MAGIC,
    NAME_BYTES_MAX, NO_WINDOW, Record, WINDOW_BYTES, WINDOW_RECORDS, WindowHeader,
};

/// Maximum number of windows of a process; a larger number in a log is damage.
const WINDOWS_MAX: u32 = 1 << 20;

/// Everything known of a process before its records are read.
pub(super) struct Spool {
    /// Path without extension.
    base: PathBuf,
    pub(super) header: Header,
    pub(super) host: String,
    pub(super) program: String,
    /// File name of the parent's spool, without extension.
    pub(super) parent: Option<String>,
}

/// One item of a spool.
pub(super) enum Item {
    /// A file number; [`Reader::name`] has its name.
    Name(u32),
    /// One moment on both clocks.
    Moment(Instant),
    /// A thread; [`Reader::records`] has its calls, in order of their end.
    Records(u32),
    /// Nothing that was wanted.
    Nothing,
}

/// The items to read. Skipping records makes a pass much cheaper.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Wanted {
    NamesAndMoments,
    Records,
}

/// The struct at the start of the bytes, which must be long enough.
fn read<T: FromBytes>(bytes: &[u8]) -> T {
    T::read_from_bytes(&bytes[..size_of::<T>()]).expect("the length is that of the struct")
}

/// Reads `len` bytes into the buffer, or what there is.
fn fill(buffer: &mut Vec<u8>, reader: &mut impl Read, len: usize) -> io::Result<usize> {
    buffer.clear();
    reader.take(len as u64).read_to_end(buffer)
}

impl Spool {
    /// Reads the header of `base.live`. `Ok(None)`: the process ended before it recorded anything.
    /// `Ok(Some(Err))`: the header is damaged; the text says why.
    pub(super) fn open(live: &Path) -> io::Result<Option<Result<Spool, String>>> {
        let mut page = Vec::new();
        let len = fill(&mut page, &mut File::open(live)?, HEADER_BYTES)?;
        if len == 0 {
            return Ok(None);
        }
        let header = (len == HEADER_BYTES).then(|| read::<Header>(&page));
        let header = header.filter(|header| header.magic == MAGIC);
        let spool = header.ok_or("it is not a spool of this version of stripewise");
        let spool = spool.and_then(|header| Spool::of(header, live.with_extension("")));
        Ok(Some(spool.map_err(str::to_owned)))
    }

    fn of(header: Header, base: PathBuf) -> Result<Spool, &'static str> {
        let text = |bytes: &[u8], len: u32| -> Result<String, &'static str> {
            let bytes = bytes.get(..len as usize).ok_or("a name in its header is too long")?;
            Ok(String::from_utf8_lossy(bytes).into_owned())
        };
        let parent = text(&header.parent, header.parent_len)?;
        Ok(Spool {
            base,
            host: text(&header.host, header.host_len)?,
            program: text(&header.program, header.program_len)?,
            parent: (!parent.is_empty()).then_some(parent),
            header,
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

    /// Starts a pass over the `wanted` items of the spool.
    pub(super) fn read(&self, wanted: Wanted) -> Result<Reader<'_>, TraceError> {
        let (log, live) = (self.path(LOG), self.path(LIVE));
        let log = match open_log(&log) {
            // There is no log: no file was opened and no window was filled.
            Err(error) if error.kind() == io::ErrorKind::NotFound => None,
            opened => Some(opened.map_err(|error| TraceError::io(&log, error))?),
        };
        Ok(Reader {
            spool: self,
            wanted,
            log,
            live: open_windows(&live).map_err(|error| TraceError::io(&live, error))?,
            window: 0,
            in_log: Vec::new(),
            torn: None,
            damage: None,
            buffer: Vec::new(),
            records: Vec::new(),
        })
    }
}

fn open_log(path: &Path) -> io::Result<Log> {
    let file = File::open(path)?;
    Ok(Log { len: file.metadata()?.len(), position: 0, file: BufReader::with_capacity(256 * 1024, file) })
}

fn open_windows(path: &Path) -> io::Result<File> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(HEADER_BYTES as u64))?;
    Ok(file)
}

/// A log that is being read.
struct Log {
    file: BufReader<File>,
    len: u64,
    position: u64,
}

/// A pass over a spool: first the log, then the windows, which have the records that are not in the
/// log yet. Each ends at its first damage.
pub(super) struct Reader<'a> {
    spool: &'a Spool,
    wanted: Wanted,
    /// The log, until it was read.
    log: Option<Log>,
    live: File,
    /// Number of the next window.
    window: u32,
    /// Per window: number of its first record that is not in the log.
    in_log: Vec<u64>,
    /// If the block at the end of the log is cut off: its window, and the record number up to which
    /// it was read.
    torn: Option<(u32, u64)>,
    damage: Option<String>,
    buffer: Vec<u8>,
    records: Vec<Record>,
}

impl Reader<'_> {
    /// The next item; `None` at the end.
    pub(super) fn next_item(&mut self) -> Result<Option<Item>, TraceError> {
        let spool = self.spool;
        let io = move |extension| move |error| TraceError::io(&spool.path(extension), error);
        if let Some(log) = self.log.take()
            && let Some(item) = self.block(log).map_err(io(LOG))?
        {
            return Ok(Some(item));
        }
        self.window().map_err(io(LIVE))
    }

    /// The name of the item [`Item::Name`] that was read last.
    pub(super) fn name(&self) -> &[u8] {
        &self.buffer
    }

    /// The calls of the item [`Item::Records`] that was read last.
    pub(super) fn records(&self) -> &[Record] {
        &self.records
    }

    /// A description of the damage, if the spool is damaged. Everything before was passed on.
    pub(super) fn damage(self) -> Option<String> {
        self.damage.or(self.torn.map(|_| "its last call was cut off".into()))
    }

    fn damaged(&mut self, what: String) -> io::Result<Option<Item>> {
        self.damage.get_or_insert(what);
        Ok(None)
    }

    /// Reads the next block of the log, which remains open if more can follow; `None` at its end or
    /// at damage.
    fn block(&mut self, mut log: Log) -> io::Result<Option<Item>> {
        let start = log.position;
        if start >= log.len {
            return Ok(None);
        }
        if fill(&mut self.buffer, &mut log.file, size_of::<BlockHeader>())? < size_of::<BlockHeader>() {
            self.torn = Some((NO_WINDOW, 0));
            return Ok(None);
        }
        let header: BlockHeader = read(&self.buffer);
        let payload = header.payload_bytes as usize;
        log.position += self.buffer.len() as u64;
        let here = (log.len.saturating_sub(log.position)).min(payload as u64) as usize;
        log.position += here as u64;
        let problem = match header.kind {
            _ if header.magic != BLOCK_MAGIC => Some("no block starts there"),
            BLOCK_NAME if payload <= NAME_BYTES_MAX => None,
            BLOCK_RECORDS if payload <= WINDOW_BYTES && payload.is_multiple_of(size_of::<Record>()) => {
                self.note_records(&header, here).err()
            }
            _ => Some("a block of unknown kind or size"),
        };
        if let Some(what) = problem {
            return self.damaged(format!("its log is damaged at byte {start}: {what}"));
        }
        // If a name is cut off, the open that needed it never returned, so no record has its
        // number.
        let is_wanted = match self.wanted {
            Wanted::NamesAndMoments => header.kind == BLOCK_NAME && here == payload,
            Wanted::Records => header.kind == BLOCK_RECORDS,
        };
        if is_wanted {
            fill(&mut self.buffer, &mut log.file, here)?;
        } else {
            log.file.seek_relative(here as i64)?;
        }
        self.log = Some(log);
        Ok(Some(match header.kind {
            BLOCK_NAME if is_wanted => Item::Name(header.number),
            BLOCK_RECORDS if is_wanted => {
                self.take_records(0, 0, here / size_of::<Record>());
                Item::Records(header.tid)
            }
            BLOCK_RECORDS => Item::Moment(header.moment),
            _ => Item::Nothing,
        }))
    }

    /// Notes which records a block has, of whose payload the first `here` bytes exist.
    fn note_records(&mut self, header: &BlockHeader, here: usize) -> Result<(), &'static str> {
        let window = header.number;
        let whole = (here / size_of::<Record>()) as u64;
        let end = header.first.checked_add(whole).ok_or("impossible record number")?;
        if window != NO_WINDOW {
            if window > WINDOWS_MAX {
                return Err("impossible window number");
            }
            let windows = self.in_log.len().max(window as usize + 1);
            self.in_log.resize(windows, 0);
            self.in_log[window as usize] = end;
        }
        if here < header.payload_bytes as usize {
            self.torn = Some((window, end));
        }
        Ok(())
    }

    /// Takes `count` records from the buffer, after `skip` ones that begin at `start`.
    fn take_records(&mut self, start: usize, skip: usize, count: usize) {
        let records = self.buffer[start..].chunks_exact(size_of::<Record>());
        self.records.clear();
        self.records.extend(records.skip(skip).take(count).map(read::<Record>));
    }

    /// Reads the next window; `None` after the last or at damage.
    fn window(&mut self) -> io::Result<Option<Item>> {
        if fill(&mut self.buffer, &mut self.live, WINDOW_BYTES)? < WINDOW_BYTES {
            // The process ended while it created the window, which is empty.
            return Ok(None);
        }
        let number = self.window;
        self.window = number.saturating_add(1);
        let WindowHeader { first, len, moments, latest, tid, .. } = read(&self.buffer);
        if len > WINDOW_RECORDS as u64 || first.checked_add(len).is_none() {
            return self.damaged(format!("its window {number} is damaged"));
        }
        let in_log = self.in_log.get(number as usize).copied().unwrap_or(0);
        if self.torn.is_some_and(|(torn, end)| torn == number && first <= end) {
            // The process ended while it moved the window to the log; the window has the rest.
            self.torn = None;
        }
        if len == 0 {
            return Ok(Some(Item::Nothing));
        }
        if self.wanted == Wanted::NamesAndMoments {
            return Ok(Some(Item::Moment(moments[latest as usize & 1])));
        }
        let skip = in_log.saturating_sub(first).min(len) as usize;
        self.take_records(size_of::<WindowHeader>(), skip, len as usize - skip);
        Ok(Some(Item::Records(tid)))
    }
}
