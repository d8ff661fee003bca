//! Parses the tables of targets and regions, which every copy has.

use serde::Deserialize;
use stripewise_layout::{Layout, Region, Stripe};
use stripewise_target::TargetRef;

/// The remedy for a damaged text.
pub(super) const RESTORE: &str = "the text is damaged; restore it with `stripewise fsck --repair FILE`";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextTarget {
    name: String,
    path: String,
    id: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TextRegion {
    start: u64,
    end: Option<u64>,
    cycle: Vec<(u32, u64)>,
}

pub(super) fn targets_of(prefix: &str, targets: Vec<TextTarget>) -> Result<Vec<TargetRef>, String> {
    let target_of = |target: TextTarget| {
        if target.path.starts_with('/') {
            return Ok(TargetRef { name: target.name, path: target.path.into(), id: target.id });
        }
        Err(format!("key `{prefix}target.path`: {:?} must be an absolute directory; {RESTORE}", target.path))
    };
    targets.into_iter().map(target_of).collect()
}

/// Checks that every index names a target and every target is used, and builds the layout.
pub(super) fn layout_of(prefix: &str, regions: Vec<TextRegion>, targets: usize) -> Result<Layout, String> {
    // Check the indexes first: a layout keeps tables as long as the largest index.
    let stripes = || regions.iter().flat_map(|region| &region.cycle);
    if let Some((target, _)) = stripes().find(|(target, _)| *target as usize >= targets) {
        return Err(format!(
            "key `{prefix}region.cycle`: target {target} is not in the list of {targets} targets; {RESTORE}"
        ));
    }
    let mut used = vec![false; targets];
    stripes().for_each(|(target, _)| used[*target as usize] = true);
    if let Some(unused) = used.iter().position(|used| !used) {
        return Err(format!("key `{prefix}target`: no region uses target {unused}; {RESTORE}"));
    }
    let regions = regions.into_iter().map(|region| Region {
        start: region.start,
        end: region.end,
        cycle: region.cycle.into_iter().map(|(target, width)| Stripe { target, width }).collect(),
    });
    Layout::new(regions.collect()).map_err(|error| format!("key `{prefix}region`: {error}; {RESTORE}"))
}
