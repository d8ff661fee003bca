//! The layouts that files have now: those that Lustre reported, else the file system's default.

use std::collections::HashMap;
use std::sync::Arc;

use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::{Layout, LayoutError, constructors};
use stripewise_plan::Present;
use stripewise_plan::workload::FileSet;

use crate::facts::{FileFacts, Striping};
use crate::text::bytes;

const K: u64 = 1 << 10;
const M: u64 = 1 << 20;
/// Number of targets of BeeGFS's default layout.
const BEEGFS_TARGETS: usize = 4;

/// The layout of a set's files, in a few words.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Of the first file: `1M x 1`.
    pub text: String,
    /// The log tells it; otherwise it is the file system's default.
    pub is_known: bool,
    /// Number of servers of a file.
    pub servers: u32,
    /// Width of a stripe, bytes.
    pub width: u64,
    /// All files have stripes like the first.
    pub is_same: bool,
}

/// Sets the layout that the files of a set have now.
///
/// # Errors
/// The cluster has no servers.
pub fn set_present(
    set: &mut FileSet,
    known: &HashMap<&str, &FileFacts>,
    (system, cluster): (FileSystem, &Cluster),
) -> Result<Now, LayoutError> {
    let servers: Vec<u32> = cluster.targets_of(0).collect();
    let striping = |name: &str| known.get(name).and_then(|file| file.striping.as_ref());
    let Some(first) = set.files.iter().find_map(|file| striping(&file.name)) else {
        let (now, layouts) = default(system, &servers)?;
        set.present = spread(&now, layouts, set);
        return Ok(now);
    };
    let now = Now {
        text: match first.is_composite {
            true => format!("{} in the last component", said(first.width, first.osts.len())),
            false => said(first.width, first.osts.len()),
        },
        is_known: true,
        servers: first.osts.len() as u32,
        width: first.width,
        is_same: set.files.iter().filter_map(|file| striping(&file.name)).all(|other| is_alike(first, other)),
    };
    let mut layouts = Vec::new();
    let mut numbers: HashMap<(u64, &[u32]), u32> = HashMap::new();
    let mut layout_of = HashMap::new();
    for file in &set.files {
        let striping = striping(&file.name).unwrap_or(first);
        let key = (striping.width, &striping.osts[..]);
        let next = layouts.len() as u32;
        let number = *numbers.entry(key).or_insert(next);
        if number == next {
            layouts.push(layout(striping, cluster)?);
        }
        layout_of.insert(file.name.clone(), number);
    }
    set.present =
        Present::Known { name: now.text.clone(), layouts, layout_of: Some(layout_of), managed: false };
    Ok(now)
}

fn is_alike(one: &Striping, other: &Striping) -> bool {
    (one.width, one.osts.len(), &one.pool) == (other.width, other.osts.len(), &other.pool)
}

fn said(width: u64, count: usize) -> String {
    format!("{} x {count}", bytes(width))
}

/// The stripes over the servers with the numbers of the OSTs, as far as there are so many. A pool
/// that the cluster has gives the servers.
fn layout(striping: &Striping, cluster: &Cluster) -> Result<Layout, LayoutError> {
    let pool = cluster.tiers.iter().position(|tier| tier.name == striping.pool);
    let servers: Vec<u32> = match pool {
        Some(tier) => cluster.targets_of(tier).collect(),
        None => (0..cluster.target_count() as u32).collect(),
    };
    let mut targets: Vec<u32> = striping
        .osts
        .iter()
        .filter_map(|&ost| servers.get(ost as usize % servers.len().max(1)))
        .copied()
        .collect();
    let mut seen = std::collections::HashSet::new();
    targets.retain(|&target| seen.insert(target));
    match targets[..] {
        [target] => constructors::on_one(target),
        _ => constructors::striped(&targets, striping.width),
    }
}

/// The default of a file system that nobody changed. Sources: lfs-setstripe(1), the BeeGFS
/// documentation ("Striping"), docs.ceph.com ("File layouts"), OrangeFS `dist-simple-stripe.c`.
fn default(system: FileSystem, servers: &[u32]) -> Result<(Now, Vec<Layout>), LayoutError> {
    let (width, count) = match system {
        FileSystem::Lustre => (M, 1),
        FileSystem::BeeGfs => (512 * K, BEEGFS_TARGETS.min(servers.len())),
        FileSystem::CephFs => (4 * M, servers.len()),
        FileSystem::OrangeFs => (64 * K, servers.len()),
    };
    let now = Now { text: said(width, count), is_known: false, servers: count as u32, width, is_same: true };
    let layouts = match count {
        1 => servers.iter().map(|&server| constructors::on_one(server)).collect::<Result<_, _>>()?,
        _ => vec![constructors::striped(&servers[..count], width)?],
    };
    Ok((now, layouts))
}

/// Files take the layouts in turn.
fn spread(now: &Now, layouts: Vec<Layout>, set: &FileSet) -> Present {
    let count = layouts.len().max(1) as u32;
    let turn = |(index, file): (u32, &stripewise_plan::workload::File)| (Arc::clone(&file.name), index % count);
    let layout_of = (0..).zip(&set.files).map(turn).collect();
    Present::Known { name: now.text.clone(), layouts, layout_of: Some(layout_of), managed: false }
}
