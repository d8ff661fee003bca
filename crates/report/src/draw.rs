//! Inline SVG plots, bars and strips whose text stays readable at any width.
//!
//! Horizontal positions are percentages of the drawing's width; vertical positions and text sizes
//! are in pixels. A drawing stretches with the page, but its letters do not. Colors are classes of
//! the page's style sheet.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use maud::{Markup, html};

use crate::density::{Density, Kind};
use crate::ticks::Tick;
use crate::units;

/// Formats a fraction (0 to 1) as a percentage for an attribute. Two decimals are a tenth of a
/// pixel on a wide page.
pub fn share(share: f64) -> String {
    units::trimmed(format!("{:.2}", share.clamp(0.0, 1.0) * 100.0)) + "%"
}

/// Draws at full width and fixed height; `name` is the accessible name.
pub fn drawing(class: &str, height: u32, name: &str, content: Markup) -> Markup {
    html! { svg class=(class) width="100%" height=(height) role="img" aria-label=(name) { (content) } }
}

/// Draws a rectangle from `left` to `right` (fractions of the width) with a tooltip, unless that is
/// empty.
pub fn rect(class: &str, (left, right): (f64, f64), (top, height): (f64, f64), title: &str) -> Markup {
    let (y, height) = (format!("{top:.1}"), format!("{height:.1}"));
    html! {
        rect class=(class) x=(share(left)) y=(y) width=(share(right - left)) height=(height) {
            @if !title.is_empty() { title { (title) } }
        }
    }
}

/// Draws a line between two points, each given as (fraction of the width, pixels).
pub fn line(class: &str, from: (f64, f64), to: (f64, f64)) -> Markup {
    let (y1, y2) = (format!("{:.1}", from.1), format!("{:.1}", to.1));
    html! { line class=(class) x1=(share(from.0)) y1=(y1) x2=(share(to.0)) y2=(y2) {} }
}

/// Draws a dot at (fraction of the width, pixels) with a tooltip.
pub fn dot(class: &str, (x, y): (f64, f64), title: &str) -> Markup {
    let y = format!("{y:.1}");
    html! { circle class=(class) cx=(share(x)) cy=(y) r="3.5" { title { (title) } } }
}

/// Draws a text at (fraction of the width, pixels). `anchor` is `start`, `middle` or `end`; `dx`
/// shifts it to the right by pixels.
pub fn label(class: &str, (x, y): (f64, f64), anchor: &str, dx: i32, text: &str) -> Markup {
    let y = format!("{y:.1}");
    html! { text class=(class) x=(share(x)) y=(y) text-anchor=(anchor) dx=(dx) { (text) } }
}

/// Draws a bar of several segments, each a class and its ends as fractions of the width, with
/// `text` as accessible name and tooltip.
pub fn segments(height: u32, text: &str, segments: &[(&str, (f64, f64))]) -> Markup {
    let vertical = (1.0, f64::from(height) - 2.0);
    let visible = segments.iter().filter(|(_, (left, right))| right > left);
    drawing(
        "one",
        height,
        text,
        html! {
            @for (class, ends) in visible { (rect(class, *ends, vertical, text)) }
        },
    )
}

/// Frame of a plot: everything except its content.
pub struct Plot<'a> {
    /// Height of the plot area in pixels.
    pub height: u32,
    /// Description of the plot in one sentence.
    pub name: &'a str,
    /// Ticks along the bottom.
    pub x: Vec<Tick>,
    /// Ticks along the left side.
    pub y: Vec<Tick>,
    /// Whether y grows downwards.
    pub downwards: bool,
}

