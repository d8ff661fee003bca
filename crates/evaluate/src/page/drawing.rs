//! Draws a figure as a separate SVG file, for Markdown pages.

use maud::{Markup, PreEscaped, html};
use stripewise_report::html::document;

use super::series::{Chart, Panel};
use super::{chart, format, look};

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

/// Style sheet of the file.
const STYLE: PreEscaped<&str> = PreEscaped(concat!(include_str!("drawing.css"), include_str!("look.css")));

/// Returns the drawing as a file.
pub fn alone(chart: &Chart<'_>) -> String {
    let legend = legend_places(chart);
    let legend_rows = legend.last().map_or(0, |(_, row)| row + 1);
    let top = 34 + legend_rows * 22;
    let row_height = ABOVE + chart::HEIGHT as usize + BELOW;
    let height = top + chart.panels.len().div_ceil(COLUMNS) * row_height + 4;
    let width = (WIDTH - 2 * MARGIN) / chart.panels.len().clamp(1, COLUMNS);
    let place = |index: usize| (MARGIN + (index % COLUMNS) * width, top + index / COLUMNS * row_height);
    let title = &chart.figure.title;
    document(html! {
        svg xmlns="http://www.w3.org/2000/svg" width=(WIDTH) height=(height) role="img" aria-label=(title) {
            style { (STYLE) }
            (look::definitions())
            rect.sheet width="100%" height="100%" rx="8" {}
            (text("head", (MARGIN, 24), title))
            @for (scheme, (x, row)) in legend.into_iter().enumerate() {
                (entry(chart, scheme, (x, 34 + row * 22)))
            }
            @for (index, panel) in chart.panels.iter().enumerate() {
                (framed(chart, panel, place(index), width))
            }
        }
    })
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

fn entry(chart: &Chart<'_>, scheme: usize, (x, y): (usize, usize)) -> Markup {
    let bars = chart.panels.iter().any(|panel| chart::is_bars(chart, panel));
    html! {
        svg x=(x) y=(y) width="26" height="14" { (chart::sample(chart.looks[scheme], bars)) }
        (text("", (x + 34, y + 11), &chart.schemes[scheme]))
    }
}

fn framed(chart: &Chart<'_>, panel: &Panel, (x, y): (usize, usize), width: usize) -> Markup {
    let title = format!("{}, {}", format::place(panel.place), chart::unit(panel));
    let (left, top, wide) = (x + LEFT, y + ABOVE, width - LEFT - MARGIN);
    let height = chart::HEIGHT as usize;
    html! {
        (text("head", (x, y + 22), &title))
        svg x=(left) y=(top) width=(wide) height=(height) overflow="visible" { (chart::panel(chart, panel)) }
        text.tick x=(left + wide / 2) y=(top + height + 36) text-anchor="middle" { (chart.figure.x.1) }
    }
}

fn text(class: &str, (x, y): (usize, usize), text: &str) -> Markup {
    html! { text class=(class) x=(x) y=(y) { (text) } }
}
