//! Section on a plan: its storage, and for each file-name pattern the layout, the reason, and the
//! other candidates.

use stripewise_cluster::Rule;
use stripewise_plan::Native;

use super::bars::Bars;
use super::regions::layouts;
use super::text::{anchor, contents, fact, sentence};
use super::{candidates, copies};
use crate::html::Html;
use crate::results::Candidate;
use crate::{PlanView, RuleDetails, units};

/// Maximum number of candidate kinds drawn as bars.
const KINDS_DRAWN: usize = 14;

pub fn section(h: &mut Html, views: &[PlanView]) {
    contents(h, "plan", views.iter().map(|view| view.name.as_str()));
    for (index, view) in views.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| &views[before]);
        let is_new = before.is_none_or(|before| before.plan.cluster != view.plan.cluster);
        plan(h, view, index, is_new);
    }
}

fn plan(h: &mut Html, view: &PlanView, index: usize, with_storage: bool) {
    let plan = &view.plan;
    h.element("div", &[("class", "card"), ("id", &anchor("plan", index))], |h| {
        h.element("h3", &[], |h| {
            h.text("Plan ");
            h.leaf("code", &[], &view.name);
        });
        let rules = plan.rules.len() as u64;
        let patterns = units::counted(rules, "pattern of file names", "patterns of file names");
        let storage = if with_storage { "" } else { " The storage is that of the plan before." };
        h.leaf("p", &[], &format!("Scheme asked for: {}. {patterns}.{storage}", plan.scheme));
        if with_storage {
            super::cluster::tiers(h, &plan.cluster);
        }
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
        h.leaf("p", &[], &sentence(&rule.reason));
        h.element("dl", &[("class", "facts")], |h| {
            fact(h, "Expected wall-clock time", |h| value(h, rule.elapsed_s));
            fact(h, "Overall cost (process-seconds)", |h| value(h, rule.predicted_s));
            if let Some(bytes) = file_bytes {
                fact(h, "Largest file in the trace", |h| h.text(&units::bytes(bytes)));
            }
        });
        match (&rule.overlay, details) {
            (Some(overlay), Some(details)) => copies::in_card(h, view, rule, overlay, details),
            _ => layouts(h, &view.plan.cluster, rule, file_bytes),
        }
        if let Some(details) = details {
            considered(h, rule, details);
            native(h, &details.native);
        }
    });
}

/// Writes the candidates that the planner compared.
fn considered(h: &mut Html, rule: &Rule, details: &RuleDetails) {
    if details.candidates.is_empty() {
        return;
    }
    let all =
        Bars { candidates: &details.candidates, choice: choice_of(rule, details), present: &details.present };
    let drawn = best_of_each_kind(&all);
    let title = match details.candidates.len() - drawn.len() {
        0 => "Expected wall-clock time of each candidate".to_owned(),
        others => {
            format!("Expected wall-clock time of the best candidate of each kind, of {}", others + drawn.len())
        }
    };
    Bars { candidates: &drawn, ..all }.figure(h, &title);
    candidates::table(h, &all, false);
}

/// Returns the name of the candidate that a rule's layouts come from.
fn choice_of<'a>(rule: &'a Rule, details: &'a RuleDetails) -> &'a str {
    if details.choice.is_empty() { &rule.scheme } else { &details.choice }
}

/// Returns the fastest candidate of each kind, and always the choice and the present layout, in the
/// given order.
fn best_of_each_kind(bars: &Bars<'_>) -> Vec<Candidate> {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    let mut drawn = Vec::new();
    for candidate in bars.candidates {
        let is_new = !kinds.contains(&kind(&candidate.name)) && kinds.len() < KINDS_DRAWN;
        if is_new {
            kinds.push(kind(&candidate.name));
        }
        if is_new || candidate.name == bars.choice || candidate.name == bars.present {
            drawn.push(candidate.clone());
        }
    }
    drawn
}

/// Returns the kind of a candidate: the common parts of the names of candidates that differ only in
/// a number. `stripe 64K on ssd` gives ("stripe", "on ssd").
fn kind(name: &str) -> (&str, &str) {
    let scheme = name.split([' ', ',']).next().unwrap_or(name);
    let place = name.find(" on ").or_else(|| name.find(", then ")).map_or("", |start| &name[start..]);
    (scheme, place)
}

fn value(h: &mut Html, seconds: f64) {
    h.leaf("data", &[("value", &seconds.to_string())], &units::seconds(seconds));
}

fn native(h: &mut Html, native: &[Native]) {
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

#[cfg(test)]
mod tests {
    use super::kind;

    #[test]
    fn candidates_that_differ_in_a_number_are_of_one_kind() {
        assert_eq!(kind("stripe 64K on ssd, then hdd"), kind("stripe 4K on ssd, then hdd"));
        assert_eq!(kind("PSA <120K,8K>"), kind("PSA <64K,64K>"));
        assert_eq!(kind("2-D g=2"), kind("2-D g=7"));
        assert_ne!(kind("stripe 64K on ssd"), kind("stripe 64K on hdd"));
        assert_ne!(kind("1-DH, then hdd"), kind("1-DH"));
        assert_ne!(kind("1-DH"), kind("1-DV"));
    }
}
