//! The file system that an advice is for, and the cluster that the planner computes with.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Serialize;
use stripewise_cluster::{Cluster, Driver, FileSystem, Members, Tier};

use crate::classes::{self, Class};
use crate::facts::{Facts, FileFacts};

/// Number of servers where neither the user nor the log tells it.
pub const SERVERS_ASSUMED: u32 = 8;
/// The name of the pool of servers that are in none. No file system has a pool of this name.
const NO_POOL: &str = "(none)";
/// Space of a server, of which advice knows nothing.
const CAPACITY: u64 = 1 << 50;
/// Maximum number of servers that the planner computes with; a larger file system is planned as one
/// of so many. More stripes hardly make a file faster.
const SERVERS_PLANNED: u32 = 128;

/// A kind of file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum System {
    /// One whose layouts can be set.
    Parallel(FileSystem),
    /// A disk of the node.
    Local,
    /// Any other, by its type in the mount table; empty if that is not known.
    Other(String),
}

/// How the file system is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Origin {
    /// By the text of `--fs`.
    Given(String),
    /// By a cluster file of this name.
    Cluster(String),
    /// By the log: its mount table, or the layouts in it.
    Deduced,
    /// It is not known.
    Unknown,
}

/// Servers of one kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// The file system's name of the pool; `None`: servers in no pool.
    pub name: Option<String>,
    /// Number of servers, at least 1.
    pub servers: u32,
    /// Their kind.
    pub class: Class,
}

/// The file system of a job.
#[derive(Clone, Debug, PartialEq)]
pub struct Storage {
    /// Its kind.
    pub system: System,
    /// Its servers; empty for a cluster file and where none can be told apart.
    pub pools: Vec<Pool>,
    /// The number of servers is [`SERVERS_ASSUMED`].
    pub assumed_servers: bool,
    /// How it is known.
    pub origin: Origin,
    /// Where it is mounted, if the log tells.
    pub mount: Option<String>,
    /// The cluster of a cluster file.
    pub cluster: Option<Cluster>,
}

impl Storage {
    /// The file system of a cluster file.
    pub fn of_cluster(cluster: Cluster, name: &str) -> Storage {
        let systems: Vec<FileSystem> =
            cluster.tiers.iter().filter_map(|tier| tier.driver.native()).map(|(system, _)| system).collect();
        let system = match systems.first() {
            Some(&system) if systems.len() == cluster.tiers.len() => System::Parallel(system),
            _ => System::Local,
        };
        let origin = Origin::Cluster(name.to_owned());
        Storage {
            system,
            pools: Vec::new(),
            assumed_servers: false,
            origin,
            mount: None,
            cluster: Some(cluster),
        }
    }

    /// The file system on which the job spends most time, by the log's mount table; without one, by
    /// the layouts that Lustre reported.
    pub fn deduced(facts: &Facts) -> Storage {
        let mut times: BTreeMap<&(String, String), f64> = BTreeMap::new();
        for file in &facts.files {
            if let Some(mount) = mount_of(&facts.mounts, &file.name) {
                *times.entry(mount).or_default() += file.time_s() + file.bytes() as f64 / 1e9;
            }
        }
        let busiest = times.into_iter().max_by(|a, b| a.1.total_cmp(&b.1)).map(|(mount, _)| mount);
        let has_layouts = facts.files.iter().any(|file| file.striping.is_some());
        let (system, mount) = match busiest {
            Some((kind, point)) => (of_kind(kind), Some(point.clone())),
            None if has_layouts => (System::Parallel(FileSystem::Lustre), None),
            None => (System::Other(String::new()), None),
        };
        let origin = if busiest.is_some() || has_layouts { Origin::Deduced } else { Origin::Unknown };
        let mut storage =
            Storage { system, pools: Vec::new(), assumed_servers: false, origin, mount, cluster: None };
        if let System::Parallel(_) = storage.system {
            let known = osts(facts, |file| storage.holds(&file.name, facts));
            storage.assumed_servers = known.is_none();
            let servers = known.unwrap_or(SERVERS_ASSUMED);
            storage.pools = vec![Pool { name: None, servers, class: Class::default() }];
        }
        storage
    }

    /// Number of servers.
    pub fn servers(&self) -> u32 {
        match &self.cluster {
            Some(cluster) => cluster.target_count() as u32,
            None => self.pools.iter().map(|pool| pool.servers).sum(),
        }
    }

    /// The parallel file system, if it is one.
    pub fn parallel(&self) -> Option<FileSystem> {
        if let System::Parallel(system) = self.system { Some(system) } else { None }
    }

    /// The name for people.
    pub fn title(&self) -> String {
        match &self.system {
            System::Parallel(system) => system.title().to_owned(),
            System::Local => "a local disk".to_owned(),
            System::Other(kind) if kind.is_empty() => "an unknown file system".to_owned(),
            System::Other(kind) => kind.clone(),
        }
    }

    /// The speed of the servers in a few words, and whether it was measured.
    pub fn speed(&self) -> (String, bool) {
        if let (Some(cluster), Origin::Cluster(name)) = (&self.cluster, &self.origin) {
            let measured = !cluster.measured.is_empty();
            let how = if measured { "measured servers" } else { "servers" };
            return (format!("{how} of {name}"), measured);
        }
        let mut titles: Vec<&str> = self.pools.iter().map(|pool| pool.class.title()).collect();
        titles.dedup();
        (format!("typical {} servers, not measured", titles.join(" and ")), false)
    }

