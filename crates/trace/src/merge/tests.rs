use std::fs;
use std::mem::offset_of;

use proptest::prelude::*;

use super::*;
use crate::spool::*;
use crate::{Op, Trace};

/// The bytes of a struct without padding.
fn bytes_of<T>(value: &T) -> Vec<u8> {
    // SAFETY: only used on the spool's structs, which have no padding.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast(), size_of::<T>()) }.to_vec()
}

/// A handmade spool: its two files.
#[derive(Clone)]
struct Files {
    live: Vec<u8>,
    log: Vec<u8>,
}

fn text<const N: usize>(text: &str) -> [u8; N] {
    let mut bytes = [0; N];
    bytes[..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

impl Files {
    /// A tick is one nanosecond; real time is 1000 ns ahead.
    fn new(pid: u32, parent: &str) -> Files {
        let header = Header {
            magic: MAGIC,
            pid,
            rank: 2,
            clock: 0,
            ranks: 0,
            start: Instant { ticks: 5, monotonic_ns: 5 },
            start_realtime_ns: 1005,
            spooled_bytes: 0,
            dropped_limit: 0,
            dropped_failed: 0,
            failure: 0,
            lost_children: 0,
            host_len: 2,
            program_len: 3,
            parent_len: parent.len() as u32,
            node: 0,
            host: text("n0"),
            program: text("app"),
            parent: text(parent),
        };
        let mut live = bytes_of(&header);
        live.resize(HEADER_BYTES, 0);
        Files { live, log: Vec::new() }
    }

    /// Sets what an MPI library reports.
    fn job(mut self, rank: i32, ranks: u32, node: u32) -> Files {
        let mut put = |at: usize, value: u32| self.live[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        put(offset_of!(Header, rank), rank.cast_unsigned());
        put(offset_of!(Header, ranks), ranks);
        put(offset_of!(Header, node), node);
        self
    }

    fn block(&mut self, kind: u32, number: u32, first: u64, payload: &[u8]) {
        self.log.extend(bytes_of(&BlockHeader {
            magic: BLOCK_MAGIC,
            kind,
            payload_bytes: payload.len() as u32,
            number,
            first,
            moment: Instant { ticks: 7, monotonic_ns: 7 },
            tid: 9,
            reserved: 0,
        }));
        self.log.extend(payload);
    }

    fn name(&mut self, id: u32, name: &str) {
        self.block(BLOCK_NAME, id, 0, name.as_bytes());
    }

    fn records(&mut self, window: u32, numbers: std::ops::Range<u64>) {
        let payload: Vec<u8> = numbers.clone().flat_map(|i| bytes_of(&record(i, 1))).collect();
        self.block(BLOCK_RECORDS, window, numbers.start, &payload);
    }

    fn window(&mut self, numbers: std::ops::Range<u64>) {
        let header = WindowHeader {
            first: numbers.start,
            len: numbers.end - numbers.start,
            moments: [Instant::default(); 2],
            latest: 0,
            tid: 9,
            reserved: 0,
        };
        let mut window = bytes_of(&header);
        window.extend(numbers.flat_map(|i| bytes_of(&record(i, 1))));
        window.resize(WINDOW_BYTES, 0);
        self.live.extend(window);
    }

    fn write(&self, dir: &Path, stem: &str) {
        fs::write(dir.join(format!("{stem}.live")), &self.live).unwrap();
        fs::write(dir.join(format!("{stem}.log")), &self.log).unwrap();
    }
}

fn record(i: u64, file: u32) -> Record {
    Record {
        start: 100 + i * 10,
        end: 105 + i * 10,
        offset: i,
        size: 1,
        result: 1,
        file,
        op: Op::Write as u8,
        flags: 1,
        reserved: 0,
    }
}

/// A spool with every kind of content: names, blocks, windows, a record that was never in a window.
fn whole() -> Files {
    let mut files = Files::new(7, "");
    files.name(1, "/data/a");
    files.records(0, 0..20);
    files.name(2, "/data/unused");
    files.records(NO_WINDOW, 1000..1001);
    files.records(0, 20..40);
    files.window(40..55);
    files.window(0..0);
    files.window(200..203);
    files
}

/// The offsets of all rows, and why the trace is incomplete.
fn merged(spools: &[(&str, Files)]) -> (Vec<u64>, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join("spool");
    fs::create_dir(&spool).unwrap();
    for (stem, files) in spools {
        files.write(&spool, stem);
    }
    let output = dir.path().join("t");
    let result = merge(&spool, &output, &Meta::default(), &mut |_| {});
    assert!(fs::read_dir(dir.path()).unwrap().count() <= 2, "no temporary file is left");
    let merged = result.unwrap();
    let trace = Trace::open(&output).unwrap();
    assert_eq!(trace.meta().incomplete, merged.incomplete);
    let mut requests = trace.requests().unwrap();
    let mut offsets = Vec::new();
    while let Some(batch) = requests.next_batch().unwrap() {
        offsets.extend(batch.iter().map(|request| request.offset));
    }
    assert_eq!(offsets.len() as u64, merged.calls);
    (offsets, merged.incomplete)
}

fn expected() -> Vec<u64> {
    (0..55).chain(200..203).chain([1000]).collect()
}

#[test]
fn blocks_and_windows_make_one_sequence() {
    assert_eq!(merged(&[("n0-7-1", whole())]), (expected(), vec![]));
}

#[test]
fn records_that_are_in_the_log_and_still_in_the_window_count_once() {
    // The process ended after the block was appended, before the window was emptied.
    let mut files = Files::new(7, "");
    files.name(1, "/data/a");
    files.records(0, 0..20);
    files.records(0, 20..40);
    files.window(20..40);
    assert_eq!(merged(&[("n0-7-1", files)]), ((0..40).collect(), vec![]));
}

#[test]
fn a_block_that_was_cut_off_is_completed_by_its_window() {
    let mut files = Files::new(7, "");
    files.name(1, "/data/a");
    files.records(0, 0..20);
    let whole = files.log.len();
    files.records(0, 20..40);
    let end = files.log.len();
    files.window(20..40);
    for cut in whole + size_of::<BlockHeader>()..end {
        let mut torn = files.clone();
        torn.log.truncate(cut);
        assert_eq!(merged(&[("n0-7-1", torn)]), ((0..40).collect(), vec![]), "cut at {cut}");
    }
    // Without the window some records are lost, and the merge reports that.
    files.live.truncate(HEADER_BYTES);
    files.log.truncate(end - 1);
    let (offsets, incomplete) = merged(&[("n0-7-1", files)]);
    assert_eq!(offsets, (0..39).collect::<Vec<u64>>());
    assert!(incomplete[0].contains("cut off"), "{incomplete:?}");
}

#[test]
fn damage_is_said_and_what_comes_before_is_kept() {
    let mut files = whole();
    files.log.truncate(files.log.len() - 10);
    files.log.extend([0xff; 100]);
    let (offsets, incomplete) = merged(&[("n0-7-1", files)]);
    assert_eq!(offsets.len(), expected().len() - 1);
    assert!(incomplete[0].starts_with("process 7 on n0: its log is damaged at byte"), "{incomplete:?}");
    assert!(!incomplete[0].contains('\n'));
}

#[test]
fn names_come_from_the_parent_and_never_in_circles() {
    let mut parent = Files::new(7, "");
    parent.name(1, "/data/a");
    let mut child = Files::new(8, "n0-7-1");
    child.window(0..5);
    let pair = [("n0-7-1", parent), ("n0-8-2", child.clone())];
    assert_eq!(merged(&pair), ((0..5).collect(), vec![]));
    let mut circle = Files::new(7, "n0-8-2");
    circle.window(0..2);
    let (offsets, incomplete) = merged(&[("n0-7-1", circle), ("n0-8-2", child)]);
    assert!(offsets.is_empty() && incomplete[0].contains("7 calls are damaged or on files without a name"));
}

#[test]
fn losses_are_added_up() {
    let mut files = whole();
    let put = |files: &mut Files, at: usize, value: u64| {
        files.live[at..at + 8].copy_from_slice(&value.to_ne_bytes());
    };
    put(&mut files, std::mem::offset_of!(Header, dropped_limit), 3);
    put(&mut files, std::mem::offset_of!(Header, dropped_failed), 2);
    let at = std::mem::offset_of!(Header, failure);
    files.live[at..at + 4].copy_from_slice(&28u32.to_ne_bytes());
    let (offsets, incomplete) = merged(&[("n0-7-1", files.clone()), ("n0-8-1", files)]);
    assert_eq!(offsets.len(), 2 * expected().len());
    assert!(incomplete[0].starts_with("at least 6 calls were left out"), "{incomplete:?}");
    assert!(incomplete[1].starts_with("4 calls or file names") && incomplete[1].contains("No space left"));
}

#[test]
fn a_process_that_could_not_be_recorded_makes_the_trace_incomplete() {
    let mut files = Files { log: Vec::new(), ..whole() };
    let at = std::mem::offset_of!(Header, failure);
    files.live[at..at + 4].copy_from_slice(&19u32.to_ne_bytes());
    let (_, incomplete) = merged(&[("n0-7-1", files.clone()), ("n0-8-1", files)]);
    let said =
        incomplete.iter().any(|reason| reason.starts_with("2 processes could not be recorded (No such device"));
    assert!(said, "{incomplete:?}");
}

#[test]
fn foreign_and_empty_files_in_the_directory_are_no_harm() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("readme"), "x").unwrap();
    fs::write(dir.path().join("n0-1-1.live"), "").unwrap();
    fs::write(dir.path().join("n0-2-1.live"), "not a spool").unwrap();
    whole().write(dir.path(), "n0-7-1");
    let output = dir.path().join("t");
    let merged = merge(dir.path(), &output, &Meta::default(), &mut |_| {}).unwrap();
    assert_eq!((merged.processes, merged.calls), (1, 59));
    assert!(merged.incomplete[0].contains("n0-2-1.live cannot be read"), "{:?}", merged.incomplete);
    assert!(merge(&dir.path().join("none"), &output, &Meta::default(), &mut |_| {}).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if std::env::var_os("STRIPEWISE_LONG").is_some() { 5000 } else { 64 }))]

    /// Truncated spools lose at most what was cut off, and no record is invented.
    #[test]
    fn any_tail_may_be_missing(live in 0usize..4096 + 3 * 65536, log in 0usize..3000) {
        let mut files = whole();
        files.live.truncate(live);
        files.log.truncate(log);
        let (offsets, _) = merged(&[("n0-7-1", files)]);
        let all = expected();
        prop_assert!(offsets.iter().all(|offset| all.contains(offset)));
        let mut unique = offsets.clone();
        unique.dedup();
        prop_assert_eq!(unique.len(), offsets.len());
    }

    /// Whatever the bytes are, merging ends without a panic, and the result is a readable trace.
    #[test]
    fn any_bytes_may_be_wrong(
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..20),
        front in any::<bool>(),
    ) {
        let mut files = whole();
        for (in_live, index, value) in changes {
            // Headers are the critical bytes, so half of the cases change only these.
            let bytes = if in_live { &mut files.live } else { &mut files.log };
            let len = if front { bytes.len().min(if in_live { 96 } else { 200 }) } else { bytes.len() };
            bytes[index.index(len)] = value;
        }
        merged(&[("n0-7-1", files.clone()), ("n0-7-2", whole())]);
    }

    #[test]
    fn arbitrary_logs_are_no_harm(log in prop::collection::vec(any::<u8>(), 0..500)) {
        let mut files = whole();
        files.log = log;
        merged(&[("n0-7-1", files)]);
    }
}

