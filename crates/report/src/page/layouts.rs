//! A plan: its storage, and per pattern of file names the layout, why, and what else was considered.

use stripewise_cluster::Rule;

use super::bars::Bars;
use super::candidates;
use super::outcome::fact;
use super::regions::layouts;
use crate::html::Html;
use crate::{NativeCommands, PlanView, RuleDetails, units};

/// Candidates that are drawn as bars, besides the choice and the present layout.
const CANDIDATES_DRAWN: usize = 12;

pub fn section(h: &mut Html, view: &PlanView) {
    let plan = &view.plan;
    h.element("div", &[("class", "card")], |h| {
        h.element("h3", &[], |h| {
            h.text("Plan ");
            h.leaf("code", &[], &view.name);
        });
        h.element("p", &[], |h| {
            h.text(&format!("Scheme asked for: {}. ", plan.scheme));
            h.text(&units::counted(
                plan.rules.len() as u64,
                "pattern of file names.",
                "patterns of file names.",
            ));
        });
        super::cluster::tiers(h, &plan.cluster);
    });
    for (index, rule) in plan.rules.iter().enumerate() {
        card(h, view, index, rule);
    }
}

fn card(h: &mut Html, view: &PlanView, index: usize, rule: &Rule) {
    let details = view.details.get(index);
    let file_bytes = details.and_then(|d| d.file_bytes);
    h.element("div", &[("class", "card")], |h| {
        h.element("h3", &[], |h| {
            h.leaf("code", &[], &rule.pattern);
            h.text(" ");
            h.leaf("span", &[("class", "pill chosen")], &rule.scheme);
        });
        h.leaf("p", &[], &rule.reason);
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Expected wall-clock time", |h| value(h, rule.elapsed_s));
            fact(h, "Overall cost (process-seconds)", |h| value(h, rule.predicted_s));
            if let Some(bytes) = file_bytes {
                fact(h, "Largest file in the trace", |h| h.text(&units::bytes(bytes)));
            }
        });
        layouts(h, &view.plan.cluster, rule, file_bytes);
        if let Some(details) = details {
            considered(h, rule, details);
            native(h, &details.native);
        }
    });
}

/// What the planner compared.
fn considered(h: &mut Html, rule: &Rule, details: &RuleDetails) {
    if details.candidates.is_empty() {
        return;
    }
    let choice = if details.choice.is_empty() { &rule.scheme } else { &details.choice };
    let all = Bars { candidates: &details.candidates, choice, present: &details.present };
    let is_named = |name: &str| name == all.choice || name == all.present;
    let best = details.candidates.iter().enumerate();
    let drawn = best.filter(|(index, candidate)| *index < CANDIDATES_DRAWN || is_named(&candidate.name));
    let drawn: Vec<_> = drawn.map(|(_, candidate)| candidate.clone()).collect();
    let title = match details.candidates.len() - drawn.len() {
        0 => "Expected wall-clock time of each candidate".to_owned(),
        slower => {
            format!("Expected wall-clock time of the best candidates ({slower} slower ones are in the table)")
        }
    };
    Bars { candidates: &drawn, ..all }.figure(h, &title);
    candidates::table(h, &all, false);
}

fn value(h: &mut Html, seconds: f64) {
    h.leaf("data", &[("value", &seconds.to_string())], &units::seconds(seconds));
}

fn native(h: &mut Html, native: &[NativeCommands]) {
    if native.is_empty() {
        return;
    }
    h.leaf("h4", &[], "The same layout on parallel file systems");
    for system in native {
        if system.commands.is_empty() {
            let note = system.note.as_deref().unwrap_or("no commands");
            h.leaf("p", &[("class", "soft")], &format!("{}: {note}.", system.system));
            continue;
        }
        h.element("details", &[("open", "open")], |h| {
            h.leaf("summary", &[], &system.system);
            if let Some(note) = &system.note {
                h.leaf("p", &[("class", "soft")], note);
            }
            h.leaf("pre", &[], &system.commands.join("\n"));
        });
    }
}
