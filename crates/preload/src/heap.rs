//! The library's own memory, apart from the program's `malloc`.
//!
//! A signal handler may use a managed file while the thread that it interrupted is in the middle of
//! `malloc`, and holds its lock. What the library allocates (Rust code as well as LMDB's C code,
//! see [`c`]) therefore comes from heaps of its own, whose memory comes from the kernel. While a
//! thread holds the lock of a heap, signals wait, so that no handler of that thread ever finds it
//! held; and a fork takes all locks first, so that no child does.
//!
//! There are several heaps, as there are threads that want memory at once: one that is busy is
//! passed over.

mod c;

use std::alloc::{GlobalAlloc, Layout};
use std::cell::{Cell, UnsafeCell};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use dlmalloc::{Allocator, Dlmalloc};
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};

use crate::inside::{self, Blocked};
use crate::lock::{Lock, Locked};

#[global_allocator]
static OWN: Own = Own;

/// Threads that allocate at once; more of them wait for each other.
const HEAPS: usize = 8;
static ALL: [Heap; HEAPS] = [const { Heap::new() }; HEAPS];

/// The heap that the next thread begins with.
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
    /// Small pieces of memory that were given back, by their size: they are wanted again at once,
    /// and need not be joined and cut.
    spare: [Spare; SIZES],
}

#[derive(Clone, Copy)]
struct Spare {
    /// Each begins with the address of the next one.
    first: *mut *mut u8,
    count: usize,
}

/// Bytes between two sizes.
const STEP: usize = 16;
/// Sizes of which there are spare pieces: up to half a KiB.
const SIZES: usize = 33;
/// Pieces of a size.
const SPARE_MAX: usize = 32;

// SAFETY: only the holder of the lock reaches the state.
unsafe impl Sync for Heap {}

/// A heap in use by this thread, until it is dropped.
struct Held {
    heap: &'static Heap,
    number: usize,
    // In this order: the lock is given back before signals come in.
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
    /// Memory of so many bytes, a multiple of [`STEP`], or null.
    fn take(&mut self, bytes: usize, align: usize) -> *mut u8 {
        if let Some(spare) = self.spare.get_mut(bytes / STEP)
            && align <= STEP
            && !spare.first.is_null()
        {
            let taken = spare.first;
            // SAFETY: a spare piece, which begins so.
            spare.first = unsafe { *taken }.cast();
            spare.count -= 1;
            return taken.cast();
        }
        // SAFETY: a power of two.
        unsafe { self.heap.c_memalign(align, bytes) }
    }

    /// # Safety
    /// What [`take`](Self::take) gave, of at least so many bytes.
    unsafe fn give_back(&mut self, memory: *mut u8, bytes: usize) {
        match self.spare.get_mut(bytes / STEP) {
            Some(spare) if spare.count < SPARE_MAX => {
                let memory = memory.cast::<*mut u8>();
                // SAFETY: as promised; a step or more.
                unsafe { memory.write(spare.first.cast()) };
                *spare = Spare { first: memory, count: spare.count + 1 };
            }
            // SAFETY: as promised.
            _ => unsafe { self.heap.c_free(memory) },
        }
    }
}

impl Held {
    /// The thread's heap, or one that nobody uses just now.
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
        Self { heap: &ALL[number], number, _locked: locked, _signals: signals }
    }

    fn of(number: usize) -> Self {
        let signals = hold_signals();
        Self { heap: &ALL[number], number, _locked: ALL[number].lock.lock(), _signals: signals }
    }

    fn state(&mut self) -> &mut State {
        // SAFETY: the lock is held, and this is borrowed alone.
        unsafe { &mut *self.heap.state.get() }
    }
}

/// Inside a call on a managed file they wait already.
fn hold_signals() -> Option<Blocked> {
    (!inside::active()).then(Blocked::new)
}

/// Before a fork, after which the child has only this thread: nobody else is in a heap.
pub fn before_fork() {
    ALL.iter().for_each(|heap| std::mem::forget(heap.lock.lock()));
}

/// After it, in both processes.
pub fn after_fork() {
    // SAFETY: locked by `before_fork`, in this thread or the one that it is a copy of.
    ALL.iter().for_each(|heap| unsafe { heap.lock.unlock() });
}

/// What precedes each block.
#[repr(C)]
#[derive(Clone, Copy)]
struct Header {
    /// [`MARK`] xor the block's address: no block of another allocator has that.
    mark: usize,
    /// Bytes that were asked for << 16, the logarithm of the bytes before the block << 8, and the
    /// number of its heap.
    about: usize,
}

const MARK: usize = 0x9d3f_61c8_a7b4_e25b;
const HEADER: usize = size_of::<Header>();
/// Of the bytes that may be asked for.
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

