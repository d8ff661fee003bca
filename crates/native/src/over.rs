//! The way back from a native layout: over which servers of a cluster a file with it lies.

use std::collections::HashMap;

use stripewise_cluster::{Cluster, Driver, FileSystem, Members};
use stripewise_layout::{Layout, Region, Stripe as Piece};

use crate::objects::{Objects, Sets, drawn};
use crate::{NativeLayout, Stripe};

/// Stripes until the first server comes again; no file system has more.
const STRIPES_MAX: u32 = 1 << 16;

/// A pool of the file system, and its servers as far as the file system tells them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PoolServers {
    /// The file system's name of the pool.
    pub name: String,
    /// The file system's names of its servers; empty: not known.
    pub servers: Vec<String>,
    /// Of every placement group, by number: the index in `servers` of the one that serves it. Empty
    /// where the file system has no groups or does not tell.
    pub groups: Vec<u32>,
}

/// What is known about a file besides its layout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FileNow {
    /// Number of like files before this one.
    pub turn: usize,
    /// Its size, bytes.
    pub len: u64,
    /// Its objects, where the file system chooses a server for each of them.
    pub objects: Option<Objects>,
}

/// The layout over the cluster's servers of a file that `system` stripes as `native` says. `pools`
/// are the pools that are known.
///
/// A pool that the cluster does not name has as targets the servers whose own pools lie on one of
/// its servers alone. The cluster must have one for each of them.
///
/// Where the file system chooses a server for each object, it is the one of the object's placement
/// group if that is known, and else drawn at random: the layout of a file is then one of those that
/// it may have. Otherwise, where the file system chooses the servers, or they are servers of a pool
/// that the cluster does not name, they are taken in turn, after those of like files: which ones
/// the file system chose makes no difference to many files. The widths and the numbers of servers
/// are those of `native`.
///
/// Returns `None` if the cluster lacks the servers.
pub fn over(
    system: FileSystem,
    native: &NativeLayout,
    cluster: &Cluster,
    file: &FileNow,
    pools: &[PoolServers],
) -> Option<Layout> {
    let servers = Servers { system, cluster, file, pools };
    let mut start = 0;
    let mut regions = Vec::new();
    for component in &native.components {
        // Stripes are counted from the beginning of the file, and cycles from that of the region.
        let cycle = rotated(servers.cycle(&component.stripe)?, start);
        regions.push(Region { start, end: component.end, cycle });
        start = component.end.unwrap_or(start);
    }
    Layout::new(regions).ok()
}

struct Servers<'a> {
    system: FileSystem,
    cluster: &'a Cluster,
    file: &'a FileNow,
    pools: &'a [PoolServers],
}

