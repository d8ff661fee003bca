//! Drawings of layouts: regions along the file, one turn of each stripe cycle, bytes per server.

use maud::{Markup, html};
use stripewise_cluster::{Cluster, Rule, Spread, format_cycle};
use stripewise_layout::{Layout, Region};

use super::bars::{BAR_END, Bar, bars};
use super::parts::{figure, more, soft};
use crate::{draw, ticks, units};

/// Maximum number of layouts drawn per rule. Files use them in turn, and they differ only in their
/// servers.
const LAYOUTS_DRAWN: usize = 8;

/// Maximum number of regions per layout whose cycles are drawn.
const REGIONS_DRAWN: usize = 16;

/// Maximum number of stripes of a cycle that are drawn individually.
const STRIPES_DRAWN: usize = 512;

/// Height of a strip in pixels.
const STRIP_HEIGHT: f64 = 40.0;

/// Height of the drawing of regions along the file in pixels.
const REGIONS_HEIGHT: f64 = 56.0;

/// Maximum number of servers whose bytes are drawn.
const SERVERS_DRAWN: usize = 64;

/// Number of tier colors: classes `t0` to `t5`.
const TIER_COLOURS: usize = 6;

/// Widths (fractions of the drawing) from which a label fits: on any screen, and on a wide one.
const LABEL_ANY: f64 = 0.16;
const LABEL_WIDE: f64 = 0.055;

/// Draws the layouts of a rule with one copy.
pub fn layouts(cluster: &Cluster, rule: &Rule, file_bytes: Option<u64>) -> Markup {
    if rule.layouts.is_empty() {
        return html! { p { "These files stay as they are." } };
    }
    let files = |bytes: u64| match rule.layouts.len() {
        1 => format!("of a file of {}", units::bytes(bytes)),
        n => format!("of {n} files of {}, one with each layout", units::bytes(bytes)),
    };
    html! {
        (tier_legend(cluster))
        (copy(cluster, &rule.pattern, &rule.layouts, &rule.spread, file_bytes))
        @if let Some(bytes) = file_bytes {
            (bytes_per_server(cluster, &files(bytes), rule.layouts.iter(), bytes))
        }
    }
}

/// Draws the layouts of one copy of the files with this pattern, and says how a file picks one of
/// several.
pub fn copy(
    cluster: &Cluster,
    pattern: &str,
    layouts: &[Layout],
    spread: &Spread,
    file_bytes: Option<u64>,
) -> Markup {
    match layouts {
        [] => Markup::default(),
        [layout] => one(cluster, layout.regions(), file_bytes),
        several => turns(cluster, several, &spread_sentence(pattern, spread, several.len())),
    }
}

fn one(cluster: &Cluster, regions: &[Region], file_bytes: Option<u64>) -> Markup {
    // If the size is not known, the last region is drawn a third as long as what precedes it.
    let last = regions.last().map_or(0, |region| region.start);
    let length = file_bytes.unwrap_or(last.saturating_add(last / 3)).max(1);
    let title = |index: usize| match regions.len() {
        1 => "Stripe cycle".to_owned(),
        _ => format!("Region {}", index + 1),
    };
    html! {
        @if regions.len() > 1 { (along_the_file(cluster, regions, length, file_bytes.is_some())) }
        @for (index, region) in regions.iter().take(REGIONS_DRAWN).enumerate() {
            (cycle(cluster, region, &title(index), length))
        }
        (more(regions.len().saturating_sub(REGIONS_DRAWN), "regions are not drawn."))
    }
}

/// Draws layouts that files use in turn. They differ only in their servers, so one strip each is
/// enough.
fn turns(cluster: &Cluster, layouts: &[Layout], which: &str) -> Markup {
    html! {
        p { (which) }
        div.bars.tight {
            @for (index, layout) in layouts.iter().take(LAYOUTS_DRAWN).enumerate() {
                @for (number, region) in layout.regions().iter().take(REGIONS_DRAWN).enumerate() {
                    div {
                        "layout " (index)
                        @if layout.regions().len() > 1 { ", region " (number + 1) }
                    }
                    div { (strip(cluster, region)) }
                }
            }
        }
        @if layouts.len() > LAYOUTS_DRAWN {
            (soft(format_args!("And {} more like these.", layouts.len() - LAYOUTS_DRAWN)))
        }
    }
}

