//! Opens with O_CREAT of files that the plan has no rule for: one call to the kernel.
//!
//! A path alone shows whether a rule matches only if no symbolic link in it leads elsewhere. The
//! kernel checks that during the open (RESOLVE_NO_SYMLINKS); a check before would cost as much as
//! the open itself. Every uncertain case is left to [`crate::calls::open`], which examines the path
//! first:
//! a path with links, a path that a rule may match, a kernel before Linux 5.6.
//!
//! O_TRUNC is not passed to the kernel, since the kind of the file must be known before it is
//! truncated. The file is opened without it, examined, and then truncated.

use std::ffi::{CStr, c_char, c_int, c_long};
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU32;

use libc::mode_t;
use stripewise_datapath::Runtime;
use stripewise_sys::{Errno, OFlags, Result};

use crate::descriptors::{Absolute, EntryRef, Found, access, adopt, sniff};
use crate::process::{At, Real, Scratch, borrow, errno, identity, kernel, stack, state};

const RESOLVE_NO_SYMLINKS: u64 = 4;
const MODE_BITS: mode_t = 0o7777;

/// Opens the file if the plan certainly has no rule for it, and enters its descriptor. `None` if
/// the case is uncertain; nothing has happened then.
///
/// No value here has a destructor while the kernel opens the file, because the thread may be
/// cancelled in that call.
pub fn open(at: At, wanted: OFlags, mode: mode_t) -> Option<Result<(c_int, Option<EntryRef>)>> {
    if !applies(wanted) || !is_unplanned(state::runtime_if_made()?, at) {
        return None;
    }
    let kernels = (wanted - OFlags::TRUNC).bits();
    let how = OpenHow { flags: kernels.into(), mode: (mode & MODE_BITS).into(), resolve: RESOLVE_NO_SYMLINKS };
    match openat2(at, &how) {
        Ok(fd) => settle(fd, wanted).transpose(),
        Err(error) if is_inconclusive(error) => None,
        Err(error) => Some(Err(error)),
    }
}

/// The argument structure of openat2(2), `struct open_how`.
#[repr(C)]
struct OpenHow {
    flags: u64,
    mode: u64,
    resolve: u64,
}

unsafe extern "C" {
    fn pthread_setcanceltype(kind: c_int, before: *mut c_int) -> c_int;
}

type SyscallFn = unsafe extern "C-unwind" fn(c_long, c_int, *const c_char, *const OpenHow, usize) -> c_long;

/// openat2(2), bypassing the library's own functions. A thread that waits in it (for the other end
/// of a FIFO, or the end of a lease) can be cancelled, as in libc's `open`. As there, a descriptor
/// that the kernel has just returned then stays open.
#[inline(never)]
fn openat2(At { dir, path }: At, how: &OpenHow) -> Result<c_int> {
    const PTHREAD_CANCEL_ASYNCHRONOUS: c_int = 1;
    // SAFETY: its type, with the arguments of this call.
    static SYSCALL: Real<SyscallFn> = unsafe { Real::new(c"syscall") };
    let (system, before, mut kind) = (SYSCALL.get(), errno::get(), 0);
    // SAFETY: only the kernel reads the path. While the thread may be cancelled at any instruction,
    // it holds no lock and no value that needs to be dropped.
    let (fd, failed) = unsafe {
        pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, &raw mut kind);
        let fd = system(libc::SYS_openat2, dir, path, how, size_of::<OpenHow>());
        let failed = errno::get();
        pthread_setcanceltype(kind, std::ptr::null_mut());
        (fd, failed)
    };
    errno::set(before);
    if fd < 0 { Err(Errno::from_raw_os_error(failed)) } else { Ok(fd as c_int) }
}

fn applies(flags: OFlags) -> bool {
    flags.contains(OFlags::CREATE)
        && !flags.intersects(OFlags::PATH | OFlags::DIRECTORY)
        && (access::writes(flags) || !flags.contains(OFlags::TRUNC))
        // A file that turns out to be managed is closed again, which would drop the process's locks
        // on it.
        && !sniff::are_locks_used()
        && state::has_plan()
        && !identity::is_vfork_child()
        && is_libc_next()
}

