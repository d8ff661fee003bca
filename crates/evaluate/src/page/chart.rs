//! A panel of a figure: bars if there are few values, else lines. The y axis is throughput in
//! MiB/s.

use maud::{Markup, html};
use stripewise_report::draw::{self, Plot};
use stripewise_report::ticks::{self, Tick};
use stripewise_report::units;

use super::format;
use super::look;
use super::series::{Chart, Panel, Point};

/// Height of the plot area in pixels.
pub const HEIGHT: u32 = 210;

/// Maximum number of bars; a panel with more values has lines.
const MOST_BARS: usize = 36;

/// Maximum number of bars that have their values written above them.
const MOST_VALUES: usize = 14;

/// Ratio of values above which a panel has lines on a logarithmic axis, because bars must start at
/// 0.
const LINEAR: f64 = 40.0;

const MIB: f64 = 1024.0 * 1024.0;

/// The y axis of a panel.
struct Scale {
    /// Whether the axis is logarithmic (decimal) instead of linear from 0.
    logarithmic: bool,
    /// Lower end in MiB/s.
    low: f64,
    /// Upper end in MiB/s.
    high: f64,
}

impl Scale {
    fn of(panel: &Panel) -> Self {
        let least = panel.all().map(|point| point.rate / MIB).fold(f64::INFINITY, f64::min);
        let most = panel.all().map(|point| point.most / MIB).fold(0.0, f64::max);
        if least > 0.0 && most / least > LINEAR {
            return Self { logarithmic: true, low: least / 1.3, high: most * 1.3 };
        }
        Self { logarithmic: false, low: 0.0, high: most * 1.12 }
    }

    fn ticks(&self) -> Vec<Tick> {
        if self.logarithmic { ticks::logarithmic(self.low..self.high) } else { ticks::numbers(self.high) }
    }

    /// Returns the pixels from the top for a rate in bytes per second.
    fn y(&self, rate: f64) -> f64 {
        let value = rate / MIB;
        let share = if self.logarithmic {
            (value / self.low).ln() / (self.high / self.low).ln()
        } else {
            value / self.high
        };
        (1.0 - share.clamp(0.0, 1.0)) * f64::from(HEIGHT)
    }
}

/// Returns whether a panel is drawn as bars.
pub fn is_bars(chart: &Chart<'_>, panel: &Panel) -> bool {
    panel.x.len() * chart.schemes.len() <= MOST_BARS && !Scale::of(panel).logarithmic
}

/// Returns the label of the y axis.
pub fn unit(panel: &Panel) -> &'static str {
    if Scale::of(panel).logarithmic { "MiB/s, logarithmic" } else { "MiB/s" }
}

/// Draws a panel over the full width.
pub fn panel(chart: &Chart<'_>, panel: &Panel) -> Markup {
    let scale = Scale::of(panel);
    let name = format!("{}, {}: throughput in MiB/s", chart.figure.title, format::place(panel.place));
    let plot = Plot { height: HEIGHT, name: &name, x: Vec::new(), y: scale.ticks(), downwards: false };
    let data = if is_bars(chart, panel) { bars(chart, panel, &scale) } else { lines(chart, panel, &scale) };
    draw::frame(&plot, html! { (labels(panel)) (data) })
}

/// Returns the middle of the slot of the value with this index, as a fraction of the width.
fn middle(panel: &Panel, index: usize) -> f64 {
    (index as f64 + 0.5) / panel.x.len() as f64
}

fn labels(panel: &Panel) -> Markup {
    let longest = panel.x.iter().map(|x| x.chars().count()).max().unwrap_or(0);
    // A narrow screen has space for some thirty letters.
    let crowded = panel.x.len() * (longest + 1) > 30;
    let class = |index: usize| if crowded && index % 2 == 1 { "tick wide" } else { "tick" };
    let y = f64::from(HEIGHT) + 16.0;
    html! {
        @for (index, x) in panel.x.iter().enumerate() {
            (draw::label(class(index), (middle(panel, index), y), "middle", 0, x))
        }
    }
}

/// Returns the points that exist, with (index of the scheme, index of the value).
fn points(panel: &Panel) -> impl Iterator<Item = (usize, usize, &Point)> {
    panel.points.iter().enumerate().flat_map(|(scheme, points)| {
        let points = points.iter().enumerate();
        points.filter_map(move |(index, point)| Some((scheme, index, point.as_ref()?)))
    })
}