/// Draws the frame with `content` in it, in the units of [`drawing`].
pub fn frame(plot: &Plot<'_>, content: Markup) -> Markup {
    let height = f64::from(plot.height);
    let y = |tick: &Tick| if plot.downwards { tick.at * height } else { (1.0 - tick.at) * height };
    // A narrow screen has space only for every other label.
    let class = |index: usize| if plot.x.len() > 4 && index % 2 == 1 { "tick wide" } else { "tick" };
    let anchor = |tick: &Tick| if tick.at > 0.93 { "end" } else { "middle" };
    drawing(
        "plot",
        plot.height,
        plot.name,
        html! {
            (rect("area", (0.0, 1.0), (0.0, height), ""))
            @for tick in &plot.y {
                (line("grid", (0.0, y(tick)), (1.0, y(tick))))
                (label("tick", (0.0, y(tick) + 4.0), "end", -8, &tick.label))
            }
            @for (index, tick) in plot.x.iter().enumerate() {
                (line("grid", (tick.at, 0.0), (tick.at, height)))
                (label(class(index), (tick.at, height + 16.0), anchor(tick), 0, &tick.label))
            }
            (content)
        },
    )
}

/// Draws the frame with `content` in it. The content uses a box of `cells` (columns, rows) that is
/// stretched over the plot area.
pub fn stretched(plot: &Plot<'_>, (columns, rows): (usize, usize), content: Markup) -> Markup {
    let view = format!("0 0 {columns} {rows}");
    frame(
        plot,
        html! {
            svg width="100%" height="100%" viewBox=(view) preserveAspectRatio="none" { (content) }
        },
    )
}

/// Draws the cells of a density plot, one path per kind and shade, in a box of
/// [`COLUMNS`](crate::density::COLUMNS) by its rows.
pub fn density(density: &Density) -> Markup {
    let mut paths = BTreeMap::<_, String>::new();
    for run in density.runs() {
        let path = paths.entry((run.kind, run.shade)).or_default();
        let _ = write!(path, "M{} {}h{}v1h-{}z", run.column, run.row, run.len, run.len);
    }
    html! {
        @for ((kind, shade), path) in &paths { path class={ (kind.legend().0) " s" (shade) } d=(path) {} }
    }
}

/// Draws stacked columns of heights 0 to 1. `parts` are (class, height of each column), the bottom
/// part first. The box has one column per height and 100 rows.
pub fn columns(parts: &[(&str, Vec<f64>)]) -> Markup {
    let mut base = vec![0.0; parts.first().map_or(0, |(_, heights)| heights.len())];
    let mut path = |heights: &[f64]| {
        let mut path = String::new();
        for (column, (&height, base)) in heights.iter().zip(&mut base).enumerate() {
            let (top, tall) = (100.0 - (*base + height) * 100.0, height * 100.0);
            *base += height;
            if tall > 0.0 {
                let _ = write!(path, "M{column} {top:.2}h1v{tall:.2}h-1z");
            }
        }
        path
    };
    html! { @for (class, heights) in parts { path class=(class) d=(path(heights)) {} } }
}

/// Draws a legend: swatches of classes with their meaning.
pub fn legend(entries: &[(&str, &str)]) -> Markup {
    html! { div.legend { @for (class, meaning) in entries { (swatches(&[class], meaning)) } } }
}

/// Draws the legend of a density plot: its kinds, and the meaning of the shades.
pub fn density_legend(density: &Density) -> Markup {
    let runs = density.runs();
    let kinds: BTreeSet<_> = runs.iter().map(|run| run.kind).collect();
    let shades: BTreeSet<usize> = runs.iter().map(|run| run.shade).collect();
    let classes: Vec<String> = shades.iter().map(|shade| format!("ink s{shade}")).collect();
    let peak = density.peak();
    html! {
        div.legend {
            @for (class, meaning) in kinds.into_iter().map(Kind::legend) { (swatches(&[class], meaning)) }
            @if peak > 1 {
                (swatches(&classes, &format!("1 \u{2013} {} requests in one cell", units::count(peak))))
            }
        }
    }
}

fn swatches(classes: &[impl AsRef<str>], meaning: &str) -> Markup {
    html! {
        span {
            svg width=(classes.len() * 14) height="14" aria-hidden="true" {
                @for (index, class) in classes.iter().enumerate() {
                    rect class=(class.as_ref()) x=(index * 14) width="14" height="14" {}
                }
            }
            (meaning)
        }
    }
}
