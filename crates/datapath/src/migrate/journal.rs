//! The journal of a migration: records progress in a file next to the migrated one, so that a
//! migration can resume after a kill.
//!
//! It consists of lines of text: a header that is written as a whole (`stripewise journal`, source,
//! destination, and the manifest to be replaced, if any), then a line per copied chunk. A last line
//! without a newline is ignored. The lock on the journal is the right to migrate the file.

use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use stripewise_sys::{Fd, LockKind, Mode, OFlags, SysRef};

use super::contents::Version;
use crate::anchor::{self, FileKey};
use crate::file::sync_directory;
use crate::runtime::{TEMPORARY_PREFIX, temporary_id};
use crate::{Errno, Result};

const MAGIC: &str = "stripewise journal, format 1";
const BYTES_MAX: usize = 64 << 20;

/// The header of a journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub source: Version,
    /// File name of the temporary in the same directory.
    pub destination: String,
    /// Checksum of the goal: runs with the same goal can share their work.
    pub goal: u32,
    pub chunk_bytes: u64,
    /// The manifest of the managed file that is to be replaced.
    pub replaced: Option<String>,
}

pub(super) struct Journal {
    sys: SysRef,
    fd: Fd,
    path: PathBuf,
    end: u64,
    is_empty: bool,
    /// The content of the journal when it was opened: header and chunk checksums.
    pub found: Option<(Header, Vec<Option<u32>>)>,
}

pub(super) fn path_for(path: &Path) -> PathBuf {
    // Hash the name, because it may have the maximum length.
    let sum = crc32fast::hash(path.file_name().unwrap_or_default().as_bytes());
    path.with_file_name(format!("{TEMPORARY_PREFIX}{sum:08x}.journal"))
}

/// Whether an earlier migration of the file at `path` may have left a journal.
pub(super) fn exists(sys: &SysRef, path: &Path) -> bool {
    sys.stat_at(None, &path_for(path), false).err() != Some(Errno::NOENT)
}

impl Journal {
    /// Opens or creates the journal of the file at `path`. `None`: another process is migrating the
    /// file.
    pub fn open(sys: &SysRef, path: &Path) -> Result<Option<Self>> {
        let path = path_for(path);
        let mode = Mode::RUSR | Mode::WUSR;
        loop {
            let fd = sys.open(None, &path, OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW, mode)?;
            if !sys.try_lock(fd.as_fd(), 0, 1, LockKind::Exclusive)? {
                return Ok(None);
            }
            // Another migration may have removed the journal when it ended, before this lock was
            // granted.
            if anchor::is_at(sys, fd.as_fd(), &path)? {
                let bytes = sys.read_start(fd.as_fd(), BYTES_MAX)?;
                let text = String::from_utf8_lossy(&bytes);
                let found = parse(&text);
                let end = text.rfind('\n').map_or(0, |newline| newline + 1) as u64;
                return Ok(Some(Self { sys: sys.clone(), fd, path, end, is_empty: bytes.is_empty(), found }));
            }
        }
    }

    /// Starts the journal again with `header`. It is durable on return, so that everything created
    /// from now on can be found after a kill or power cut.
    pub fn begin(&mut self, header: &Header) -> Result<()> {
        if !std::mem::take(&mut self.is_empty) {
            self.sys.truncate(self.fd.as_fd(), 0)?;
        }
        self.end = 0;
        self.append(&format(header))?;
        self.sys.sync(self.fd.as_fd())?;
        sync_directory(&self.sys, None, &self.path)
    }

    /// Records that chunk `index` was copied.
    pub fn chunk_done(&mut self, index: u64, sum: u32) -> Result<()> {
        self.append(&format!("chunk {index} {sum:08x}\n"))
    }

    fn append(&mut self, text: &str) -> Result<()> {
        self.sys.write_all_at(self.fd.as_fd(), text.as_bytes(), self.end)?;
        self.end += text.len() as u64;
        Ok(())
    }

    /// Removes the journal at the end of the migration.
    pub fn remove(self) -> Result<()> {
        match self.sys.unlink(None, &self.path) {
            Err(Errno::NOENT) => Ok(()),
            removed => removed,
        }
    }
}

