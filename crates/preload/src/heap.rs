//! The library's own memory, apart from the program's `malloc`.
//!
//! A signal handler may use a managed file while the thread that it interrupted is in the middle of `malloc`, and holds its lock.
//! What the library allocates (Rust code as well as LMDB's C code, see [`c`]) therefore comes from heaps of its own, whose
//! memory comes from the kernel. While a thread holds the lock of a heap, signals wait, so that no handler of that thread ever
//! finds it held; and a fork takes all locks first, so that no child does.
//!
//! There are several heaps, as there are threads that want memory at once: one that is busy is passed over.

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
    state: UnsafeCell<Dlmalloc<Pages>>,
}

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
        Self { lock: Lock::new(), state: UnsafeCell::new(Dlmalloc::new_with_allocator(Pages)) }
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

    fn state(&mut self) -> &mut Dlmalloc<Pages> {
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
    /// Bytes that were asked for << 16, the logarithm of the bytes before the block << 8, and the number of its heap.
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

/// How a block lies in its memory, which begins at a multiple of `align` bytes: so many bytes behind that. Powers of two.
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
    // SAFETY: a power of two.
    let start = unsafe { held.state().c_memalign(place.align, all) };
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
        Held::of(header.heap()).state().c_free(block.sub(header.before()));
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

/// The first memory of a process that is given out: a process that uses little makes no system call for it.
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
