//! Translates a plan's layouts into the notation of its file system.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use stripewise_cluster::{FileSystem, Plan, Rule, Tier};
use stripewise_drivers::{Driver, driver};
use stripewise_native::{NativeLayout, express, express_spread};

/// A plan and the one file system that holds all its layouts.
pub struct Site<'a> {
    pub plan: &'a Plan,
    pub system: FileSystem,
    pub driver: Box<dyn Driver>,
}

impl<'a> Site<'a> {
    pub fn of(plan: &'a Plan) -> anyhow::Result<Self> {
        let mut systems = Vec::new();
        for rule in plan.rules.iter().filter(|rule| !rule.layouts.is_empty()) {
            let Rule { pattern, scheme, .. } = rule;
            ensure!(
                rule.overlay.is_none(),
                "{pattern}: {scheme} keeps several copies of a file in step, which only stripewise itself can do; plan with \
                 `stripewise plan --native`"
            );
            for Tier { name, driver, .. } in tiers(plan, rule) {
                let native = driver.native().with_context(|| {
                    format!(
                        "{pattern}: tier {name} has driver \"dirs\", over which only stripewise itself stripes; describe the file \
                         system in the cluster file (`stripewise init DIR` writes one), and plan with `stripewise plan --native`"
                    )
                })?;
                systems.push(native.0);
            }
        }
        systems.dedup();
        match systems[..] {
            [] => bail!("the plan leaves all files as they are: there is nothing to place"),
            [system] => Ok(Self { plan, system, driver: driver(system) }),
            _ => bail!(
                "the plan's tiers are on several file systems ({}): a file lies on one; plan with `stripewise plan --native` \
                 and a cluster file for one of them",
                systems.iter().map(|system| system.title()).collect::<Vec<_>>().join(", ")
            ),
        }
    }

    /// Returns the layout of a rule's new files in a directory. `size_max` is the largest size in
    /// bytes of the files there now; `None` if there are none.
    ///
    /// The error says why the file system cannot.
    pub fn of_rule(&self, rule: &Rule, size_max: Option<u64>) -> Result<NativeLayout, String> {
        let within = |size| express_spread(self.system, &rule.layouts, &self.plan.cluster, size);
        whole_or_within(within, size_max)
    }

    /// Returns the layout of a rule's file at `path` with `size` bytes.
    ///
    /// The error says why the file system cannot.
    pub fn of_file(&self, rule: &Rule, path: &Path, size: u64) -> Result<NativeLayout, String> {
        let layout = rule.choose(path).ok_or("no rule of the plan is for it")?;
        whole_or_within(|size| express(self.system, layout, &self.plan.cluster, size), Some(size))
    }
}

/// Returns a layout with all its regions or, if that fails, with the regions that files of
/// `size_max` bytes reach.
fn whole_or_within(
    within: impl Fn(u64) -> Result<NativeLayout, String>,
    size_max: Option<u64>,
) -> Result<NativeLayout, String> {
    within(u64::MAX).or_else(|reason| size_max.map_or(Err(reason), within))
}

/// Returns the tiers on which a rule's files lie.
fn tiers<'a>(plan: &'a Plan, rule: &Rule) -> Vec<&'a Tier> {
    let cluster = &plan.cluster;
    let layouts = rule.layouts.iter().enumerate().map(|(index, layout)| cluster.unfold(layout, index));
    let targets: Vec<u32> = layouts.flat_map(|layout| layout.targets().collect::<Vec<_>>()).collect();
    let mut tiers: Vec<usize> = targets.into_iter().filter_map(|target| cluster.tier_of(target)).collect();
    tiers.sort_unstable();
    tiers.dedup();
    tiers.into_iter().map(|tier| &cluster.tiers[tier]).collect()
}
