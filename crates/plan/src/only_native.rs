//! Plans for a file system alone, without stripewise: only candidates whose layouts the file system
//! has, and one layout per directory.

use std::collections::BTreeMap;

use stripewise_cluster::{Cluster, Driver, FileSystem};
use stripewise_layout::{Layout, Region};
use stripewise_native::{NativeLayout, express_spread};

use crate::candidate::{Candidate, Judged};
use crate::choose::Decision;
use crate::error::PlanError;
use crate::planners::Proposal;
use crate::workload::FileSet;

/// Number of dropped candidates that a note names per reason.
const NAMED: usize = 3;

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

    /// Removes the candidates whose layouts the file system does not have. If the proposal's pick
    /// is among them, all remaining candidates compete. Returns one note per reason for removing
    /// candidates.
    pub(crate) fn filter(
        &self,
        planner: &str,
        proposal: Proposal,
        set: &FileSet,
        cluster: &Cluster,
    ) -> (Proposal, Vec<String>) {
        let (mut kept, mut pick) = (Vec::new(), None);
        let mut missing: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (index, candidate) in proposal.candidates.into_iter().enumerate() {
            match self.admit(&candidate, set, cluster) {
                Ok(layouts) => {
                    pick = pick.or((proposal.pick == Some(index)).then_some(kept.len()));
                    kept.push(Candidate { layouts, ..candidate });
                }
                Err(reason) => missing.entry(reason).or_default().push(candidate.name),
            }
        }
        let note = |(reason, names): (String, Vec<String>)| {
            let more = names.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = names[..names.len().min(NAMED)].join(", ");
            format!("{planner}: {named}{more}: {reason}")
        };
        (Proposal { candidates: kept, pick }, missing.into_iter().map(note).collect())
    }

    /// The candidate's layouts, cut to the size of the largest file, if new files of its directory
    /// can get them; otherwise the reason.
    fn admit(&self, candidate: &Candidate, set: &FileSet, cluster: &Cluster) -> Result<Vec<Layout>, String> {
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

    fn native(&self, candidate: &Candidate, set: &FileSet, cluster: &Cluster) -> Result<NativeLayout, String> {
        express_spread(self.system, &candidate.layouts, cluster, set.largest())
    }

    /// The file sets to decide again because files of their directory need another layout. Each
    /// comes with the layout that is best for the whole directory.
    pub(crate) fn shared(
        &self,
        decisions: &[Decision],
        sets: &[FileSet],
        cluster: &Cluster,
        objective: impl Fn(&Judged) -> f64,
    ) -> Vec<(usize, NativeLayout)> {
        let mut directories: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
        for (index, decision) in decisions.iter().enumerate().filter(|(_, decision)| !decision.keep) {
            let directory = decision.pattern.rsplit_once('/').map_or("", |(directory, _)| directory);
            directories.entry(directory).or_default().push(index);
        }
        let mut anew = Vec::new();
        for members in directories.values() {
            let chosen =
                |&index: &usize| self.native(&decisions[index].best().candidate, &sets[index], cluster);
            let mut layouts: Vec<_> = members.iter().map(chosen).collect();
            layouts.dedup();
            if layouts.len() < 2 {
                continue;
            }
            let costs: Vec<Vec<(NativeLayout, f64)>> = members
                .iter()
                .map(|&index| {
                    let candidates = decisions[index].candidates.iter();
                    let cost = |judged: &Judged| {
                        Some((self.native(&judged.candidate, &sets[index], cluster).ok()?, objective(judged)))
                    };
                    candidates.filter_map(cost).collect()
                })
                .collect();
            if let Some(best) = cheapest_of_all(&costs) {
                anew.extend(members.iter().map(|&index| (index, best.clone())));
            }
        }
        anew
    }
}

/// The layout with the least total cost among those that every set has a cost for.
fn cheapest_of_all(costs: &[Vec<(NativeLayout, f64)>]) -> Option<&NativeLayout> {
    let least = |of: &[(NativeLayout, f64)], layout: &NativeLayout| {
        of.iter().filter(|(known, _)| known == layout).map(|(_, cost)| *cost).min_by(f64::total_cmp)
    };
    let total = |layout| costs.iter().map(|of| least(of, layout)).sum::<Option<f64>>();
    let candidates = costs.first()?.iter().map(|(layout, _)| layout);
    let all = candidates.filter_map(|layout| Some((layout, total(layout)?)));
    all.min_by(|one, other| one.1.total_cmp(&other.1)).map(|(layout, _)| layout)
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
