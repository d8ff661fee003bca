//! The memory of very many files does not depend on their names, and that of very many file sets is
//! small.

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use stripewise_plan::{Collector, Options};
use stripewise_trace::summary::{Builder, LISTED_FILES_MAX, MAX_GROUPS};
use stripewise_trace::{FileNames, Flags, Op, ProcessInfo, Request};

/// An allocator that counts the bytes in use, and the most so far.
struct Counting;

static USED: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

fn grow(bytes: usize) {
    MOST.fetch_max(USED.fetch_add(bytes, Relaxed) + bytes, Relaxed);
}

// SAFETY: all calls are passed on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grow(layout.size());
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size);
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.realloc(pointer, layout, size) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        USED.fetch_sub(layout.size(), Relaxed);
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// More files than are listed one by one.
const FILES: u32 = LISTED_FILES_MAX as u32 + 100_000;

/// Long names, which are made when they are read.
struct Names;

impl FileNames for Names {
    type Error = Infallible;

    fn count(&self) -> usize {
        FILES as usize
    }

    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), Infallible> {
        let directory = format!("/{}", "long-directory/".repeat(3));
        (0..FILES).for_each(|number| each(&format!("{directory}{number}")));
        Ok(())
    }
}

/// A write to each file.
fn requests() -> impl Iterator<Item = Request> {
    (0..FILES).map(|file| write(file % 2, file, file))
}

fn write(process: u32, file: u32, time_ns: u32) -> Request {
    Request {
        process,
        tid: 1,
        file,
        op: Op::Write,
        flags: Flags::NONE,
        offset: 0,
        size: 4096,
        result: 4096,
        start_ns: u64::from(time_ns),
        end_ns: u64::from(time_ns) + 1,
    }
}

/// A file in each of many directories, so a set each.
struct Directories;

const SETS: u32 = 10_000;
/// Each set is used by every 32nd of these processes, of which 16 are on a node.
const PROCESSES: u32 = 1024;
const STEP: u32 = 32;

impl FileNames for Directories {
    type Error = Infallible;

    fn count(&self) -> usize {
        SETS as usize
    }

    fn for_each(&self, each: &mut dyn FnMut(&str)) -> Result<(), Infallible> {
        let letter = |digit: u8| char::from(digit - b'0' + b'a');
        let letters = |number: u32| number.to_string().bytes().map(letter).collect::<String>();
        (0..SETS).for_each(|number| each(&format!("/{}/file", letters(number))));
        Ok(())
    }
}

/// A write of every process to each set that it uses.
fn requests_on_sets() -> impl Iterator<Item = Request> {
    let turn = |turn: u32| (0..SETS).map(move |set| write(set % STEP + STEP * turn, set, turn * SETS + set));
    (0..PROCESSES / STEP).flat_map(turn)
}

/// The most bytes in use while `step` runs.
fn most_bytes(step: impl FnOnce()) -> usize {
    let before = USED.load(Relaxed);
    MOST.store(before, Relaxed);
    step();
    MOST.load(Relaxed) - before
}

/// One test, because another one would allocate at the same time.
#[test]
fn files_and_sets_take_little_memory() {
    a_file_takes_16_bytes_however_long_its_name_is();
    a_set_takes_4000_bytes();
}

fn a_set_takes_4000_bytes() {
    let process = |pid| ProcessInfo { pid, node: format!("node{}", pid / 16), ..ProcessInfo::default() };
    let processes: Vec<ProcessInfo> = (0..PROCESSES).map(process).collect();
    let bytes = most_bytes(|| {
        let Ok(mut collector) = Collector::new(&processes, &Directories, Options::default().sets_max());
        requests_on_sets().for_each(|request| collector.add(&request));
        assert_eq!(collector.finish().file_sets.len(), SETS as usize);
    });
    // The table of streams, and half of it while it was copied.
    let streams = 3 * 57 * (1 << 19) / 2;
    assert!(bytes < 4000 * SETS as usize + streams, "{bytes} bytes for {SETS} sets");
}

fn a_file_takes_16_bytes_however_long_its_name_is() {
    let processes = [0, 1].map(|pid| ProcessInfo { pid, ..ProcessInfo::default() });
    let all = 16 * FILES as usize;
    let of_summary = most_bytes(|| {
        let Ok(mut builder) = Builder::new(&processes, &Names);
        requests().for_each(|request| builder.add(&request));
        let summary = builder.finish();
        assert_eq!((summary.groups.len(), summary.file_count), (1, u64::from(FILES)));
    });
    // Streams are bounded (`streams.rs`): the table, and half of it while it is copied.
    assert!(of_summary < all + (100 << 20), "{of_summary} bytes for {FILES} files");

    let of_plan = most_bytes(|| {
        let Ok(mut collector) = Collector::new(&processes, &Names, MAX_GROUPS);
        requests().for_each(|request| collector.add(&request));
        let workload = collector.finish();
        let [set] = &workload.file_sets[..] else { panic!("one pattern") };
        assert_eq!((set.count(), set.total_size()), (u64::from(FILES), 4096 * u64::from(FILES)));
        assert!(workload.has_too_many_files() && set.uses.is_empty() && set.files.len() <= 1 << 16);
    });
    // Few samples, streams (`past.rs`), and the listed files.
    assert!(of_plan < all + (150 << 20), "{of_plan} bytes for {FILES} files");
}
