//! Charts of the time of all files over the space of a tier.

use maud::{Markup, html};
use stripewise_plan::{SpaceCurve, SpacePoint};

use super::parts;
use crate::draw::{self, Plot};
use crate::{ticks, units};

/// Height of the plot area in pixels.
const HEIGHT: u32 = 200;

/// Times that differ by less than this fraction are drawn as one.
const SAME: f64 = 1e-3;

/// Draws the planned time and the lower bound over the size of a tier, with the present size
/// marked.
pub fn figure(curve: &SpaceCurve) -> Markup {
    let longest_s = curve.points.first().map_or(0.0, |point| point.planned_s);
    let end = end(curve);
    if end == 0 || longest_s <= 0.0 {
        return Markup::default();
    }
    let x = |bytes: u64| (bytes as f64 / end as f64).min(1.0);
    let y = |seconds: f64| (1.0 - seconds / longest_s) * f64::from(HEIGHT);
    let line = |class: &str, seconds: fn(&SpacePoint) -> f64| {
        let at = |point: &SpacePoint| (x(point.bytes), y(seconds(point)));
        html! { @for pair in curve.points.windows(2) { (draw::line(class, at(&pair[0]), at(&pair[1]))) } }
    };
    let now = x(curve.bytes);
    let (anchor, dx) = if now > 0.5 { ("end", -6) } else { ("start", 6) };
    let further = if curve.bytes > end { " \u{2192}" } else { "" };
    let plot = Plot {
        height: HEIGHT,
        name: &name(curve),
        x: ticks::bytes(end),
        y: ticks::seconds(0.0..longest_s),
        downwards: false,
    };
    let content = html! {
        (line("bound", |point| point.bound_s))
        (line("expected", |point| point.planned_s))
        @for point in &curve.points {
            (draw::dot("expected", (x(point.bytes), y(point.planned_s)), &words(point)))
        }
        (draw::line("now", (now, 0.0), (now, f64::from(HEIGHT))))
        (draw::label("tick", (now, 14.0), anchor, dx, &format!("now {}{further}", units::bytes(curve.bytes))))
    };
    parts::figure(
        &format!("Time over the space on {}", curve.tier),
        "expected time of all files together if the tier were larger or smaller.",
        html! {
            (draw::legend(&[("expected", "planned, at most"), ("bound", "no choice takes less")]))
            div.framed { (draw::frame(&plot, content)) }
            div.axis { "space on " (curve.tier) }
        },
    )
}

/// Returns the largest size on the axis: at most twice the one from which on nothing changes.
fn end(curve: &SpaceCurve) -> u64 {
    let Some(last) = curve.points.last() else { return 0 };
    let is_as = |one: f64, other: f64| one <= other * (1.0 + SAME);
    let is_flat = |it: &&SpacePoint| is_as(it.planned_s, last.planned_s) && is_as(it.bound_s, last.bound_s);
    let flat = curve.points.iter().find(is_flat).map_or(0, |point| point.bytes);
    last.bytes.min(flat.saturating_mul(2))
}

/// Writes all sizes and times, for those who do not see the chart.
fn name(curve: &SpaceCurve) -> String {
    let all: Vec<String> = curve.points.iter().map(words).collect();
    format!(
        "Expected time over the space on {}, now {}: {}",
        curve.tier,
        units::bytes(curve.bytes),
        all.join(", ")
    )
}

fn words(point: &SpacePoint) -> String {
    format!("{} with {}", units::seconds(point.planned_s), units::bytes(point.bytes))
}
