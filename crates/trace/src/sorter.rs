//! Sorts any number of requests by start in bounded memory: sorted runs in a temporary file, then a
//! merge. For sources of traces whose requests do not come in order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::{Flags, Op, Request, TraceError, TraceWriter};

/// Requests that are sorted in memory at a time (about 120 MB).
const RUN_REQUESTS: usize = 2 << 20;

/// Size of one request in the temporary file, bytes.
const ROW_BYTES: usize = 56;

/// Rows read from each run at a time.
const READ_ROWS: usize = 1024;

/// The sort key. The fields after the start make the result independent of the order of arrival.
type Key = (u64, u64, u32, u32, u64, u8);

fn key(request: &Request) -> Key {
    (request.start_ns, request.end_ns, request.process, request.tid, request.offset, request.op as u8)
}

/// Collects and sorts requests. Memory: about 120 MB, however many requests there are.
pub struct Sorter {
    rows: Vec<Request>,
    capacity: usize,
    path: PathBuf,
    file: Option<BufWriter<File>>,
    /// Number of rows of each run in the file.
    runs: Vec<usize>,
}

impl Sorter {
    /// Runs of `capacity` requests go to a temporary file at `path`, which is created when needed
    /// and unlinked at once.
    fn new(path: PathBuf, capacity: usize) -> Sorter {
        Sorter { rows: Vec::new(), capacity, path, file: None, runs: Vec::new() }
    }

    /// The sorter for a trace at `output`. Runs go to a temporary file next to it.
    pub fn next_to(output: &Path) -> Sorter {
        let mut path = output.as_os_str().to_os_string();
        path.push(format!(".sort{}", std::process::id()));
        Sorter::new(path.into(), RUN_REQUESTS)
    }

    /// Adds a request. Its times count from any time that all requests have in common.
    ///
    /// # Errors
    /// The temporary file cannot be written.
    pub fn push(&mut self, request: Request) -> io::Result<()> {
        self.rows.push(request);
        if self.rows.len() == self.capacity { self.spill() } else { Ok(()) }
    }

    /// Writes all requests to a trace, with times relative to the first. Returns the start of the
    /// first, or 0. `progress` receives the fraction done, 0 to 1.
    ///
    /// # Errors
    /// The trace or the temporary file cannot be written; the message names `output`.
    pub fn write_to(
        self,
        writer: &mut TraceWriter,
        output: &Path,
        progress: &mut dyn FnMut(f64),
    ) -> Result<u64, TraceError> {
        let io = |error| TraceError::io(output, error);
        let total = self.len();
        let mut sorted = self.finish().map_err(io)?;
        let mut origin_ns = None;
        while let Some(mut request) = sorted.next().map_err(io)? {
            let origin_ns = *origin_ns.get_or_insert(request.start_ns);
            request.start_ns -= origin_ns;
            request.end_ns -= origin_ns;
            writer.push(&request)?;
            if writer.requests().is_multiple_of(1 << 16) {
                progress(writer.requests() as f64 / total as f64);
            }
        }
        progress(1.0);
        Ok(origin_ns.unwrap_or(0))
    }

    /// Number of requests so far.
    fn len(&self) -> u64 {
        self.runs.iter().sum::<usize>() as u64 + self.rows.len() as u64
    }

    fn spill(&mut self) -> io::Result<()> {
        self.rows.sort_unstable_by_key(key);
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file =
                    File::options().read(true).write(true).create(true).truncate(true).open(&self.path)?;
                fs::remove_file(&self.path)?;
                self.file.insert(BufWriter::with_capacity(1 << 20, file))
            }
        };
        for row in &self.rows {
            file.write_all(&to_bytes(row))?;
        }
        self.runs.push(self.rows.len());
        self.rows.clear();
        Ok(())
    }

    /// All requests, sorted.
    fn finish(mut self) -> io::Result<Sorted> {
        self.rows.sort_unstable_by_key(key);
        let file = self.file.map(|file| file.into_inner().map_err(|error| error.into_error())).transpose()?;
        // The last run is in memory.
        let mut sorted = Sorted { file, runs: Vec::new(), heap: BinaryHeap::new() };
        let mut position = 0;
        for rows in self.runs {
            let end = position + (rows * ROW_BYTES) as u64;
            sorted.runs.push(Run { position, end, rows: Vec::new().into_iter() });
            position = end;
        }
        sorted.runs.push(Run { position, end: position, rows: self.rows.into_iter() });
        for run in 0..sorted.runs.len() {
            sorted.enter(run)?;
        }
        Ok(sorted)
    }
}

