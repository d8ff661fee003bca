//! Pools: targets that are prepared directories and share the servers over which the file system
//! stripes.
//!
//! The pool of a target follows from the target's name and directory (`docs/formats/cluster.md`):
//! `ssd/64Kx4` in `ROOT/ssd-64Kx4`. The manifest of a file therefore suffices, and the pool's other
//! targets are found next to the file's.

use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use stripewise_cluster::NativeTarget;
use stripewise_cluster::pattern::path_hash;
use stripewise_sys::{Listed, Mode, OFlags, SysRef};
use stripewise_target::Target;

/// A pool, as far as its targets are in one directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pool {
    root: PathBuf,
    tier: String,
}

/// The pool of a target with this name and directory, and the number of its servers over which the
/// target's files are striped; `None` if the target is a server of its own.
pub(crate) fn pool_of(name: &str, path: &Path) -> Option<(Pool, u32)> {
    let (tier, label) = name.rsplit_once('/')?;
    let (_, count) = NativeTarget::parse_label(label)?;
    Some((Pool { root: path.parent()?.to_owned(), tier: tier.to_owned() }, count))
}

/// The number of servers over which the files of a target with this name and directory are striped.
pub(crate) fn servers_of(name: &str, path: &Path) -> u32 {
    pool_of(name, path).map_or(1, |(_, count)| count)
}

impl Pool {
    /// A file name that is unique among pools and target ids on this machine.
    pub fn key(&self) -> String {
        format!("{}-{:016x}", self.tier, path_hash(&self.root))
    }

    /// The prepared targets of the pool, including those of other plans; none if the root cannot be
    /// read.
    pub fn targets(&self, sys: &SysRef) -> Vec<Target> {
        let root = sys.open(None, &self.root, OFlags::RDONLY | OFlags::DIRECTORY, Mode::empty());
        let entries = root.and_then(|root| sys.list(root.as_fd())).unwrap_or_default();
        let target = |entry: Listed| {
            let path = self.root.join(&entry.name);
            let label = entry.name.to_str()?.strip_prefix(&self.tier)?.strip_prefix('-')?;
            NativeTarget::parse_label(label)?;
            let target = Target::open(sys, &path, None).ok()?;
            (pool_of(target.name(), &path)?.0 == *self).then_some(target)
        };
        entries.into_iter().filter_map(target).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn targets_of_a_pool_are_those_of_its_tier_in_its_root() {
        let of = |name, path| pool_of(name, Path::new(path));
        let (pool, count) = of("ssd/64Kx4", "/ceph/a/ssd-64Kx4").unwrap();
        assert_eq!(count, 4);
        assert_eq!(of("ssd/1Mx2", "/ceph/a/ssd-1Mx2").unwrap(), (pool.clone(), 2));
        for other in [("hdd/64Kx4", "/ceph/a/hdd-64Kx4"), ("ssd/64Kx4", "/ceph/b/ssd-64Kx4")] {
            let (other, _) = of(other.0, other.1).unwrap();
            assert!(other != pool && other.key() != pool.key());
        }
        assert_eq!(of("ssd/0", "/ceph/a/ssd-0"), None, "a server of its own");
        assert_eq!(of("x", "/x"), None);
    }

    #[test]
    fn those_that_were_prepared_are_found() {
        let root = tempfile::tempdir().unwrap();
        let sys: SysRef = Arc::new(stripewise_sys::Real);
        let prepare = |directory: &str, name: &str| {
            std::fs::create_dir(root.path().join(directory)).unwrap();
            Target::prepare(&sys, &root.path().join(directory), name).unwrap()
        };
        let one = prepare("ssd-64Kx4", "ssd/64Kx4");
        let two = prepare("ssd-64Kx1", "ssd/64Kx1");
        prepare("ssd-0", "ssd/0");
        prepare("ssd-1Mx1", "other/1Mx1");
        prepare("hdd-64Kx4", "hdd/64Kx4");
        std::fs::create_dir(root.path().join("ssd-2Mx1")).unwrap();
        let (pool, _) = pool_of(one.name(), one.path()).unwrap();
        let mut found: Vec<_> = pool.targets(&sys).iter().map(|target| target.id().to_owned()).collect();
        let mut expected = [one.id(), two.id()];
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
        std::fs::remove_dir_all(root.path()).unwrap();
        assert!(pool.targets(&sys).is_empty());
        std::fs::create_dir(root.path()).unwrap();
    }
}
