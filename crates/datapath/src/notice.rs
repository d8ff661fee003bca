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
pub fn say(message: &str) {
    // Tests cause failures by the thousand.
    if let Some(line) = line_to_say(message).filter(|_| !cfg!(test)) {
        stripewise_sys::raw::say(line.as_bytes());
    }
}

fn line_to_say(message: &str) -> Option<String> {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    let mut said = SAID.get_or_init(Mutex::default).try_lock().ok()?;
    if said.len() > LINES_MAX || !said.insert(hasher.finish()) {
        return None;
    }
    let more = if said.len() > LINES_MAX { " (further messages are left out)" } else { "" };
    Some(format!("stripewise: {message}{more}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_once_and_not_too_many() {
        assert_eq!(line_to_say("a disk is missing").as_deref(), Some("stripewise: a disk is missing\n"));
        assert_eq!(line_to_say("a disk is missing"), None);
        let lines = (0..100).filter_map(|n| line_to_say(&format!("trouble {n}")));
        let lines: Vec<String> = lines.collect();
        assert!(lines.len() <= LINES_MAX, "{lines:?}");
        assert!(lines.last().unwrap().contains("further messages are left out"), "{lines:?}");
    }
}