/// Merges spools of these (rank, ranks, node). Each has recorded one call.
fn merged_job(spools: &[(i32, u32, u32)]) -> (Merged, Vec<ProcessInfo>) {
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join("spool");
    fs::create_dir(&spool).unwrap();
    for (pid, (rank, ranks, node)) in (1..).zip(spools) {
        let mut files = Files::new(pid, "").job(*rank, *ranks, *node);
        files.name(1, "/data/a");
        files.records(0, 0..1);
        files.write(&spool, &format!("n0-{pid}-1"));
    }
    let output = dir.path().join("trace");
    let merged = merge(&spool, &output, &Meta::default(), &mut |_| {}).unwrap();
    (merged, Trace::open(&output).unwrap().processes().to_vec())
}

#[test]
fn nodes_of_one_name_are_told_apart_by_their_numbers() {
    let names = |spools: &[(i32, u32, u32)]| -> Vec<String> {
        merged_job(spools).1.into_iter().map(|process| process.node).collect()
    };
    assert_eq!(names(&[(0, 2, 1), (1, 2, 1), (-1, 0, 0)]), ["n0"; 3]);
    assert_eq!(names(&[(0, 3, 1), (1, 3, 2), (2, 3, 1), (-1, 0, 0)]), ["n0#0", "n0#1", "n0#0", "n0"]);
}

