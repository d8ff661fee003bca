//! Section on a plan: its storage, and for each file-name pattern the layout, the reason, and the
//! other candidates.

use maud::{Markup, html};
use stripewise_cluster::{Cluster, Rule, Tier};
use stripewise_model::Service;
use stripewise_plan::{Joint, MoveLimit, Native};

use super::bars::Bars;
use super::parts::{Table, anchor, contents, exact, facts, sentence, soft};
use super::{candidates, copies, kinds, loads, regions, space};
use crate::results::Candidate;
use crate::{PlanView, Report, RuleDetails, units};

/// Maximum number of candidate kinds drawn as bars.
const KINDS_DRAWN: usize = 14;

/// Savings below this fraction of the time are not shown.
const NEGLIGIBLE: f64 = 0.0005;

const MIB: f64 = 1048576.0;

pub fn section(report: &Report<'_>) -> Markup {
    let views = report.plans;
    let is_same = |index: usize| index > 0 && views[index - 1].plan.cluster == views[index].plan.cluster;
    html! {
        (contents("plan", views.iter().map(|view| view.name.as_str())))
        @for (index, view) in views.iter().enumerate() {
            (plan(view, index, !is_same(index)))
            @for (rule, details) in view.plan.rules.iter().zip(&view.details) { (card(view, rule, details)) }
        }
    }
}

fn plan(view: &PlanView, index: usize, with_storage: bool) -> Markup {
    let rules = view.plan.rules.len() as u64;
    html! {
        div.card id=(anchor("plan", index)) {
            h3 { "Plan " code { (view.name) } }
            p {
                "Scheme asked for: " (view.plan.scheme) ". "
                (units::counted(rules, "pattern of file names", "patterns of file names")) "."
                @if !with_storage { " The storage is that of the plan before." }
            }
            @if let Some(joint) = &view.joint {
                (together(joint))
                @for curve in &joint.curves { (space::figure(curve)) }
            }
            (loads::figure_of(&view.loads))
            @if with_storage { (storage(&view.plan.cluster)) }
        }
    }
}

/// All files of a plan: now, planned, the bound, and what more space is worth.
fn together(joint: &Joint) -> Markup {
    let worth = joint.space.iter().map(|value| (&value.tier, value.worth()));
    let worth = worth.filter(|(_, (_, saves_s))| *saves_s > NEGLIGIBLE * joint.planned_s);
    html! {
        p {
            "All files together: " (units::seconds(joint.now_s)) " expected now, "
            (units::seconds(joint.planned_s)) " planned. No choice of changes worth making takes less than "
            (units::seconds(joint.bound_s)) "."
            @for (cause, seconds) in joint.waits.notable(joint.planned_s) {
                " " (cause) ": " (units::seconds(seconds)) " of the planned time."
            }
            @for stage in &joint.stages {
                " Used at the same time by different processes: " (stage.patterns.join(", ")) ": "
                (units::seconds(stage.now_s)) " now, " (units::seconds(stage.planned_s)) " planned."
            }
            @for (tier, (bytes, saves_s)) in worth {
                " Another " (units::bytes(bytes)) " on " (tier) " would save at most about " (units::seconds(saves_s)) "."
            }
            @if let Some(limit) = &joint.moving { (moving(limit)) }
        }
    }
}

/// A limit on moving that keeps files where they are.
fn moving(limit: &MoveLimit) -> Markup {
    let (bytes, saves_s) = limit.worth();
    html! {
        @if limit.unlimited_bytes > limit.bytes {
            " Moving is limited to " (units::bytes(limit.bytes)) ", and without a limit "
            (units::bytes(limit.unlimited_bytes)) " would be moved; moving another " (units::bytes(bytes))
            " would save at most about " (units::seconds(saves_s)) "."
        }
    }
}

