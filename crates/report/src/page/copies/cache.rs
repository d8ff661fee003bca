//! Expected work of a cache: which requests are critical, which data fits, and the largest possible
//! gain.

use stripewise_cluster::Rule;
use stripewise_plan::expected::{Expected, ExpectedCache, part};

use super::super::bars::Bars;
use super::super::text::fact;
use crate::draw;
use crate::html::Html;
use crate::results::Candidate;
use crate::units;

/// Bounds from here on are too large to be informative, and are not shown.
const BOUND_SHOWN: f64 = 1e4;

/// Draws all figures about a cache.
pub fn figures(h: &mut Html, rule: &Rule, expected: &Expected, cache: &ExpectedCache) {
    criticality(h, expected, cache);
    h.element("dl", &[("class", "facts")], |h| {
        fact(h, &format!("Data of {} requests", cache.taken()), |h| {
            let bytes = units::bytes(cache.critical_bytes as u64);
            h.text(&format!("{bytes}, each byte once, of which {} fit", units::percent(cache.fits)));
        });
        fact(h, "Bound by the model", |h| h.text(&bound_sentence(cache)));
        fact(h, "Speed-up by SLA's model", |h| {
            h.text(&format!(
                "{}: all requests cost {} on the original alone and {} with the cache (process-seconds, without the \
                 network), once it holds what an earlier run like this one left in it",
                units::factor(cache.speed_up()),
                units::seconds(cache.original_s),
                units::seconds(cache.cached_s),
            ));
        });
    });
    times(h, rule, expected);
    layouts(h, cache);
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
fn criticality(h: &mut Html, expected: &Expected, cache: &ExpectedCache) {
    let taken = cache.taken();
    let of_requests = part(cache.critical_requests, expected.requests());
    let of_bytes = part(cache.critical_request_bytes, expected.bytes());
    let rows = [
        ("requests", expected.hits(), of_requests, units::count(expected.requests() as u64)),
        ("bytes", expected.hit_bytes(), of_bytes, units::bytes(expected.bytes() as u64)),
    ];
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], "What the cache serves");
            h.text(match cache.taken() {
                "critical" => {
                    ": critical requests gain from it; those whose data do not fit are served by the original."
                }
                _ => ": it takes everything, as long as it fits; the rest is served by the original.",
            });
        });
        draw::legend(
            h,
            &[
                ("expected", "expected hits"),
                ("expected s0", &format!("{taken}, no space")),
                ("rest", &format!("not {taken}")),
            ],
        );
        h.element("div", &[("class", "bars")], |h| {
            for (name, hits, critical, all) in rows {
                h.leaf("div", &[], &format!("{name} ({all})"));
                h.element("div", &[], |h| strip(h, (name, taken), hits, critical.max(hits)));
            }
        });
    });
}

fn strip(h: &mut Html, (name, taken): (&str, &str), hits: f64, critical: f64) {
    let text = format!(
        "{} hits, {} {taken} without space, {} not {taken}",
        units::percent(hits),
        units::percent(critical - hits),
        units::percent(1.0 - critical),
    );
    draw::drawing(h, "one", 20, &format!("{name}: {text}"), |h| {
        for (class, range) in
            [("expected", (0.0, hits)), ("expected s0", (hits, critical)), ("rest", (critical, 1.0))]
        {
            if range.1 > range.0 {
                draw::rect(h, class, range, (2.0, 16.0), &text);
            }
        }
    });
    h.leaf("span", &[("class", "soft small")], &text);
}

fn seconds(name: &str, elapsed_s: f64) -> Candidate {
    Candidate {
        name: name.to_owned(),
        layout: String::new(),
        predicted_s: None,
        elapsed_s: Some(elapsed_s),
        measured_s: Vec::new(),
        verified: None,
    }
}

fn times(h: &mut Html, rule: &Rule, expected: &Expected) {
    let Some(alone) = expected.copies.first().and_then(|copy| copy.alone) else { return };
    let candidates =
        [seconds("original alone", alone.alone_elapsed_s), seconds("with the cache", rule.elapsed_s)];
    let bars = Bars { candidates: &candidates, choice: "with the cache", present: "" };
    bars.figure(h, "Expected wall-clock time without and with the cache");
}

/// Shows the gain from choosing between layouts, compared with each layout alone.
fn layouts(h: &mut Html, cache: &ExpectedCache) {
    if cache.layouts.is_empty() {
        return;
    }
    let all = "each request in its best".to_owned();
    let mut candidates = vec![seconds("no cache", cache.original_s)];
    for layout in &cache.layouts {
        let name = if layout.chosen {
            format!("{} only", layout.name)
        } else {
            format!("{} only (not in the plan)", layout.name)
        };
        candidates.push(seconds(&name, layout.cached_s));
    }
    candidates.push(seconds(&all, cache.cached_s));
    let bars = Bars { candidates: &candidates, choice: &all, present: "" };
    bars.figure(h, "All requests with one layout only in the cache (process-seconds by SLA's model)");
}
