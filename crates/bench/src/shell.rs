//! Runs commands for the user and formats them as a person would type them.

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use rustix::process::{Pid, Signal, kill_process_group};
use stripewise_console::{interrupt, quoted};

use crate::workloads::MPI_ENVIRONMENT;

/// Collects arguments of several types into one command line.
macro_rules! arguments {
    ($($word:expr),* $(,)?) => { vec![$(std::ffi::OsString::from($word)),*] };
}
pub(crate) use arguments;

/// Formats a command line as text, quoted where a shell needs it. Paths below `dir` are shown
/// relative to it.
pub fn shown(words: &[OsString], dir: &Path) -> String {
    let prefix = format!("{}/", dir.display());
    let word = |word: &OsString| quoted(&word.to_string_lossy().replace(&prefix, ""));
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Runs a command to completion in `dir` and returns its standard output. If it fails, the error
/// contains the last lines of its output.
pub fn output(words: &[OsString], dir: &Path) -> anyhow::Result<String> {
    let line = shown(words, dir);
    let result = command(words, dir).output().with_context(|| format!("cannot start `{line}`"))?;
    printed(result, &line)
}

/// Runs a command as [`output`] does, with additional environment variables. The command and all
/// processes that it started are ended after `limit`, or when the user interrupts, which is an
/// error.
pub fn output_within(
    words: &[OsString],
    dir: &Path,
    variables: &[(&str, &str)],
    limit: Duration,
) -> anyhow::Result<String> {
    let line = shown(words, dir);
    let mut command = command(words, dir);
    // The command gets its own process group, so that all its processes can be ended together.
    command.envs(variables.iter().copied()).process_group(0).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().with_context(|| format!("cannot start `{line}`"))?;
    let group = Pid::from_child(&child);
    let (done, wait) = channel();
    let watch = std::thread::spawn(move || watch(group, &wait, Instant::now() + limit));
    let result = child.wait_with_output();
    drop(done);
    let ended = watch.join().unwrap_or(false);
    let result = result.with_context(|| format!("`{line}`"))?;
    if ended && interrupt::asked() {
        bail!("`{line}` was interrupted");
    }
    if ended {
        let said = last_lines(&result.stderr, &result.stdout);
        bail!("`{line}` did not end within {} s: {said}", limit.as_secs());
    }
    printed(result, &line)
}

fn command(words: &[OsString], dir: &Path) -> Command {
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]).current_dir(dir).envs(MPI_ENVIRONMENT).stdin(Stdio::null());
    command
}

/// Time between the request to a group to end (the first signal) and the forced end. An mpirun ends
/// its ranks in this time.
const GRACE: Duration = Duration::from_secs(2);
/// Interval at which the watcher checks for an interrupt.
const LOOK: Duration = Duration::from_millis(100);

/// Ends the group at the deadline or on an interrupt, and returns whether it did. Also returns when
/// `done` is dropped.
fn watch(group: Pid, done: &Receiver<()>, deadline: Instant) -> bool {
    let runs = |time| done.recv_timeout(time) == Err(RecvTimeoutError::Timeout);
    while runs(LOOK) {
        if Instant::now() < deadline && !interrupt::asked() {
            continue;
        }
        for signal in [Signal::TERM, Signal::KILL] {
            // The first process of the group has not been waited for, so the id is still in use by
            // it.
            let _ = kill_process_group(group, signal);
            if !runs(GRACE) {
                break;
            }
        }
        return true;
    }
    false
}

fn printed(result: Output, line: &str) -> anyhow::Result<String> {
    if !result.status.success() {
        bail!("`{line}` failed ({}): {}", result.status, last_lines(&result.stderr, &result.stdout));
    }
    String::from_utf8(result.stdout).with_context(|| format!("`{line}` printed bytes that are no text"))
}

/// Returns the last lines that a failed command printed, as one line, without the advice that
/// mpirun frames with lines of dashes.
fn last_lines(stderr: &[u8], stdout: &[u8]) -> String {
    let said = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let frame = |line: &&str| line.len() > 40 && line.bytes().all(|byte| byte == b'-');
    let unframed = lines.split(frame).step_by(2).flatten().copied();
    let mut unframed: Vec<&str> = unframed.collect();
    unframed.dedup();
    let lines = if unframed.is_empty() { lines } else { unframed };
    lines[lines.len().saturating_sub(8)..].join(" | ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A script that has not ended by then hangs.
    const HANGS_MS: u64 = 1_800_000;

    fn within(script: &str, limit_ms: u64) -> Result<String, String> {
        let limit = Duration::from_millis(limit_ms);
        let line: Vec<OsString> = arguments!["sh", "-c", script];
        output_within(&line, Path::new("/"), &[("ANSWER", "42")], limit).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn what_a_command_prints_and_how_it_fails() {
        assert_eq!(within("echo $ANSWER", HANGS_MS).unwrap(), "42\n");
        let error = within("echo out; echo no >&2; exit 3", HANGS_MS).unwrap_err();
        assert!(error.contains("exit status: 3") && error.ends_with(": no"), "{error}");
    }

    #[test]
    fn what_mpirun_says_about_a_program_is_left_out_if_the_program_said_something() {
        let dashes = "-".repeat(74);
        let framed = format!("{dashes}\nMPI_ABORT was invoked\n{dashes}\n");
        assert_eq!(last_lines(format!("{framed}no\nno\n{framed}gone").as_bytes(), b""), "no | gone");
        assert_eq!(last_lines(framed.as_bytes(), b""), format!("{dashes} | MPI_ABORT was invoked | {dashes}"));
    }

    #[test]
    fn what_does_not_end_is_ended_with_all_that_it_started() {
        // The pipe stays open as long as a child of the shell holds it. On a busy machine a shell
        // may start late.
        let said = [1, 10, 100, 1000].into_iter().find_map(|limit_s| {
            let error = within("echo begun; sleep 3000 & sleep 3000; echo never", limit_s * 1000).unwrap_err();
            let (_, said) = error.split_once(&format!("did not end within {limit_s} s: ")).unwrap();
            (!said.is_empty()).then(|| said.to_owned())
        });
        assert_eq!(said.as_deref(), Some("begun"));
    }
}