/// Whether openat2(2) may fail with this error where open(2) succeeds, or where
/// [`crate::calls::open`] has to interpret the error.
fn is_inconclusive(error: Errno) -> bool {
    use Errno as E;
    [E::LOOP, E::NOSYS, E::PERM, E::INVAL, E::AGAIN, E::TOOBIG, E::XDEV, E::ACCESS].contains(&error)
}

/// Truncates the file if asked to, and enters the descriptor. `None` if the file has to be
/// truncated and is managed or of unknown kind; the descriptor is closed then.
#[inline(never)]
fn settle(fd: c_int, flags: OFlags) -> Result<Option<(c_int, Option<EntryRef>)>> {
    let mut stat = MaybeUninit::uninit();
    kernel::stat_of(fd, &mut stat).inspect_err(|_| kernel::close(fd))?;
    // SAFETY: filled by the call above.
    let stat = unsafe { stat.assume_init_mut() };
    if flags.contains(OFlags::TRUNC) && sniff::is_regular(stat) {
        let found = sniff::descriptor(borrow(fd), stat, Some(flags));
        if found != Ok(Found::Plain) {
            kernel::close(fd);
            return Ok(None);
        }
        // A file that is already empty gets new times, too.
        kernel::empty(fd).inspect_err(|_| kernel::close(fd))?;
        stat.st_size = 0;
    }
    errno::caught(|| adopt::enter_opened(fd, stat, flags)).map(Some)
}

/// Whether the plan certainly has no rule for the file, provided that its path contains no symbolic
/// link.
#[inline(never)]
fn is_unplanned(runtime: &Runtime, At { dir, path }: At) -> bool {
    let Some(path) = readable(path) else { return false };
    let base = match dir {
        _ if path.starts_with(b"/") => Absolute::root(),
        libc::AT_FDCWD => Absolute::of_working_directory(),
        dir => Absolute::of(dir),
    };
    base.and_then(|base| base.join(path)).is_ok_and(|whole| !runtime.is_planned(whole.as_path()))
}

/// The bytes of the application's path. `None` if they cannot be read, or do not end within the
/// maximum length of a path.
fn readable(path: *const c_char) -> Option<&'static [u8]> {
    let page = rustix::param::page_size();
    let mut len = 0;
    while len < Scratch::BYTES {
        let at = path.wrapping_add(len);
        let before = at as usize % page;
        if !kernel::is_readable(at.wrapping_sub(before).cast(), size_of::<u64>()) {
            return None;
        }
        // SAFETY: the page is readable; the bytes are used only during the call that the path came
        // with.
        let found = unsafe { libc::strnlen(at, page - before) };
        len += found;
        if found < page - before {
            // SAFETY: as above.
            return Some(unsafe { std::slice::from_raw_parts(path.cast(), len) });
        }
    }
    None
}

/// Whether the program's opens would reach libc next. If another library in between intercepts
/// them, it must not be bypassed.
fn is_libc_next() -> bool {
    static FOUND: AtomicU32 = AtomicU32::new(0);
    const OPENS: [&CStr; 6] = [c"open", c"open64", c"openat", c"openat64", c"creat", c"creat64"];
    let find = || {
        let libc = library_of(c"gnu_get_libc_version");
        Ok(libc.is_some() && OPENS.iter().all(|name| library_of(name) == libc))
    };
    // The loader needs more stack than callers may have.
    state::found_once(&FOUND, || stack::on_own(find).unwrap_or(false))
}

/// The base address of the library with the next function of this name.
fn library_of(name: &CStr) -> Option<usize> {
    let mut library = MaybeUninit::<libc::Dl_info>::uninit();
    // SAFETY: a terminated name; the structure is filled if the result is not 0.
    unsafe {
        let function = libc::dlsym(libc::RTLD_NEXT, name.as_ptr());
        let found = !function.is_null() && libc::dladdr(function, library.as_mut_ptr()) != 0;
        found.then(|| library.assume_init().dli_fbase as usize)
    }
}