fn spread_sentence(pattern: &str, spread: &Spread, layouts: usize) -> String {
    let number = match spread.field {
        None => "a hash of the file's path".to_owned(),
        Some(0) if pattern.matches("<n>").count() == 1 => "the number in the file's name".to_owned(),
        Some(field) => format!("number {} of those in the file's name", field + 1),
    };
    let stride = match spread.stride {
        1 => String::new(),
        stride => format!(", divided by {stride},"),
    };
    format!("Files take turns among {layouts} layouts: {number}{stride} decides.")
}

/// Draws the legend of the tiers' colors.
pub fn tier_legend(cluster: &Cluster) -> Markup {
    let names = cluster.tiers.iter().enumerate();
    let entries = names.map(|(tier, spec)| (tier_class(Some(tier)), spec.name.as_str()));
    draw::legend(&entries.collect::<Vec<_>>())
}

fn tier_class(tier: Option<usize>) -> &'static str {
    ["t0", "t1", "t2", "t3", "t4", "t5"][tier.unwrap_or(TIER_COLOURS - 1) % TIER_COLOURS]
}

/// Draws the regions along the file. Each is divided vertically in the proportion in which its
/// cycle distributes bytes over the tiers.
fn along_the_file(cluster: &Cluster, regions: &[Region], length: u64, sized: bool) -> Markup {
    let rest = if sized { "." } else { " (size of the file not known: the last region goes on)." };
    let plot = draw::Plot {
        height: REGIONS_HEIGHT as u32,
        name: &format!("{} regions along the file", regions.len()),
        x: ticks::bytes(length),
        y: vec![],
        downwards: false,
    };
    let blocks = html! {
        @for (index, region) in regions.iter().enumerate() {
            @let end = region.end.unwrap_or(u64::MAX);
            @let ends = [region.start, end].map(|at| (at as f64 / length as f64).min(1.0));
            (region_block(cluster, region, index, ends.into()))
        }
    };
    figure(
        "Along the file",
        format!("where its regions begin, and which part of each region lies on which tier{rest}"),
        html! { div.framed.bare { (draw::frame(&plot, blocks)) } },
    )
}

fn region_block(cluster: &Cluster, region: &Region, index: usize, ends: (f64, f64)) -> Markup {
    let turn = region.cycle_len();
    let mut bottom = REGIONS_HEIGHT;
    let mut block = |tier: usize| {
        let on_tier = region.cycle.iter().filter(|stripe| cluster.tier_of(stripe.target) == Some(tier));
        let share = on_tier.map(|stripe| stripe.width).sum::<u64>() as f64 / turn as f64;
        let height = share * REGIONS_HEIGHT;
        bottom -= height;
        let title = format!("region {}: {} on {}", index + 1, units::percent(share), cluster.tiers[tier].name);
        let class = format!("{} edge", tier_class(Some(tier)));
        html! { @if share > 0.0 { (draw::rect(&class, ends, (bottom, height), &title)) } }
    };
    html! {
        @for tier in 0..cluster.tiers.len() { (block(tier)) }
        (fitting_label("on strong", ends, REGIONS_HEIGHT - 8.0, &format!("region {}", index + 1)))
    }
}

fn fitting_label(class: &str, (left, right): (f64, f64), y: f64, text: &str) -> Markup {
    let class = match right - left {
        width if width >= LABEL_ANY => class.to_owned(),
        width if width >= LABEL_WIDE => format!("{class} wide"),
        _ => return Markup::default(),
    };
    draw::label(&class, ((left + right) / 2.0, y), "middle", 0, text)
}

/// Draws one turn of a region's stripe cycle, with a description in words.
fn cycle(cluster: &Cluster, region: &Region, title: &str, length: u64) -> Markup {
    // Every word is an element of its own, so that lines break between words only.
    let words = html! {
        (region_sentence(region, length)) ": "
        @for word in format_cycle(&region.cycle, cluster).split(' ') { code.word { (word) } " " }
    };
    figure(title, words, strip(cluster, region))
}

