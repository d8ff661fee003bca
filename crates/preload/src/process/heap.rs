//! The library's own heaps, separate from the program's `malloc`.
//!
//! A signal handler may use a managed file although the thread that it interrupted is in the middle
//! of `malloc` and holds its lock. Therefore all allocations of the library (by Rust code and by
//! LMDB's C code, see [`c`]) come from heaps of its own, whose memory comes from the kernel.
//! Signals wait while a thread holds the lock of a heap, so no handler of that thread finds it
//! held. A fork takes all locks first, so no child finds one held.
//!
//! There are several heaps so that as many threads can allocate at the same time: a thread skips
//! heaps that are locked, and waits if all are.

mod c;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::munmap;

use crate::process::guard::{self, Blocked};
use crate::process::kernel;
use crate::process::lock::{Lock, Locked};

#[global_allocator]
static OWN: Own = Own;

const HEAPS: usize = 8;
static ALL: [Heap; HEAPS] = [const { Heap::new() }; HEAPS];

/// The heap that the next new thread prefers.
static NEXT: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// The heap that this thread tries first.
    static PREFERRED: Cell<usize> = const { Cell::new(usize::MAX) };
}

struct Heap {
    lock: Lock,
    state: UnsafeCell<State>,
}

struct State {
    heap: Dlmalloc<Pages>,
    /// Free blocks of small sizes, by size. They are likely to be needed again soon, so they are
    /// not merged and split.
    spare: [Spare; SIZES],
}

#[derive(Clone, Copy)]
struct Spare {
    /// The first free block. Each one begins with the address of the next one.
    first: *mut *mut u8,
    count: usize,
}

/// Granularity of sizes, bytes.
const STEP: usize = 16;
/// Number of sizes with a list of free blocks: up to 512 bytes.
const SIZES: usize = 33;
/// Largest number of free blocks in a list.
const SPARE_MAX: usize = 32;

// SAFETY: only the holder of the lock accesses the state.
unsafe impl Sync for Heap {}

/// A heap that this thread has locked, until it is dropped.
struct Held {
    number: usize,
    // The order matters: the lock is released before signals are unblocked.
    _locked: Locked<'static>,
    _signals: Option<Blocked>,
}

impl Heap {
    const fn new() -> Self {
        let spare = [Spare { first: ptr::null_mut(), count: 0 }; SIZES];
        let state = State { heap: Dlmalloc::new_with_allocator(Pages), spare };
        Self { lock: Lock::new(), state: UnsafeCell::new(state) }
    }
}

impl State {
    /// Memory of `bytes` bytes, a multiple of [`STEP`]; null if there is none.
    fn take(&mut self, bytes: usize, align: usize) -> *mut u8 {
        if let Some(spare) = self.spare.get_mut(bytes / STEP)
            && align <= STEP
            && !spare.first.is_null()
        {
            let taken = spare.first;
            // SAFETY: a free block begins with the address of the next one.
            spare.first = unsafe { *taken }.cast();
            spare.count -= 1;
            return taken.cast();
        }
        // SAFETY: `align` is a power of two.
        unsafe { self.heap.c_memalign(align, bytes) }
    }

    /// Safety: `memory` came from [`take`](Self::take), with at least `bytes` bytes.
    unsafe fn give_back(&mut self, memory: *mut u8, bytes: usize) {
        match self.spare.get_mut(bytes / STEP) {
            Some(spare) if spare.count < SPARE_MAX => {
                let memory = memory.cast::<*mut u8>();
                // SAFETY: as promised; the block has at least [`STEP`] bytes.
                unsafe { memory.write(spare.first.cast()) };
                *spare = Spare { first: memory, count: spare.count + 1 };
            }
            // SAFETY: as promised.
            _ => unsafe { self.heap.c_free(memory) },
        }
    }
}