fn format(header: &Header) -> String {
    let Header { source, destination, goal, chunk_bytes, replaced } = header;
    let Version { key: FileKey { device, inode }, size, modified, changed } = source;
    let mut text = format!(
        "{MAGIC}\nsource {device} {inode} {size} {} {} {} {}\ndestination {destination}\n\
         goal {goal:08x}\nchunk_bytes {chunk_bytes}\n",
        modified.0, modified.1, changed.0, changed.1
    );
    if let Some(manifest) = replaced {
        text.push_str(&format!("replaced {}\n", manifest.replace('\\', "\\\\").replace('\n', "\\n")));
    }
    text.push_str("begin\n");
    text
}

fn parse(text: &str) -> Option<(Header, Vec<Option<u32>>)> {
    let whole = &text[..text.rfind('\n')?];
    let mut lines = whole.split('\n');
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(str::to_owned);
    if !text.starts_with(&format!("{MAGIC}\n")) || value("stripewise journal, format").is_none() {
        return None;
    }
    let source = value("source")?;
    let mut numbers = source.split(' ');
    let source = Version {
        key: FileKey { device: numbers.next()?.parse().ok()?, inode: numbers.next()?.parse().ok()? },
        size: numbers.next()?.parse().ok()?,
        modified: (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?),
        changed: (numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?),
    };
    // The temporary will be opened and removed, so accept only a name of a temporary in the same
    // directory.
    let destination = value("destination").filter(|name| temporary_id(name).is_some())?;
    let goal = u32::from_str_radix(&value("goal")?, 16).ok()?;
    let chunk_bytes = value("chunk_bytes")?.parse().ok().filter(|&bytes| bytes > 0)?;
    let mut next = lines.next()?;
    let mut replaced = None;
    if let Some(manifest) = next.strip_prefix("replaced ") {
        replaced = Some(unescape(manifest));
        next = lines.next()?;
    }
    if next != "begin" {
        return None;
    }
    let chunks = source.chunk_count(chunk_bytes);
    // A damaged journal may give any size: allow no more chunks than its lines could name.
    let mut sums = vec![None; chunks.min(text.len() as u64) as usize];
    for line in lines {
        let mut words = line.split(' ').skip(1);
        let index: Option<usize> = words.next().and_then(|word| word.parse().ok());
        let sum = words.next().and_then(|word| u32::from_str_radix(word, 16).ok());
        if let (true, Some(slot)) = (line.starts_with("chunk "), index.and_then(|index| sums.get_mut(index))) {
            *slot = sum;
        }
    }
    Some((Header { source, destination, goal, chunk_bytes, replaced }, sums))
}

fn unescape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => out.extend(chars.next().map(|c| if c == 'n' { '\n' } else { c })),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn header() -> Header {
        Header {
            source: Version {
                key: FileKey { device: 1, inode: 2 },
                size: 300,
                modified: (-5, 7),
                changed: (8, 9),
            },
            destination: format!(".stripewise-{}.new", "0".repeat(32)),
            goal: 0xabc,
            chunk_bytes: 100,
            replaced: Some("a \\ b\nc\n".into()),
        }
    }

    #[test]
    fn what_is_written_is_read_up_to_the_last_whole_line() {
        for header in [header(), Header { replaced: None, ..header() }] {
            let text = format!("{}chunk 2 0000abcd\nchunk 0 12345678\nchunk 1 000", format(&header));
            let expected = Some((header, vec![Some(0x1234_5678), None, Some(0xabcd)]));
            assert_eq!(parse(&text), expected);
        }
    }

    #[test]
    fn a_header_that_is_not_whole_is_none() {
        let text = format(&header());
        for end in 0..text.len() {
            assert_eq!(parse(&text[..end]), None, "{}", &text[..end]);
        }
        assert_eq!(parse(&text.replace(".stripewise-0", "../x-0")), None);
    }

    proptest! {
        #[test]
        fn any_text_is_read_without_panic(text in any::<String>(), at in any::<prop::sample::Index>(), c in any::<char>()) {
            let _ = parse(&text);
            let mut valid: Vec<char> = format!("{}chunk 0 00000001\n", format(&header())).chars().collect();
            let at = at.index(valid.len());
            valid[at] = c;
            let _ = parse(&valid.into_iter().collect::<String>());
        }

        #[test]
        fn long_names_have_short_journals(name in "[^/\0]{1,85}") {
            let path = path_for(&Path::new("/d").join(&name));
            prop_assert!(path.file_name().unwrap().len() < 50);
        }
    }
}
