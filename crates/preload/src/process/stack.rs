//! Runs code on a stack of the library. A caller may have very little stack: a signal handler on
//! its own stack, or a thread with 16 KiB. Code that may need much (reading the plan, creating a
//! managed file) therefore runs elsewhere.

use std::arch::asm;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};
use stripewise_sys::{Errno, Result};

/// Size of a stack, bytes: that of a small thread in other programs. Only touched pages take
/// memory.
const BYTES: usize = 512 << 10;
/// Inaccessible bytes at the lower end. A stack overflow ends the process instead of overwriting
/// other memory.
const GUARD_BYTES: usize = 64 << 10;

/// Bytes of zeros above the first frame. A backtrace looks there for the caller of that frame, and
/// ends. Memory above the stack belongs to other owners.
const ZERO_BYTES: usize = 256;

/// Idle stacks. Further ones are unmapped.
static IDLE: [AtomicPtr<c_void>; 4] = [const { AtomicPtr::new(ptr::null_mut()) }; 4];

/// A stack, until it is dropped.
struct Stack(*mut c_void);

impl Stack {
    fn new() -> Result<Self> {
        let mut idle = IDLE.iter().map(|slot| slot.swap(ptr::null_mut(), Ordering::Acquire));
        // The iterator is lazy, so only one stack is taken out.
        match idle.find(|idle| !idle.is_null()) {
            Some(idle) => Ok(Self(idle)),
            None => Self::map(),
        }
    }

    fn map() -> Result<Self> {
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
        // SAFETY: a new mapping, whose lower end is made inaccessible.
        unsafe {
            let stack =
                Self(mmap_anonymous(ptr::null_mut(), BYTES, ProtFlags::READ | ProtFlags::WRITE, flags)?);
            mprotect(stack.0, GUARD_BYTES, MprotectFlags::empty())?;
            Ok(stack)
        }
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let put = |slot: &AtomicPtr<c_void>| {
            slot.compare_exchange(ptr::null_mut(), self.0, Ordering::Release, Ordering::Relaxed).is_ok()
        };
        if !IDLE.iter().any(put) {
            // SAFETY: mapped by `map`, and no thread runs on it.
            let _ = unsafe { munmap(self.0, BYTES) };
        }
    }
}

/// Runs `body` on a stack of the library; a panic in it becomes EIO. A signal handler that
/// interrupts `body` may run on this stack, too, and must return (no `longjmp`): code that must not
/// be abandoned has to block signals.
pub fn on_own<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    let stack = Stack::new()?;
    let (mut body, mut result) = (Some(body), Err(Errno::IO));
    let mut run = || {
        if let Some(body) = body.take() {
            result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Errno::IO));
        }
    };
    let mut job: &mut dyn FnMut() = &mut run;
    let top = stack.0.wrapping_byte_add(BYTES - ZERO_BYTES);
    let left = Left { at: ptr::from_ref(&job) as usize, top: top as usize, before: LEFT.get() };
    LEFT.set(&raw const left);
    // SAFETY: only this call uses the stack; the job lives until it returns.
    unsafe { call_on(top, run_job, ptr::from_mut(&mut job).cast()) };
    LEFT.set(left.before);
    result
}

/// The place where a thread left one stack for another.
pub struct Left {
    pub at: usize,
    /// Upper end of the stack that the thread went to.
    pub top: usize,
    pub before: *const Self,
}

thread_local! {
    /// Where this thread left its last stack; null on its own stack.
    pub static LEFT: Cell<*const Left> = const { Cell::new(ptr::null()) };
}

unsafe extern "C" fn run_job(job: *mut c_void) {
    // SAFETY: `on_own` passes a job of this type, which catches panics.
    unsafe { (*job.cast::<&mut dyn FnMut()>())() };
}

/// Calls `function` with the stack pointer at `top`, which is a multiple of 16.
#[inline(never)]
unsafe fn call_on(top: *mut c_void, function: unsafe extern "C" fn(*mut c_void), argument: *mut c_void) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the callee preserves r12, which holds the old stack pointer.
    unsafe {
        asm!(
            "xchg rsp, r12",
            "call {function}",
            "mov rsp, r12",
            function = in(reg) function,
            inout("r12") top => _,
            in("rdi") argument,
            clobber_abi("C"),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the callee preserves x20, which holds the old stack pointer.
    unsafe {
        asm!(
            "mov x21, sp",
            "mov sp, x20",
            "mov x20, x21",
            "blr {function}",
            "mov sp, x20",
            function = in(reg) function,
            inout("x20") top => _,
            out("x21") _,
            in("x0") argument,
            clobber_abi("C"),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn here() -> usize {
        let local = 0u8;
        ptr::from_ref(&local) as usize
    }

    #[test]
    fn work_runs_elsewhere_and_its_result_comes_back() {
        let outside = here();
        let inside = on_own(|| Ok(here())).unwrap();
        assert!(outside.abs_diff(inside) > BYTES);
        assert_eq!(on_own(|| -> Result<()> { Err(Errno::NOSPC) }), Err(Errno::NOSPC));
        assert_eq!(on_own(|| -> Result<()> { panic!("a defect") }), Err(Errno::IO));
        // Nested calls, more of them than there are idle stacks.
        fn deep(levels: usize) -> Result<usize> {
            if levels == 0 { Ok(0) } else { on_own(|| deep(levels - 1)).map(|below| below + 1) }
        }
        assert_eq!(deep(3 * IDLE.len()), Ok(3 * IDLE.len()));
    }
}
