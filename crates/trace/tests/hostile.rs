//! Malicious trace files: correctly sealed, with arbitrary changes everywhere else. Reading one
//! never panics, never ends the process, and never allocates memory out of proportion.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use stripewise_random::Random;

use stripewise_trace::summary::MAX_GROUPS;
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, Summary, Trace, TraceError, TraceWriter};

/// Maximum size of a single allocation for a file of a few KiB, bytes.
const LARGEST_BYTES: usize = 128 << 20;

thread_local! {
    static LARGEST: Cell<usize> = const { Cell::new(0) };
}

/// An allocator that records the largest allocation of each thread.
struct Counting;

fn note(bytes: usize) {
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(bytes)));
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes of a trace of `rows` rows over `names` files.
fn trace(rows: u64, names: u64) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    let mut writer = TraceWriter::create(&path).unwrap();
    let process = ProcessInfo { node: "n0".into(), pid: 7, rank: 0, program: "app".into() };
    writer.process_id(&process);
    for i in 0..names {
        writer.file_id(&format!("/data/run/file-{i}"));
    }
    for i in 0..rows {
        let request = Request {
            process: 0,
            tid: 7,
            file: (i % names) as u32,
            op: Op::ALL[(i % 10) as usize],
            flags: Flags((i % 32) as u8),
            offset: i * 4096 * 31 % (1 << 30),
            size: 4096,
            result: 4096,
            start_ns: i * 1000,
            end_ns: i * 1000 + 400,
        };
        writer.push(&request).unwrap();
    }
    writer.finish(&Meta::default()).unwrap();
    std::fs::read(&path).unwrap()
}

/// The parts of a trace file. Putting them together computes a new seal.
#[derive(Clone)]
struct Parts {
    groups: Vec<u8>,
    footer: Vec<u8>,
}

const SEAL: &[u8; 12] = b"stripewise\n\0";

impl Parts {
    fn of(bytes: &[u8]) -> Parts {
        let tail = bytes.len() - 8;
        let footer = u32::from_le_bytes(bytes[tail..tail + 4].try_into().unwrap()) as usize;
        let seal = tail - footer - 16;
        Parts { groups: bytes[..seal].to_vec(), footer: bytes[tail - footer..tail].to_vec() }
    }

    fn sealed(&self) -> Vec<u8> {
        let mut rest = self.footer.clone();
        rest.extend((self.footer.len() as u32).to_le_bytes());
        rest.extend(b"PAR1");
        let mut hasher = crc32fast::Hasher::new();
        [&self.groups[..], SEAL, &rest].into_iter().for_each(|part| hasher.update(part));
        let mut bytes = self.groups.clone();
        bytes.extend(SEAL);
        bytes.extend(hasher.finalize().to_le_bytes());
        bytes.extend(rest);
        bytes
    }
}

