//! Which file system a path is on, as the mount table says.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use stripewise_sys::Errno;

use crate::{DriverError, Result, files};

const TABLE: &str = "/proc/self/mountinfo";

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Where.
    pub point: PathBuf,
    /// The file system's type: `ceph`, `fuse.ceph-fuse`, `lustre`, ...
    pub kind: String,
    /// What is mounted.
    pub source: String,
    /// Options of the file system, comma-separated.
    pub options: String,
}

/// The mount that a path is on. The path exists.
///
/// # Errors
/// The path cannot be resolved, or the mount table not read.
pub fn mount_of(path: &Path) -> Result<Option<Mount>> {
    let path = files::absolute(path)?;
    let table = std::fs::read_to_string(TABLE).map_err(|error| {
        DriverError::io(Path::new(TABLE), "reading it", Errno::from_io_error(&error).unwrap_or(Errno::IO))
    })?;
    Ok(find(&table, &path))
}

/// The mount of an absolute path without links: the last of the longest mount points.
fn find(table: &str, path: &Path) -> Option<Mount> {
    let mounts = table.lines().filter_map(parse).filter(|mount| path.starts_with(&mount.point));
    mounts.max_by_key(|mount| mount.point.components().count())
}

/// proc(5): `id parent major:minor root point options [optional...] - type source options`.
fn parse(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let mut second = second.split(' ');
    Some(Mount {
        point: unescape(first.split(' ').nth(4)?),
        kind: second.next()?.to_owned(),
        source: second.next()?.to_owned(),
        options: second.next().unwrap_or_default().to_owned(),
    })
}

/// Spaces and their like are written as three octal digits.
fn unescape(text: &str) -> PathBuf {
    let (mut bytes, mut rest) = (Vec::new(), text.as_bytes());
    while let Some((&first, others)) = rest.split_first() {
        let octal =
            others.get(..3).filter(|_| first == b'\\').and_then(|digits| std::str::from_utf8(digits).ok());
        match octal.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &others[3..];
            }
            None => {
                bytes.push(first);
                rest = others;
            }
        }
    }
    std::ffi::OsString::from_vec(bytes).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
47 22 0:44 / /mnt/c\\040eph rw,nosuid shared:7 - ceph 10.0.0.1:6789:/ rw,name=user,fs=home
48 47 0:45 /sub /mnt/c\\040eph/in rw - fuse.ceph-fuse ceph-fuse rw,user_id=0
49 22 0:46 / /mnt/over rw - ext4 /dev/a rw
50 22 0:47 / /mnt/over rw - lustre mgs@tcp:/fs rw
";

    fn kind(path: &str) -> String {
        find(TEXT, Path::new(path)).unwrap().kind
    }

    #[test]
    fn the_longest_point_and_the_last_of_several() {
        assert_eq!(kind("/home"), "ext4");
        assert_eq!(kind("/mnt/c eph"), "ceph");
        assert_eq!(kind("/mnt/c eph/a/b"), "ceph");
        assert_eq!(kind("/mnt/c eph/in/b"), "fuse.ceph-fuse");
        // Names count whole.
        assert_eq!(kind("/mnt/c ephemeral"), "ext4");
        assert_eq!(kind("/mnt/over/x"), "lustre");
        let mount = find(TEXT, Path::new("/mnt/c eph")).unwrap();
        assert_eq!(
            (mount.source.as_str(), mount.options.as_str()),
            ("10.0.0.1:6789:/", "rw,name=user,fs=home")
        );
        assert_eq!(find("", Path::new("/")), None);
    }

    #[test]
    fn this_machines_table() {
        assert!(mount_of(Path::new("/proc/self/status")).unwrap().is_some_and(|mount| mount.kind == "proc"));
        assert!(mount_of(Path::new("/does/not/exist")).is_err());
    }
}