/// How a block lies in its memory, which begins at a multiple of `align` bytes: so many bytes
/// behind that. Powers of two.
#[derive(Clone, Copy)]
struct Place {
    align: usize,
    before: usize,
}

impl Place {
    /// A block that begins at such a multiple.
    fn aligned(align: usize) -> Self {
        let before = align.max(HEADER);
        Self { align: before, before }
    }
}

/// A block of `size` bytes. Null: there is no memory.
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
    // SAFETY: all of this is in the memory that was just given out.
    unsafe {
        let block = start.add(place.before);
        let about = size << 16 | (place.before.trailing_zeros() as usize) << 8 | number;
        Header::of(block).write(Header { mark: MARK ^ block as usize, about });
        block
    }
}

/// The same, of zeros.
fn allocate_zeros(size: usize, place: Place) -> *mut u8 {
    let block = allocate(size, place);
    if !block.is_null() {
        // SAFETY: just allocated.
        unsafe { block.write_bytes(0, size) };
    }
    block
}

/// # Safety
/// A block of [`allocate`]'s, that is not used again.
unsafe fn release(block: *mut u8) {
    // SAFETY: as promised; the mark goes, so that nobody takes what comes next for a block.
    unsafe {
        let header = Header::of(block).read();
        (*Header::of(block)).mark = 0;
        let all = (header.size() + header.before()).next_multiple_of(STEP);
        Held::of(header.heap()).state().give_back(block.sub(header.before()), all);
    }
}

/// # Safety
/// As [`release`], unless it returns null.
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

/// What Rust code allocates from.
struct Own;

// SAFETY: blocks of the size and alignment that was asked for, each given out once.
unsafe impl GlobalAlloc for Own {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        allocate(layout.size(), Place::aligned(layout.align()))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        allocate_zeros(layout.size(), Place::aligned(layout.align()))
    }

    unsafe fn dealloc(&self, block: *mut u8, _: Layout) {
        // SAFETY: the caller's promise.
        unsafe { release(block) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { reallocate(block, size, Place::aligned(layout.align())) }
    }
}

/// Where the heaps' memory comes from: the kernel, not a function that anybody may interpose.
struct Pages;

/// What a heap grows by at least.
const FIRST_BYTES: usize = 128 << 10;

/// The first memory of a process that is given out: a process that uses little makes no system call
/// for it.
#[repr(align(4096))]
struct First(UnsafeCell<[u8; FIRST_BYTES]>);

// SAFETY: given out once.
unsafe impl Sync for First {}

static FIRST: First = First(UnsafeCell::new([0; FIRST_BYTES]));
static FIRST_TAKEN: AtomicBool = AtomicBool::new(false);

/// Of a piece of memory that the heap must not give back: dlmalloc's EXTERN_BIT.
const NOT_FROM_THE_KERNEL: u32 = 1;

// SAFETY: pages that nobody else has.
unsafe impl Allocator for Pages {
    fn alloc(&self, size: usize) -> (*mut u8, usize, u32) {
        if size <= FIRST_BYTES && !FIRST_TAKEN.swap(true, Ordering::Relaxed) {
            return (FIRST.0.get().cast(), FIRST_BYTES, NOT_FROM_THE_KERNEL);
        }
        // SAFETY: a new mapping.
        let pages = unsafe {
            mmap_anonymous(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
        };
        pages.map_or((ptr::null_mut(), 0, 0), |pages| (pages.cast(), size, 0))
    }

    fn remap(&self, pages: *mut u8, old: usize, new: usize, can_move: bool) -> *mut u8 {
        let flags = if can_move { MremapFlags::MAYMOVE } else { MremapFlags::empty() };
        // SAFETY: the heap's own.
        unsafe { mremap(pages.cast(), old, new, flags) }.map_or(ptr::null_mut(), |pages| pages.cast())
    }

    fn free_part(&self, pages: *mut u8, old: usize, new: usize) -> bool {
        // SAFETY: the heap's own.
        unsafe { munmap(pages.wrapping_add(new).cast(), old - new) }.is_ok()
    }

    fn free(&self, pages: *mut u8, size: usize) -> bool {
        // SAFETY: the heap's own.
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
        // SAFETY: so large.
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

    /// Each thread gives back what another one has allocated.
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
        let _alone = inside::TESTED.lock();
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
                // SAFETY: the child allocates and ends without returning; an alarm ends one that
                // waits.
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

    /// The linker puts our functions where C code, and Rust's `libc`, name those of libc: tests are
    /// linked as the library is.
    #[test]
    fn c_code_allocates_here_and_gives_libcs_blocks_back_to_libc() {
        // SAFETY: blocks are used within their sizes, and given back once.
        unsafe {
            for size in (0..5000).step_by(13) {
                // What lies before a block is no business of programs, thinks the compiler.
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
