//! Prepares a plan's targets. On parallel file systems, a target's directory gets the native layout
//! that the plan assigns to it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::fd::AsFd;
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context, ensure};
use stripewise_cluster::{Cluster, CopySpec, FileSystem, Plan, TargetKind, TargetSpec};
use stripewise_drivers::{DriverError, TRIAL_PREFIX, driver};
use stripewise_layout::Layout;
use stripewise_native::{NativeLayout, target_layout};
use stripewise_sys::{Errno, Real, Sys, SysRef};
use stripewise_target::{Nodes, OBJECTS, Target};

/// Creates the targets on which a plan puts files, including those of extra copies, or verifies
/// those that exist. Calling it again is harmless.
pub fn prepare(plan: &Plan) -> anyhow::Result<()> {
    let originals = plan.rules.iter().flat_map(|rule| &rule.layouts).flat_map(Layout::targets);
    let overlays = plan.rules.iter().filter_map(|rule| rule.overlay.as_ref());
    let copies = overlays.flat_map(|overlay| &overlay.copies).flat_map(CopySpec::targets);
    let used: BTreeSet<u32> = originals.chain(copies).collect();
    let targets: Vec<_> = (0..).zip(plan.cluster.targets()).filter(|(index, _)| used.contains(index)).collect();
    let natives = targets.iter().filter_map(|(_, target)| {
        let native = plan.cluster.tiers[target.tier].driver.native()?;
        Some((root_of(target), native.0))
    });
    for (root, system) in natives.collect::<BTreeMap<_, _>>() {
        require_fallocate(root, system)?;
    }
    for (index, target) in &targets {
        prepare_target(&plan.cluster, *index, target)
            .with_context(|| format!("target {} of the plan", target.name))?;
    }
    Ok(())
}

fn prepare_target(cluster: &Cluster, index: u32, target: &TargetSpec) -> anyhow::Result<()> {
    ensure!(
        target.kind != TargetKind::PoolMember,
        "the file system picks the servers of a pool; make the plan again with `stripewise plan`"
    );
    let sys: SysRef = Arc::new(Real);
    let native = prepare_directory(cluster, index, target)?;
    let is_fenced = native.as_ref().is_some_and(|(system, _)| driver(*system).fences_nodes());
    let nodes = if is_fenced { Nodes::Fenced } else { Nodes::One };
    Target::prepare_for(&sys, &target.path, &target.name, nodes)?;
    native.map_or(Ok(()), |(system, layout)| check_new_file(system, &target.path, &layout))
}

/// Gives a target's directory on a parallel file system the layout of its files, which is returned.
pub fn prepare_directory(
    cluster: &Cluster,
    index: u32,
    target: &TargetSpec,
) -> anyhow::Result<Option<(FileSystem, NativeLayout)>> {
    let native = target_layout(cluster, index);
    if let Some((system, layout)) = &native {
        let root = root_of(target);
        ensure!(
            root.is_dir(),
            "the root {} of tier {} is not there; mount {}, or make the directory",
            root.display(),
            cluster.tiers[target.tier].name,
            system.title()
        );
        driver(*system).prepare(&target.path, layout)?;
    }
    Ok(native)
}

fn root_of(target: &TargetSpec) -> &Path {
    target.path.parent().unwrap_or(Path::new("/"))
}

/// Refuses a file system that cannot hold targets before anything is made on it.
fn require_fallocate(root: &Path, system: FileSystem) -> anyhow::Result<()> {
    // A root that is missing is named with its tier later.
    let Ok(trial) = tempfile::Builder::new().prefix(TRIAL_PREFIX).tempfile_in(root) else { return Ok(()) };
    let lacks = matches!(Real.grow(trial.as_file().as_fd(), 1), Err(Errno::OPNOTSUPP | Errno::NOSYS));
    ensure!(
        !lacks,
        "{}: {title} has no fallocate here, which targets need, so stripewise cannot keep pieces of files there; let {title} \
         place whole files: plan with `stripewise plan --native`, place with `stripewise place --native`, and run the \
         programs without stripewise",
        root.display(),
        title = system.title()
    );
    Ok(())
}

/// Verifies that a new object really gets the layout, by creating, inspecting and removing one.
/// Directories left by an earlier plan may hand down a layout different from the target's.
fn check_new_file(system: FileSystem, target: &Path, layout: &NativeLayout) -> anyhow::Result<()> {
    let objects = target.join(OBJECTS);
    let probe = objects.join(format!(".layout-{}", std::process::id()));
    let context = || format!("{} cannot be made", probe.display());
    fs::OpenOptions::new().write(true).create_new(true).open(&probe).with_context(context)?;
    let got = driver(system).read_back(&probe);
    fs::remove_file(&probe).with_context(|| format!("{} cannot be removed", probe.display()))?;
    let remedy = "the directory of objects hands down another layout than its target's; where there are no objects in it \
                  remove it, else export the files in it first";
    Ok(DriverError::compare(&objects, layout, got?.layout, remedy)?)
}