#[test]
fn ranks_that_left_nothing_make_the_trace_incomplete() {
    let incomplete = |spools: &[(i32, u32, u32)]| merged_job(spools).0.incomplete;
    // A launcher, two runs of two ranks, one of a single rank.
    let complete = [(-1, 0, 0), (0, 2, 1), (1, 2, 1), (0, 2, 1), (1, 2, 1), (0, 1, 1)];
    assert_eq!(incomplete(&complete), [""; 0]);
    assert_eq!(incomplete(&[(0, 0, 0), (2, 0, 0)]), [""; 0], "no MPI library said how many there are");
    let [reason] = &incomplete(&[(0, 4, 1), (1, 4, 1), (3, 4, 2)])[..] else { panic!("one reason") };
    assert!(reason.starts_with("rank 2 of 4 left no spool"), "{reason}");
    let [reason] = &incomplete(&[(0, u32::MAX, 1)])[..] else { panic!("one reason") };
    assert!(reason.starts_with("4294967294 ranks from 1 on of 4294967295"), "{reason}");
}

/// A rank on a host whose clock is off: it opens files with all ranks, and then writes.
fn rank_with_opens(rank: i32, host: &str, ahead_ns: u64, opens: &[(u64, u64)]) -> Files {
    let mut files = Files::new(100 + rank as u32, "").job(rank, 3, 0);
    files.live[offset_of!(Header, host)..][..2].copy_from_slice(host.as_bytes());
    files.live[offset_of!(Header, start_realtime_ns)..][..8].copy_from_slice(&(1005 + ahead_ns).to_ne_bytes());
    files.name(1, "/data/a");
    let open = |&(start, end): &(u64, u64)| Record {
        start,
        end,
        offset: crate::MpiCall::Open as u64,
        size: 3,
        op: Op::Mark as u8,
        ..record(0, 1)
    };
    let last = opens.last().map_or(0, |open| open.1);
    let write = Record { start: last + 10, end: last + 20, ..record(rank as u64, 1) };
    let payload: Vec<u8> = opens.iter().map(open).chain([write]).flat_map(|record| bytes_of(&record)).collect();
    files.block(BLOCK_RECORDS, NO_WINDOW, 0, &payload);
    files
}