/// Small, negative and huge numbers in Thrift's encoding.
const NUMBERS: [&[u8]; 9] = [
    &[0],
    &[1],
    &[2],
    &[0x7f],
    &[0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0x0f],
    &[0xfe, 0xff, 0xff, 0xff, 0x0f],
    &[0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
    &[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
];

fn change(bytes: &mut Vec<u8>, random: &mut Random) {
    if bytes.is_empty() {
        return;
    }
    let at = random.index(bytes.len().max(1));
    match random.index(6) {
        0 => bytes[at] ^= 1 << random.index(8),
        1 => bytes[at] = random.next_u64() as u8,
        2 => {
            let number = NUMBERS[random.index(NUMBERS.len())];
            bytes.splice(at..at + 1, number.iter().copied());
        }
        3 => {
            let number = NUMBERS[random.index(NUMBERS.len())];
            let end = (at + number.len()).min(bytes.len());
            bytes[at..end].copy_from_slice(&number[..end - at]);
        }
        4 => {
            let end = (at + 1 + random.index(8)).min(bytes.len());
            bytes.drain(at..end);
        }
        _ => {
            let (from, len) = (random.index(bytes.len().max(1)), 1 + random.index(16));
            let piece = bytes[from..(from + len).min(bytes.len())].to_vec();
            bytes.splice(at..at, piece);
        }
    }
}

/// A file that differs from `whole` in a few places.
fn crafted(whole: &Parts, seed: u64) -> Vec<u8> {
    let mut random = Random(seed);
    let mut parts = whole.clone();
    for _ in 0..=random.index(3) {
        let in_footer = random.index(2) == 0;
        change(if in_footer { &mut parts.footer } else { &mut parts.groups }, &mut random);
    }
    parts.sealed()
}

fn read_all(path: &Path) -> Result<u64, TraceError> {
    let trace = Trace::open(path)?;
    let (mut rows, mut requests) = (0, trace.requests()?);
    while let Some(batch) = requests.next_batch()? {
        rows += batch.len() as u64;
    }
    Summary::of(&trace)?;
    Ok(rows)
}

/// Reads a file with these bytes. Returns a description if that did any harm.
fn harm(path: &Path, bytes: &[u8]) -> Option<String> {
    std::fs::write(path, bytes).unwrap();
    LARGEST.set(0);
    let result = catch_unwind(AssertUnwindSafe(|| read_all(path)));
    let largest = LARGEST.get();
    match result {
        Err(_) => Some("panicked".into()),
        _ if largest > LARGEST_BYTES => Some(format!("reserved {} MiB at once", largest >> 20)),
        Ok(Err(error)) => {
            let text = error.to_string();
            let is_good = text.starts_with(&*path.to_string_lossy()) && !text.contains('\n');
            (!is_good).then(|| format!("said {text:?}"))
        }
        Ok(Ok(_)) => None,
    }
}

#[test]
fn crafted_traces_are_read_or_refused() {
    let cases = std::env::var("STRIPEWISE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(3000);
    let first = std::env::var("STRIPEWISE_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0);
    let wholes = [trace(200, 2), trace(3000, 700)].map(|bytes| Parts::of(&bytes));
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut found = Vec::new();
    for (whole, bytes) in wholes.iter().enumerate() {
        std::fs::write(file.path(), wholes[whole].sealed()).unwrap();
        assert!(read_all(file.path()).is_ok(), "whole {whole}: put together, it is what it was");
        for seed in first..first + cases {
            if let Some(what) = harm(file.path(), &crafted(bytes, seed)) {
                found.push(format!("file {whole}, seed {seed}: {what}"));
            }
        }
    }
    assert!(found.is_empty(), "{} of {}:\n{}", found.len(), 2 * cases, found.join("\n"));
}

#[test]
fn a_page_that_claims_to_be_huge_reserves_nothing() {
    let mut parts = Parts::of(&trace(200, 2));
    // The first page's header: its size in memory, after its type, is set to 2 GiB. The bytes after
    // it keep their place.
    let (size_at, rest) = (7, 40);
    assert_eq!((parts.groups[4], parts.groups[6]), (0x15, 0x15), "two 32-bit numbers");
    let old_len = 1 + parts.groups[size_at..].iter().position(|byte| byte & 0x80 == 0).unwrap();
    let huge: &[u8] = &[0xfe, 0xff, 0xff, 0xff, 0x0f];
    parts.groups.splice(size_at..size_at + old_len, huge.iter().copied());
    parts.groups.drain(rest..rest + huge.len() - old_len);

    let file = tempfile::NamedTempFile::new().unwrap();
    assert_eq!(harm(file.path(), &parts.sealed()), None);
    let message = read_all(file.path()).unwrap_err().to_string();
    assert!(message.contains("record it again"), "{message}");
}

/// All names of a row group are in memory at once, however well they are compressed in the file.
#[test]
fn names_longer_than_any_recorded_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t");
    // A spool has names of up to 64 KiB. The merge may make each byte 3 bytes.
    let longest = 3 << 16;
    for bytes in [longest, longest + 1] {
        let mut writer = TraceWriter::create(&path).unwrap();
        writer.process_id(&ProcessInfo { node: "n".into(), pid: 1, rank: 0, program: "p".into() });
        writer.file_id(&"x".repeat(bytes));
        let request = Request {
            process: 0,
            tid: 1,
            file: 0,
            op: Op::Write,
            flags: Flags::NONE,
            offset: 0,
            size: 1,
            result: 1,
            start_ns: 0,
            end_ns: 1,
        };
        writer.push(&request).unwrap();
        writer.finish(&Meta::default()).unwrap();
        match read_all(&path) {
            Ok(rows) => assert_eq!((rows, bytes), (1, longest)),
            Err(error) => {
                assert_eq!(bytes, longest + 1);
                assert!(error.to_string().contains("damaged trace"), "{error}");
            }
        }
    }
}

/// Numbers at the ends of their ranges, in every combination over a few calls.
#[test]
fn extreme_numbers_are_summarised() {
    const ENDS: [u64; 5] = [0, 1, 1 << 62, i64::MAX as u64, u64::MAX];
    let dir = tempfile::tempdir().unwrap();
    for seed in 0..300 {
        let mut random = Random(seed);
        let path = dir.path().join("t");
        let mut writer = TraceWriter::create(&path).unwrap();
        for rank in [i32::MIN, -1, i32::MAX] {
            let process = ProcessInfo { node: "n".into(), pid: u32::MAX, rank, program: String::new() };
            writer.process_id(&process);
        }
        for name in ["/a", "/a99999999999999999999999", ""] {
            writer.file_id(name);
        }
        let mut starts: Vec<u64> = (0..8).map(|_| ENDS[random.index(4)]).collect();
        starts.sort_unstable();
        for start_ns in starts {
            let request = Request {
                process: random.index(3) as u32,
                tid: u32::MAX,
                file: random.index(3) as u32,
                op: Op::ALL[random.index(10)],
                flags: Flags(random.next_u64() as u8),
                offset: ENDS[random.index(5)],
                size: ENDS[random.index(5)],
                result: [i64::MIN, -1, 0, 1, i64::MAX][random.index(5)],
                start_ns,
                end_ns: ENDS[random.index(5)].max(start_ns),
            };
            writer.push(&request).unwrap();
        }
        writer.finish(&Meta::default()).unwrap();
        let read = catch_unwind(|| {
            let trace = Trace::open(&path)?;
            Summary::of(&trace)?;
            let mut classifier = stripewise_trace::Classifier::new(trace.processes(), &trace, MAX_GROUPS)?;
            let mut requests = trace.requests()?;
            while let Some(batch) = requests.next_batch()? {
                batch.iter().for_each(|request| _ = classifier.classify(request));
            }
            Ok::<_, TraceError>(())
        });
        assert!(matches!(read, Ok(Ok(()))), "seed {seed}: {read:?}");
    }
}