/// Draws one turn of a region's stripe cycle to scale.
fn strip(cluster: &Cluster, region: &Region) -> Markup {
    if region.cycle.len() > STRIPES_DRAWN {
        let stripes = units::count(region.cycle.len() as u64);
        return soft(format_args!("{stripes} stripes are too many to draw."));
    }
    let name = format!("One turn of the stripe cycle: {}", format_cycle(&region.cycle, cluster));
    draw::drawing("strip", STRIP_HEIGHT as u32, &name, stripes(cluster, region))
}

fn region_sentence(region: &Region, length: u64) -> String {
    let turn = region.cycle_len();
    let place = match (region.start, region.end) {
        (0, None) => "the whole file".to_owned(),
        (start, None) => format!("from {} to the end", units::bytes(start)),
        (start, Some(end)) => format!("from {} to {}", units::bytes(start), units::bytes(end)),
    };
    let held = region.end.unwrap_or(length).min(length).saturating_sub(region.start);
    let turns = match held {
        0 => ", not reached by this file".to_owned(),
        _ if held > turn => format!(", repeated about {} times", units::count(held / turn)),
        _ => String::new(),
    };
    format!("{place}; one turn of {}{turns}", units::bytes(turn))
}

fn stripes(cluster: &Cluster, region: &Region) -> Markup {
    let turn = region.cycle_len() as f64;
    let is_alone = region.cycle.len() == 1;
    let mut start = 0;
    let mut place = |width: u64| {
        start += width;
        ((start - width) as f64 / turn, start as f64 / turn)
    };
    // Adjacent stripes of one tier alternate in shade, which makes the ends of stripes visible.
    let alternate = |target: u32| if target % 2 == 1 { " alt" } else { "" };
    let class = |target| format!("{} edge{}", tier_class(cluster.tier_of(target)), alternate(target));
    html! {
        @for stripe in &region.cycle {
            @let place = place(stripe.width);
            @let (name, width) = (target_name(cluster, stripe.target), units::bytes(stripe.width));
            (draw::rect(&class(stripe.target), place, (0.0, STRIP_HEIGHT), &format!("{name}: {width}")))
            // The width of a single stripe is not informative, because every turn continues where
            // the last one ended.
            @if is_alone {
                (fitting_label("on strong", place, 24.0, &format!("all on {name}")))
            } @else {
                (fitting_label("on strong", place, 17.0, &name))
                (fitting_label("on", place, 31.0, &width))
            }
        }
    }
}

fn target_name(cluster: &Cluster, target: u32) -> String {
    match cluster.tier_of(target) {
        None => format!("server {target}"),
        Some(tier) => format!("{}/{}", cluster.tiers[tier].name, target - cluster.targets_of(tier).start),
    }
}

/// Draws the bytes on each server for files of this size, one file per layout; `files` describes
/// them.
pub fn bytes_per_server<'a>(
    cluster: &Cluster,
    files: &str,
    layouts: impl Iterator<Item = &'a Layout> + Clone,
    file_bytes: u64,
) -> Markup {
    let held = |target: u32| {
        let of = |layout: &Layout| layout.object_size(target, file_bytes);
        layouts.clone().map(of).fold(0u64, u64::saturating_add)
    };
    let targets: Vec<(u32, u64)> = (0..cluster.target_count() as u32).map(|t| (t, held(t))).collect();
    let most = targets.iter().map(|target| target.1).max().unwrap_or(0).max(1);
    let bar = |target: u32, bytes: u64| Bar {
        class: tier_class(cluster.tier_of(target)),
        meaning: "",
        end: bytes as f64 / most as f64 * BAR_END,
        text: units::bytes(bytes),
        range: None,
    };
    figure(
        "Bytes on each server",
        format_args!("{files}."),
        html! {
            div.bars.tight {
                @for &(target, bytes) in targets.iter().take(SERVERS_DRAWN) {
                    @let name = target_name(cluster, target);
                    div { (name) }
                    div { (bars(&name, &[bar(target, bytes)])) }
                }
            }
            (more(targets.len().saturating_sub(SERVERS_DRAWN), "servers are not drawn."))
        },
    )
}
