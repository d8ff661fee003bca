//! Information from an MPI library: rank and job of this process, and its collective calls.
//!
//! These functions are not libc's. The PMPI library in `mpi/` looks them up with `dlsym` and calls
//! them; `mpi/stripewise.h` declares them. All may be called at any time, and leave errno
//! unchanged. They do nothing where there is nothing to record or set.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

use rustix::fs::{CWD, Mode, OFlags, openat};
use stripewise_datapath::{FileKey, LogicalFile};
use stripewise_policy::sieving::{self, Strided};
use stripewise_recorder::{Event, FileId, Flags, MpiCall, Op, Recorder, Ticks};

use crate::descriptors::{Absolute, to_path};
use crate::process::errno::quietly;
use crate::process::{At, Closing, Job, SignalForkGuard, errno, identity, job, state};

/// Called when MPI is initialized: this process is `rank` of `ranks`, and `ranks_on_node` of them
/// are on its node, which has the index `node` in the job (`ranks_on_node` 0, `node` -1: not
/// known).
#[unsafe(no_mangle)]
extern "C" fn stripewise_note_mpi(ranks: c_int, rank: c_int, ranks_on_node: c_int, node: c_int) {
    let (Ok(ranks), Ok(rank)) = (u32::try_from(ranks), u32::try_from(rank)) else { return };
    if rank >= ranks || identity::is_vfork_child() {
        return;
    }
    let (ranks_on_node, node) = (u32::try_from(ranks_on_node).unwrap_or(0), u32::try_from(node).ok());
    Job { ranks, rank, ranks_on_node, node }.note();
    quietly(|| {
        if let Some(recorder) = state::recorder() {
            recorder.set_job(rank, ranks, node);
        }
        if let (Some(runtime), Some((procs, on_node))) = (state::runtime_if_used(), job::processes()) {
            runtime.set_procs(procs, on_node);
        }
    });
}

/// The number of a file for marks; 0 if it is not recorded or does not exist. Called after the file
/// was opened.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_mark_file(path: *const c_char) -> u32 {
    let number = |recorder: Recorder| {
        // SAFETY: the caller's string.
        let path = unsafe { CStr::from_ptr(path) };
        // O_PATH: closing such a descriptor drops no record locks.
        let fd = Closing::new(openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?);
        let path = Absolute::of(fd.as_fd().as_raw_fd()).ok()?;
        Some(recorder.file_id(path.as_bytes()))
    };
    quietly(|| state::recorder().and_then(number).unwrap_or(FileId::NOT_RECORDED).0)
}

/// The calling thread begins a collective call. Returns the time, for [`stripewise_mark_end`].
#[unsafe(no_mangle)]
extern "C" fn stripewise_mark_begin() -> u64 {
    quietly(|| {
        let Some(recorder) = state::recorder() else { return 0 };
        stripewise_recorder::set_collective(true);
        recorder.now().0
    })
}

/// The calling thread has ended the collective call `MPI_File_NAME` on a file that `processes`
/// processes have open together. `bytes` is the size of this process's request, or minus an errno
/// if the call failed.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_mark_end(
    file: u32,
    name: *const c_char,
    processes: c_int,
    bytes: i64,
    start: u64,
) {
    quietly(|| {
        let Some(recorder) = state::recorder() else { return };
        stripewise_recorder::set_collective(false);
        // SAFETY: the caller's string.
        let name = unsafe { CStr::from_ptr(name) };
        let Some(call) = MpiCall::from_name(name.to_bytes()) else { return };
        recorder.record(&Event {
            file: FileId(file),
            op: Op::Mark,
            flags: Flags::COLLECTIVE,
            offset: call as u64,
            size: u64::try_from(processes).unwrap_or(0),
            start: Ticks(start),
            end: recorder.now(),
            result: bytes,
        });
    });
}

/// `MPI_File_close` is about to close a file that this process may have written. If the file has
/// several copies, data and map are made durable. MPI promises that of every file, and no MPI
/// library does it; files with one copy are left to the kernel, as plain files are. Returns 0 or an
/// errno.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_file_sync(path: *const c_char) -> c_int {
    errno::serve_code(|| of_copies(path).map_or(Ok(()), |file| file.sync(false)))
}

/// Whether nodes may have the file, which this process has open, open at the same time, and see of
/// each other what they commit.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_file_is_shared(path: *const c_char) -> c_int {
    let mut is_shared = false;
    errno::serve_code(|| {
        is_shared = of_copies(path).is_some_and(|file| file.has_session());
        Ok(())
    });
    is_shared.into()
}

/// Acquires what other nodes have committed to a shared file, after a commit if `commits`. Returns
/// 0 or an errno.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_file_exchange(path: *const c_char, commits: c_int) -> c_int {
    errno::serve_code(|| match of_copies(path) {
        Some(file) if commits != 0 => file.exchange(),
        Some(file) => file.acquire_committed(),
        None => Ok(()),
    })
}

/// The file that this process has open under a path, if it has several copies. A file that was
/// removed meanwhile need neither survive a crash nor be seen by others.
fn of_copies(path: *const c_char) -> Option<Arc<LogicalFile>> {
    let runtime = state::runtime_if_used()?;
    let stat = At::cwd(path).stat(true).ok()?;
    runtime.find(FileKey::of(&stat)).filter(|file| file.manifest().copies.is_some())
}

/// Whether data sieving costs less than single requests on a managed file with one copy: see
/// [`sieving`]. `processes` do it at the same time, each with pieces of `piece` bytes whose starts
/// are `stride` bytes apart, with sieving requests of `buffer` bytes. 1: yes, 0: no, -1: not
/// known.
#[unsafe(no_mangle)]
unsafe extern "C" fn stripewise_sieving_pays(
    path: *const c_char,
    writes: c_int,
    processes: c_int,
    piece: i64,
    stride: i64,
    buffer: i64,
) -> c_int {
    let pays = || {
        let runtime = state::runtime_if_used()?;
        let file = runtime.find(FileKey::of(&At::cwd(path).stat(true).ok()?))?;
        if file.manifest().copies.is_some() {
            return None;
        }
        // SAFETY: the caller's string, which the kernel could read.
        let path = to_path(unsafe { CStr::from_ptr(path) }.to_bytes());
        let procs = u32::try_from(processes).ok()?.max(1);
        let on_node = job::noted().map_or(procs, |job| job.ranks_on_node.clamp(1, procs));
        let strided = Strided {
            writes: writes != 0,
            procs: (procs, on_node),
            piece_bytes: u64::try_from(piece).ok()?,
            stride_bytes: u64::try_from(stride).ok()?,
            buffer_bytes: u64::try_from(buffer).ok()?,
        };
        let plan = runtime.plan()?;
        sieving::pays(plan, runtime.rule_for(path)?.choose(path)?, &strided)
    };
    let _guard = SignalForkGuard::new();
    quietly(pays).map_or(-1, c_int::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_what_was_said_last_if_it_can_be() {
        assert_eq!(job::noted(), None);
        for nonsense in [(0, 0), (2, 2), (-1, -1), (4, -1)] {
            stripewise_note_mpi(nonsense.0, nonsense.1, 1, 0);
            assert_eq!(job::noted(), None);
        }
        stripewise_note_mpi(8, 3, 4, 1);
        assert_eq!(job::noted(), Some(Job { ranks: 8, rank: 3, ranks_on_node: 4, node: Some(1) }));
        stripewise_note_mpi(8, 7, 0, -1);
        assert_eq!(job::noted(), Some(Job { ranks: 8, rank: 7, ranks_on_node: 0, node: None }));
    }
}
