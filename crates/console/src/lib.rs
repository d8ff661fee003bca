//! What the programs `stripewise` and `stripewise-bench` have in common: how they start and end,
//! signals that ask a command to end, progress bars, and text files that are written whole or not
//! at all.

pub mod files;
pub mod interrupt;
pub mod progress;

use std::process::ExitCode;

/// Runs the command of a program. A failure is printed as one line, and makes the exit code 1.
pub fn run(program: &str, command: impl FnOnce() -> anyhow::Result<ExitCode>) -> ExitCode {
    stripewise_sys::fd::alone();
    interrupt::limit_waits();
    command().unwrap_or_else(|error| {
        eprintln!("{program}: {error:#}");
        ExitCode::FAILURE
    })
}

/// Quotes a word for a shell, in single quotes where needed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn values_survive_a_shell() {
        for text in ["/a/b.so:/c", "/with space/'quote'/$x", ""] {
            let script = format!("printf %s {}", quoted(text));
            let output = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(output.stdout).unwrap(), text);
        }
    }
}
