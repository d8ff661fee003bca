//! Statistics of this process's requests to files with several copies, for `STRIPEWISE_STATISTICS`:
//! `docs/formats/statistics.md`.

use std::ffi::{CStr, OsStr};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, Serializer};
use stripewise_cluster::{CopiesKind, Counts, OverlayKind, StatisticsLine};
use stripewise_datapath::{LogicalFile, notice};
use stripewise_recorder::{launcher_rank, variable};
use stripewise_sys::{Errno, LockKind, Mode, OFlags, Real, Result, Sys};

use crate::process::{job, kernel};

const ENV_STATISTICS: &CStr = c"STRIPEWISE_STATISTICS";

/// Appends the statistics of a file since the last call to the statistics file, if there is one.
pub fn tell(file: &LogicalFile) {
    let Some(to) = variable(ENV_STATISTICS) else { return };
    let Some(counts) = file.take_statistics() else { return };
    let to = Path::new(OsStr::from_bytes(to));
    let line = json(&line(file, counts)).map_err(|_| Errno::INVAL);
    if let Err(error) = line.and_then(|line| append(to, &line)) {
        static SAID: AtomicBool = AtomicBool::new(false);
        if !SAID.swap(true, Ordering::Relaxed) {
            notice::warn_once(&format!(
                "STRIPEWISE_STATISTICS={}: cannot be written to ({error})",
                to.display()
            ));
        }
    }
}

/// Maximum wait for the lock of the statistics file, ns: its holder may be stopped.
const LOCK_NS: u64 = 2_000_000_000;
/// Pause between two tries, ns.
const TRY_NS: u64 = 1_000_000;

/// Appends a line in one write, so that lines of several processes never mix. Appends of several
/// clients of CephFS overwrite each other, so this takes a lock if it can soon have one.
fn append(to: &Path, line: &[u8]) -> Result<()> {
    let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = Real.open(None, to, flags, Mode::from_raw_mode(0o666))?;
    let end_ns = Real.now_ns() + LOCK_NS;
    while Real.try_lock(file.as_fd(), 0, 0, LockKind::Exclusive) == Ok(false) && Real.now_ns() < end_ns {
        Real.sleep_until_ns(Real.now_ns() + TRY_NS);
    }
    // FUSE appends at the size that the kernel remembers from the open, which this call renews.
    Real.stat(file.as_fd())?;
    let arguments = [file.as_fd().as_raw_fd() as usize, line.as_ptr() as usize, line.len()];
    // SAFETY: the buffer lives as long as the call.
    let written = unsafe { kernel::call(libc::SYS_write, arguments) }?;
    if written == line.len() { Ok(()) } else { Err(Errno::NOSPC) }
}

fn line(file: &LogicalFile, counts: Counts) -> StatisticsLine {
    let manifest = file.manifest();
    let (kind, mode) = match manifest.copies.as_ref().map(|copies| copies.kind) {
        Some(OverlayKind::Cache { mode, .. }) => (CopiesKind::Cache, Some(mode)),
        _ => (CopiesKind::Replicas, None),
    };
    StatisticsLine {
        path: file.path().to_string_lossy().into_owned(),
        file: manifest.id.to_string(),
        pid: std::process::id(),
        rank: job::noted().map(|job| job.rank).or_else(|| launcher_rank().try_into().ok()),
        kind,
        mode,
        counts,
    }
}

/// Returns the line that represents `value`, with its line feed.
fn json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut line = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut line, Numbered))?;
    line.push(b'\n');
    Ok(line)
}

/// Writes every control character by its number: `\u000a`.
struct Numbered;

impl Formatter for Numbered {
    fn write_char_escape<W: ?Sized + Write>(&mut self, writer: &mut W, escape: CharEscape) -> io::Result<()> {
        let control = match escape {
            CharEscape::Backspace => 8,
            CharEscape::Tab => b'\t',
            CharEscape::LineFeed => b'\n',
            CharEscape::FormFeed => 12,
            CharEscape::CarriageReturn => b'\r',
            other => return CompactFormatter.write_char_escape(writer, other),
        };
        CompactFormatter.write_char_escape(writer, CharEscape::AsciiControl(control))
    }
}

#[cfg(test)]
mod tests {
    use stripewise_cluster::{CacheMode, CopyCounts};

    use super::*;

    #[test]
    fn names_become_json() {
        let written = |text| String::from_utf8(json(&text).unwrap()).unwrap();
        assert_eq!(written("/a/ü \"b\"\\\n"), "\"/a/ü \\\"b\\\"\\\\\\u000a\"\n");
        assert_eq!(written("\u{8}\t\u{c}\r\u{1f}\u{7f}"), "\"\\u0008\\u0009\\u000c\\u000d\\u001f\u{7f}\"\n");
    }

    #[test]
    fn a_line_is_as_it_always_was() {
        let copy =
            |name: &str| CopyCounts { name: name.into(), read_bytes: 9, written_bytes: 10, copied_bytes: 11 };
        let line = StatisticsLine {
            path: "/d/x".into(),
            file: "0a".into(),
            pid: 7,
            rank: None,
            kind: CopiesKind::Cache,
            mode: Some(CacheMode::Nsca),
            counts: Counts {
                requests: 1,
                critical: 2,
                hits: 3,
                partial_hits: 4,
                evictions: 5,
                evicted_bytes: 6,
                write_backs: 7,
                fetches: 8,
                copies: vec![copy("original"), copy("1-DH")],
            },
        };
        let copy =
            |name| format!("{{\"name\":\"{name}\",\"read_bytes\":9,\"written_bytes\":10,\"copied_bytes\":11}}");
        let expected = format!(
            "{{\"path\":\"/d/x\",\"file\":\"0a\",\"pid\":7,\"rank\":null,\"kind\":\"cache\",\"mode\":\"nsca\",\
             \"requests\":1,\"critical\":2,\"hits\":3,\"partial_hits\":4,\"evictions\":5,\"evicted_bytes\":6,\
             \"write_backs\":7,\"fetches\":8,\"copies\":[{},{}]}}\n",
            copy("original"),
            copy("1-DH")
        );
        assert_eq!(String::from_utf8(json(&line).unwrap()).unwrap(), expected);
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

    #[test]
    fn a_lock_that_stays_only_delays_a_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("statistics");
        let other = Real.open(None, &path, OFlags::RDWR | OFlags::CREATE, Mode::from_raw_mode(0o600)).unwrap();
        assert_eq!(Real.try_lock(other.as_fd(), 0, 0, LockKind::Exclusive), Ok(true));
        append(&path, b"one\n").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"one\n");
    }
}
