//! The memory of very many files does not depend on their names.

use std::alloc::{GlobalAlloc, Layout, System};
use std::convert::Infallible;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use stripewise_plan::Collector;
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
    (0..FILES).map(|file| Request {
        process: file % 2,
        tid: 1,
        file,
        op: Op::Write,
        flags: Flags::NONE,
        offset: 0,
        size: 4096,
        result: 4096,
        start_ns: u64::from(file),
        end_ns: u64::from(file) + 1,
    })
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
fn a_file_takes_16_bytes_however_long_its_name_is() {
    let processes = [0, 1].map(|pid| ProcessInfo { pid, ..ProcessInfo::default() });
    let all = 16 * FILES as usize;
    let of_summary = most_bytes(|| {
        let Ok(mut builder) = Builder::new(&processes, &Names);
        requests().for_each(|request| builder.add(&request));
        let summary = builder.finish();
        assert_eq!((summary.groups.len(), summary.file_count), (1, u64::from(FILES)));
    });
    // Streams are bounded (`streams.rs`).
    assert!(of_summary < all + (200 << 20), "{of_summary} bytes for {FILES} files");

    let of_plan = most_bytes(|| {
        let Ok(mut collector) = Collector::new(&processes, &Names, MAX_GROUPS);
        requests().for_each(|request| collector.add(&request));
        let workload = collector.finish();
        let [set] = &workload.file_sets[..] else { panic!("one pattern") };
        assert_eq!((set.count(), set.total_size()), (u64::from(FILES), 4096 * u64::from(FILES)));
        assert!(workload.has_too_many_files() && set.uses.is_empty() && set.files.len() <= 1 << 16);
    });
    // The bounds of `Collector`.
    assert!(of_plan < all + (390 << 20), "{of_plan} bytes for {FILES} files");
}
