//! Files with several copies: layouts of the copies, their expected work, and their statistics.

mod cache;
mod classes;
pub mod measured;
mod pairs;
mod replicas;

use stripewise_cluster::{CacheAdmission, CacheMode, Durability, Overlay, OverlayKind, Rule};
use stripewise_plan::Expected;

use super::regions;
use super::text::fact;
use crate::draw;
use crate::html::Html;
use crate::{PlanView, RuleDetails, units};

/// Writes a rule's copies and the expectations, in the rule's card.
pub fn in_card(h: &mut Html, view: &PlanView, rule: &Rule, overlay: &Overlay, details: &RuleDetails) {
    facts(h, overlay, details);
    match &details.expected {
        None => how_to_get_it(h),
        Some(expected) => {
            match &expected.cache {
                None => replicas::figures(h, rule, expected, details.background),
                Some(cache) => cache::figures(h, rule, expected, cache),
            }
            classes::figure(h, expected);
            classes::table(h, expected);
        }
    }
    h.leaf("h4", &[], "Where the copies lie");
    let cluster = &view.plan.cluster;
    draw::legend(h, &regions::tier_legend(cluster));
    let original = ("original", rule.layouts.as_slice(), &rule.spread);
    let copies = overlay.copies.iter().map(|copy| (copy.name.as_str(), copy.layouts.as_slice(), &copy.spread));
    for (name, layouts, spread) in std::iter::once(original).chain(copies) {
        h.element("div", &[("class", "copy")], |h| {
            h.element("p", &[], |h| {
                h.text("Copy ");
                h.leaf("b", &[], name);
            });
            regions::copy(h, cluster, &rule.pattern, (layouts, spread), details.file_bytes);
        });
    }
    bytes_on_servers(h, view, rule, overlay, details.file_bytes);
}

fn how_to_get_it(h: &mut Html) {
    h.element("p", &[("class", "absent")], |h| {
        h.text("Which requests go to which copy, and what that saves, is in the output of ");
        h.leaf("code", &[], "stripewise plan --json --candidates");
        h.text(" that was printed when this plan was made: add ");
        h.leaf("code", &[], "--predictions plan.json");
        h.text(" to this command.");
    });
}

fn facts(h: &mut Html, overlay: &Overlay, details: &RuleDetails) {
    h.element("dl", &[("class", "facts")], |h| {
        fact(h, "Copies", |h| h.text(&kind_sentence(overlay)));
        if let OverlayKind::Cache { mode: CacheMode::Sla | CacheMode::Sca, admission, .. } = overlay.kind {
            fact(h, "Critical writes admitted", |h| {
                h.text(match admission {
                    CacheAdmission::Balanced => {
                        "those that keep the servers of the original and of the cache equally busy"
                    }
                    CacheAdmission::AsPrinted => "all, while there is space, as in SLA's Algorithm 1",
                });
            });
        }
        if let Some(expected) = &details.expected {
            fact(h, "Space", |h| h.text(&space_sentence(overlay, expected)));
        }
        if let Some(background) = details.background {
            let what = match (overlay.kind, background.bytes) {
                (_, 0) => "nothing is written, so nothing is copied once the copies are made".to_owned(),
                (kind, bytes) => format!(
                    "{} {}, which takes {} of the busiest server{}",
                    units::bytes(bytes),
                    match kind {
                        OverlayKind::Replicas => "are copied to the other replicas",
                        OverlayKind::Cache { .. } => "are fetched or written back",
                    },
                    units::seconds(background.seconds),
                    close_words(overlay),
                ),
            };
            fact(h, "In the background", |h| h.text(&what));
        }
        if let Some(limit) = overlay.background {
            fact(h, "Background limit", |h| h.text(&units::bytes_per_s(limit as f64)));
        }
        fact(h, "Durable", |h| {
            h.text(match overlay.durability {
                Durability::Sync => "at fsync and close",
                Durability::EachWrite => "with every write",
            });
        });
        let (p, c) = (overlay.procs, overlay.procs_per_node);
        fact(h, "Planned for", |h| {
            h.text(&format!(
                "{} at a time, {c} per node, where nothing else is known at run time",
                units::counted(p.into(), "process", "processes")
            ));
        });
    });
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
            mode_words(mode.name()),
        ),
    }
}

/// Describes the data that a cache mode admits.
fn mode_words(mode: &str) -> &'static str {
    match mode {
        "sla" => "data of performance-critical requests, each in the layout in which it gains most",
        "sca" => "data of requests that gain in 1-DH, in 1-DH",
        "nsca" => "everything, in 1-DH",
        _ => "nothing new",
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
fn bytes_on_servers(h: &mut Html, view: &PlanView, rule: &Rule, overlay: &Overlay, file_bytes: Option<u64>) {
    let all = || std::iter::once(&rule.layouts).chain(overlay.copies.iter().map(|copy| &copy.layouts));
    let Some(bytes) = file_bytes.filter(|_| overlay.kind == OverlayKind::Replicas) else { return };
    if all().all(|layouts| layouts.len() == 1) {
        let files = format!("of a file of {} with all its copies", units::bytes(bytes));
        regions::bytes_per_server(h, &view.plan.cluster, &files, all().flatten(), bytes);
    }
}