#[test]
fn clocks_of_nodes_that_are_minutes_apart_are_aligned() {
    let minute = 60_000_000_000;
    let spools = [
        ("n0-100-1", rank_with_opens(0, "n0", 0, &[(1000, 2000), (5000, 6000)])),
        ("n1-101-1", rank_with_opens(1, "n1", 2 * minute, &[(1200, 2010), (5900, 6010)])),
        ("n2-102-1", rank_with_opens(2, "n2", 0, &[(900, 1990), (5100, 6005)])),
    ];
    let dir = tempfile::tempdir().unwrap();
    let spool = dir.path().join("spool");
    fs::create_dir(&spool).unwrap();
    for (stem, files) in &spools {
        files.write(&spool, stem);
    }
    let output = dir.path().join("trace");
    let merged = merge(&spool, &output, &Meta::default(), &mut |_| {}).unwrap();
    let [Correction { node, reference, ahead_ns }] = &merged.corrections[..] else {
        panic!("one clock is wrong")
    };
    assert_eq!((node.as_str(), reference.as_str()), ("n1", "n0"));
    assert!((*ahead_ns - 2 * minute as i64).abs() <= 1000, "as exact as the shortest open: {ahead_ns}");
    let trace = Trace::open(&output).unwrap();
    let last = trace.requests().unwrap().next_batch().unwrap().unwrap().last().unwrap().end_ns;
    assert!(last < 10_000, "the trace takes microseconds, not minutes: {last}");
}
