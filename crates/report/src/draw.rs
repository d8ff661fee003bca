//! Inline SVG: plots, bars and strips that keep their text readable at any width.
//!
//! Horizontal places are per cents of the drawing's width, vertical ones and text are in pixels: a drawing
//! stretches with the page, its letters do not. Colours are classes of the page's style sheet.

use std::fmt::Write;

use crate::density::{Density, Kind, SHADES};
use crate::html::Html;
use crate::ticks::Tick;
use crate::units;

/// A share (0 to 1) as per cent for an attribute; two decimals are a tenth of a pixel on a wide page.
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

/// A drawing of a fixed height and the full width, with a name for those who do not see it.
pub fn drawing(h: &mut Html, class: &str, height: u32, name: &str, inside: impl FnOnce(&mut Html)) {
    let height = height.to_string();
    let attributes =
        [("class", class), ("width", "100%"), ("height", &height), ("role", "img"), ("aria-label", name)];
    h.element("svg", &attributes, inside);
}

/// A rectangle from `left` to `right` (shares of the width), with a text that appears when one points at it.
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

/// A line between two points, (share of the width, pixels) each.
pub fn line(h: &mut Html, class: &str, from: (f64, f64), to: (f64, f64)) {
    let (x1, y1, x2, y2) = (share(from.0), format!("{:.1}", from.1), share(to.0), format!("{:.1}", to.1));
    h.empty("line", &[("class", class), ("x1", &x1), ("y1", &y1), ("x2", &x2), ("y2", &y2)]);
}

/// A text at (share of the width, pixels); `anchor` is `start`, `middle` or `end`, `dx` pixels to the right.
pub fn label(h: &mut Html, class: &str, (x, y): (f64, f64), anchor: &str, dx: i32, text: &str) {
    let (x, y, dx) = (share(x), format!("{y:.1}"), dx.to_string());
    let attributes = [("class", class), ("x", x.as_str()), ("y", &y), ("text-anchor", anchor), ("dx", &dx)];
    h.leaf("text", &attributes, text);
}

/// Height of a bar, pixels.
pub const BAR_HEIGHT: f64 = 14.0;

/// A bar over `range` (shares of the width) with its value in words behind `text_at`.
pub fn bar(h: &mut Html, class: &str, range: (f64, f64), top: f64, text_at: f64, text: &str) {
    if range.1 > range.0 {
        rect(h, class, range, (top, BAR_HEIGHT), text);
    }
    label(h, "value", (text_at, top + BAR_HEIGHT - 3.0), "start", 8, text);
}

/// What a plot is made of, apart from its content.
pub struct Plot<'a> {
    /// Pixels of the plot's area.
    pub height: u32,
    /// What it shows, in a sentence.
    pub name: &'a str,
    /// Marks along the bottom.
    pub x: Vec<Tick>,
    /// Marks along the left side, upwards or downwards.
    pub y: Vec<Tick>,
    /// Whether y grows downwards.
    pub downwards: bool,
}

/// Draws the frame with `content` on it, in the units of [`drawing`].
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
            // On a narrow screen there is room for every other label only.
            let class = if plot.x.len() > 4 && index % 2 == 1 { "tick wide" } else { "tick" };
            label(h, class, (tick.at, height + 16.0), anchor, 0, &tick.label);
        }
        content(h);
    });
}

/// Draws the frame with `content` on it, in a box of `cells` (columns, rows) that is stretched over the area.
pub fn stretched(h: &mut Html, plot: &Plot<'_>, cells: (usize, usize), content: impl FnOnce(&mut Html)) {
    let view = format!("0 0 {} {}", cells.0, cells.1);
    let attributes =
        [("width", "100%"), ("height", "100%"), ("viewBox", &view), ("preserveAspectRatio", "none")];
    frame(h, plot, |h| h.element("svg", &attributes, content));
}

/// The cells of a picture of requests, one path per kind and shade; for a box of
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

/// The class of a kind's colour.
fn kind_class(kind: Kind) -> &'static str {
    match kind {
        Kind::Read => "read",
        Kind::Write => "write",
        Kind::Both => "both",
    }
}

/// Columns of heights 0 to 1, stacked: `parts` are (class, height of each column), the first at the bottom.
/// For a box of as many columns as given and 100 rows.
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

/// A legend: swatches of classes with their meaning.
pub fn legend(h: &mut Html, entries: &[(&str, &str)]) {
    h.element("div", &[("class", "legend")], |h| {
        for (class, meaning) in entries {
            swatches(h, &[class], meaning);
        }
    });
}

/// The legend of a picture of requests: its kinds, and what the shades mean.
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
