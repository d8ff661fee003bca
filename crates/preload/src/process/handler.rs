//! Determines whether the calling thread is in a signal handler. Starting a thread allocates with
//! libc's `malloc`, which the signal may have interrupted, so no thread is started in a handler
//! ([`stripewise_sys::thread::start`]).
//!
//! A handler returns to the kernel through its restorer, a function that the C library registers
//! with each handler. The kernel puts the restorer's address on the stack, below the frames of the
//! interrupted code. If no such address is between the current frame and the end of the stack, the
//! thread is in no handler. If there is one, the thread may be in a handler: the address may also
//! be left over from an earlier handler, in variables that were not written since.

use std::mem::MaybeUninit;

#[cfg(target_arch = "x86_64")]
use crate::process::Scratch;
use crate::process::{kernel, stack};

/// Number of the last signal.
const SIGNALS: usize = 64;

/// The kernel's `struct sigaction`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Action {
    handler: usize,
    flags: u64,
    restorer: usize,
    mask: u64,
}

fn actions() -> impl Iterator<Item = Action> {
    (1..=SIGNALS).filter_map(|signal| {
        let mut action = MaybeUninit::<Action>::uninit();
        let arguments = [signal, 0, action.as_mut_ptr() as usize, size_of::<u64>()];
        // SAFETY: a query; the structure is filled on success.
        unsafe { kernel::call(libc::SYS_rt_sigaction, arguments).ok().map(|_| action.assume_init()) }
    })
}

/// Whether the calling thread may be in a signal handler.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn may_be_inside() -> bool {
    // The called function has the addresses to look for in its own variables, so the search starts
    // above its frame.
    let here = 0u8;
    is_called_from_one(std::hint::black_box(std::ptr::from_ref(&here) as usize))
}

#[cfg(target_arch = "x86_64")]
#[inline(never)]
fn is_called_from_one(here: usize) -> bool {
    let mut alternate = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: a query.
    let on_alternate = unsafe {
        libc::sigaltstack(std::ptr::null(), alternate.as_mut_ptr()) == 0
            && alternate.assume_init().ss_flags & libc::SS_ONSTACK != 0
    };
    // Usually all handlers have the same restorer, libc's. The kernel still reports it after a
    // signal's action was reset to the default.
    let mut restorers = [0; 4];
    let mut count = 0;
    for Action { restorer, .. } in actions() {
        if restorer != 0 && !restorers[..count].contains(&restorer) {
            if count == restorers.len() {
                return true;
            }
            restorers[count] = restorer;
            count += 1;
        }
    }
    on_alternate || (count > 0 && find_word(here, &restorers[..count]).unwrap_or(true))
}

/// Whether one of the words is on the stack between this address and the end of the thread's stack.
/// `None` if the stack is too long to search.
#[cfg(target_arch = "x86_64")]
fn find_word(mut from: usize, words: &[usize]) -> Option<bool> {
    let mut left = stack::LEFT.get();
    // SAFETY: frames of this thread that have not returned.
    while let Some(stack::Left { at, top, before }) = unsafe { left.as_ref() } {
        if find_between(from, *top, words)? {
            return Some(true);
        }
        (from, left) = (*at, *before);
    }
    // The C library keeps its thread structure at the end of the stacks that it allocates.
    // SAFETY: always succeeds.
    let thread = unsafe { libc::pthread_self() } as usize;
    let end = if thread > from && thread - from < FAR_BYTES { thread } else { from + FAR_BYTES };
    find_between(from, end, words)
}

/// Length of the stack, bytes, up to which it is searched.
#[cfg(target_arch = "x86_64")]
const FAR_BYTES: usize = 8 << 20;

/// As [`find_word`], for a range of addresses; the search ends at memory that cannot be read.
#[cfg(target_arch = "x86_64")]
fn find_between(from: usize, to: usize, words: &[usize]) -> Option<bool> {
    const WORD: usize = size_of::<usize>();
    let mut copy = Scratch::new().ok()?;
    let mut at = from.next_multiple_of(WORD);
    while at < to {
        let next = (at + 1).next_multiple_of(Scratch::BYTES).min(to / WORD * WORD);
        let Some(bytes) = copy.get_mut(..next.saturating_sub(at)).filter(|bytes| !bytes.is_empty()) else {
            break;
        };
        if kernel::copy_bytes_from(at, bytes).is_err() {
            return Some(false);
        }
        let mut found =
            bytes.chunks_exact(WORD).filter_map(|word| word.try_into().ok().map(usize::from_ne_bytes));
        if found.any(|word| words.contains(&word)) {
            return Some(true);
        }
        at = next;
    }
    (to - from < FAR_BYTES).then_some(false)
}

/// Whether the calling thread may be in a signal handler. In a handler its signal is blocked,
/// unless the program has set SA_NODEFER.
#[cfg(not(target_arch = "x86_64"))]
pub fn may_be_inside() -> bool {
    let blocked = crate::process::guard::blocked_by_program();
    let defers = |action: &Action| action.flags & libc::SA_NODEFER as u64 == 0;
    let is_handled = |action: &Action| action.handler > libc::SIG_IGN;
    (0..)
        .zip(actions())
        .any(|(bit, action)| is_handled(&action) && (!defers(&action) || blocked & 1 << bit != 0))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::process::guard;

    static FOUND: AtomicU32 = AtomicU32::new(0);

    extern "C" fn handler(_: i32) {
        let on_own = stack::on_own(|| Ok(may_be_inside()));
        let found = [may_be_inside(), on_own == Ok(true)];
        FOUND.fetch_add(found.iter().filter(|found| **found).count() as u32, Ordering::Relaxed);
    }

    /// Runs in a thread of its own, so that no handler ran on the stack before.
    #[test]
    fn a_handler_is_noticed_and_nothing_else() {
        let _alone = guard::TESTED.lock();
        // SAFETY: the handler only reads.
        unsafe { libc::signal(libc::SIGURG, handler as *const () as libc::sighandler_t) };
        let outside = || {
            assert!(!may_be_inside());
            assert_eq!(stack::on_own(|| Ok(may_be_inside())), Ok(false));
        };
        std::thread::spawn(move || {
            outside();
            // SAFETY: sent to this thread.
            unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGURG) };
            assert_eq!(FOUND.load(Ordering::Relaxed), 2);
            // A handler that interrupts work on another stack.
            let inside = stack::on_own(|| {
                // SAFETY: as above.
                unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGURG) };
                Ok(FOUND.load(Ordering::Relaxed))
            });
            assert_eq!(inside, Ok(4));
        })
        .join()
        .unwrap();
        std::thread::spawn(outside).join().unwrap();
    }
}