fn storage(cluster: &Cluster) -> Markup {
    let caption = "Storage: time to start one access + time per MiB, as the predictions use them.";
    let class = |index: usize| cluster.class_of_tier(index);
    let time = |service: Option<Service>| match service {
        None => "\u{2013}".to_owned(),
        Some(service) => format!(
            "{} + {}",
            units::short_seconds(service.startup_s),
            units::short_seconds(service.per_byte_s * MIB)
        ),
    };
    let is_measured = |tier: &Tier| cluster.measured.contains_key(&tier.class);
    let table = Table::new(caption, cluster.tiers.iter().enumerate())
        .head("Tier", |(_, tier)| {
            html! { (tier.name) @if tier.emulate { " " span.pill.bad { "emulated" } } }
        })
        .text("class", |(_, tier)| &tier.class)
        .amount("servers", |(_, tier)| tier.driver.servers() as u64, units::count)
        .amount("capacity each", |(_, tier)| tier.capacity_per_server, units::bytes)
        .aligned("random read", |(index, _)| time(class(*index).map(|class| class.read.random)))
        .aligned("sequential read", |(index, _)| time(class(*index).map(|class| class.read.sequential)))
        .aligned("random write", |(index, _)| time(class(*index).map(|class| class.write.random)))
        .aligned("sequential write", |(index, _)| time(class(*index).map(|class| class.write.sequential)))
        .text("parameters", |(_, tier)| if is_measured(tier) { "measured" } else { "by hand" });
    let network = &cluster.network;
    html! {
        (table)
        @if network.establish_s > 0.0 || network.per_byte_s > 0.0 {
            p.small {
                "Network: " (units::seconds(network.establish_s)) " to establish a connection, "
                (units::seconds(network.per_byte_s * MIB)) " per MiB."
            }
        }
    }
}

fn card(view: &PlanView, rule: &Rule, details: &RuleDetails) -> Markup {
    let largest =
        details.file_bytes.map(|bytes| ("Largest file in the trace", html! { (units::bytes(bytes)) }));
    let times = [
        ("Expected wall-clock time", exact(Some(rule.elapsed_s), units::seconds)),
        ("Overall cost (process-seconds)", exact(Some(rule.predicted_s), units::seconds)),
    ];
    html! {
        div.card {
            h3 { code { (rule.pattern) } " " span.pill.chosen { (rule.scheme) } }
            p { (sentence(&rule.reason)) }
            (facts(times.into_iter().chain(largest)))
            @match &rule.overlay {
                Some(overlay) => (copies::in_card(view, rule, overlay, details)),
                None => (regions::layouts(&view.plan.cluster, rule, details.file_bytes)),
            }
            (considered(rule, details))
            @if let Some(compared) = &details.compared { (kinds::table(compared)) }
            (native(&details.native))
        }
    }
}

/// Writes the candidates that the planner compared.
fn considered(rule: &Rule, details: &RuleDetails) -> Markup {
    if details.candidates.is_empty() {
        return Markup::default();
    }
    let choice = if details.choice.is_empty() { &rule.scheme } else { &details.choice };
    let all = Bars { candidates: &details.candidates, choice, present: &details.present };
    let drawn = best_of_each_kind(&all);
    let title = match details.candidates.len() {
        count if count == drawn.len() => "Expected wall-clock time of each candidate".to_owned(),
        count => format!("Expected wall-clock time of the best candidate of each kind, of {count}"),
    };
    html! {
        (Bars { candidates: &drawn, ..all }.figure(&title))
        (candidates::table(&all, false))
    }
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

fn native(native: &[Native]) -> Markup {
    html! {
        @if !native.is_empty() { h4 { "The same layout on parallel file systems" } }
        @for Native { system, commands, note } in native {
            @if commands.is_empty() {
                (soft(format_args!("{system}: {}.", note.as_deref().unwrap_or("no commands"))))
            } @else {
                details open="open" {
                    summary { (system) }
                    @if let Some(note) = note { (soft(note)) }
                    pre { (commands.join("\n")) }
                }
            }
        }
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