impl Held {
    /// Locks the thread's preferred heap, or a free one if that is locked.
    fn any() -> Self {
        let signals = hold_signals();
        let preferred = match PREFERRED.get() {
            usize::MAX => NEXT.fetch_add(1, Ordering::Relaxed) as usize % HEAPS,
            known => known,
        };
        let free = (preferred..preferred + HEAPS).find_map(|number| {
            let number = number % HEAPS;
            ALL[number].lock.try_lock().map(|locked| (number, locked))
        });
        let (number, locked) = free.unwrap_or_else(|| (preferred, ALL[preferred].lock.lock()));
        PREFERRED.set(number);
        Self { number, _locked: locked, _signals: signals }
    }

    fn of(number: usize) -> Self {
        let signals = hold_signals();
        Self { number, _locked: ALL[number].lock.lock(), _signals: signals }
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: the lock is held, and `self` is borrowed exclusively.
        unsafe { &mut *ALL[self.number].state.get() }
    }
}

/// Blocks signals, unless a call on a managed file has already done so.
fn hold_signals() -> Option<Blocked> {
    (!guard::active()).then(Blocked::new)
}

/// Before a fork: locks all heaps, so that no other thread is in one.
pub fn before_fork() {
    ALL.iter().for_each(|heap| std::mem::forget(heap.lock.lock()));
}

/// After a fork, in parent and child: unlocks all heaps.
pub fn after_fork() {
    // SAFETY: `before_fork` has locked it, in this thread or in the parent's thread.
    ALL.iter().for_each(|heap| unsafe { heap.lock.unlock() });
}

/// The header in front of each block.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    /// [`MARK`] xor the block's address. Blocks of other allocators do not have this value.
    mark: usize,
    /// Requested bytes << 16, log2 of the bytes in front of the block << 8, and the number of its
    /// heap.
    about: usize,
}

const MARK: usize = 0x9d3f_61c8_a7b4_e25b;
const HEADER: usize = size_of::<Header>();
/// Number of bits of a block's size, including the bytes in front of it.
const SIZE_BITS: u32 = 47;

impl Header {
    fn of(block: *mut u8) -> *mut Self {
        block.wrapping_sub(HEADER).cast()
    }

    fn size(self) -> usize {
        self.about >> 16
    }

    fn before(self) -> usize {
        1 << (self.about >> 8 & 0xff)
    }

    fn heap(self) -> usize {
        self.about & 0xff
    }
}

/// The position of a block in its memory: the memory is aligned to `align` bytes, and the block
/// begins `before` bytes after its start. Both are powers of two.
#[derive(Clone, Copy)]
struct Place {
    align: usize,
    before: usize,
}

impl Place {
    /// A block that is itself aligned to `align` bytes.
    fn aligned(align: usize) -> Self {
        let before = align.max(HEADER);
        Self { align: before, before }
    }
}

/// Allocates a block of `size` bytes. Null if there is no memory.
fn allocate(size: usize, place: Place) -> *mut u8 {
    let Some(all) = size.checked_add(place.before).filter(|all| all >> SIZE_BITS == 0) else {
        return ptr::null_mut();
    };
    let mut held = Held::any();
    let start = held.state().take(all.next_multiple_of(STEP), place.align);
    let number = held.number;
    drop(held);
    if start.is_null() {
        return start;
    }
    // SAFETY: all of this is in the memory that was just allocated.
    unsafe {
        let block = start.add(place.before);
        let about = size << 16 | (place.before.trailing_zeros() as usize) << 8 | number;
        Header::of(block).write(Header { mark: MARK ^ block as usize, about });
        block
    }
}

