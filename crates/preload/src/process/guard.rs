//! The guard of a call on a managed file. Only reads and writes that are one call on one object go
//! without it (`calls/piece.rs`), some with [`Blocked`] signals. While it is held, three things
//! wait.
//!
//! **Signals** wait, as they do while the kernel reads or writes a plain file. A handler never
//! interrupts the data path while it holds a lock, and so may read and write managed files itself.
//! A call that waits for another process ends with EINTR when a signal arrives
//! ([`is_interrupted`]), and is repeated if the handler asked for that (SA_RESTART).
//!
//! **Cancellation** of the thread by `pthread_cancel` waits: functions of libc that the
//! library's dependencies call are cancellation points. It takes effect at the beginning of a call
//! ([`cancellation_point`]).
//!
//! **fork** by another thread waits. The kernel copies descriptors and memory one after the other
//! while other threads run, so a child could have records of private descriptors that it does not
//! have, and locks that no thread of it will release.

use std::cell::Cell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use crate::process::{kernel, messages};

/// Number of threads inside a guarded call, and the bit [`FORKING`] while a thread forks.
static GATE: AtomicU32 = AtomicU32::new(0);
const FORKING: u32 = 1 << 31;

thread_local! {
    /// Nesting depth of such calls in this thread.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    /// The signals that the application blocks.
    static BLOCKED: Cell<u64> = const { Cell::new(u64::MAX) };
    /// The current call may end with EINTR.
    static MAY_END: Cell<bool> = const { Cell::new(false) };
    /// The call ended with EINTR, and all handlers involved ask for it to be repeated (SA_RESTART).
    static AGAIN: Cell<bool> = const { Cell::new(false) };
}

/// A call on a managed file.
pub struct SignalForkGuard {
    _signals: Blocked,
    /// Dropped last.
    _cancellation: NoCancellation,
}

/// Whether this thread is inside a guarded call on a managed file. If so, libc functions that it
/// calls now are called by the library's dependencies (LMDB), on their own descriptors.
pub fn active() -> bool {
    DEPTH.get() > 0
}

impl SignalForkGuard {
    pub fn new() -> Self {
        Self::holding(None)
    }

    /// As [`new`](Self::new), where signals may wait already.
    fn holding(signals: Option<Blocked>) -> Self {
        let cancellation = NoCancellation::new();
        let signals = signals.unwrap_or_else(Blocked::new);
        if DEPTH.replace(DEPTH.get() + 1) == 0 {
            BLOCKED.set(signals.0);
            change(|state| (state & FORKING == 0).then_some(state + 1));
        }
        Self { _signals: signals, _cancellation: cancellation }
    }

    /// A guard of a call whose waits for other processes end when a signal arrives.
    /// If signals wait already, they do so until its end.
    pub fn interruptible(signals: Option<Blocked>) -> Self {
        let guard = Self::holding(signals);
        MAY_END.set(DEPTH.get() == 1);
        AGAIN.set(false);
        guard
    }

    /// Whether the call that ended with EINTR is to be repeated after the pending signals were
    /// handled.
    pub fn is_to_be_repeated(&self) -> bool {
        AGAIN.get()
    }
}

impl Drop for SignalForkGuard {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        if active() {
            return;
        }
        MAY_END.set(false);
        // The last call to end wakes a thread that waits to fork.
        if GATE.fetch_sub(1, Ordering::AcqRel) == FORKING | 1 {
            wake();
        }
        messages::flush();
    }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, before: *mut i32) -> i32;
}

unsafe extern "C-unwind" {
    fn pthread_testcancel();
}

/// Ends the thread if it was cancelled. Called at the beginning of a call that POSIX defines as a
/// cancellation point, where no lock is held. The functions between the program's call and this one
/// have no destructors, because the C library unwinds them.
#[inline]
pub fn cancellation_point() {
    if !active() {
        // SAFETY: has no arguments.
        unsafe { pthread_testcancel() }
    }
}

/// Disables cancellation of the thread until it is dropped.
pub struct NoCancellation(i32);

impl NoCancellation {
    #[inline]
    pub fn new() -> Self {
        const PTHREAD_CANCEL_DISABLE: i32 = 1;
        let mut before = 0;
        // SAFETY: applies to the calling thread.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        Self(before)
    }
}

impl Drop for NoCancellation {
    #[inline]
    fn drop(&mut self) {
        let mut now = 0;
        // SAFETY: the state that `new` has saved.
        unsafe { pthread_setcancelstate(self.0, &raw mut now) };
    }
}

/// Blocks signals until it is dropped, but no forks; it may also be used during a fork. Holds the
/// kernel's mask of the signals that were blocked before: libc's mask is sixteen times as large,
/// and callers have little stack.
pub struct Blocked(u64);

impl Blocked {
    #[inline]
    pub fn new() -> Self {
        Self(change_mask(libc::SIG_BLOCK, MASK))
    }
}

impl Drop for Blocked {
    #[inline]
    fn drop(&mut self) {
        change_mask(libc::SIG_SETMASK, self.0);
    }
}

/// All signals except the two that libc uses internally, and those that a defect raises in the
/// thread at fault: to block them would end the process without a message.
const MASK: u64 = {
    let of_defects = bit(libc::SIGSEGV) | bit(libc::SIGBUS) | bit(libc::SIGILL) | bit(libc::SIGFPE);
    !(bit(32) | bit(33) | of_defects | bit(libc::SIGTRAP) | bit(libc::SIGABRT))
};

const fn bit(signal: i32) -> u64 {
    1 << (signal - 1)
}

