//! Files with several copies: layouts of the copies, their expected work, and their statistics.

mod cache;
mod classes;
pub mod measured;

use maud::{Markup, html};
use stripewise_cluster::{CacheAdmission, CacheMode, Durability, Overlay, OverlayKind, Rule};
use stripewise_plan::{Background, Expected};

use super::bars::{Bars, time};
use super::{parts, regions};
use crate::results::Candidate;
use crate::{PlanView, RuleDetails, units};

/// Writes a rule's copies and the expectations, in the rule's card.
pub fn in_card(view: &PlanView, rule: &Rule, overlay: &Overlay, details: &RuleDetails) -> Markup {
    let cluster = &view.plan.cluster;
    let original = ("original", &rule.layouts, &rule.spread);
    let copies = overlay.copies.iter().map(|copy| (copy.name.as_str(), &copy.layouts, &copy.spread));
    html! {
        (facts(overlay, details))
        @match &details.expected {
            None => p.absent {
                "Which requests go to which copy, and what that saves, is in the output of "
                code { "stripewise plan --json --candidates" }
                " that was printed when this plan was made: add " code { "--predictions plan.json" }
                " to this command."
            },
            Some(expected) => {
                @match &expected.cache {
                    None => (replicas(rule, expected, details.background)),
                    Some(cache) => (cache::figures(rule, expected, cache)),
                }
                (classes::figure(expected))
                (classes::table(expected))
            }
        }
        h4 { "Where the copies lie" }
        (regions::tier_legend(cluster))
        @for (name, layouts, spread) in std::iter::once(original).chain(copies) {
            div.copy {
                p { "Copy " b { (name) } }
                (regions::copy(cluster, &rule.pattern, layouts, spread, details.file_bytes))
            }
        }
        (bytes_on_servers(view, rule, overlay, details.file_bytes))
    }
}

/// Draws the time of every replica alone, compared with the choice between them.
fn replicas(rule: &Rule, expected: &Expected, background: Option<Background>) -> Markup {
    let alone = expected.copies.iter().filter_map(|copy| Some((&copy.name, copy.alone?.alone_elapsed_s)));
    let mut candidates: Vec<Candidate> = alone.map(|(name, s)| time(format!("{name} alone"), s)).collect();
    let choice = format!("all {} copies, each request on the cheapest", expected.copies.len());
    candidates.push(time(&choice, rule.elapsed_s));
    let copying_s = background.filter(|_| expected.close_waits).map_or(0.0, |background| background.seconds);
    if copying_s > 0.0 {
        candidates.push(time("the same, if close did not wait", (rule.elapsed_s - copying_s).max(0.0)));
    }
    Bars { candidates: &candidates, choice: &choice, present: "" }
        .figure("Expected wall-clock time of each copy alone, and with the choice between them")
}

fn facts(overlay: &Overlay, details: &RuleDetails) -> Markup {
    let admission = match overlay.kind {
        OverlayKind::Cache { mode: CacheMode::Sla | CacheMode::Sca, admission, .. } => Some(match admission {
            CacheAdmission::Balanced => {
                "those that keep the servers of the original and of the cache equally busy"
            }
            CacheAdmission::AsPrinted => "all, while there is space, as in SLA's Algorithm 1",
        }),
        _ => None,
    };
    let durable = match overlay.durability {
        Durability::Sync => "at fsync and close",
        Durability::EachWrite => "with every write",
    };
    let processes = units::counted(overlay.procs.into(), "process", "processes");
    let planned_for = format!(
        "{processes} at a time, {} per node, where nothing else is known at run time",
        overlay.procs_per_node
    );
    let facts = [
        ("Copies", Some(kind_sentence(overlay))),
        ("Critical writes admitted", admission.map(str::to_owned)),
        ("Space", details.expected.as_ref().map(|expected| space_sentence(overlay, expected))),
        ("In the background", details.background.map(|background| background_sentence(overlay, background))),
        ("Background limit", overlay.background.map(|limit| units::bytes_per_s(limit as f64))),
        ("Durable", Some(durable.to_owned())),
        ("Planned for", Some(planned_for)),
    ];
    parts::facts(facts.into_iter().filter_map(|(name, value)| Some((name, html! { (value?) }))))
}

fn background_sentence(overlay: &Overlay, background: Background) -> String {
    let what = match overlay.kind {
        _ if background.bytes == 0 => {
            return "nothing is written, so nothing is copied once the copies are made".into();
        }
        OverlayKind::Replicas => "are copied to the other replicas",
        OverlayKind::Cache { .. } => "are fetched or written back",
    };
    let (bytes, seconds) = (units::bytes(background.bytes), units::seconds(background.seconds));
    format!("{bytes} {what}, which takes {seconds} of the busiest server{}", close_words(overlay))
}

fn kind_sentence(overlay: &Overlay) -> String {
    match overlay.kind {
        OverlayKind::Replicas => format!(
            "{} whole copies; each request is served by the one on which requests like it cost least, of those that hold \
             the newest bytes",
            overlay.copies.len() + 1
        ),
        OverlayKind::Cache { mode, .. } => format!(
            "the files stay on the original's servers, parts of them are kept on faster ones (mode {}: {})",
            mode.name(),
            mode_words(mode),
        ),
    }
}

fn mode_words(mode: CacheMode) -> &'static str {
    match mode {
        CacheMode::Sla => "data of performance-critical requests, each in the layout in which it gains most",
        CacheMode::Sca => "data of requests that gain in 1-DH, in 1-DH",
        CacheMode::Nsca => "everything, in 1-DH",
        CacheMode::Off => "nothing new",
    }
}

fn space_sentence(overlay: &Overlay, expected: &Expected) -> String {
    let factor = units::factor(expected.space_factor);
    match (overlay.kind, &expected.cache) {
        (OverlayKind::Cache { capacity_per_server, .. }, Some(cache)) => format!(
            "{factor} the files' bytes, the cache full: {} in the cache, at most {} on each of its servers, for all cached \
             files together",
            units::bytes(cache.capacity_bytes as u64),
            units::bytes(capacity_per_server),
        ),
        _ => format!("{factor} the files' bytes"),
    }
}

fn close_words(overlay: &Overlay) -> &'static str {
    match (overlay.kind, overlay.lazy_close) {
        (OverlayKind::Cache { .. }, _) => "; close does not wait for that",
        (_, true) => "; close does not wait for that, and the expected time does not have it",
        (_, false) => "; close waits for that, and the expected time has it",
    }
}

/// Shows the bytes of all replicas per server, if each replica has one layout. For caches these
/// bytes depend on the requests and are not shown.
fn bytes_on_servers(view: &PlanView, rule: &Rule, overlay: &Overlay, file_bytes: Option<u64>) -> Markup {
    let all = || std::iter::once(&rule.layouts).chain(overlay.copies.iter().map(|copy| &copy.layouts));
    match file_bytes.filter(|_| overlay.kind == OverlayKind::Replicas) {
        Some(bytes) if all().all(|layouts| layouts.len() == 1) => {
            let files = format!("of a file of {} with all its copies", units::bytes(bytes));
            regions::bytes_per_server(&view.plan.cluster, &files, all().flatten(), bytes)
        }
        _ => Markup::default(),
    }
}
