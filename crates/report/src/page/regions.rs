//! Drawings of layouts: regions along the file, one turn of each stripe cycle, bytes per server.

use stripewise_cluster::{Cluster, Rule, Spread, format_cycle};
use stripewise_layout::{Layout, Region};

use super::bars::BAR_END;
use crate::draw;
use crate::html::Html;
use crate::units;

/// Maximum number of layouts drawn per rule. Files use them in turn, and they differ only in their
/// servers.
const LAYOUTS_DRAWN: usize = 8;

/// Maximum number of regions per layout whose cycles are drawn.
const REGIONS_DRAWN: usize = 16;

/// Maximum number of stripes of a cycle that are drawn individually.
const STRIPES_DRAWN: usize = 512;

/// Height of a strip in pixels.
const STRIP_HEIGHT: f64 = 40.0;

/// Maximum number of servers whose bytes are drawn.
const SERVERS_DRAWN: usize = 64;

/// Number of tier colors: classes `t0` to `t5`.
const TIER_COLOURS: usize = 6;

/// Widths (fractions of the drawing) from which a label fits: on any screen, and on a wide one.
const LABEL_ANY: f64 = 0.16;
const LABEL_WIDE: f64 = 0.055;

/// Draws the layouts of a rule with one copy.
pub fn layouts(h: &mut Html, cluster: &Cluster, rule: &Rule, file_bytes: Option<u64>) {
    if rule.layouts.is_empty() {
        h.leaf("p", &[], "These files stay as they are.");
        return;
    }
    draw::legend(h, &tier_legend(cluster));
    copy(h, cluster, &rule.pattern, (&rule.layouts, &rule.spread), file_bytes);
    if let Some(bytes) = file_bytes {
        let files = match rule.layouts.len() {
            1 => format!("of a file of {}", units::bytes(bytes)),
            n => format!("of {n} files of {}, one with each layout", units::bytes(bytes)),
        };
        bytes_per_server(h, cluster, &files, rule.layouts.iter(), bytes);
    }
}

/// Draws the layouts of one copy of the files with this pattern, and says how a file picks one of
/// several.
pub fn copy(
    h: &mut Html,
    cluster: &Cluster,
    pattern: &str,
    (layouts, spread): (&[Layout], &Spread),
    file_bytes: Option<u64>,
) {
    match layouts {
        [] => {}
        [layout] => {
            let length = drawn_length(layout, file_bytes);
            if layout.regions().len() > 1 {
                along_the_file(h, cluster, layout, length, file_bytes.is_some());
            }
            regions(h, cluster, layout, length);
        }
        several => turns(h, cluster, several, &spread_sentence(pattern, spread, several.len())),
    }
}

