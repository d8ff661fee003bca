//! Detects programs that a preload library does not reach.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum depth of script interpreters that are followed; more than the kernel follows.
const SCRIPTS_MAX: usize = 5;
const PT_INTERP: u32 = 3;
const PT_NOTE: u32 = 4;

/// Returns the reasons why the library will not see the command's calls; none if it will, or if the
/// command cannot be read.
pub fn why_not_reached(command: &OsStr) -> Vec<&'static str> {
    let Some(mut path) = find(command) else { return Vec::new() };
    let mut reasons = Vec::new();
    for _ in 0..SCRIPTS_MAX {
        if is_privileged(&path) {
            reasons.push("is set-uid or set-gid, and does not load the library");
        }
        match look(&path) {
            Some(Kind::Script(interpreter)) => path = interpreter,
            Some(Kind::Static) => {
                reasons.push("is linked statically, and does not load the library");
                break;
            }
            Some(Kind::Go) => {
                reasons.push("is a Go program, whose file accesses do not go through the C library");
                break;
            }
            Some(Kind::Dynamic) | None => break,
        }
    }
    reasons
}

/// Finds the command's path as exec does.
fn find(command: &OsStr) -> Option<PathBuf> {
    if command.as_bytes().contains(&b'/') {
        return Some(command.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|dir| dir.join(command)).find(|candidate| {
        candidate.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
    })
}

/// Returns whether the loader ignores LD_PRELOAD because the program gets rights that its caller
/// does not have.
fn is_privileged(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| {
        let (user, group) = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
        (file.mode() & 0o4000 != 0 && file.uid() != user) || (file.mode() & 0o2000 != 0 && file.gid() != group)
    })
}

#[derive(Debug, PartialEq)]
enum Kind {
    Script(PathBuf),
    Dynamic,
    Static,
    Go,
}

fn look(path: &Path) -> Option<Kind> {
    let mut file = File::open(path).ok()?;
    let mut head = Vec::new();
    file.by_ref().take(4096).read_to_end(&mut head).ok()?;
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&byte| byte == b'\n').next()?.trim_ascii_start();
        let interpreter = line.split(|byte| byte.is_ascii_whitespace()).next()?;
        return Some(Kind::Script(OsStr::from_bytes(interpreter).into()));
    }
    let segments = segments(&head)?;
    let is_go = |note: &Segment| note.kind == PT_NOTE && note.contains(&file, b"Go\0\0");
    Some(if segments.iter().any(is_go) {
        Kind::Go
    } else if segments.iter().any(|segment| segment.kind == PT_INTERP) {
        Kind::Dynamic
    } else {
        Kind::Static
    })
}

struct Segment {
    kind: u32,
    offset: u64,
    size: u64,
}

impl Segment {
    fn contains(&self, file: &File, name: &[u8]) -> bool {
        let mut bytes = vec![0; self.size.min(4096) as usize];
        file.read_exact_at(&mut bytes, self.offset).is_ok()
            && bytes.windows(name.len()).any(|part| part == name)
    }
}

/// Returns the program headers of a 64-bit little-endian ELF file.
fn segments(head: &[u8]) -> Option<Vec<Segment>> {
    if !head.starts_with(b"\x7fELF\x02\x01") {
        return None;
    }
    let number = |at: usize, len: usize| -> Option<u64> {
        let bytes = head.get(at..at.checked_add(len)?)?;
        Some(bytes.iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte)))
    };
    let (table, size, count) = (number(32, 8)?, number(54, 2)?, number(56, 2)?);
    let segment = |index: u64| {
        let at = usize::try_from(table.checked_add(index * size)?).ok()?;
        let (kind, offset) = (number(at, 4)? as u32, number(at.checked_add(8)?, 8)?);
        Some(Segment { kind, offset, size: number(at.checked_add(32)?, 8)? })
    };
    (0..count).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program(directory: &Path, name: &str, bytes: &[u8]) -> PathBuf {
        let path = directory.join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// Returns an ELF header, program headers of these kinds, and a note.
    fn elf(kinds: &[u32], note: &[u8]) -> Vec<u8> {
        let mut bytes = vec![0; 64 + 56 * kinds.len()];
        bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
        bytes[32] = 64;
        bytes[54] = 56;
        bytes[56] = kinds.len() as u8;
        let end = bytes.len();
        for (index, kind) in kinds.iter().enumerate() {
            let at = 64 + 56 * index;
            bytes[at] = *kind as u8;
            bytes[at + 8] = end as u8;
            bytes[at + 9] = (end >> 8) as u8;
            bytes[at + 32] = note.len() as u8;
        }
        bytes.extend(note);
        bytes
    }

    #[test]
    fn kinds_of_programs() {
        let directory = tempfile::tempdir().unwrap();
        let kind = |bytes: &[u8]| look(&program(directory.path(), "program", bytes));
        assert_eq!(kind(&elf(&[1, PT_INTERP], b"")), Some(Kind::Dynamic));
        assert_eq!(kind(&elf(&[1, 2], b"")), Some(Kind::Static));
        assert_eq!(kind(&elf(&[PT_NOTE, PT_INTERP], b"\x04\0\0\0Go\0\0")), Some(Kind::Go));
        assert_eq!(kind(b"#! /bin/sh -e\ntrue\n"), Some(Kind::Script("/bin/sh".into())));
        for junk in
            [&b""[..], b"text", b"\x7fELF", &elf(&[1], b"")[..70], b"\x7fELF\x02\x01\xff\xff\xff\xff\xff"]
        {
            assert_eq!(kind(junk), None, "{junk:?}");
        }
        assert_eq!(look(Path::new("/none")), None);
    }

    #[test]
    fn a_script_is_as_good_as_its_interpreter() {
        let directory = tempfile::tempdir().unwrap();
        let fixed = program(directory.path(), "fixed", &elf(&[1], b""));
        let script = program(directory.path(), "script", format!("#!{}\n", fixed.display()).as_bytes());
        assert_eq!(why_not_reached(script.as_os_str()).len(), 1);
        assert_eq!(why_not_reached(OsStr::new("sh")), Vec::<&str>::new());
        assert_eq!(why_not_reached(OsStr::new("no-such-command-anywhere")), Vec::<&str>::new());
    }
}
