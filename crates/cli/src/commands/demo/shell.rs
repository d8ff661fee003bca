//! Runs commands for the demo, and shows them as a person would type them.

use std::ffi::OsString;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, bail};

use super::tools::MPI_ENVIRONMENT;

/// Collects arguments of several types into one command line.
macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$(std::ffi::OsString::from($word)),*] };
}
pub(super) use words;

/// The command line as text, quoted where a shell needs it; paths below `dir` are shown relative to it.
pub fn shown(words: &[OsString], dir: &Path) -> String {
    let prefix = format!("{}/", dir.display());
    let word = |word: &OsString| {
        let text = word.to_string_lossy().replace(&prefix, "");
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
        if !text.is_empty() && text.chars().all(plain) {
            text
        } else {
            format!("'{}'", text.replace('\'', r"'\''"))
        }
    };
    words.iter().map(word).collect::<Vec<_>>().join(" ")
}

/// Runs a command to its end in `dir` and returns its standard output.
///
/// # Errors
/// It cannot be started, or fails: then with the last lines that it said.
pub fn output(words: &[OsString], dir: &Path) -> anyhow::Result<String> {
    let line = shown(words, dir);
    let result = Command::new(&words[0])
        .args(&words[1..])
        .current_dir(dir)
        .envs(MPI_ENVIRONMENT)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("cannot start `{line}`"))?;
    if !result.status.success() {
        bail!("`{line}` failed ({}): {}", result.status, last_lines(&result.stderr, &result.stdout));
    }
    String::from_utf8(result.stdout).with_context(|| format!("`{line}` printed bytes that are no text"))
}

/// What a failed command said last, as one line.
fn last_lines(stderr: &[u8], stdout: &[u8]) -> String {
    let said = if stderr.trim_ascii().is_empty() { stdout } else { stderr };
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(8)..].join(" | ")
}
