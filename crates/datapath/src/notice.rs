//! Messages of the library to the user: one line on stderr, each line once per process.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Mutex, OnceLock};

/// Maximum lines of one process, so that the output of a program that meets ten thousand bad files
/// stays readable.
const LINES_MAX: usize = 20;

static SAID: OnceLock<Mutex<HashSet<u64>>> = OnceLock::new();

/// Logs `stripewise: MESSAGE` to descriptor 2, unless this process has logged the same message
/// before or has logged 20 lines. Never blocks on its own lock, which after a fork may stay held
/// for ever; the line is then dropped.
pub fn warn_once(message: &str) {
    let Ok(mut said) = SAID.get_or_init(Mutex::default).try_lock() else { return };
    // Tests cause failures by the thousand.
    if let Some(line) = line_to_warn(&mut said, message).filter(|_| !cfg!(test)) {
        stripewise_sys::raw::say(line.as_bytes());
    }
}

fn line_to_warn(said: &mut HashSet<u64>, message: &str) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    if said.len() >= LINES_MAX || !said.insert(hasher.finish()) {
        return None;
    }
    let more = if said.len() == LINES_MAX { " (further messages are left out)" } else { "" };
    Some(format!("stripewise: {message}{more}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_once_and_not_too_many() {
        let mut said = HashSet::new();
        let mut line = |message: &str| line_to_warn(&mut said, message);
        assert_eq!(line("a disk is missing").as_deref(), Some("stripewise: a disk is missing\n"));
        assert_eq!(line("a disk is missing"), None);
        let lines: Vec<String> = (0..100).filter_map(|n| line(&format!("message {n}"))).collect();
        assert_eq!(lines.len() + 1, LINES_MAX, "{lines:?}");
        assert!(lines.last().unwrap().contains("further messages are left out"), "{lines:?}");
    }
}
