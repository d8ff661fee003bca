//! Expected work of a cache: which requests are critical, which data fits, and the largest possible
//! gain.

use maud::{Markup, html};
use stripewise_cluster::Rule;
use stripewise_plan::ExpectedCache;
use stripewise_plan::expected::{Expected, part};

use super::super::bars::{Bars, time};
use super::super::parts::{facts, figure};
use crate::{draw, units};

/// Bounds from here on are too large to be informative, and are not shown.
const BOUND_SHOWN: f64 = 1e4;

/// Draws all figures about a cache.
pub fn figures(rule: &Rule, expected: &Expected, cache: &ExpectedCache) -> Markup {
    let data = html! {
        (units::bytes(cache.critical_bytes as u64)) ", each byte once, of which " (units::percent(cache.fits)) " fit"
    };
    let speed_up = html! {
        (units::factor(cache.speed_up())) ": all requests cost " (units::seconds(cache.original_s))
        " on the original alone and " (units::seconds(cache.cached_s))
        " with the cache (process-seconds, without the network), once it holds what an earlier run like this one left in it"
    };
    html! {
        (criticality(expected, cache))
        (facts([
            (format!("Data of {} requests", cache.taken()).as_str(), data),
            ("Bound by the model", html! { (bound_sentence(cache)) }),
            ("Speed-up by SLA's model", speed_up),
        ]))
        (times(rule, expected))
        (layouts(cache))
    }
}

fn bound_sentence(cache: &ExpectedCache) -> String {
    let x = units::percent(cache.time_of_hits);
    if cache.bound() > BOUND_SHOWN {
        return format!("no bound: hits are all of the original's time (x = {x})");
    }
    format!(
        "{} = 1/(1\u{2212}x): hits are x = {x} of the original's time, and if they took none, the rest would remain \
         (which may be faster, too, with fewer requests on its servers)",
        units::factor(cache.bound()),
    )
}

/// Draws the requests and bytes by kind: hits, critical without space, not critical.
fn criticality(expected: &Expected, cache: &ExpectedCache) -> Markup {
    let taken = cache.taken();
    let of_requests = part(cache.critical_requests, expected.requests());
    let of_bytes = part(cache.critical_request_bytes, expected.bytes());
    let rows = [
        ("requests", expected.hits(), of_requests, units::count(expected.requests() as u64)),
        ("bytes", expected.hit_bytes(), of_bytes, units::bytes(expected.bytes() as u64)),
    ];
    let text = match taken {
        "critical" => "critical requests gain from it; those whose data do not fit are served by the original.",
        _ => "it takes everything, as long as it fits; the rest is served by the original.",
    };
    let (no_space, rest) = (format!("{taken}, no space"), format!("not {taken}"));
    figure(
        "What the cache serves",
        text,
        html! {
            (draw::legend(&[("expected", "expected hits"), ("expected s0", &no_space), ("rest", &rest)]))
            div.bars {
                @for (name, hits, critical, all) in rows {
                    div { (name) " (" (all) ")" }
                    div { (strip(name, taken, hits, critical.max(hits))) }
                }
            }
        },
    )
}

fn strip(name: &str, taken: &str, hits: f64, critical: f64) -> Markup {
    let text = format!(
        "{} hits, {} {taken} without space, {} not {taken}",
        units::percent(hits),
        units::percent(critical - hits),
        units::percent(1.0 - critical),
    );
    let segments = [("expected", (0.0, hits)), ("expected s0", (hits, critical)), ("rest", (critical, 1.0))];
    html! {
        (draw::segments(20, &format!("{name}: {text}"), &segments))
        span.soft.small { (text) }
    }
}

fn times(rule: &Rule, expected: &Expected) -> Markup {
    let Some(alone) = expected.copies.first().and_then(|copy| copy.alone) else { return Markup::default() };
    let candidates = [time("original alone", alone.alone_elapsed_s), time("with the cache", rule.elapsed_s)];
    Bars { candidates: &candidates, choice: "with the cache", present: "" }
        .figure("Expected wall-clock time without and with the cache")
}

/// Shows the gain from choosing between layouts, compared with each layout alone.
fn layouts(cache: &ExpectedCache) -> Markup {
    if cache.layouts.is_empty() {
        return Markup::default();
    }
    let all = "each request in its best";
    let mut candidates = vec![time("no cache", cache.original_s)];
    for layout in &cache.layouts {
        let rest = if layout.chosen { "only" } else { "only (not in the plan)" };
        candidates.push(time(format!("{} {rest}", layout.name), layout.cached_s));
    }
    candidates.push(time(all, cache.cached_s));
    Bars { candidates: &candidates, choice: all, present: "" }
        .figure("All requests with one layout only in the cache (process-seconds by SLA's model)")
}
