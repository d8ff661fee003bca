//! Traces made of logs: what is recorded, what is guessed, and what is odd about a log.

use std::io::Cursor;
use std::path::Path;

use common::{LogWriter, Shape, USUAL, dxt, record, sample};
use proptest::prelude::*;
use stripewise_darshan::{Compression, Counters, Log, Module, TraceFromLogError, trace_from_log};
use stripewise_trace::{Flags, Meta, ORIGIN_COUNTERS, ORIGIN_DXT, Op, ProcessInfo, Request, Trace};

mod common;

/// Calls that may be made of counters.
const CALLS: u64 = 10_000;

type Writer = LogWriter<Cursor<Vec<u8>>>;

/// A trace, read back.
struct Made {
    meta: Meta,
    processes: Vec<ProcessInfo>,
    files: Vec<String>,
    requests: Vec<Request>,
}

impl Made {
    fn of(op: Op, made: &Made) -> Vec<Request> {
        made.requests.iter().filter(|request| request.op == op).copied().collect()
    }

    fn says(&self, words: &str) -> bool {
        self.meta.notes.iter().chain(&self.meta.incomplete).any(|note| note.contains(words))
    }
}

/// A log of a job with these times and this number of processes, and two named files.
fn log(start_s: i64, end_s: i64, processes: i64) -> Writer {
    let mut log = LogWriter::new(Cursor::new(Vec::new()), USUAL);
    log.job(start_s, end_s, processes);
    log.names(&[(1, "/scratch/a"), (2, "/scratch/b"), (3, "<STDOUT>"), (4, "<STDIN>")]);
    log
}

fn made(log: Writer) -> Made {
    made_of(&log.finish().into_inner())
}

fn made_of(bytes: &[u8]) -> Made {
    try_made_of(bytes).unwrap()
}

fn try_made_of(bytes: &[u8]) -> Result<Made, TraceFromLogError> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("t");
    let mut log = Log::open(Cursor::new(bytes))?;
    let calls = trace_from_log(&mut log, &path, CALLS, &mut |_| {})?;
    let files_left: Vec<_> = std::fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(files_left.len(), 1, "{files_left:?}");
    let made = read(&path);
    assert_eq!(made.requests.len() as u64, calls);
    Ok(made)
}

fn read(path: &Path) -> Made {
    let trace = Trace::open(path).unwrap();
    let (mut requests, mut all) = (trace.requests().unwrap(), Vec::new());
    while let Some(batch) = requests.next_batch().unwrap() {
        all.extend_from_slice(batch);
    }
    let (meta, processes) = (trace.meta().clone(), trace.processes().to_vec());
    Made { meta, processes, files: trace.file_names().unwrap(), requests: all }
}

