//! Inline SVG plots, bars and strips whose text stays readable at any width.
//!
//! Horizontal positions are percentages of the drawing's width; vertical positions and text sizes
//! are in pixels. A drawing stretches with the page, but its letters do not. Colors are classes of
//! the page's style sheet.

use std::fmt::Write;

use crate::density::{Density, Kind, SHADES};
use crate::html::Html;
use crate::ticks::Tick;
use crate::units;

/// Formats a fraction (0 to 1) as a percentage for an attribute. Two decimals are a tenth of a
/// pixel on a wide page.
pub fn share(share: f64) -> String {
    let mut text = format!("{:.2}", share.clamp(0.0, 1.0) * 100.0);
    while text.ends_with('0') {
        text.pop();
    }
    if text.ends_with('.') {
        text.pop();
    }
    text + "%"
}

/// Draws at full width and fixed height; `name` is the accessible name.
pub fn drawing(h: &mut Html, class: &str, height: u32, name: &str, inside: impl FnOnce(&mut Html)) {
    let height = height.to_string();
    let attributes =
        [("class", class), ("width", "100%"), ("height", &height), ("role", "img"), ("aria-label", name)];
    h.element("svg", &attributes, inside);
}

/// Draws a rectangle from `left` to `right` (fractions of the width) with a tooltip.
pub fn rect(h: &mut Html, class: &str, (left, right): (f64, f64), (top, height): (f64, f64), title: &str) {
    let (x, width) = (share(left), share(right - left));
    let (y, height) = (format!("{top:.1}"), format!("{height:.1}"));
    let attributes = [("class", class), ("x", x.as_str()), ("y", &y), ("width", &width), ("height", &height)];
    if title.is_empty() {
        h.empty("rect", &attributes);
    } else {
        h.element("rect", &attributes, |h| h.leaf("title", &[], title));
    }
}

