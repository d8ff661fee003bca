//! The identity of a file, which distinguishes it from every other file and from its copies.

use std::fmt::{self, Write};
use std::os::fd::BorrowedFd;
use std::str::FromStr;
use std::thread::sleep;
use std::time::Duration;

use rustix::fs::{self, AtFlags, StatxFlags};

use crate::raw::{self, FileHandle};
use crate::{Errno, Result};

/// A kernel file handle (name_to_handle_at(2)).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// The handle's type, as the file system numbers them.
    pub kind: i32,
    /// The handle's bytes, at most 128; usually inode and generation number.
    pub bytes: Vec<u8>,
}

/// Known properties that identify a file. A copy of a file, made by any program, has another
/// identity; renaming a file does not change it.
///
/// As text: `inode=12 born=1700000000.000000005 handle=1:0c000000 fs=00ff`, without the fields that
/// are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// Inode number.
    pub inode: Option<u64>,
    /// Creation time of the inode: seconds since 1970, and nanoseconds.
    pub born: Option<(i64, u32)>,
    /// The file handle; only on file systems whose handles stay the same across mounts.
    pub handle: Option<Handle>,
    /// `f_fsid` of statvfs(2); 0 if not known. Identifies the file system of the handle. It is not
    /// part of the comparison, because XFS derives it from the device's number.
    pub file_system: u64,
}

/// Magic numbers of file systems whose handles stay valid as long as the file exists: ext4, XFS,
/// btrfs, tmpfs, Ceph, Lustre.
const LASTING: [u64; 6] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994, 0x00c3_6400, 0x0bd0_0bd0];

/// How often [`Identity::exists`] asks again, a millisecond later each, when memory is short.
const MEMORY_TRIES: usize = 1000;

impl Identity {
    pub(crate) fn of(fd: BorrowedFd<'_>) -> Result<Self> {
        let asked = StatxFlags::INO | StatxFlags::BTIME;
        let stat = fs::statx(fd, c"", AtFlags::EMPTY_PATH, asked)?;
        let has_birth = stat.stx_mask & StatxFlags::BTIME.bits() != 0;
        let system = fs::fstatfs(fd)?;
        let lasting = LASTING.contains(&(system.f_type as u64));
        let handle = if lasting { raw::handle_of(fd).ok() } else { None };
        Ok(Self {
            inode: Some(stat.stx_ino),
            born: has_birth.then_some((stat.stx_btime.tv_sec, stat.stx_btime.tv_nsec)),
            handle: handle.map(|handle| Handle {
                kind: handle.kind,
                bytes: handle.bytes[..(handle.len as usize).min(FileHandle::MAX)].to_vec(),
            }),
            file_system: fs::fstatvfs(fd)?.f_fsid,
        })
    }

    /// Whether both may be the same file: all fields that both know are equal.
    pub fn matches(&self, other: &Self) -> bool {
        agree(&self.inode, &other.inode) && agree(&self.born, &other.born) && agree(&self.handle, &other.handle)
    }

    /// Whether no field is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) fn exists(&self, dir: BorrowedFd<'_>) -> Result<Option<bool>> {
        let Some(handle) = &self.handle else { return Ok(None) };
        if self.file_system == 0 || fs::fstatvfs(dir)?.f_fsid != self.file_system {
            return Ok(None);
        }
        let len = handle.bytes.len().min(FileHandle::MAX);
        let mut raw = FileHandle { len: len as u32, kind: handle.kind, bytes: [0; FileHandle::MAX] };
        raw.bytes[..len].copy_from_slice(&handle.bytes[..len]);
        let mut found = raw::find_by_handle(dir, &raw);
        // ext4 says that memory is short while it gives the inode number of a file that is gone to
        // a new one (iget_locked finds an inode that is being created).
        for _ in 0..MEMORY_TRIES {
            if found != Err(Errno::NOMEM) {
                break;
            }
            sleep(Duration::from_millis(1));
            found = raw::find_by_handle(dir, &raw);
        }
        match found {
            Ok(()) => Ok(Some(true)),
            Err(Errno::STALE) => Ok(Some(false)),
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
    one.is_none() || other.is_none() || one == other
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        if let Some(inode) = self.inode {
            write!(text, "inode={inode} ")?;
        }
        if let Some((seconds, nanoseconds)) = self.born {
            write!(text, "born={seconds}.{nanoseconds:09} ")?;
        }
        if let Some(Handle { kind, bytes }) = &self.handle {
            write!(text, "handle={kind}:")?;
            bytes.iter().try_for_each(|byte| write!(text, "{byte:02x}"))?;
            text.push(' ');
        }
        if self.file_system != 0 {
            write!(text, "fs={:x} ", self.file_system)?;
        }
        f.write_str(text.trim_end())
    }
}

