//! The entry of `mmap`, which other libraries overwrite.
//!
//! UCX (loaded by Debian's MPICH and most MPIs over InfiniBand) intercepts all mappings: it writes
//! a jump to its own function over the first bytes of the function that the name `mmap` resolves
//! to. That is this library's `mmap`, which would then never be called, so the kernel would map the
//! anchor. Therefore the entry consists of a jump only. When it is found changed, it is restored,
//! and UCX's function is called for every mapping that is not managed, as if it had replaced libc's
//! function.

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

use rustix::mm::{MprotectFlags, mprotect};
use stripewise_datapath::notice;

use crate::process::kernel;
use crate::process::real::MmapFn;

unsafe extern "C" {
    /// The first bytes of this library's `mmap` (`calls/mmap.rs`). The name `mmap` itself may
    /// resolve to another library.
    #[link_name = "stripewise_mmap_entry"]
    static ENTRY: u8;
    /// A copy of them, which is never executed.
    #[link_name = "stripewise_mmap_copy"]
    static COPY: u64;
}

/// The function that another library's patch jumps to; null if there was no patch.
static FOUND: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());
/// A patch was found that is not understood.
static GIVEN_UP: AtomicBool = AtomicBool::new(false);
/// A thread is restoring the entry.
static AT_WORK: AtomicBool = AtomicBool::new(false);

thread_local! {
    /// This thread is in the other library's function. If that calls `mmap`, it means libc's.
    static CALLED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `mmap` for a mapping that is not managed. `call` gets the function whose patch was found,
/// or else `real`.
pub fn forward(real: MmapFn, call: impl FnOnce(MmapFn) -> *mut c_void) -> *mut c_void {
    let found = FOUND.load(Ordering::Acquire);
    if found.is_null() || CALLED.get() {
        return call(real);
    }
    CALLED.set(true);
    // SAFETY: the patch put this function in place of one of this type.
    let result = call(unsafe { std::mem::transmute::<*mut c_void, MmapFn>(found) });
    CALLED.set(false);
    result
}

/// Restores the entry if it was changed. Called when a managed or recorded file is opened, at calls
/// on managed files, and after `mprotect` of the entry.
#[inline]
pub fn keep_entry() {
    if entry().load(Ordering::Relaxed) != original() {
        restore();
    }
}

/// Whether the entry is in this memory.
pub fn is_entry_in(start: *const c_void, len: usize) -> bool {
    (entry().as_ptr() as usize).wrapping_sub(start as usize) < len
}

/// The first eight bytes of the entry, of which five are the jump.
fn entry() -> &'static AtomicU64 {
    // SAFETY: code that is never freed, aligned to 16 bytes.
    unsafe { &*(&raw const ENTRY).cast::<AtomicU64>() }
}

fn original() -> u64 {
    // SAFETY: never written to.
    unsafe { COPY }
}

#[cold]
fn restore() {
    if GIVEN_UP.load(Ordering::Relaxed) || AT_WORK.swap(true, Ordering::Acquire) {
        return;
    }
    let before = kernel::errno();
    // A jump to itself: another thread is about to write a patch.
    const BEING_CHANGED: u16 = 0xfeeb;
    let now = || entry().load(Ordering::Relaxed);
    if now() != original() && now() as u16 != BEING_CHANGED {
        let done = target().is_some_and(|target| {
            keep_loaded(target);
            FOUND.store(target, Ordering::Release);
            write_entry()
        });
        if !done {
            GIVEN_UP.store(true, Ordering::Relaxed);
            let remedy = "if it is UCX, UCX_MEM_MMAP_HOOK_MODE=none prevents it";
            notice::warn_once(&format!(
                "a library has replaced mmap: managed files cannot be mapped; {remedy}"
            ));
        }
    }
    kernel::set_errno(before);
    AT_WORK.store(false, Ordering::Release);
}

/// Keeps the library loaded that contains `function`, which may be called at any time from now on.
fn keep_loaded(function: *mut c_void) {
    let mut library = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: the structure is filled if the result is not 0; the name is the loader's.
    unsafe {
        if libc::dladdr(function, library.as_mut_ptr()) != 0 {
            let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
            libc::dlopen((*library.as_ptr()).dli_fname, flags);
        }
    }
}

/// The target of the jump that was written over the entry.
fn target() -> Option<*mut c_void> {
    let at = entry().as_ptr().cast::<u8>();
    // SAFETY: the bytes of the entry.
    let bytes: [u8; 16] = unsafe { at.cast::<[u8; 16]>().read_volatile() };
    let number = |from: usize| u64::from_le_bytes(bytes[from..from + 8].try_into().unwrap_or_default());
    match bytes {
        // jmp rel32
        [0xe9, ..] => {
            let distance = (number(1) as u32).cast_signed();
            Some(at.wrapping_add(5).wrapping_offset(distance as isize).cast())
        }
        // mov rax, imm64; jmp rax
        [0x48, 0xb8, _, _, _, _, _, _, _, _, 0xff, 0xe0, ..] => Some(number(2) as *mut c_void),
        // mov r11, imm64; jmp r11
        [0x49, 0xbb, _, _, _, _, _, _, _, _, 0x41, 0xff, 0xe3, ..] => Some(number(2) as *mut c_void),
        _ => None,
    }
}

/// Restores the entry with one store, so that a thread that enters it executes either the old or
/// the new jump. The bytes after the jump are never executed.
fn write_entry() -> bool {
    let page = rustix::param::page_size();
    let start = entry().as_ptr() as usize & !(page - 1);
    let set = |flags| {
        // SAFETY: the page of this function, which stays executable.
        unsafe { mprotect(start as *mut c_void, page, flags) }.is_ok()
    };
    let runs = MprotectFlags::READ | MprotectFlags::EXEC;
    if !set(runs | MprotectFlags::WRITE) {
        return false;
    }
    entry().store(original(), Ordering::Release);
    set(runs)
}
