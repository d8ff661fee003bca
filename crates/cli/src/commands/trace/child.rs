//! Runs the traced command.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};

use anyhow::Context;

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