/// The error names the part of the text that cannot be parsed.
impl FromStr for Identity {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Self, String> {
        let mut identity = Self::default();
        for part in text.split_whitespace() {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let known = match key {
                "inode" => value.parse().map(|inode| identity.inode = Some(inode)).ok(),
                "born" => parse_time(value).map(|born| identity.born = Some(born)),
                "handle" => parse_handle(value).map(|handle| identity.handle = Some(handle)),
                "fs" => u64::from_str_radix(value, 16).map(|id| identity.file_system = id).ok(),
                _ => None,
            };
            known.ok_or_else(|| format!("{part:?} is not understood"))?;
        }
        Ok(identity)
    }
}

fn parse_time(value: &str) -> Option<(i64, u32)> {
    let (seconds, nanoseconds) = value.split_once('.')?;
    let nanoseconds =
        nanoseconds.parse().ok().filter(|&part| nanoseconds.len() == 9 && part < 1_000_000_000)?;
    Some((seconds.parse().ok()?, nanoseconds))
}

fn parse_handle(value: &str) -> Option<Handle> {
    let (kind, hex) = value.split_once(':')?;
    if !hex.len().is_multiple_of(2) || hex.len() > 2 * FileHandle::MAX || !hex.is_ascii() {
        return None;
    }
    let byte = |at: usize| u8::from_str_radix(&hex[at..at + 2], 16).ok();
    let bytes = (0..hex.len()).step_by(2).map(byte).collect::<Option<_>>()?;
    Some(Handle { kind: kind.parse().ok()?, bytes })
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_copy_differs_and_a_renamed_file_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let (path, moved) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&path, "text").unwrap();
        let of = |path| Identity::of(std::fs::File::open(path).unwrap().as_fd()).unwrap();
        let before = of(&path);
        std::fs::rename(&path, &moved).unwrap();
        assert!(of(&moved).matches(&before));
        std::fs::copy(&moved, &path).unwrap();
        assert!(!of(&path).matches(&before));
        assert!(Identity::default().matches(&before) && Identity::default().is_unknown());
        assert_eq!(before.to_string().parse(), Ok(before));
    }

    #[test]
    fn root_can_tell_that_a_file_is_gone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a");
        std::fs::write(&path, "text").unwrap();
        let identity = Identity::of(std::fs::File::open(&path).unwrap().as_fd()).unwrap();
        let exists = || identity.exists(std::fs::File::open(dir.path()).unwrap().as_fd()).unwrap();
        let told = exists();
        assert_ne!(told, Some(false));
        std::fs::remove_file(&path).unwrap();
        // A child that another test forked in the meantime may have the file open until it ends.
        for _ in 0..6000 {
            if exists() == Some(true) {
                sleep(Duration::from_millis(10));
            }
        }
        assert_eq!(exists(), told.map(|_| false));
        let elsewhere = std::fs::File::open("/proc").unwrap();
        assert_eq!(identity.exists(elsewhere.as_fd()).unwrap(), None);
    }

    #[test]
    fn inode_numbers_that_are_used_again_are_no_errors() {
        let work = || {
            let dir = tempfile::tempdir().unwrap();
            let (path, opened) = (dir.path().join("a"), std::fs::File::open(dir.path()).unwrap());
            for _ in 0..500 {
                std::fs::write(&path, "text").unwrap();
                let identity = Identity::of(std::fs::File::open(&path).unwrap().as_fd()).unwrap();
                std::fs::remove_file(&path).unwrap();
                identity.exists(opened.as_fd()).unwrap();
            }
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(work))));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        for bad in
            ["inode=x", "born=5", "born=5.5", "handle=1", "handle=1:abc", "handle=1:xy", "fs=q", "size=4"]
        {
            let text = format!("inode=1 {bad}");
            assert_eq!(text.parse::<Identity>(), Err(format!("{bad:?} is not understood")));
        }
        assert_eq!("".parse(), Ok(Identity::default()));
    }
}