/// Draws layouts that files use in turn. They differ only in their servers, so one strip each is
/// enough.
fn turns(h: &mut Html, cluster: &Cluster, layouts: &[Layout], which: &str) {
    h.leaf("p", &[], which);
    h.element("div", &[("class", "bars tight")], |h| {
        for (index, layout) in layouts.iter().take(LAYOUTS_DRAWN).enumerate() {
            for (number, region) in layout.regions().iter().take(REGIONS_DRAWN).enumerate() {
                let of =
                    if layout.regions().len() > 1 { format!(", region {}", number + 1) } else { String::new() };
                h.leaf("div", &[], &format!("layout {index}{of}"));
                h.element("div", &[], |h| strip(h, cluster, region));
            }
        }
    });
    if layouts.len() > LAYOUTS_DRAWN {
        let more = units::count((layouts.len() - LAYOUTS_DRAWN) as u64);
        h.leaf("p", &[("class", "soft")], &format!("And {more} more like these."));
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

pub fn tier_legend(cluster: &Cluster) -> Vec<(&'static str, &str)> {
    let names = cluster.tiers.iter().enumerate();
    names.map(|(tier, spec)| (tier_class(Some(tier)), spec.name.as_str())).collect()
}

fn tier_class(tier: Option<usize>) -> &'static str {
    ["t0", "t1", "t2", "t3", "t4", "t5"][tier.unwrap_or(TIER_COLOURS - 1) % TIER_COLOURS]
}

fn regions(h: &mut Html, cluster: &Cluster, layout: &Layout, length: u64) {
    let several = layout.regions().len() > 1;
    for (index, region) in layout.regions().iter().take(REGIONS_DRAWN).enumerate() {
        cycle(h, cluster, region, several.then_some(index), length);
    }
    let hidden = layout.regions().len().saturating_sub(REGIONS_DRAWN);
    if hidden > 0 {
        let hidden = units::count(hidden as u64);
        h.leaf("p", &[("class", "soft")], &format!("{hidden} more regions are not drawn."));
    }
}

/// Returns the length of the file that is drawn: its size or, if unknown, a third more than the
/// start of the last region.
fn drawn_length(layout: &Layout, file_bytes: Option<u64>) -> u64 {
    let last = layout.regions().last().map_or(0, |region| region.start);
    file_bytes.unwrap_or(last.saturating_add(last / 3)).max(1)
}

/// Draws the regions along the file. Each is divided vertically in the proportion in which its
/// cycle distributes bytes over the tiers.
fn along_the_file(h: &mut Html, cluster: &Cluster, layout: &Layout, length: u64, sized: bool) {
    let height = 56.0;
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], "Along the file");
            h.text(": where its regions begin, and which part of each region lies on which tier");
            h.text(if sized { "." } else { " (size of the file not known: the last region goes on)." });
        });
        let name = format!("{} regions along the file", layout.regions().len());
        let plot = draw::Plot {
            height: height as u32,
            name: &name,
            x: crate::ticks::bytes(length),
            y: vec![],
            downwards: false,
        };
        h.element("div", &[("class", "framed bare")], |h| {
            draw::frame(h, &plot, |h| {
                for (index, region) in layout.regions().iter().enumerate() {
                    let left = (region.start as f64 / length as f64).min(1.0);
                    let right = (region.end.unwrap_or(u64::MAX) as f64 / length as f64).min(1.0);
                    region_block(h, cluster, region, index, (left, right), height);
                }
            });
        });
    });
}

fn region_block(
    h: &mut Html,
    cluster: &Cluster,
    region: &Region,
    index: usize,
    (left, right): (f64, f64),
    height: f64,
) {
    let turn = turn_bytes(region);
    let mut bottom = height;
    for tier in 0..cluster.tiers.len() {
        let on_tier = region.cycle.iter().filter(|stripe| cluster.tier_of(stripe.target) == Some(tier));
        let share = on_tier.map(|stripe| stripe.width).sum::<u64>() as f64 / turn as f64;
        if share > 0.0 {
            let class = format!("{} edge", tier_class(Some(tier)));
            let title =
                format!("region {}: {} on {}", index + 1, units::percent(share), cluster.tiers[tier].name);
            bottom -= share * height;
            draw::rect(h, &class, (left, right), (bottom, share * height), &title);
        }
    }
    fitting_label(h, "on strong", (left, right), height - 8.0, &format!("region {}", index + 1));
}

/// Draws a label in the middle of a range, if it fits.
fn fitting_label(h: &mut Html, class: &str, (left, right): (f64, f64), y: f64, text: &str) {
    let class = match right - left {
        width if width >= LABEL_ANY => class.to_owned(),
        width if width >= LABEL_WIDE => format!("{class} wide"),
        _ => return,
    };
    draw::label(h, &class, ((left + right) / 2.0, y), "middle", 0, text);
}

/// Draws one turn of a region's stripe cycle, with a description in words.
fn cycle(h: &mut Html, cluster: &Cluster, region: &Region, index: Option<usize>, length: u64) {
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            let title = index.map_or("Stripe cycle".to_owned(), |index| format!("Region {}", index + 1));
            h.leaf("b", &[], &title);
            h.text(&region_sentence(region, turn_bytes(region), length));
            // Every word is an element of its own, so that lines break between words only.
            for word in format_cycle(&region.cycle, cluster).split(' ') {
                h.leaf("code", &[("class", "word")], word);
                h.text(" ");
            }
        });
        strip(h, cluster, region);
    });
}

