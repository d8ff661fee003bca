//! Helpers shared by the commands that inspect and change managed files.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail, ensure};
use stripewise_cluster::Plan;
use stripewise_datapath::Runtime;
use stripewise_datapath::check::{Listing, walk};
use stripewise_datapath::inspect::manifest_of;
use stripewise_sys::Real;
use stripewise_sys::user::become_user;

/// Creates the data path of a command. Requests to emulated servers are not delayed, because
/// emulation stands for an application's run.
pub fn runtime(plan: Option<&Plan>) -> Arc<Runtime> {
    let mut unpaced = plan.cloned();
    for tier in unpaced.iter_mut().flat_map(|plan| &mut plan.cluster.tiers) {
        tier.emulate = false;
    }
    Runtime::new(Arc::new(Real), unpaced.as_ref())
}

/// Returns the absolute path of an existing file, with all symbolic links resolved.
pub fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{} cannot be used", path.display()))
}

pub fn all_existing(paths: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    paths.iter().map(|path| existing(path)).collect()
}

/// Lists the files below the roots, and prints what cannot be examined.
pub fn listing(runtime: &Runtime, roots: &[PathBuf]) -> Listing {
    let listing = walk(runtime, roots);
    for (path, errno) in &listing.unreadable {
        eprintln!("stripewise: {} is left out: {errno}", path.display());
    }
    listing
}

/// Returns the absolute path of an existing file that is to be read or moved.
pub fn existing_file(path: &Path) -> anyhow::Result<PathBuf> {
    let found = existing(path)?;
    ensure!(!found.is_dir(), "{} is a directory; name files", path.display());
    Ok(found)
}

/// Switches to the owner of `files` if this process is root's and some of the files have several
/// copies. Only processes of the owner use the extent map of such a file. Call this before starting
/// threads.
pub fn act_for_owner(runtime: &Runtime, files: &[PathBuf]) -> anyhow::Result<()> {
    const ROOT: u32 = 0;
    if runtime.sys().user() != ROOT {
        return Ok(());
    }
    let has_copies = |path: &&PathBuf| {
        let found = manifest_of(runtime, path).ok().flatten();
        found.is_some_and(|(manifest, _)| manifest.copies.is_some())
    };
    let owner = |path: &PathBuf| path.metadata().ok().map(|stat| (stat.uid(), stat.gid()));
    let owners: BTreeMap<u32, u32> = files.iter().filter(has_copies).filter_map(owner).collect();
    match owners.iter().collect::<Vec<_>>()[..] {
        [] | [(&ROOT, _)] => Ok(()),
        [(&user, &group)] => become_user(user, group)
            .with_context(|| format!("the files belong to user {user}, as whom this cannot go on")),
        _ => bail!(
            "files with several copies of users {:?} cannot be looked after at once; name those of one user at a time",
            owners.keys().collect::<Vec<_>>()
        ),
    }
}