    /// Whether a file is on it, as far as the log tells.
    pub fn holds(&self, name: &str, facts: &Facts) -> bool {
        let Some(mount) = mount_of(&facts.mounts, name) else { return true };
        match (&self.origin, &self.mount) {
            (Origin::Deduced, Some(point)) => mount.1 == *point,
            (Origin::Given(_), _) => {
                let is_it = |mount: &(String, String)| of_kind(&mount.0) == self.system;
                is_it(mount) || !facts.mounts.iter().any(is_it)
            }
            _ => true,
        }
    }

    /// The cluster for the planner; `None` if its layouts cannot be set.
    pub fn planned(&self) -> Option<Cluster> {
        let system = self.parallel()?;
        if let Some(cluster) = &self.cluster {
            return Some(cluster.clone());
        }
        let tier = |pool: &Pool| {
            let name = pool.name.clone().unwrap_or_else(|| NO_POOL.to_owned());
            let members = Members::Pool { name: name.clone(), count: pool.servers.min(SERVERS_PLANNED) };
            let driver = Driver::Native { system, root: PathBuf::from("/"), members };
            let class = pool.class.name().to_owned();
            Tier { name, class, driver, capacity_per_server: CAPACITY, emulate: false }
        };
        let tiers = self.pools.iter().map(tier).collect();
        let classes = Class::ALL.map(|class| (class.name().to_owned(), class.params())).into();
        Some(Cluster { network: classes::network(), classes, tiers, ..Cluster::default() })
    }
}

/// Whether a pool of the planner's is the one of servers that are in none.
pub(crate) fn is_no_pool(name: &str) -> bool {
    name == NO_POOL
}

/// Whether a directory is the root of a mounted file system.
pub(crate) fn is_mount(mounts: &[(String, String)], directory: &str) -> bool {
    mounts.iter().any(|(_, point)| point.trim_end_matches('/') == directory)
}

/// The mount that a path is on: the longest directory, and of equal ones the last.
pub(crate) fn mount_of<'a>(mounts: &'a [(String, String)], path: &str) -> Option<&'a (String, String)> {
    let is_on = |point: &str| {
        let rest = path.strip_prefix(point.trim_end_matches('/'));
        rest.is_some_and(|rest| rest.starts_with('/'))
    };
    mounts.iter().filter(|(_, point)| is_on(point)).max_by_key(|(_, point)| point.len())
}

/// The file system behind a type of the mount table.
fn of_kind(kind: &str) -> System {
    match kind {
        "lustre" => System::Parallel(FileSystem::Lustre),
        "ceph" | "fuse.ceph" | "fuse.ceph-fuse" => System::Parallel(FileSystem::CephFs),
        "beegfs" | "beegfs_nodev" | "fhgfs" => System::Parallel(FileSystem::BeeGfs),
        "pvfs2" | "orangefs" | "fuse.pvfs2fuse" => System::Parallel(FileSystem::OrangeFs),
        "ext2" | "ext3" | "ext4" | "xfs" | "btrfs" | "zfs" | "tmpfs" | "overlay" | "rootfs" => System::Local,
        other => System::Other(other.to_owned()),
    }
}

/// Number of OSTs that Lustre reported of the wanted files, or the highest number of one that was
/// used and one more.
fn osts(facts: &Facts, wanted: impl Fn(&FileFacts) -> bool) -> Option<u32> {
    let stripings = || facts.files.iter().filter(|file| wanted(file)).filter_map(|file| file.striping.as_ref());
    let said = stripings().filter_map(|striping| striping.all_osts).max();
    let used = || stripings().flat_map(|striping| &striping.osts).max().map(|ost| ost.saturating_add(1));
    said.max(used()).map(|osts| osts.min(1 << 16))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Striping, Transfers};

    fn facts(mounts: &[(&str, &str)], name: &str, striping: Option<Striping>) -> Facts {
        let read = Transfers { calls: 1, bytes: 1 << 30, time_s: 1.0, ..Transfers::default() };
        let data = [read, Transfers::default()];
        let file = FileFacts { name: name.to_owned(), striping, data, processes: 1, ..FileFacts::default() };
        let mounts = mounts.iter().map(|(kind, point)| ((*kind).to_owned(), (*point).to_owned())).collect();
        Facts { mounts, files: vec![file], processes: 1, ..Facts::default() }
    }

    #[test]
    fn the_longest_mount_of_the_busiest_file_counts() {
        let mounts = [("ext4", "/"), ("lustre", "/scratch"), ("nfs", "/scratch2")];
        let storage = Storage::deduced(&facts(&mounts, "/scratch/u/x", None));
        assert_eq!((storage.parallel(), storage.origin.clone()), (Some(FileSystem::Lustre), Origin::Deduced));
        assert!(storage.assumed_servers && storage.servers() == SERVERS_ASSUMED);
        let facts = facts(&mounts, "/scratch2/u/x", None);
        assert_eq!(Storage::deduced(&facts).system, System::Other("nfs".into()));
        assert!(storage.holds("/scratch/y", &facts) && !storage.holds("/scratch2/y", &facts));
    }

    #[test]
    fn the_osts_of_the_log_count() {
        let striping =
            |all_osts| Some(Striping { width: 1 << 20, osts: vec![3, 17], all_osts, ..Striping::default() });
        let servers = |all_osts| Storage::deduced(&facts(&[], "/scratch/x", striping(all_osts))).servers();
        assert_eq!((servers(Some(248)), servers(None)), (248, 18));
    }

    #[test]
    fn without_mounts_and_layouts_nothing_is_deduced() {
        let storage = Storage::deduced(&facts(&[], "/scratch/x", None));
        assert_eq!((storage.planned(), storage.origin), (None, Origin::Unknown));
    }
}
