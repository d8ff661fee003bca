//! Helpers shared by the commands that inspect and change managed files.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use indicatif::BinaryBytes;
use stripewise_cluster::{CopySpec, Plan, Rule, TargetSpec, size};
use stripewise_datapath::Runtime;
use stripewise_datapath::inspect::manifest_of;
use stripewise_layout::{Layout, Stripe};
use stripewise_sys::Real;
use stripewise_sys::user::become_user;
use stripewise_target::TargetRef;

/// Reads a plan file.
///
/// # Errors
/// The file cannot be read or is invalid. The error names it.
pub fn plan(path: &Path) -> anyhow::Result<Plan> {
    Ok(Plan::parse(&crate::files::read(path)?, &path.display().to_string())?)
}

/// Creates the data path of a command. Requests to emulated servers are not delayed, because
/// emulation stands for an application's run.
pub fn runtime(plan: Option<&Plan>) -> Arc<Runtime> {
    let unpaced = plan.cloned().map(|mut plan| {
        plan.cluster.tiers.iter_mut().for_each(|tier| tier.emulate = false);
        plan
    });
    Runtime::new(Arc::new(Real), unpaced.as_ref())
}

/// Returns the targets on which a plan puts files, including those of extra copies, with their
/// indices.
pub fn used_targets(plan: &Plan) -> Vec<(u32, TargetSpec)> {
    let copies = |rule: &Rule| -> Vec<u32> {
        let copies = rule.overlay.iter().flat_map(|overlay| &overlay.copies);
        copies.flat_map(CopySpec::targets).collect()
    };
    let originals = plan.rules.iter().flat_map(|rule| &rule.layouts).flat_map(Layout::targets);
    let used: BTreeSet<u32> = originals.chain(plan.rules.iter().flat_map(copies)).collect();
    (0..).zip(plan.cluster.targets()).filter(|(index, _)| used.contains(index)).collect()
}

/// Returns the absolute path of an existing file, with all symbolic links resolved.
///
/// # Errors
/// The file does not exist, or a directory on the path may not be searched.
pub fn existing(path: &Path) -> anyhow::Result<PathBuf> {
    path.canonicalize().with_context(|| format!("{} cannot be used", path.display()))
}

/// Returns the absolute path of an existing file that is to be read or moved.
///
/// # Errors
/// As [`existing`]; also if the path is a directory.
pub fn existing_file(path: &Path) -> anyhow::Result<PathBuf> {
    let found = existing(path)?;
    if found.is_dir() {
        bail!("{} is a directory; name files", path.display());
    }
    Ok(found)
}

/// Switches to the owner of `files` if this process is root's and some of the files have several
/// copies. Only processes of the owner use the extent map of such a file. Call this before starting
/// threads.
///
/// # Errors
/// The files with several copies belong to several users, or the system refuses the switch.
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

/// Formats a number of bytes for people.
pub fn human(bytes: u64) -> String {
    BinaryBytes(bytes).to_string()
}

/// Formats a region's stripe cycle over a copy's targets in plan notation: `hdd/0-3:64K ssd/0:8K`.
pub fn cycle(stripes: &[Stripe], targets: &[TargetRef]) -> String {
    let name = |stripe: &Stripe| targets[stripe.target as usize].name.as_str();
    let mut words: Vec<String> = Vec::new();
    let mut rest = stripes;
    while let Some(first) = rest.first() {
        let numbered = name(first).rsplit_once('/').and_then(|(tier, n)| Some((tier, n.parse::<u64>().ok()?)));
        let follows = |(index, stripe): (usize, &Stripe)| {
            let expected = numbered.map(|(tier, number)| format!("{tier}/{}", number + index as u64));
            stripe.width == first.width && (index == 0 || expected.as_deref() == Some(name(stripe)))
        };
        let run = rest.iter().enumerate().take_while(|&pair| follows(pair)).count();
        let last = match numbered {
            Some((_, number)) if run > 1 => format!("-{}", number + run as u64 - 1),
            _ => String::new(),
        };
        words.push(format!("{}{last}:{}", name(first), size::format(first.width)));
        rest = &rest[run..];
    }
    words.join(" ")
}
