//! Finds the file system that a path is on in the mount table.
//!
//! The kernel does not return the table atomically: a reading can lack a line while other programs
//! mount and unmount. A path alone also does not determine which of several stacked mounts it is
//! on. The code therefore first asks the kernel for the number of the mount, and then reads the
//! table until it contains that line.

use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use stripewise_sys::Errno;

use crate::error::{DriverError, Result};
use crate::files;

const TABLE: &str = "/proc/self/mountinfo";
/// open(2): the descriptor only names the file, and can neither read nor write it.
const O_PATH: i32 = 0o10_000_000;
/// Number of readings without the mount's line before the table is taken as complete: under a
/// changed root the mount may not be listed at all.
const READINGS_MAX: usize = 64;

/// A line of the mount table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// The mount point.
    pub point: PathBuf,
    /// The file system's type: `ceph`, `fuse.ceph-fuse`, `lustre`, ... Of type `fuse` with a source
    /// such as `pvfs2fuse#tcp://...`, which names the program: `fuse.pvfs2fuse`.
    pub kind: String,
}

/// The mount that a path is on. The path exists.
pub fn mount_of(path: &Path) -> Result<Option<Mount>> {
    let path = files::absolute(path)?;
    let failed = |path: &Path, what, error: io::Error| {
        DriverError::io(path, what, Errno::from_io_error(&error).unwrap_or(Errno::IO))
    };
    // While the file is open, the number cannot pass to another mount.
    let named = File::options().read(true).custom_flags(O_PATH).open(&path);
    let named = named.map_err(|error| failed(&path, "looking at it", error))?;
    let id = mount_id(&named).map_err(|error| failed(&path, "asking for its mount", error))?;
    let found = with_id(id, &path, || fs::read_to_string(TABLE));
    found.map_err(|error| failed(Path::new(TABLE), "reading it", error))
}

/// The number of the mount that an open file is on, which begins its line in the mount table.
fn mount_id(file: &File) -> io::Result<u64> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd()))?;
    let id = text.lines().find_map(|line| line.strip_prefix("mnt_id:")?.trim().parse().ok());
    id.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// The mount with this number. Where the table does not list the number, the mount of the path by
/// name.
fn with_id(id: u64, path: &Path, mut read: impl FnMut() -> io::Result<String>) -> io::Result<Option<Mount>> {
    let mut table = String::new();
    for _ in 0..READINGS_MAX {
        table = read()?;
        let is_it = |line: &&str| line.split(' ').next().is_some_and(|first| first.parse() == Ok(id));
        if let Some(mount) = table.lines().find(is_it).and_then(parse) {
            return Ok(Some(mount));
        }
    }
    Ok(find(&table, path))
}

/// The mount of an absolute path without links: the longest mount point, and of several the last.
fn find(table: &str, path: &Path) -> Option<Mount> {
    let mounts = table.lines().filter_map(parse).filter(|mount| path.starts_with(&mount.point));
    mounts.max_by_key(|mount| mount.point.components().count())
}

/// proc(5): `id parent major:minor root point options [optional...] - type source options`.
fn parse(line: &str) -> Option<Mount> {
    let (first, second) = line.split_once(" - ")?;
    let mut words = second.split(' ');
    let (kind, source) = (words.next()?, words.next().unwrap_or_default());
    let kind = match source.split_once("\\043") {
        Some((program, _)) if kind == "fuse" => format!("fuse.{program}"),
        _ => kind.to_owned(),
    };
    Some(Mount { point: unescape(first.split(' ').nth(4)?), kind })
}

