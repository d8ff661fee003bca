//! Draws a figure as a separate SVG file, for Markdown pages.

use stripewise_report::html::Html;

use super::series::{Chart, Panel};
use super::{chart, look, words};

const WIDTH: usize = 880;
const MARGIN: usize = 16;
/// Space left of a panel's area, for the labels of its y axis.
const LEFT: usize = 56;
/// Space above a panel's area, for its title.
const ABOVE: usize = 34;
/// Space below a panel's area, for the labels and the title of its x axis.
const BELOW: usize = 48;
/// Number of panels side by side.
const COLUMNS: usize = 2;
/// Upper bound of the mean width of a letter, for placing texts side by side.
const LETTER: usize = 7;

/// Returns the drawing as a file.
pub fn alone(chart: &Chart<'_>) -> String {
    let legend = legend_places(chart);
    let legend_rows = legend.last().map_or(0, |(_, row)| row + 1);
    let top = 34 + legend_rows * 22;
    let rows = chart.panels.len().div_ceil(COLUMNS);
    let row_height = ABOVE + chart::HEIGHT as usize + BELOW;
    let height = (top + rows * row_height + 4).to_string();
    let mut h = Html::default();
    let width = WIDTH.to_string();
    let attributes = [
        ("xmlns", "http://www.w3.org/2000/svg"),
        ("width", width.as_str()),
        ("height", &height),
        ("role", "img"),
        ("aria-label", &chart.figure.title),
    ];
    h.element("svg", &attributes, |h| {
        h.element("style", &[], |h| {
            h.raw(include_str!("drawing.css"));
            h.raw(include_str!("look.css"));
        });
        look::definitions(h);
        h.empty("rect", &[("class", "sheet"), ("width", "100%"), ("height", "100%"), ("rx", "8")]);
        text(h, "head", (MARGIN, 24), &chart.figure.title);
        for (scheme, (x, row)) in legend.into_iter().enumerate() {
            entry(h, chart, scheme, (x, 34 + row * 22));
        }
        for (index, panel) in chart.panels.iter().enumerate() {
            let columns = chart.panels.len().min(COLUMNS);
            let width = (WIDTH - 2 * MARGIN) / columns;
            let left = MARGIN + (index % COLUMNS) * width;
            framed(h, chart, panel, (left, top + index / COLUMNS * row_height), width);
        }
    });
    h.finish()
}

/// Returns (x, row) of each scheme in the legend.
fn legend_places(chart: &Chart<'_>) -> Vec<(usize, usize)> {
    let (mut x, mut row) = (MARGIN, 0);
    let mut place = |scheme: &String| {
        let width = 34 + scheme.chars().count() * LETTER + 18;
        if x + width > WIDTH && x > MARGIN {
            (x, row) = (MARGIN, row + 1);
        }
        x += width;
        (x - width, row)
    };
    chart.schemes.iter().map(&mut place).collect()
}

fn entry(h: &mut Html, chart: &Chart<'_>, scheme: usize, (x, y): (usize, usize)) {
    let bars = chart.panels.iter().any(|panel| chart::is_bars(chart, panel));
    let (left, top) = (x.to_string(), y.to_string());
    h.element("svg", &[("x", &left), ("y", &top), ("width", "26"), ("height", "14")], |h| {
        chart::sample(h, chart.looks[scheme], bars);
    });
    text(h, "", (x + 34, y + 11), &chart.schemes[scheme]);
}

fn framed(h: &mut Html, chart: &Chart<'_>, panel: &Panel, (x, y): (usize, usize), width: usize) {
    text(h, "head", (x, y + 22), &format!("{}, {}", words::place(panel.place), chart::unit(panel)));
    let area = (x + LEFT, y + ABOVE, width - LEFT - MARGIN, chart::HEIGHT as usize);
    let [left, top, wide, high] = [area.0, area.1, area.2, area.3].map(|number| number.to_string());
    let attributes =
        [("x", left.as_str()), ("y", &top), ("width", &wide), ("height", &high), ("overflow", "visible")];
    h.element("svg", &attributes, |h| chart::panel(h, chart, panel));
    let (middle, bottom) = ((area.0 + area.2 / 2).to_string(), (area.1 + area.3 + 36).to_string());
    let attributes = [("class", "tick"), ("x", middle.as_str()), ("y", &bottom), ("text-anchor", "middle")];
    h.leaf("text", &attributes, &chart.figure.x.1);
}

fn text(h: &mut Html, class: &str, (x, y): (usize, usize), text: &str) {
    let (x, y) = (x.to_string(), y.to_string());
    h.leaf("text", &[("class", class), ("x", &x), ("y", &y)], text);
}