fn allocate_zeros(size: usize, place: Place) -> *mut u8 {
    let block = allocate(size, place);
    if !block.is_null() {
        // SAFETY: just allocated.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// Safety: `block` came from [`allocate`] and is not used again.
unsafe fn release(block: *mut u8) {
    // SAFETY: as promised. The mark is cleared so that later memory there is not taken for a block.
    unsafe {
        let header = Header::of(block).read();
        (*Header::of(block)).mark = 0;
        let all = (header.size() + header.before()).next_multiple_of(STEP);
        Held::of(header.heap()).state().give_back(block.sub(header.before()), all);
    }
}

/// Safety: As [`release`], unless the result is null.
unsafe fn reallocate(block: *mut u8, size: usize, place: Place) -> *mut u8 {
    // SAFETY: as promised.
    unsafe {
        let new = allocate(size, place);
        if !new.is_null() {
            ptr::copy_nonoverlapping(block, new, (*Header::of(block)).size().min(size));
            release(block);
        }
        new
    }
}

struct Own;

// SAFETY: blocks have the requested size and alignment, and no two of them overlap.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout.size(), Place::aligned(layout.align()))
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { release(block) }
    }
}

/// The source of the heaps' memory: the kernel. A function such as `mmap` could be interposed.
struct Pages;

/// Smallest growth of a heap, bytes.
const FIRST_BYTES: usize = 128 << 10;

/// The first memory of a process, for which it makes no system call.
#[repr(align(4096))]
struct First(UnsafeCell<[u8; FIRST_BYTES]>);

// SAFETY: used for one heap only.
unsafe impl Sync for First {}

static FIRST: First = First(UnsafeCell::new([0; FIRST_BYTES]));
static FIRST_TAKEN: AtomicBool = AtomicBool::new(false);

/// Marks memory that the heap must not return to the kernel: dlmalloc's EXTERN_BIT.
const NOT_FROM_THE_KERNEL: u32 = 1;

