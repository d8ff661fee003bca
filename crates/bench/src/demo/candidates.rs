//! Writes the planner's choice and every other candidate as separate plans.

use std::path::Path;

use anyhow::Context;
use stripewise_cluster::{Cluster, Rule, format_cycle, size};
use stripewise_layout::{Layout, Region};
use stripewise_report::Predictions;

use super::workspace::Workspace;
use crate::shell::words;

/// The planner's result for one trace.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Name of the chosen candidate.
    pub choice: String,
    /// Reason for the choice, in one sentence.
    pub reason: String,
    /// Every candidate, including the choice, in the planner's order.
    pub all: Vec<Forced>,
}

/// A plan that forces one candidate.
#[derive(Clone, Debug)]
pub struct Forced {
    /// Name of the candidate.
    pub name: String,
    /// Path of the plan file, relative to the demo's directory.
    pub plan: String,
    /// Display text of the layout.
    pub layout_text: String,
    /// The plan's rule for the file: layout and predictions.
    pub rule: Rule,
}

impl Planned {
    /// Returns the chosen candidate.
    pub fn chosen(&self) -> Option<&Forced> {
        self.all.iter().find(|forced| forced.name == self.choice)
    }
}

impl Forced {
    /// Returns whether both plans put all files in the same places.
    pub fn same_layout(&self, other: &Self) -> bool {
        self.rule.layouts == other.rule.layouts
            && (self.rule.layouts.len() == 1 || self.rule.spread == other.rule.spread)
    }
}

/// The papers' hybrid schemes, by their `plan --scheme` names.
const HYBRID: [&str; 3] = ["def", "pa", "psa"];

/// Plans for one file with the trace `SLUG.trace`. Writes `SLUG.plan.toml` with the best of all
/// candidates that the planner knows, and into `plans` one plan for each layout of the papers:
/// 1-DH, every 2-D and 1-DV over all servers, DEF, PA, PSA.
///
/// # Errors
/// As `stripewise plan`; also if its output lacks the file.
pub fn plan(work: &Workspace, cluster: &str, slug: &str, file: &Path) -> anyhow::Result<Planned> {
    let chosen_plan = format!("{slug}.plan.toml");
    let ask = |scheme: &str, plan: &str| {
        let trace = format!("{slug}.trace");
        let only = file.as_os_str();
        work.stripewise(words![
            "plan",
            trace,
            "-c",
            cluster,
            "--profile",
            "profile.toml",
            "--only",
            only,
            "--scheme",
            scheme,
            "--min-gain",
            "none",
            "--present",
            "def",
            "--candidates",
            "--json",
            "--quiet",
            "-o",
            plan,
        ])
    };
    let text = ask("auto", &chosen_plan)?;
    let predictions = Predictions::parse(&text, "the output of `stripewise plan`")?;
    let candidates = predictions.files.iter().flat_map(|file| file.candidates.iter().flatten());
    let names = candidates.map(|candidate| candidate.layout.name.as_str());
    let mut all = Vec::new();
    for scheme in names.filter(|name| is_cil_over_all(name)).chain(HYBRID) {
        let short = short_name(scheme);
        let plan = format!("plans/{slug}.{}.toml", short.replace(' ', "-"));
        ask(scheme, &plan)?;
        all.push(forced(work, short, plan, file)?);
    }
    let mut choice = forced(work, String::new(), chosen_plan, file)?;
    let reason = choice.rule.reason.clone();
    match all.iter().find(|known| known.same_layout(&choice)) {
        Some(known) => choice.name.clone_from(&known.name),
        None => {
            choice.name.clone_from(&choice.rule.scheme);
            all.push(choice.clone());
        }
    }
    Ok(Planned { choice: choice.name, reason, all })
}

/// Returns whether the candidate is one of CIL's layouts over all servers. The planner also tries
/// them on each tier alone.
fn is_cil_over_all(name: &str) -> bool {
    ["1-DH", "1-DV", "2-D"].iter().any(|kind| name.starts_with(kind)) && !name.contains(" on ")
}

/// Shortens `1-DH, then hdd` to `1-DH` and writes `psa` as `PSA`. The table shows the layout itself
/// in another column.
fn short_name(scheme: &str) -> String {
    match HYBRID.contains(&scheme) {
        true => scheme.to_uppercase(),
        false => scheme.split(", then ").next().unwrap_or(scheme).to_string(),
    }
}

/// Returns the candidate that a plan file forces on the file.
fn forced(work: &Workspace, name: String, plan: String, file: &Path) -> anyhow::Result<Forced> {
    let parsed = work.plan(&plan)?;
    let rule = parsed.rule_for(file).with_context(|| format!("{plan} has no rule for '{}'", file.display()))?;
    let layouts: Vec<String> = rule.layouts.iter().map(|layout| layout_text(layout, &parsed.cluster)).collect();
    Ok(Forced { name, layout_text: layouts.join(" or "), rule: rule.clone(), plan })
}

/// Formats a layout: `hdd/0-3:64K ssd/0-3:64K up to 32M, then hdd/0-3:64K`.
fn layout_text(layout: &Layout, cluster: &Cluster) -> String {
    let part = |region: &Region| {
        let end = region.end.map_or(String::new(), |end| format!(" up to {}", size::format(end)));
        format_cycle(&region.cycle, cluster) + &end
    };
    layout.regions().iter().map(part).collect::<Vec<_>>().join(", then ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn candidates_of_the_papers_are_recognised() {
        for name in ["1-DH", "1-DV, then hdd", "2-D g=2", "2-D g=7, then hdd"] {
            assert!(is_cil_over_all(name), "{name}");
        }
        for name in [
            "1-DH on hdd",
            "2-D g=3 on ssd, then hdd",
            "stripe 64K",
            "PSA <12K,4K>",
            "DEF",
            "1-DV weighted on ssd",
        ] {
            assert!(!is_cil_over_all(name), "{name}");
        }
    }

    #[test]
    fn names_are_shortened() {
        assert_eq!(short_name("2-D g=4, then hdd and ssd"), "2-D g=4");
        assert_eq!(short_name("1-DV"), "1-DV");
        assert_eq!(short_name("psa"), "PSA");
    }
}