impl Servers<'_> {
    fn cycle(&self, stripe: &Stripe) -> Option<Vec<Piece>> {
        match stripe {
            Stripe::Even { width, count, pool } => {
                let targets = self.pool(pool.as_deref());
                let count = Some(*count).filter(|&count| count <= STRIPES_MAX && !targets.is_empty())?;
                if let Some(objects) = self.file.objects.as_ref().filter(|_| targets.len() > 1) {
                    let sets = Sets { width: *width, count: count.into(), size: objects.size };
                    let target_of = self.by_object(objects, pool.as_deref(), &targets);
                    if let Some(cycle) = sets.cycle(self.file.len, target_of) {
                        return Some(cycle);
                    }
                }
                let target = |index| targets[(self.file.turn * count as usize + index) % targets.len()];
                Some((0..count as usize).map(|index| Piece { target: target(index), width: *width }).collect())
            }
            Stripe::Listed { width, servers } => {
                let targets = self.targets(servers)?;
                Some(targets.into_iter().map(|target| Piece { target, width: *width }).collect())
            }
            Stripe::Varied { stripes } => {
                let servers: Vec<String> = stripes.iter().map(|(server, _)| server.clone()).collect();
                let widths = stripes.iter().map(|&(_, width)| width);
                Some(
                    self.targets(&servers)?
                        .into_iter()
                        .zip(widths)
                        .map(|(target, width)| Piece { target, width })
                        .collect(),
                )
            }
            Stripe::Grouped { width, groups, factor, servers } => {
                let targets = self.targets(servers)?;
                let groups = Some(*groups as usize).filter(|groups| (1..=targets.len()).contains(groups))?;
                let factor = Some(*factor).filter(|&factor| factor <= STRIPES_MAX)? as usize;
                let small = targets.len() / groups;
                let rounds = |group: usize| {
                    let end = if group + 1 == groups { targets.len() } else { (group + 1) * small };
                    targets[group * small..end].repeat(factor)
                };
                let targets = (0..groups).flat_map(rounds);
                Some(targets.map(|target| Piece { target, width: *width }).collect())
            }
        }
    }

    /// The targets of servers, by the file system's names.
    fn targets(&self, servers: &[String]) -> Option<Vec<u32>> {
        // Servers of a pool have no names in the cluster: different ones are different targets.
        let mut known: HashMap<&str, u32> = HashMap::new();
        let mut of_pools: HashMap<&str, usize> = HashMap::new();
        let mut targets = Vec::with_capacity(servers.len());
        for server in servers {
            if let Some(&target) = known.get(server.as_str()) {
                targets.push(target);
                continue;
            }
            let target = self.named(server).or_else(|| {
                let name = &self.pools.iter().find(|pool| pool.servers.iter().any(|name| name == server))?.name;
                let pool = self.pool(Some(name));
                let next = of_pools.entry(name).or_insert(self.file.turn * servers.len());
                let target = pool.get(*next % pool.len().max(1)).copied();
                *next += 1;
                target
            })?;
            known.insert(server, target);
            targets.push(target);
        }
        Some(targets)
    }

    /// The target of each object of the file, by its index, in a pool with these targets.
    fn by_object<'b>(
        &'b self,
        objects: &'b Objects,
        pool: Option<&str>,
        targets: &'b [u32],
    ) -> impl Fn(u64) -> u32 + 'b {
        let known = self.pools.iter().find(|known| Some(known.name.as_str()) == pool);
        // Without as many targets as the pool has servers, no target is a certain server.
        let known = known.filter(|known| known.servers.len() == targets.len() && !known.groups.is_empty());
        move |object| {
            let served = known.zip(objects.names.as_ref()).and_then(|(known, names)| {
                let group = names.group(object, known.groups.len() as u32);
                targets.get(known.groups[group as usize] as usize).copied()
            });
            served.unwrap_or_else(|| targets[drawn(self.file.turn, object, targets.len())])
        }
    }

    /// The target that the file system calls `name`.
    fn named(&self, name: &str) -> Option<u32> {
        self.tiers().find_map(|(first, members)| match members {
            Members::Servers(servers) => {
                servers.iter().position(|server| server == name).map(|index| first + index as u32)
            }
            Members::Pool { .. } => None,
        })
    }

    /// The targets of a pool; of all servers without a name.
    fn pool(&self, name: Option<&str>) -> Vec<u32> {
        let Some(name) = name else {
            return self.tiers().flat_map(|(first, members)| range(first, members)).collect();
        };
        let found = self.tiers().find_map(|(first, members)| match members {
            Members::Pool { name: pool, .. } => (pool == name).then(|| range(first, members).collect()),
            Members::Servers(_) => None,
        });
        let found = found.or_else(|| self.named(name).map(|target| vec![target]));
        found.or_else(|| self.on_servers(name)).unwrap_or_default()
    }

    /// The targets of a pool that the cluster does not name, in the order of the pool's servers.
    fn on_servers(&self, name: &str) -> Option<Vec<u32>> {
        let pool = self.pools.iter().find(|pool| pool.name == name && !pool.servers.is_empty())?;
        pool.servers.iter().map(|server| self.alone_on(server)).collect()
    }

    /// The target that is the server, or a pool on that server alone.
    fn alone_on(&self, server: &str) -> Option<u32> {
        let mut alone = self.pools.iter().filter(|pool| pool.servers == [server]);
        self.named(server).or_else(|| alone.find_map(|pool| self.named(&pool.name)))
    }

    /// The first target and the members of each tier on the file system.
    fn tiers(&self) -> impl Iterator<Item = (u32, &Members)> {
        let tiers = self.cluster.tiers.iter().enumerate();
        tiers.filter_map(|(index, tier)| match &tier.driver {
            Driver::Native { system, members, .. } if *system == self.system => {
                Some((self.cluster.targets_of(index).start, members))
            }
            _ => None,
        })
    }
}

/// The cycle as it goes on after `from` bytes. A stripe that is cut there is its first and its
/// last.
fn rotated(mut cycle: Vec<Piece>, from: u64) -> Vec<Piece> {
    let turn: u64 = cycle.iter().fold(0, |turn, piece| turn.saturating_add(piece.width));
    let mut phase = from % turn.max(1);
    let whole = cycle.iter().take_while(|piece| {
        let is_before = piece.width <= phase;
        phase -= if is_before { piece.width } else { 0 };
        is_before
    });
    let whole = whole.count();
    cycle.rotate_left(whole);
    if phase > 0 {
        let cut = Piece { width: phase, ..cycle[0] };
        cycle[0].width -= phase;
        cycle.push(cut);
    }
    cycle
}

fn range(first: u32, members: &Members) -> std::ops::Range<u32> {
    let count = match members {
        Members::Servers(servers) => servers.len() as u32,
        Members::Pool { count, .. } => *count,
    };
    first..first + count
}