/// Returns the previous mask.
#[inline]
fn change_mask(how: i32, mask: u64) -> u64 {
    let mut before = 0u64;
    let masks = (&raw const mask as usize, &raw mut before as usize);
    let arguments = [how as usize, masks.0, masks.1, size_of::<u64>()];
    // SAFETY: reads one mask and writes the other.
    let _ = unsafe { kernel::call(libc::SYS_rt_sigprocmask, arguments) };
    before
}

/// Whether a call that waits for another process has to end because of a pending signal. A signal
/// that ends this process always ends the call. One that has a handler or stops the process ends
/// only an [interruptible](SignalForkGuard::interruptible) call.
pub fn is_interrupted() -> bool {
    let (mut ends, mut again) = (false, true);
    let waiting = pending() & !BLOCKED.get();
    for signal in (1..=64).filter(|signal| waiting & bit(*signal) != 0) {
        match effect(signal) {
            Effect::None => {}
            Effect::Kill => return true,
            Effect::Interrupt { restart } => (ends, again) = (true, again && restart),
        }
    }
    let ends = ends && MAY_END.get();
    AGAIN.set(ends && again);
    ends
}

enum Effect {
    None,
    Kill,
    /// Stops the process, or runs a handler.
    Interrupt {
        restart: bool,
    },
}

fn effect(signal: i32) -> Effect {
    let mut action = MaybeUninit::<libc::sigaction>::uninit();
    // SAFETY: a query; the structure is filled on success.
    let action = unsafe {
        if libc::sigaction(signal, ptr::null(), action.as_mut_ptr()) != 0 {
            // One of the signals that libc uses internally.
            return Effect::None;
        }
        action.assume_init()
    };
    match (action.sa_sigaction, signal) {
        (libc::SIG_IGN, _) => Effect::None,
        (libc::SIG_DFL, libc::SIGCHLD | libc::SIGCONT | libc::SIGURG | libc::SIGWINCH) => Effect::None,
        (libc::SIG_DFL, libc::SIGTSTP | libc::SIGTTIN | libc::SIGTTOU) => Effect::Interrupt { restart: true },
        (libc::SIG_DFL, _) => Effect::Kill,
        _ => Effect::Interrupt { restart: action.sa_flags & libc::SA_RESTART != 0 },
    }
}

/// The signals that the application blocks in this thread, which is inside a call on a managed
/// file.
#[cfg(not(target_arch = "x86_64"))]
pub fn blocked_by_program() -> u64 {
    BLOCKED.get()
}

fn pending() -> u64 {
    let mut set = 0u64;
    let arguments = [&raw mut set as usize, size_of::<u64>()];
    // SAFETY: the kernel fills the given number of bytes.
    let _ = unsafe { kernel::call(libc::SYS_rt_sigpending, arguments) };
    set
}

/// Runs `body` with signals blocked. Forks do not wait for it.
pub fn undisturbed<T>(body: impl FnOnce() -> T) -> T {
    let _signals = Blocked::new();
    body()
}

/// Sets the gate to the result of `to`; waits while that is `None`.
fn change(to: impl Fn(u32) -> Option<u32>) {
    while let Err(state) = GATE.fetch_update(Ordering::AcqRel, Ordering::Relaxed, &to) {
        let _ = futex::wait(&GATE, futex::Flags::PRIVATE, state, None);
    }
}

fn wake() {
    let _ = futex::wake(&GATE, futex::Flags::PRIVATE, i32::MAX as u32);
}

/// Keeps other threads from entering calls on managed files, and waits for those that run.
pub fn shut() {
    change(|state| (state & FORKING == 0).then_some(state | FORKING));
    change(|state| (state == FORKING).then_some(state));
}

/// Lets calls on managed files run again.
pub fn open() {
    GATE.fetch_and(!FORKING, Ordering::AcqRel);
    wake();
}

/// As [`open`], in a forked child, which has only the forking thread.
pub fn open_in_child() {
    GATE.store(0, Ordering::Release);
}

/// Serializes tests that check the gate or that the gate affects.
#[cfg(test)]
pub static TESTED: std::sync::Mutex<()> = std::sync::Mutex::new(());

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_fork_waits_for_calls_and_calls_for_the_fork() {
        let _alone = TESTED.lock();
        let (entered, left, forked) = (AtomicBool::new(false), AtomicBool::new(false), AtomicBool::new(false));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let outer = SignalForkGuard::new();
                let inner = SignalForkGuard::new();
                entered.store(true, Ordering::Release);
                std::thread::sleep(Duration::from_millis(30));
                drop(inner);
                left.store(true, Ordering::Release);
                drop(outer);
            });
            while !entered.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            shut();
            assert!(left.load(Ordering::Acquire), "forked in the middle of a call");
            scope.spawn(|| {
                let _call = SignalForkGuard::new();
                assert!(forked.load(Ordering::Acquire), "called in the middle of a fork");
            });
            std::thread::sleep(Duration::from_millis(30));
            forked.store(true, Ordering::Release);
            open();
        });
        assert_eq!(GATE.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn signals_wait() {
        let _alone = TESTED.lock();
        static HANDLED: AtomicBool = AtomicBool::new(false);
        extern "C" fn handler(_: i32) {
            HANDLED.store(true, Ordering::Relaxed);
        }
        // SAFETY: the handler only stores.
        unsafe { libc::signal(libc::SIGUSR2, handler as *const () as libc::sighandler_t) };
        let call = SignalForkGuard::new();
        // SAFETY: sent to this thread.
        unsafe { libc::pthread_kill(libc::pthread_self(), libc::SIGUSR2) };
        assert!(!HANDLED.load(Ordering::Relaxed));
        drop(call);
        assert!(HANDLED.load(Ordering::Relaxed));
    }
}