/// The sorted requests, merged from sorted runs.
struct Sorted {
    file: Option<File>,
    runs: Vec<Run>,
    /// Key of the next request of every run that has one, and the number of the run.
    heap: BinaryHeap<Reverse<(Key, usize)>>,
}

/// A sorted run: the rows that were read, and where the others are in the file.
struct Run {
    rows: std::vec::IntoIter<Request>,
    position: u64,
    end: u64,
}

impl Sorted {
    /// The next request.
    fn next(&mut self) -> io::Result<Option<Request>> {
        let Some(Reverse((_, run))) = self.heap.pop() else { return Ok(None) };
        let request = self.runs[run].rows.next();
        self.enter(run)?;
        Ok(request)
    }

    /// Puts the next request of a run into the heap.
    fn enter(&mut self, index: usize) -> io::Result<()> {
        let run = &mut self.runs[index];
        if let (true, Some(file)) = (run.rows.as_slice().is_empty() && run.position < run.end, &self.file) {
            let mut buffer = vec![0; ((run.end - run.position) as usize).min(READ_ROWS * ROW_BYTES)];
            file.read_exact_at(&mut buffer, run.position)?;
            run.position += buffer.len() as u64;
            let rows: io::Result<Vec<Request>> = buffer.chunks_exact(ROW_BYTES).map(from_bytes).collect();
            run.rows = rows?.into_iter();
        }
        if let Some(request) = run.rows.as_slice().first() {
            self.heap.push(Reverse((key(request), index)));
        }
        Ok(())
    }
}

fn to_bytes(row: &Request) -> [u8; ROW_BYTES] {
    let mut bytes = [0; ROW_BYTES];
    let pair = |high: u32, low: u32| u64::from(high) << 32 | u64::from(low);
    let call = u32::from(row.op as u8) << 8 | u32::from(row.flags.0);
    let (ids, file) = (pair(row.process, row.tid), pair(row.file, call));
    let words = [row.offset, row.size, row.result as u64, row.start_ns, row.end_ns, ids, file];
    for (place, word) in bytes.chunks_exact_mut(8).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    bytes
}

fn from_bytes(bytes: &[u8]) -> io::Result<Request> {
    let word = |index: usize| u64::from_ne_bytes(bytes[index * 8..][..8].try_into().expect("8 bytes"));
    let [offset, size, result, start_ns, end_ns, ids, file] = std::array::from_fn(word);
    let [.., op, flags] = (file as u32).to_be_bytes();
    Ok(Request {
        process: (ids >> 32) as u32,
        tid: ids as u32,
        file: (file >> 32) as u32,
        op: Op::from_code(op).ok_or_else(|| io::Error::other("the temporary file was changed"))?,
        flags: Flags(flags),
        offset,
        size,
        result: result as i64,
        start_ns,
        end_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(n: u64) -> Vec<Request> {
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            state >> 33
        };
        (0..n)
            .map(|i| Request {
                process: (random() % 5) as u32,
                tid: 3,
                file: i as u32,
                op: Op::ALL[(i % 10) as usize],
                flags: Flags((i % 7) as u8),
                offset: i,
                size: random() << 20,
                result: -(random() as i64),
                start_ns: random() % 500,
                end_ns: 1000,
            })
            .collect()
    }

    #[test]
    fn runs_give_the_same_order_as_memory() {
        let dir = tempfile::tempdir().unwrap();
        let mut expected = requests(10_000);
        expected.sort_by_key(key);
        for capacity in [333, 5000, 10_000, 20_000] {
            let mut sorter = Sorter::new(dir.path().join("x"), capacity);
            for request in requests(10_000) {
                sorter.push(request).unwrap();
            }
            let mut sorted = sorter.finish().unwrap();
            for request in &expected {
                assert_eq!(sorted.next().unwrap().as_ref(), Some(request));
            }
            assert_eq!(sorted.next().unwrap(), None);
        }
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}