/// Draws a line between two points, each given as (fraction of the width, pixels).
pub fn line(h: &mut Html, class: &str, from: (f64, f64), to: (f64, f64)) {
    let (x1, y1, x2, y2) = (share(from.0), format!("{:.1}", from.1), share(to.0), format!("{:.1}", to.1));
    h.empty("line", &[("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
}

/// Draws a text at (fraction of the width, pixels). `anchor` is `start`, `middle` or `end`; `dx`
/// shifts it to the right by pixels.
pub fn label(h: &mut Html, class: &str, (x, y): (f64, f64), anchor: &str, dx: i32, text: &str) {
    let (x, y, dx) = (share(x), format!("{y:.1}"), dx.to_string());
    let attributes = [("class", class), ("x", x.as_str()), ("y", &y), ("text-anchor", anchor), ("dx", &dx)];
    h.leaf("text", &attributes, text);
}

/// Height of a bar in pixels.
pub const BAR_HEIGHT: f64 = 14.0;

/// Draws a bar over `range` (fractions of the width), and its value as text at `text_at`.
pub fn bar(h: &mut Html, class: &str, range: (f64, f64), top: f64, text_at: f64, text: &str) {
    if range.1 > range.0 {
        rect(h, class, range, (top, BAR_HEIGHT), text);
    }
    label(h, "value", (text_at, top + BAR_HEIGHT - 3.0), "start", 8, text);
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
pub fn frame(h: &mut Html, plot: &Plot<'_>, content: impl FnOnce(&mut Html)) {
    let height = f64::from(plot.height);
    drawing(h, "plot", plot.height, plot.name, |h| {
        rect(h, "area", (0.0, 1.0), (0.0, height), "");
        for tick in &plot.y {
            let y = if plot.downwards { tick.at * height } else { (1.0 - tick.at) * height };
            line(h, "grid", (0.0, y), (1.0, y));
            label(h, "tick", (0.0, y + 4.0), "end", -8, &tick.label);
        }
        for (index, tick) in plot.x.iter().enumerate() {
            line(h, "grid", (tick.at, 0.0), (tick.at, height));
            let anchor = if tick.at > 0.93 { "end" } else { "middle" };
            // A narrow screen has space only for every other label.
            let class = if plot.x.len() > 4 && index % 2 == 1 { "tick wide" } else { "tick" };
            label(h, class, (tick.at, height + 16.0), anchor, 0, &tick.label);
        }
        content(h);
    });
}

/// Draws the frame with `content` in it. The content uses a box of `cells` (columns, rows) that is
/// stretched over the plot area.
pub fn stretched(h: &mut Html, plot: &Plot<'_>, cells: (usize, usize), content: impl FnOnce(&mut Html)) {
    let view = format!("0 0 {} {}", cells.0, cells.1);
    let attributes =
        [("width", "100%"), ("height", "100%"), ("viewBox", &view), ("preserveAspectRatio", "none")];
    frame(h, plot, |h| h.element("svg", &attributes, content));
}

/// Draws the cells of a density plot, one path per kind and shade, in a box of
/// [`COLUMNS`](crate::density::COLUMNS) by its rows.
pub fn density(h: &mut Html, density: &Density) {
    let runs = density.runs();
    for kind in Kind::ALL {
        for shade in 0..SHADES {
            let mut path = String::new();
            for run in runs.iter().filter(|run| (run.kind, run.shade) == (kind, shade)) {
                let _ = write!(path, "M{} {}h{}v1h-{}z", run.column, run.row, run.len, run.len);
            }
            if !path.is_empty() {
                let class = format!("{} s{shade}", kind_class(kind));
                h.empty("path", &[("class", &class), ("d", &path)]);
            }
        }
    }
}

/// Returns the class that colors a kind.
fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Both => "both",
    }
}

/// Draws stacked columns of heights 0 to 1. `parts` are (class, height of each column), the bottom
/// part first. The box has one column per height and 100 rows.
pub fn columns(h: &mut Html, parts: &[(&str, Vec<f64>)]) {
    let count = parts.first().map_or(0, |(_, heights)| heights.len());
    let mut base = vec![0.0; count];
    for (class, heights) in parts {
        let mut path = String::new();
        for (column, (&height, base)) in heights.iter().zip(&mut base).enumerate() {
            let (top, tall) = (100.0 - (*base + height) * 100.0, height * 100.0);
            *base += height;
            if tall > 0.0 {
                let _ = write!(path, "M{column} {top:.2}h1v{tall:.2}h-1z");
            }
        }
        if !path.is_empty() {
            h.empty("path", &[("class", class), ("d", &path)]);
        }
    }
}

/// Draws a legend: swatches of classes with their meaning.
pub fn legend(h: &mut Html, entries: &[(&str, &str)]) {
    h.element("div", &[("class", "legend")], |h| {
        for (class, meaning) in entries {
            swatches(h, &[class], meaning);
        }
    });
}

/// Draws the legend of a density plot: its kinds, and the meaning of the shades.
pub fn density_legend(h: &mut Html, density: &Density) {
    let runs = density.runs();
    let kinds = Kind::ALL.into_iter().filter(|kind| runs.iter().any(|run| run.kind == *kind));
    let shades = (0..SHADES).filter(|shade| runs.iter().any(|run| run.shade == *shade));
    let peak = density.peak();
    h.element("div", &[("class", "legend")], |h| {
        for kind in kinds {
            let meaning = match kind {
                Kind::Read => "reads",
                Kind::Write => "writes",
                Kind::Both => "reads and writes",
            };
            swatches(h, &[kind_class(kind)], meaning);
        }
        if peak > 1 {
            let classes: Vec<String> = shades.map(|shade| format!("ink s{shade}")).collect();
            let classes: Vec<&str> = classes.iter().map(String::as_str).collect();
            swatches(h, &classes, &format!("1 \u{2013} {} requests in one cell", units::count(peak)));
        }
    });
}

fn swatches(h: &mut Html, classes: &[&str], meaning: &str) {
    let width = (classes.len() * 14).to_string();
    h.element("span", &[], |h| {
        h.element("svg", &[("width", &width), ("height", "14"), ("aria-hidden", "true")], |h| {
            for (index, class) in classes.iter().enumerate() {
                let x = (index * 14).to_string();
                h.empty("rect", &[("class", class), ("x", &x), ("width", "14"), ("height", "14")]);
            }
        });
        h.text(meaning);
    });
}
