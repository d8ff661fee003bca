//! Converts a layout over a cluster's servers to one file system's terms, or explains why the file
//! system does not support it.

mod beegfs;
mod cephfs;
mod lustre;
mod orangefs;
mod subject;

use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::{Layout, Region};

use crate::cycle::Cycle;
use crate::names::Names;
use crate::{NativeLayout, check};
use subject::Subject;

/// Converts `layout` to the terms of `system`, for files of at most `size_max` bytes. Regions that
/// such files do not reach are omitted.
///
/// Servers and pools get the names in the cluster's tiers on that file system. For other tiers the
/// names are placeholders that only the site can replace (`POOL(hdd)`, `ADDR(hdd/0)`; OSTs are
/// numbered as the targets are). Where every server has a name, each byte of a file with the native
/// layout is on the server that `layout` puts it on.
///
/// # Errors
/// Why the file system does not support the layout, in words that can follow `because`.
pub fn express(
    system: FileSystem,
    layout: &Layout,
    cluster: &Cluster,
    size_max: u64,
) -> Result<NativeLayout, String> {
    express_spread(system, std::slice::from_ref(layout), cluster, size_max)
}

/// As [`express`], for the files of one directory that take `layouts` in turn.
///
/// # Errors
/// As [`express`], and where the files would need different native layouts.
pub fn express_spread(
    system: FileSystem,
    layouts: &[Layout],
    cluster: &Cluster,
    size_max: u64,
) -> Result<NativeLayout, String> {
    let layouts = cluster.unfold_all(layouts).iter().map(|layout| cycles(layout, size_max)).collect();
    let subject = Subject { layouts, names: Names { system, cluster } };
    let native = match system {
        FileSystem::CephFs => cephfs::express(&subject)?,
        FileSystem::Lustre => lustre::express(&subject)?,
        FileSystem::BeeGfs => beegfs::express(&subject)?,
        FileSystem::OrangeFs => orangefs::express(&subject)?,
    };
    check(system, &native)?;
    Ok(native)
}

/// The regions that files of up to `size_max` bytes reach; the last of them has no end.
fn cycles(layout: &Layout, size_max: u64) -> Vec<Cycle> {
    let used = |region: &&Region| region.start == 0 || region.start < size_max;
    let mut cycles: Vec<Cycle> = layout.regions().iter().filter(used).map(Cycle::of).collect();
    if let Some(last) = cycles.last_mut() {
        last.end = None;
    }
    cycles
}
