//! What the crate does for every file system: conversion of a layout over a cluster's servers, the
//! check of a layout that the file system would refuse, round or ignore, and the commands.

use std::path::Path;

use stripewise_cluster::{Cluster, FileSystem};
use stripewise_layout::{Layout, Region};

use crate::cephfs::Attribute;
use crate::commands::{Call, shell, words};
use crate::cycle::Cycle;
use crate::names::Subject;
use crate::orangefs::Distribution;
use crate::{NativeLayout, Stripe, beegfs, cephfs, lustre, orangefs};

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
    let subject = Subject { system, cluster, layouts };
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

/// Checks whether `system` accepts a layout. Does not know which servers and pools exist.
///
/// # Errors
/// The reason, in words that can follow `because`.
pub fn check(system: FileSystem, layout: &NativeLayout) -> Result<(), String> {
    ends(system, layout)?;
    match system {
        FileSystem::CephFs => Attribute::of(layout).map(drop),
        FileSystem::Lustre => layout.components.iter().try_fold(0, lustre::check).map(drop),
        FileSystem::BeeGfs => beegfs::check(&layout.components[0].stripe),
        FileSystem::OrangeFs => Distribution::of(&layout.components[0].stripe).map(drop),
    }
}

/// Checks that components follow one another to the end of the file. Only Lustre supports several.
fn ends(system: FileSystem, layout: &NativeLayout) -> Result<(), String> {
    let [before @ .., last] = &layout.components[..] else {
        return Err("it has no component".into());
    };
    if !before.is_empty() && system != FileSystem::Lustre {
        return Err("a file has one layout from its first to its last byte".into());
    }
    if last.end.is_some() {
        return Err("its last component does not go to the end of the file".into());
    }
    let ends: Option<Vec<u64>> = before.iter().map(|component| component.end).collect();
    match ends {
        Some(ends) if ends.first() != Some(&0) && ends.is_sorted_by(|a, b| a < b) => Ok(()),
        _ => Err("its components do not follow one another".into()),
    }
}

/// The calls that make new files of the directory `path` (`is_dir`) inherit `layout`, or that make
/// `path` a new file with it.
///
/// CephFS's attribute is set on a file that exists and was never written; the tools of the other
/// systems create the file themselves.
///
/// # Errors
/// As [`check`].
pub fn calls(
    system: FileSystem,
    layout: &NativeLayout,
    path: &Path,
    is_dir: bool,
) -> Result<Vec<Call>, String> {
    check(system, layout)?;
    let path_text = path.to_string_lossy().into_owned();
    let stripe = &layout.components[0].stripe;
    Ok(match system {
        FileSystem::CephFs => {
            let kind = if is_dir { "dir" } else { "file" };
            let attribute = format!("ceph.{kind}.layout");
            vec![words(&["setfattr", "-n", &attribute, "-v", &Attribute::of(layout)?.text(), &path_text])]
        }
        FileSystem::Lustre => vec![lustre::call(layout, path_text)],
        FileSystem::BeeGfs if is_dir && matches!(stripe, Stripe::Listed { .. }) => {
            return Err("only a new file can be given targets; a directory takes a storage pool".into());
        }
        FileSystem::BeeGfs => vec![beegfs::call(stripe, path_text, is_dir)],
        FileSystem::OrangeFs => orangefs::calls(&Distribution::of(stripe)?, path, is_dir),
    })
}

/// [`calls`] as text for a shell; empty where [`check`] refuses the layout.
pub fn commands(system: FileSystem, layout: &NativeLayout, path: &Path, is_dir: bool) -> Vec<String> {
    let text = |call: Call| call.iter().map(|word| shell(word)).collect::<Vec<_>>().join(" ");
    calls(system, layout, path, is_dir).unwrap_or_default().into_iter().map(text).collect()
}

/// A remark on the commands of a file system, for a layout of files that take `layouts` in turn.
pub fn note(system: FileSystem, layouts: usize) -> Option<&'static str> {
    match system {
        FileSystem::CephFs => Some(
            "only on files that are empty and were never written; objects are placed by hash, so that stripes may share an OSD",
        ),
        FileSystem::Lustre if layouts > 1 => Some("Lustre itself spreads the files over its OSTs"),
        FileSystem::Lustre => None,
        FileSystem::BeeGfs => Some("for files created in the directory from then on; BeeGFS picks the targets"),
        FileSystem::OrangeFs => Some("inherited by files created in the directory from then on"),
    }
}