// SAFETY: new pages, used by one heap only.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        if size <= FIRST_BYTES && !FIRST_TAKEN.swap(true, Ordering::Relaxed) {
            return (FIRST.0.get().cast(), FIRST_BYTES, NOT_FROM_THE_KERNEL);
        }
        kernel::memory(size).map_or((ptr::null_mut(), 0, 0), |pages| (pages.cast(), size, 0))
    }

    /// Never called: the heaps resize no block.
    fn remap(&self, _pages: *mut u8, _old: usize, _new: usize, _can_move: bool) -> *mut u8 {
        ptr::null_mut()
    }

    fn free_part(&self, pages: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the heap's own pages.
        unsafe { munmap(pages.wrapping_add(new).cast(), old - new) }.is_ok()
    }

    fn free(&self, pages: *mut u8, size: usize) -> bool {
        // SAFETY: the heap's own pages.
        unsafe { munmap(pages.cast(), size) }.is_ok()
    }

    fn can_release_part(&self, _flags: u32) -> bool {
        true
    }

    fn allocates_zeros(&self) -> bool {
        true
    }

    fn page_size(&self) -> usize {
        rustix::param::page_size()
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CStr;
    use std::hint::black_box;

    use super::*;

    fn filled(size: usize, place: Place, with: u8) -> *mut u8 {
        let block = allocate(size, place);
        assert!(!block.is_null());
        // SAFETY: the block has this size.
        unsafe { block.write_bytes(with, size) };
        block
    }

    fn is_full_of(block: *mut u8, size: usize, with: u8) -> bool {
        // SAFETY: filled by `filled`.
        unsafe { std::slice::from_raw_parts(block, size) }.iter().all(|byte| *byte == with)
    }

    #[test]
    fn blocks_lie_as_asked_and_keep_their_bytes() {
        for align in (0..13).map(|shift| 1 << shift) {
            for size in [0, 1, 15, 16, 17, 1000, 70_000, 3 << 20] {
                let place = Place::aligned(align);
                let block = filled(size, place, align as u8);
                assert!((block as usize).is_multiple_of(align));
                // SAFETY: of this size, and released once.
                unsafe {
                    let longer = reallocate(block, size * 2 + 1, place);
                    assert!((longer as usize).is_multiple_of(align) && is_full_of(longer, size, align as u8));
                    let shorter = reallocate(longer, size / 2, place);
                    assert!(is_full_of(shorter, size / 2, align as u8));
                    release(shorter);
                }
                let zeros = allocate_zeros(size, place);
                assert!(is_full_of(zeros, size, 0));
                // SAFETY: as above.
                unsafe { release(zeros) };
            }
        }
        assert!(allocate(isize::MAX as usize, Place::aligned(1)).is_null());
        assert!(allocate(usize::MAX, Place::aligned(4096)).is_null());
    }

    /// Each thread frees blocks that another one has allocated.
    #[test]
    fn threads_share_blocks() {
        let passed = std::sync::Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            for thread in 0..2 * HEAPS as u8 {
                let passed = &passed;
                scope.spawn(move || {
                    for round in 0..3000usize {
                        let mut block = vec![thread; round % 700 + 1];
                        let taken = {
                            let mut passed = passed.lock().unwrap();
                            std::mem::swap(&mut block, passed.get_mut(round % 50).unwrap_or(&mut Vec::new()));
                            if passed.len() < 50 {
                                passed.push(vec![thread; 10]);
                            }
                            block
                        };
                        assert!(taken.windows(2).all(|pair| pair[0] == pair[1]));
                    }
                });
            }
        });
    }

    /// A child by fork finds no heap locked, whatever other threads do meanwhile.
    #[test]
    fn forked_children_allocate() {
        let _alone = guard::TESTED.lock();
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        drop(vec![1u8; 300]);
                    }
                });
            }
            for _ in 0..100 {
                // SAFETY: the child allocates and exits without returning. An alarm ends it if it
                // hangs.
                unsafe {
                    let child = libc::fork();
                    if child == 0 {
                        libc::alarm(20);
                        let blocks: Vec<_> =
                            (0..HEAPS * 2).map(|number| Held::of(number % HEAPS).number).collect();
                        libc::_exit(i32::from(blocks.len() != HEAPS * 2));
                    }
                    let mut status = 0;
                    assert_eq!(libc::waitpid(child, &raw mut status, 0), child);
                    assert_eq!(status, 0);
                }
            }
            done.store(true, Ordering::Relaxed);
        });
    }

    /// The linker redirects C code, and Rust's `libc`, to the functions here. Tests are linked the
    /// same way as the library.
    #[test]
    fn c_code_allocates_here_and_gives_libcs_blocks_back_to_libc() {
        // SAFETY: blocks are used within their sizes, and freed once.
        unsafe {
            for size in (0..5000).step_by(13) {
                // The compiler assumes that programs do not access memory in front of a block: hide
                // its origin.
                let block = black_box(libc::malloc(size).cast::<u8>());
                assert_eq!((*Header::of(block)).mark, MARK ^ block as usize);
                assert!((block as usize).is_multiple_of(16) && !(block as usize).is_multiple_of(4096));
                block.write_bytes(7, size);
                let longer = libc::realloc(block.cast(), size + 4000).cast::<u8>();
                assert!(is_full_of(longer, size, 7));
                libc::free(longer.cast());
            }
            let zeros = libc::calloc(100, 30).cast::<u8>();
            assert!(is_full_of(zeros, 3000, 0));
            libc::free(zeros.cast());
            assert!(black_box(libc::calloc(black_box(usize::MAX / 2), 3)).is_null());
            libc::free(ptr::null_mut());
            let copy = libc::strdup(c"a text".as_ptr());
            assert_eq!(CStr::from_ptr(copy), c"a text");
            libc::free(copy.cast());
            let of_libc = black_box(libc::realpath(c"/".as_ptr(), ptr::null_mut()));
            assert_ne!((*Header::of(of_libc.cast())).mark, MARK ^ of_libc as usize);
            libc::free(libc::realloc(of_libc.cast(), 10_000));
        }
    }
}