fn turn_bytes(region: &Region) -> u64 {
    region.cycle.iter().map(|stripe| stripe.width).sum()
}

/// Draws one turn of a region's stripe cycle to scale.
fn strip(h: &mut Html, cluster: &Cluster, region: &Region) {
    if region.cycle.len() > STRIPES_DRAWN {
        let stripes = units::count(region.cycle.len() as u64);
        h.leaf("p", &[("class", "soft")], &format!("{stripes} stripes are too many to draw."));
        return;
    }
    let text = format_cycle(&region.cycle, cluster);
    draw::drawing(h, "strip", STRIP_HEIGHT as u32, &format!("One turn of the stripe cycle: {text}"), |h| {
        stripes(h, cluster, region);
    });
}

fn region_sentence(region: &Region, turn: u64, length: u64) -> String {
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
    format!(": {place}; one turn of {}{turns}: ", units::bytes(turn))
}

fn stripes(h: &mut Html, cluster: &Cluster, region: &Region) {
    let turn = turn_bytes(region);
    let alone = region.cycle.len() == 1;
    let mut start = 0;
    for stripe in &region.cycle {
        let tier = cluster.tier_of(stripe.target);
        let place = (start as f64 / turn as f64, (start + stripe.width) as f64 / turn as f64);
        start += stripe.width;
        let name = target_name(cluster, stripe.target);
        let width = units::bytes(stripe.width);
        // Adjacent stripes of one tier alternate in shade, which makes the ends of stripes visible.
        let alternate = if stripe.target % 2 == 1 { " alt" } else { "" };
        let class = format!("{} edge{alternate}", tier_class(tier));
        draw::rect(h, &class, place, (0.0, STRIP_HEIGHT), &format!("{name}: {width}"));
        if alone {
            // The width of a single stripe is not informative, because every turn continues where
            // the last one ended.
            fitting_label(h, "on strong", place, 24.0, &format!("all on {name}"));
            return;
        }
        fitting_label(h, "on strong", place, 17.0, &name);
        fitting_label(h, "on", place, 31.0, &width);
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
    h: &mut Html,
    cluster: &Cluster,
    files: &str,
    layouts: impl Iterator<Item = &'a Layout> + Clone,
    file_bytes: u64,
) {
    let held = |target: u32| {
        let of = |layout: &Layout| layout.component_size(target, file_bytes);
        layouts.clone().map(of).fold(0u64, u64::saturating_add)
    };
    let targets: Vec<(u32, u64)> = (0..cluster.target_count() as u32).map(|t| (t, held(t))).collect();
    let most = targets.iter().map(|target| target.1).max().unwrap_or(0).max(1);
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], "Bytes on each server");
            h.text(&format!(": {files}."));
        });
        h.element("div", &[("class", "bars tight")], |h| {
            for &(target, bytes) in targets.iter().take(SERVERS_DRAWN) {
                server_bar(h, cluster, target, bytes, most);
            }
        });
        if targets.len() > SERVERS_DRAWN {
            let more = units::count((targets.len() - SERVERS_DRAWN) as u64);
            h.leaf("p", &[("class", "soft")], &format!("{more} more servers are not drawn."));
        }
    });
}

fn server_bar(h: &mut Html, cluster: &Cluster, target: u32, bytes: u64, most: u64) {
    let (name, text) = (target_name(cluster, target), units::bytes(bytes));
    h.leaf("div", &[], &name);
    h.element("div", &[], |h| {
        draw::drawing(h, "one", 16, &format!("{name}: {text}"), |h| {
            let end = bytes as f64 / most as f64 * BAR_END;
            draw::bar(h, tier_class(cluster.tier_of(target)), (0.0, end), 1.0, end, &text);
        });
    });
}
