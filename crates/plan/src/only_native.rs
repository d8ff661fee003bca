//! The restriction of plans to the layouts of one file system, which is then used without
//! stripewise.

use stripewise_cluster::{Cluster, Driver, FileSystem};
use stripewise_layout::{Layout, Region};
use stripewise_native::{NativeLayout, express_spread};

use crate::candidate::Candidate;
use crate::error::PlanError;
use crate::workload::FileSet;

/// Restricts planning to the layouts of one file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlyNative {
    /// The file system that all tiers are on.
    pub system: FileSystem,
    /// The only layout allowed, because other files of the same directory get it; `None`: any.
    pub layout: Option<NativeLayout>,
}

impl OnlyNative {
    /// The restriction for the file system that the cluster's tiers are on.
    ///
    /// # Errors
    /// The tiers are on several file systems, or one of them is on none.
    pub fn of(cluster: &Cluster) -> Result<Self, PlanError> {
        let mut systems = Vec::new();
        for tier in &cluster.tiers {
            match &tier.driver {
                Driver::Native { system, .. } => systems.push(*system),
                Driver::Dirs { .. } => {
                    return Err(PlanError::new(format!(
                        "tier {} has driver \"dirs\", over which only stripewise itself stripes: nothing can be placed \
                         natively there; describe the file system in the cluster file (`stripewise init DIR` writes one)",
                        tier.name
                    )));
                }
            }
        }
        systems.dedup();
        match systems[..] {
            [system] => Ok(Self { system, layout: None }),
            _ => Err(PlanError::new(
                "the tiers are on several file systems, and a file lies on one: nothing can be placed natively over \
                 all of them; write a cluster file for one of them",
            )),
        }
    }

    /// The candidate's layouts, cut to the size of the largest file, if new files of its directory
    /// can get them; otherwise the reason.
    pub(crate) fn admit(
        &self,
        candidate: &Candidate,
        set: &FileSet,
        cluster: &Cluster,
    ) -> Result<Vec<Layout>, String> {
        let title = self.system.title();
        if candidate.overlay.is_some() {
            return Err(format!("{title} does not keep several copies of a file in step"));
        }
        let native = self.native(candidate, set, cluster);
        let native = native.map_err(|reason| format!("{title} has no such layout: {reason}"))?;
        match &self.layout {
            Some(only) if *only != native => {
                Err(format!("the directory's new files get {only}, which other files need"))
            }
            _ => Ok(candidate.layouts.iter().map(|layout| reached(layout, set.largest())).collect()),
        }
    }

    /// The file system's own layout for a candidate.
    pub(crate) fn native(
        &self,
        candidate: &Candidate,
        set: &FileSet,
        cluster: &Cluster,
    ) -> Result<NativeLayout, String> {
        express_spread(self.system, &candidate.layouts, cluster, set.largest())
    }
}

/// The layout without the regions that files of `size` bytes do not reach, so that placing the plan
/// does not require the file size.
fn reached(layout: &Layout, size: u64) -> Layout {
    let used = |region: &&Region| region.start == 0 || region.start < size;
    let mut regions: Vec<Region> = layout.regions().iter().filter(used).cloned().collect();
    if let Some(last) = regions.last_mut() {
        last.end = None;
    }
    Layout::new(regions).unwrap_or_else(|_| layout.clone())
}
