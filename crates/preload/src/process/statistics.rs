//! Statistics of this process's requests to files with several copies, for `STRIPEWISE_STATISTICS`:
//! `docs/formats/statistics.md`.

use std::ffi::{CStr, OsStr};
use std::fmt::Write;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use stripewise_cluster::OverlayKind;
use stripewise_datapath::{LogicalFile, Statistics, notice};
use stripewise_recorder::{launcher_rank, variable};
use stripewise_sys::{Errno, Mode, OFlags, Real, Result, Sys};

use crate::process::{job, kernel};

const ENV_STATISTICS: &CStr = c"STRIPEWISE_STATISTICS";

/// Appends the statistics of a file since the last call to the statistics file, if there is one.
pub fn tell(file: &LogicalFile) {
    let Some(to) = variable(ENV_STATISTICS) else { return };
    let Some(statistics) = file.take_statistics() else { return };
    let to = Path::new(OsStr::from_bytes(to));
    if let Err(error) = append(to, line(file, &statistics).as_bytes()) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            notice::warn_once(&format!(
                "STRIPEWISE_STATISTICS={}: cannot be written to ({error})",
                to.display()
            ));
        }
    }
}

/// Appends a line in one write, so that lines of several processes never mix.
fn append(to: &Path, line: &[u8]) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = Real.open(None, to, flags, Mode::from_raw_mode(0o666))?;
    let arguments = [file.as_fd().as_raw_fd() as usize, line.as_ptr() as usize, line.len()];
    // SAFETY: the buffer lives as long as the call.
    let written = unsafe { kernel::call(libc::SYS_write, arguments) }?;
    if written == line.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

fn line(file: &LogicalFile, statistics: &Statistics) -> String {
    let manifest = file.manifest();
    let (kind, mode) = match manifest.copies.as_ref().map(|copies| copies.kind) {
        Some(OverlayKind::Cache { mode, .. }) => ("cache", format!("\"{}\"", mode.name())),
        _ => ("replicas", "null".to_owned()),
    };
    let rank = job::noted().map(|job| job.rank).or_else(|| launcher_rank().try_into().ok());
    let rank = rank.map_or_else(|| "null".to_owned(), |rank| rank.to_string());
    let mut line = format!(
        "{{\"path\":{},\"file\":\"{}\",\"pid\":{},\"rank\":{rank},\"kind\":\"{kind}\",\"mode\":{mode}",
        quoted(&file.path().to_string_lossy()),
        manifest.id,
        std::process::id()
    );
    let add = |line: &mut String, counts: &[(&str, u64)]| {
        for (name, count) in counts {
            let _ = write!(line, ",\"{name}\":{count}");
        }
    };
    add(&mut line, &statistics.counts);
    line.push_str(",\"copies\":[");
    for (number, (name, counts)) in statistics.copies.iter().enumerate() {
        let separator = if number == 0 { "" } else { "," };
        let _ = write!(line, "{separator}{{\"name\":{}", quoted(name));
        add(&mut line, counts);
        line.push('}');
    }
    line.push_str("]}\n");
    line
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            ' '.. => quoted.push(c),
            _ => {
                let _ = write!(quoted, "\\u{:04x}", u32::from(c));
            }
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_json() {
        assert_eq!(quoted("/a/ü \"b\"\\\n"), r#""/a/ü \"b\"\\\u000a""#);
    }

    #[test]
    fn lines_are_added() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("statistics");
        append(&path, b"one\n").unwrap();
        append(&path, b"two\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\ntwo\n");
        assert_eq!(append(&dir.path().join("no/file"), b"x"), Err(Errno::NOENT));
    }
}
