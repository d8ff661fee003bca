//! Absolute paths for matching the plan's patterns.

use std::os::fd::{AsFd, AsRawFd};
use std::path::{Component, Path, PathBuf};

use stripewise_sys::{Dir, Mode, OFlags, SysRef};

use crate::{Errno, Result};

/// The absolute path, without `.`, `..` and double slashes. Symbolic links are not followed.
pub(crate) fn absolute(sys: &SysRef, dir: Dir<'_>, path: &Path) -> Result<PathBuf> {
    let mut whole = match dir {
        _ if path.is_absolute() => PathBuf::new(),
        Some(dir) => PathBuf::from(sys.read_link(None, &link_of(dir.as_raw_fd()))?),
        None => PathBuf::from(sys.read_link(None, Path::new("/proc/self/cwd"))?),
    };
    for component in path.components() {
        match component {
            Component::CurDir | Component::Prefix(_) => {}
            Component::ParentDir => drop(whole.pop()),
            Component::RootDir => whole.push("/"),
            Component::Normal(name) => whole.push(name),
        }
    }
    Ok(whole)
}

pub(crate) fn absolute_if_possible(sys: &SysRef, dir: Dir<'_>, path: &Path) -> PathBuf {
    absolute(sys, dir, path).unwrap_or_else(|_| path.to_owned())
}

/// The absolute path with the symbolic links of its directory followed.
pub(crate) fn canonical(sys: &SysRef, dir: Dir<'_>, path: &Path) -> Result<PathBuf> {
    let name = path.file_name().ok_or(Errno::INVAL)?;
    let parent = sys.open(dir, directory_of(path), OFlags::PATH | OFlags::DIRECTORY, Mode::empty())?;
    let link = sys.read_link(None, &link_of(parent.as_fd().as_raw_fd()))?;
    Ok(PathBuf::from(link).join(name))
}

/// The /proc link that shows an open file's path and through which it can be opened again.
pub(crate) fn link_of(raw: i32) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{raw}"))
}

pub(crate) fn directory_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use stripewise_sys::{Fd, Real};

    use super::*;

    #[test]
    fn relative_dotted_and_linked_paths() {
        let sys: SysRef = Arc::new(Real);
        let root = tempfile::tempdir().unwrap();
        let root = root.path().canonicalize().unwrap();
        std::fs::create_dir_all(root.join("a/b")).unwrap();
        std::os::unix::fs::symlink(root.join("a"), root.join("link")).unwrap();
        let dir: Fd = sys.open(None, &root, OFlags::DIRECTORY, Mode::empty()).unwrap();
        let dir = Some(dir.as_fd());
        assert_eq!(absolute(&sys, dir, Path::new("x/./y/../z")).unwrap(), root.join("x/z"));
        assert_eq!(absolute(&sys, dir, Path::new("//etc//x/")).unwrap(), Path::new("/etc/x"));
        assert_eq!(canonical(&sys, dir, Path::new("link/b/../f")).unwrap(), root.join("a/f"));
        assert_eq!(canonical(&sys, dir, Path::new("f")).unwrap(), root.join("f"));
        assert_eq!(canonical(&sys, dir, Path::new("no/f")), Err(Errno::NOENT));
        let here = std::env::current_dir().unwrap();
        assert_eq!(absolute(&sys, None, Path::new("f")).unwrap(), here.join("f"));
    }
}
