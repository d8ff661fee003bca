//! Writes the planner's choice and every other candidate as separate plans.

use std::path::Path;

use anyhow::Context;
use stripewise_cluster::{Cluster, Plan, Rule, format_cycle, size};
use stripewise_console::files;
use stripewise_layout::{Layout, Region};
use stripewise_report::Predictions;

use super::workspace::Workspace;
use crate::shell::arguments;

/// The planner's result for one trace.
pub struct Planned {
    pub choice: String,
    /// Reason for the choice, in one sentence.
    pub reason: String,
    /// Every candidate, including the choice, in the planner's order.
    pub all: Vec<Forced>,
}

/// A plan that forces one candidate.
#[derive(Clone)]
pub struct Forced {
    pub name: String,
    /// Path of the plan file, relative to the demo's directory.
    pub plan: String,
    pub layout_text: String,
    /// The plan's rule for the file: layout and predictions.
    pub rule: Rule,
}

impl Planned {
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
pub fn plan(work: &Workspace, cluster: &str, slug: &str, file: &Path) -> anyhow::Result<Planned> {
    let chosen_plan = format!("{slug}.plan.toml");
    let ask = |scheme: &str, plan: &str| {
        let trace = format!("{slug}.trace");
        let of = arguments!["plan", trace, "-c", cluster, "--profile", "profile.toml", "--only", file];
        let choice = arguments!["--scheme", scheme, "--min-gain", "none", "--present", "def"];
        let output = arguments!["--candidates", "--json", "--quiet", "-o", plan];
        work.stripewise([of, choice, output].concat())
    };
    let text = ask("auto", &chosen_plan)?;
    let predictions = Predictions::parse(&text, "the output of `stripewise plan`")?;
    let candidates = predictions.files.iter().flat_map(|file| file.candidates.iter().flatten());
    let layouts = candidates.map(|candidate| &candidate.layout);
    // The table shows the layout itself in another column, and with it where a file goes on.
    let of_cil = layouts.filter_map(|layout| {
        let form = layout.form.as_ref().filter(|form| form.is_cil_over_all())?;
        Some((layout.name.as_str(), form.title()))
    });
    let mut all = Vec::new();
    for (scheme, short) in of_cil.chain(HYBRID.map(|scheme| (scheme, scheme.to_uppercase()))) {
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

/// Returns the candidate that a plan file forces on the file.
fn forced(work: &Workspace, name: String, plan: String, file: &Path) -> anyhow::Result<Forced> {
    let parsed = files::parsed(&work.path(&plan), Plan::parse)?;
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