/// The table writes spaces, tabs, line breaks, backslashes and `#` as a backslash and octal digits.
fn unescape(text: &str) -> PathBuf {
    let escapes = [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\043", "#"), ("\\134", "\\")];
    escapes.iter().fold(text.to_owned(), |text, (escape, plain)| text.replace(escape, plain)).into()
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const TEXT: &str = "\
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
47 22 0:44 / /mnt/c\\040eph rw,nosuid shared:7 - ceph 10.0.0.1:6789:/ rw,name=user,fs=home
48 47 0:45 /sub /mnt/c\\040eph/in rw - fuse.ceph-fuse ceph-fuse rw,user_id=0
49 22 0:46 / /mnt/over rw - ext4 /dev/a rw
50 22 0:47 / /mnt/over rw - lustre mgs@tcp:/fs rw
51 22 0:48 / /mnt/a\\043b rw - fuse pvfs2fuse\\043tcp://io0:3334/orangefs rw,user_id=0
52 22 0:49 / /mnt/fuse rw - fuse /dev/fuse rw
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
        // A libfuse 2 without a subtype, as pvfs2fuse mounts it.
        assert_eq!((kind("/mnt/a#b/x"), kind("/mnt/fuse")), ("fuse.pvfs2fuse".into(), "fuse".into()));
        // Path components match as a whole.
        assert_eq!(kind("/mnt/c ephemeral"), "ext4");
        assert_eq!(kind("/mnt/over/x"), "lustre");
        assert_eq!(find("", Path::new("/")), None);
    }

    /// Set in the child process that runs in a mount namespace of its own and so disturbs nothing.
    const INSIDE: &str = "STRIPEWISE_TEST_MOUNTS";
    const LOOKS: usize = 2000;

    fn mount(point: &Path) {
        let point = CString::new(point.as_os_str().as_bytes()).unwrap();
        let tmpfs = c"tmpfs".as_ptr();
        // SAFETY: strings that end with 0, and no options.
        let done = unsafe { libc::mount(tmpfs, point.as_ptr(), tmpfs, 0, std::ptr::null()) };
        assert_eq!(done, 0, "{point:?}: {}", std::io::Error::last_os_error());
    }

    fn unmount(point: &Path) {
        let point = CString::new(point.as_os_str().as_bytes()).unwrap();
        // SAFETY: a string that ends with 0.
        assert_eq!(unsafe { libc::umount2(point.as_ptr(), 0) }, 0);
    }

    fn mounts_and_unmounts(dir: &Path, stop: &AtomicBool) {
        let points: Vec<PathBuf> = (0..8).map(|i| dir.join(i.to_string())).collect();
        points.iter().for_each(|point| std::fs::create_dir_all(point).unwrap());
        while !stop.load(Ordering::Relaxed) {
            points.iter().for_each(|point| mount(point));
            points.iter().rev().for_each(|point| unmount(point));
        }
    }

    #[test]
    fn a_line_that_is_missing_from_a_reading_is_in_a_later_one() {
        let without: Vec<&str> = TEXT.lines().filter(|line| !line.starts_with("47 ")).collect();
        let mut readings = 0;
        let read = || {
            readings += 1;
            Ok(if readings < 5 { without.join("\n") } else { TEXT.to_owned() })
        };
        let mount = with_id(47, Path::new("/mnt/c eph/x"), read).unwrap().unwrap();
        assert_eq!((mount.kind.as_str(), readings), ("ceph", 5));
        // A mount that is hidden below another.
        let mount = with_id(49, Path::new("/mnt/over"), || Ok(TEXT.to_owned())).unwrap().unwrap();
        assert_eq!(mount.kind, "ext4");
        // A mount that is not listed.
        let mount = with_id(99, Path::new("/mnt/over"), || Ok(TEXT.to_owned())).unwrap().unwrap();
        assert_eq!(mount.kind, "lustre");
    }

    /// A mount below a directory is hidden when another file system is mounted over that directory.
    fn hidden(dir: &Path) {
        let (outer, inner) = (dir.join("outer"), dir.join("outer/inner"));
        std::fs::create_dir_all(&inner).unwrap();
        mount(&inner);
        mount(&outer);
        std::fs::create_dir_all(&inner).unwrap();
        assert_eq!(mount_of(&inner).unwrap().unwrap().point, outer);
        unmount(&outer);
        assert_eq!(mount_of(&inner).unwrap().unwrap().point, inner);
    }

    #[test]
    fn a_mount_is_found_while_others_come_and_go() {
        let Some(dir) = std::env::var_os(INSIDE).map(PathBuf::from) else {
            let dir = tempfile::tempdir().unwrap();
            let test = "mounts::tests::a_mount_is_found_while_others_come_and_go";
            let mut inside = std::process::Command::new("unshare");
            inside.args(["--user", "--map-root-user", "--mount", "--propagation", "private"]);
            inside.arg(std::env::current_exe().unwrap()).args(["--exact", test, "--nocapture"]);
            assert!(inside.env(INSIDE, dir.path()).status().unwrap().success());
            return;
        };
        hidden(&dir);
        let points: Vec<PathBuf> = (0..40).map(|i| dir.join("stays").join(i.to_string())).collect();
        for point in &points {
            std::fs::create_dir_all(point).unwrap();
            mount(point);
        }
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for thread in 0..2 {
                let (dir, stop) = (dir.join(format!("goes{thread}")), &stop);
                scope.spawn(move || mounts_and_unmounts(&dir, stop));
            }
            let wrong = (0..LOOKS).map(|i| &points[i % points.len()]).filter(|point| {
                mount_of(point).unwrap().is_none_or(|mount| mount.kind != "tmpfs" || mount.point != **point)
            });
            let wrong = wrong.count();
            stop.store(true, Ordering::Relaxed);
            assert_eq!(wrong, 0, "of {LOOKS} looks");
        });
    }

    #[test]
    fn this_machines_table() {
        assert!(mount_of(Path::new("/proc/self/status")).unwrap().is_some_and(|mount| mount.kind == "proc"));
        assert!(mount_of(Path::new("/does/not/exist")).is_err());
    }
}