fn bars(chart: &Chart<'_>, panel: &Panel, scale: &Scale) -> Markup {
    let schemes = chart.schemes.len();
    let width = 0.82 / (panel.x.len() * schemes) as f64;
    let with_values = panel.x.len() * schemes <= MOST_VALUES;
    html! {
        @for (scheme, index, point) in points(panel) {
            @let left = middle(panel, index) + (scheme as f64 - schemes as f64 / 2.0) * width;
            (bar(chart, scheme, (left, left + width * 0.94), point, scale))
            @if with_values {
                @let at = (left + width * 0.47, scale.y(point.most) - 4.0);
                (draw::label("over wide", at, "middle", 0, &rate(point.rate)))
            }
        }
    }
}

fn bar(chart: &Chart<'_>, scheme: usize, range: (f64, f64), point: &Point, scale: &Scale) -> Markup {
    let look = chart.looks[scheme];
    let top = scale.y(point.rate);
    let vertical = (top, f64::from(HEIGHT) - top);
    let title = format!("{}: {} MiB/s", chart.schemes[scheme], rate(point.rate));
    html! {
        (draw::rect(&look::class(look), range, vertical, &title))
        @if let Some(class) = look::pattern(look) { (draw::rect(&class, range, vertical, "")) }
        (draw::rect("edge-bar", range, vertical, ""))
        (span(0.5 * (range.0 + range.1), point, scale))
    }
}

/// Draws the range from the slowest to the fastest repeat, if it is visible.
fn span(x: f64, point: &Point, scale: &Scale) -> Markup {
    let (from, to) = (scale.y(point.least), scale.y(point.most));
    if from - to >= 1.0 { draw::line("range", (x, from), (x, to)) } else { Markup::default() }
}

fn lines(chart: &Chart<'_>, panel: &Panel, scale: &Scale) -> Markup {
    let places = |points: &[Option<Point>]| -> Vec<(f64, f64)> {
        let points = points.iter().enumerate();
        let places = points.filter_map(|(index, point)| Some((index, point.as_ref()?)));
        places.map(|(index, point)| (middle(panel, index), scale.y(point.rate))).collect()
    };
    html! {
        @for (scheme, line) in panel.points.iter().enumerate() {
            @for pair in places(line).windows(2) {
                (draw::line(&line_class(chart.looks[scheme]), pair[0], pair[1]))
            }
        }
        @for (scheme, index, point) in points(panel) {
            @let at = (middle(panel, index), scale.y(point.rate));
            @let (scheme_name, x) = (&chart.schemes[scheme], &panel.x[index]);
            (span(at.0, point, scale))
            (mark(chart.looks[scheme], at, &format!("{scheme_name} at {x}: {} MiB/s", rate(point.rate))))
        }
    }
}

fn line_class(look: usize) -> String {
    format!("{} d{}", look::class(look), look % 4)
}

/// Draws a look's mark at (fraction of the width, pixels).
fn mark(look: usize, (x, y): (f64, f64), title: &str) -> Markup {
    html! {
        svg x=(draw::share(x)) y=(format!("{y:.1}")) width="1" height="1" overflow="visible" {
            path class={ (look::class(look)) " mark" } d=(look::mark(look)) { title { (title) } }
        }
    }
}

/// Draws a sample of a look, 26 by 14 pixels at (0, 0).
pub fn sample(look: usize, bars: bool) -> Markup {
    if bars {
        let classes = [Some(look::class(look)), look::pattern(look), Some("edge-bar".to_owned())];
        return html! {
            @for class in classes.into_iter().flatten() { rect class=(class) width="26" height="14" {} }
        };
    }
    html! {
        line class=(line_class(look)) x1="0" y1="7" x2="26" y2="7" {}
        svg x="13" y="7" width="1" height="1" overflow="visible" {
            path class={ (look::class(look)) " mark" } d=(look::mark(look)) {}
        }
    }
}

/// Formats a rate in MiB/s with three digits.
pub fn rate(rate: f64) -> String {
    let value = rate / MIB;
    let decimals = if value >= 99.95 { 0 } else { usize::from(value < 9.995) + 1 };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { units::number(value.round()) } else { text }
}
