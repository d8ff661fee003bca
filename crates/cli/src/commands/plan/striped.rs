//! Asks the parallel file systems of a cluster which layouts files have that stripewise does not
//! manage.

use std::path::{Path, PathBuf};

use anyhow::Context;
use stripewise_cluster::{Cluster, FileSystem};
use stripewise_drivers::{Driver, driver};
use stripewise_layout::Layout;
use stripewise_native::{FileNow, PoolServers, over};

/// The file systems of a cluster that are mounted here.
pub struct Mounted<'a> {
    cluster: &'a Cluster,
    sites: Vec<Site>,
}

struct Site {
    system: FileSystem,
    driver: Box<dyn Driver>,
    mount: PathBuf,
    pools: Vec<PoolServers>,
}

impl<'a> Mounted<'a> {
    /// Looks which file systems of the cluster are mounted here, and for their pools.
    ///
    /// # Errors
    /// A file system that is there does not answer.
    pub fn of(cluster: &'a Cluster) -> anyhow::Result<Self> {
        let mut sites: Vec<Site> = Vec::new();
        for (system, root) in cluster.tiers.iter().filter_map(|tier| tier.driver.native()) {
            // `place` makes the directory.
            let root = root.ancestors().find(|path| path.exists()).unwrap_or(root);
            if sites.iter().any(|site| site.system == system && root.starts_with(&site.mount)) {
                continue;
            }
            let driver = driver(system);
            if let Some(probe) = driver.probe(root).with_context(remedy)? {
                let pools = probe.pools.into_iter();
                let pools = pools.map(|pool| PoolServers {
                    name: pool.name,
                    servers: pool.server_names,
                    groups: pool.groups,
                });
                sites.push(Site { system, driver, mount: probe.mount, pools: pools.collect() });
            }
        }
        Ok(Self { cluster, sites })
    }

    /// The layout of a file over the cluster's servers; of a missing file, the one that it would
    /// get with `len` bytes. `turn` is the number of other such files, which share the servers of
    /// a pool with it. `None`: no file system of the cluster has the file, or the cluster lacks its
    /// servers.
    ///
    /// # Errors
    /// The file system does not tell the layout.
    pub fn layout(&self, path: &Path, len: u64, turn: usize) -> anyhow::Result<Option<Layout>> {
        let Some((path, site)) = self.existing(path) else { return Ok(None) };
        let actual = site.driver.read_back(&path).with_context(remedy)?;
        let Some(native) = actual.layout else { return Ok(None) };
        let file = FileNow { turn, len, objects: actual.objects };
        Ok(over(site.system, &native, self.cluster, &file, &site.pools))
    }

    /// The file, or the nearest directory above that exists, and the file system that it is on.
    fn existing(&self, path: &Path) -> Option<(PathBuf, &Site)> {
        if self.sites.is_empty() {
            return None;
        }
        let path = path.ancestors().find_map(|path| path.canonicalize().ok())?;
        let site = self.sites.iter().find(|site| path.starts_with(&site.mount))?;
        Some((path, site))
    }
}

fn remedy() -> &'static str {
    "the present layout of files is not known; say it with --present to plan without asking the file system"
}
