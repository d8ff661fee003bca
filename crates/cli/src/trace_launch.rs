//! Runs a command with the preload library.

use std::ffi::OsString;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::{Context, bail};

use crate::mpi;

/// File name of the preload library.
const LIBRARY: &str = "libstripewise_posix.so";

/// Returns the preload library: the one that the user names, else the one next to the executable,
/// else the one in `../lib` relative to the executable's directory.
///
/// # Errors
/// The library does not exist.
fn library(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    if let Some(path) = given {
        return path.canonicalize().with_context(|| format!("preload library {}", path.display()));
    }
    let executable = std::env::current_exe().context("the path of this executable is not known")?;
    let dir = executable.parent().unwrap_or(Path::new("/"));
    let places =
        [dir.join(LIBRARY), dir.join("../lib").join(LIBRARY), dir.join("../lib/stripewise").join(LIBRARY)];
    match places.iter().find(|place| place.is_file()) {
        Some(place) => Ok(place.canonicalize()?),
        None => bail!("{LIBRARY} is not beside {}: name it with --lib or STRIPEWISE_LIB", executable.display()),
    }
}

/// Returns all libraries that a command loads, the preload library first.
///
/// # Errors
/// A library that the user names does not exist, or no preload library was found.
pub fn libraries(given: Option<&Path>, mpi: &mpi::Flags) -> anyhow::Result<Vec<PathBuf>> {
    let mut libraries = vec![library(given)?];
    libraries.extend(mpi.libraries(&libraries[0])?);
    Ok(libraries)
}

/// Returns the value of LD_PRELOAD with `libraries` in front of the current entries. Libraries that
/// are listed already (this process may run under them) keep their position.
pub fn ld_preload(libraries: &[PathBuf]) -> OsString {
    let present = std::env::var_os("LD_PRELOAD").unwrap_or_default();
    let is_present = |library: &&PathBuf| {
        let mut entries = present.as_encoded_bytes().split(|&byte| byte == b':' || byte == b' ');
        entries.any(|entry| entry == library.as_os_str().as_encoded_bytes())
    };
    let new = libraries.iter().filter(|library| !is_present(library)).map(|library| library.as_os_str());
    let parts: Vec<_> = new.chain((!present.is_empty()).then_some(present.as_os_str())).collect();
    parts.join(std::ffi::OsStr::new(":"))
}

static CHILD: AtomicI32 = AtomicI32::new(0);

extern "C" fn forward(signal: libc::c_int) {
    let child = CHILD.load(Ordering::Relaxed);
    if child > 0 {
        // SAFETY: `kill` is async-signal-safe.
        unsafe { libc::kill(child, signal) };
    }
}

extern "C" fn ignore(_: libc::c_int) {}

/// Runs the command to completion. This process outlives it: signals of the terminal reach the
/// command anyway, and other signals are forwarded to it.
///
/// # Errors
/// The command cannot be started.
pub fn run(command: &mut Command) -> anyhow::Result<ExitStatus> {
    let program = command.get_program().to_os_string();
    let mut child = command.spawn().with_context(|| format!("{} cannot be run", program.display()))?;
    CHILD.store(child.id() as i32, Ordering::Relaxed);
    let handlers: [(libc::c_int, extern "C" fn(libc::c_int)); 4] =
        [(libc::SIGINT, ignore), (libc::SIGQUIT, ignore), (libc::SIGTERM, forward), (libc::SIGHUP, forward)];
    for (signal, handler) in handlers {
        // SAFETY: The handlers make only async-signal-safe calls.
        unsafe { libc::signal(signal, handler as *const () as libc::sighandler_t) };
    }
    let status = child.wait().with_context(|| format!("waiting for {}", program.display()))?;
    CHILD.store(0, Ordering::Relaxed);
    Ok(status)
}

/// Returns the command's exit code, or, as in a shell, 128 + n if signal n ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}