/// Id of a file, rank, and counters or segments.
type Records<'a, T> = &'a [(u64, i64, &'a [T])];

fn add(log: &mut Writer, of: Counters, records: Records<(&str, f64)>) {
    let newest = [(Counters::Posix, 4), (Counters::MpiIo, 3), (Counters::Stdio, 2)];
    let version = newest.iter().find(|(other, _)| *other == of).unwrap().1;
    let mut bytes = log.bytes();
    for (id, rank, values) in records {
        record(&mut bytes, of, version, (*id, *rank), values);
    }
    log.module(of.module(), version, [bytes.bytes]);
}

/// Segments: offset, bytes, start and end.
fn add_dxt(log: &mut Writer, records: Records<(i64, i64, f64, f64)>) {
    let mut bytes = log.bytes();
    for (id, rank, writes) in records {
        dxt(&mut bytes, false, (*id, *rank, "node7"), writes, &[]);
    }
    log.module(Module::DxtPosix, 1, [bytes.bytes]);
}

/// Writes of a shared file: 64 of 64 KiB, one after the other, by 4 processes.
const WRITES: [(&str, f64); 11] = [
    ("POSIX_OPENS", 4.0),
    ("POSIX_WRITES", 64.0),
    ("POSIX_BYTES_WRITTEN", 4194304.0),
    ("POSIX_MAX_BYTE_WRITTEN", 4194303.0),
    ("POSIX_CONSEC_WRITES", 60.0),
    ("POSIX_SEQ_WRITES", 60.0),
    ("POSIX_SIZE_WRITE_10K_100K", 64.0),
    ("POSIX_ACCESS1_ACCESS", 65536.0),
    ("POSIX_ACCESS1_COUNT", 64.0),
    ("POSIX_F_WRITE_START_TIMESTAMP", 1.0),
    ("POSIX_F_WRITE_END_TIMESTAMP", 3.0),
];

#[test]
fn segments_are_the_reads_and_writes() {
    let mut log = log(1_700_000_000, 1_700_000_010, 2);
    add(&mut log, Counters::Posix, &[(1, -1, &[("POSIX_WRITES", 3.0), ("POSIX_BYTES_WRITTEN", 12.0)])]);
    // The second rank's clock is earlier, so rows must be sorted.
    add_dxt(&mut log, &[(1, 0, &[(0, 4, 2.0, 2.5), (4, 4, 3.0, 3.5)]), (1, 1, &[(8, 4, 1.0, 1.5)])]);
    let made = made(log);
    assert_eq!((made.meta.origin.as_str(), made.meta.incomplete.len()), (ORIGIN_DXT, 0));
    let writes = Made::of(Op::Write, &made);
    let rows: Vec<_> =
        writes.iter().map(|w| (made.processes[w.process as usize].rank, w.offset, w.start_ns)).collect();
    assert_eq!(rows, [(1, 8, 0), (0, 0, 1_000_000_000), (0, 4, 2_000_000_000)]);
    assert!(made.processes.iter().all(|process| process.node == "node7" && process.program == "/opt/app"));
    assert_eq!(made.meta.start_unix_ns, 1_700_000_001_250_000_000);
    assert_eq!(made.meta.wall_s, Some(10.5));
    assert_eq!(made.meta.command, ["/opt/app", "--steps", "3"]);
}

#[test]
fn calls_that_dxt_lacks_are_missing() {
    let mut log = log(1, 9, 1);
    add(&mut log, Counters::Posix, &[(1, 0, &[("POSIX_WRITES", 5.0), ("POSIX_BYTES_WRITTEN", 20.0)])]);
    add_dxt(&mut log, &[(1, 0, &[(0, 4, 2.0, 2.5)])]);
    let made = made(log);
    assert_eq!(Made::of(Op::Write, &made).len(), 1);
    assert!(made.says("DXT lacks 4 reads and writes"), "{:?}", made.meta);
}

#[test]
fn counters_of_a_shared_file_become_calls_of_all_processes() {
    let mut log = log(1, 9, 4);
    add(&mut log, Counters::Posix, &[(1, -1, &WRITES)]);
    let made = made(log);
    assert_eq!(made.meta.origin, ORIGIN_COUNTERS);
    let writes = Made::of(Op::Write, &made);
    let mut offsets: Vec<u64> = writes.iter().map(|write| write.offset).collect();
    offsets.sort_unstable();
    assert_eq!(offsets, (0..64).map(|i| i << 16).collect::<Vec<_>>());
    assert!(writes.iter().all(|write| write.size == 65536 && write.result == 65536));
    assert_eq!((made.processes.len(), Made::of(Op::Open, &made).len()), (4, 4));
    assert!(made.says("guessed, since the log has no extended trace"));
    assert!(made.says("guessed: 4 processes ran on one node"));
}

#[test]
fn the_lowest_layer_counts() {
    let mpi: &[(&str, f64)] = &[("MPIIO_COLL_WRITES", 8.0), ("MPIIO_BYTES_WRITTEN", 80.0)];
    let mut log = log(1, 9, 1);
    add(&mut log, Counters::Posix, &[(1, 0, &WRITES)]);
    add(&mut log, Counters::MpiIo, &[(1, 0, mpi), (2, 0, mpi)]);
    let made = made(log);
    let of_file = |name| made.files.iter().position(|file| file == name).unwrap() as u32;
    let writes = Made::of(Op::Write, &made);
    assert_eq!(writes.iter().filter(|write| write.file == of_file("/scratch/a")).count(), 64);
    // Only MPI-IO has the other file, by collective calls.
    let others: Vec<_> = writes.iter().filter(|write| write.file == of_file("/scratch/b")).collect();
    assert_eq!((others.len(), others.iter().map(|write| write.size).sum::<u64>()), (8, 80));
    assert!(others.iter().all(|write| write.flags.has(Flags::COLLECTIVE)));
}

#[test]
fn standard_streams_are_no_files() {
    let print: &[(&str, f64)] = &[("STDIO_WRITES", 2.0), ("STDIO_BYTES_WRITTEN", 9.0), ("STDIO_READS", 1.0)];
    let mut log = log(1, 9, 1);
    add(&mut log, Counters::Stdio, &[(3, 0, print), (4, 0, print)]);
    let made = made(log);
    let writes = Made::of(Op::Write, &made);
    assert_eq!((writes.len(), made.files.as_slice()), (2, &["<STDOUT>".to_owned()][..]));
    assert!(writes.iter().all(|write| write.flags.has(Flags::OUTPUT)));
}

#[test]
fn a_job_without_duration_or_calls_is_a_trace_without_calls() {
    let made = made(log(5, 5, 1));
    assert_eq!((made.requests.len(), made.meta.wall_s), (0, Some(0.5)));
}

#[test]
fn clocks_that_run_backwards_are_named() {
    let mut log = log(9, 5, 1);
    add_dxt(&mut log, &[(1, 0, &[(0, 4, 2.0, 1.0), (4, 4, f64::NAN, 1.0), (8, 4, -3.0, f64::INFINITY)])]);
    let made = made(log);
    assert_eq!((made.meta.wall_s, made.requests.len()), (None, 3));
    assert!(made.says("the job ends (5 s since 1970) before it starts (9)"), "{:?}", made.meta);
    assert!(made.says("1 calls end before they start") && made.says("2 calls have times that are no numbers"));
    assert!(made.requests.iter().all(|request| request.start_ns <= request.end_ns));
}

#[test]
fn missing_names_and_ranks_are_named() {
    let mut log = log(1, 9, 2);
    add_dxt(&mut log, &[(0xbeef, 7, &[(0, 4, 1.0, 2.0)]), (1, 0, &[(0, 4, 1.0, 2.0)])]);
    let made = made(log);
    assert!(made.files.iter().any(|file| file == "darshan-record-000000000000beef"));
    assert!(made.says("1 files have no name in the log"));
    assert!(made.says("1 processes have a rank that the job of 2 does not have"), "{:?}", made.meta);
}

#[test]
fn a_job_of_no_processes_counts_as_one() {
    let mut log = log(1, 9, -5);
    add(&mut log, Counters::Posix, &[(1, -1, &WRITES)]);
    let made = made(log);
    assert_eq!(made.processes.len(), 1);
    assert!(made.says("the job had -5 processes"), "{:?}", made.meta);
}

#[test]
fn what_darshan_had_no_memory_for_is_missing() {
    let mut log = log(1, 9, 1);
    add(&mut log, Counters::Posix, &[(1, 0, &WRITES)]);
    log.module(Module::PnetcdfFile, 1, [vec![0; 64]]);
    log.partial(Module::Posix);
    let made = made(log);
    assert!(made.says("ran out of memory for records of module POSIX"));
    assert!(made.says("modules that are not read: PNETCDF_FILE"));
}

#[test]
fn segments_that_cannot_be_are_left_out() {
    let mut log = log(1, 9, 1);
    add_dxt(&mut log, &[(1, 0, &[(-7, 4, 1.0, 2.0), (0, -4, 1.0, 2.0), (0, 4, 1.0, 2.0)])]);
    let made = made(log);
    assert_eq!(made.requests.len(), 1);
    assert!(made.says("2 segments of module DXT_POSIX have a negative offset or length"), "{:?}", made.meta);
}

#[test]
fn counters_without_measure_do_not_make_a_trace_without_measure() {
    let many: Vec<(&str, f64)> = Counters::Posix.names().iter().map(|name| (*name, 9e18)).collect();
    let mut log = log(1, 9, i64::MAX);
    add(&mut log, Counters::Posix, &[(1, -1, &many), (2, 0, &many)]);
    let made = made(log);
    assert!(made.requests.len() as u64 <= CALLS + 100, "{}", made.requests.len());
    assert!(made.says("is in the trace"), "{:?}", made.meta);
}

#[test]
fn damage_behind_records_keeps_them() {
    let mut log = log(1, 9, 4);
    add(&mut log, Counters::Posix, &[(1, -1, &WRITES)]);
    add_dxt(&mut log, &[(1, 0, &[(0, 4, 1.0, 2.0)])]);
    let mut bytes = log.finish().into_inner();
    let last = bytes.len() - 8;
    bytes[last] ^= 0xff;
    let made = made_of(&bytes);
    assert!(made.says("module DXT_POSIX is damaged"), "{:?}", made.meta);
    assert!(!made.requests.is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// The log is not compressed, so that the bytes that change are those of counters and times.
    #[test]
    fn flipped_bytes_give_a_trace_or_an_error(
        flips in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..60),
    ) {
        let shape = Shape { compression: Compression::None, ..USUAL };
        let mut bytes = sample(Cursor::new(Vec::new()), shape, 0).into_inner();
        for (index, byte) in flips {
            let index = index.index(bytes.len());
            bytes[index] ^= byte;
        }
        if let Ok(made) = try_made_of(&bytes) {
            prop_assert!(made.requests.len() as u64 <= CALLS + 5000, "{}", made.requests.len());
        }
    }
}
