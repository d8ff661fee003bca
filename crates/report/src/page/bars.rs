//! Bar charts: rows of a name, and below each other the bars of its values.

use maud::{Markup, html};

use super::parts::{exact, figure};
use crate::draw;
use crate::results::Candidate;
use crate::units::Clock;

/// Right end of the longest bar as a fraction of the width, which leaves space for the number
/// behind it.
pub const BAR_END: f64 = 0.74;

/// Distance from one bar to the next in pixels.
const PITCH: f64 = 18.0;

/// Height of a bar in pixels.
const HEIGHT: f64 = 14.0;

/// A bar with its value.
pub struct Bar<'a> {
    /// Class that colors the bar.
    pub class: &'a str,
    /// What precedes the value in the drawing's accessible name.
    pub meaning: &'a str,
    /// Right end, as a fraction of the width.
    pub end: f64,
    /// The value as text, behind the bar.
    pub text: String,
    /// Ends of the line that shows a range of values around `end`.
    pub range: Option<(f64, f64)>,
}

/// Draws the bars of a row below each other.
pub fn bars(name: &str, bars: &[Bar<'_>]) -> Markup {
    let bar = |(index, bar): (usize, &Bar<'_>)| {
        let top = 1.0 + index as f64 * PITCH;
        let text_at = bar.range.map_or(bar.end, |(_, most)| most);
        let middle = top + HEIGHT / 2.0;
        html! {
            @if bar.end > 0.0 { (draw::rect(bar.class, (0.0, bar.end), (top, HEIGHT), &bar.text)) }
            (draw::label("value", (text_at, top + HEIGHT - 3.0), "start", 8, &bar.text))
            @if let Some((least, most)) = bar.range.filter(|(least, most)| least < most) {
                (draw::line("range", (least, middle), (most, middle)))
            }
        }
    };
    let words: Vec<String> = bars.iter().map(|bar| format!("{}{}", bar.meaning, bar.text)).collect();
    let height = PITCH as u32 * bars.len() as u32;
    draw::drawing(
        "pair",
        height,
        &format!("{name}: {}", words.join(", ")),
        html! {
            @for row in bars.iter().enumerate() { (bar(row)) }
        },
    )
}

/// Returns an expected time to draw next to others.
pub fn time(name: impl Into<String>, elapsed_s: f64) -> Candidate {
    Candidate { name: name.into(), elapsed_s: Some(elapsed_s), ..Candidate::default() }
}

/// Candidates to draw, with two of them marked.
#[derive(Clone, Copy)]
pub struct Bars<'a> {
    /// All candidates to draw.
    pub candidates: &'a [Candidate],
    /// Name of the planner's choice.
    pub choice: &'a str,
    /// Name of the layout without a plan; empty if there is none.
    pub present: &'a str,
}

impl Bars<'_> {
    /// Returns the format of the candidates' times.
    pub fn clock(&self) -> Clock {
        Clock::up_to(self.longest_s())
    }

    /// Writes a time in that format.
    pub fn time(&self, seconds: Option<f64>) -> Markup {
        exact(seconds, |seconds| self.clock().print(seconds))
    }

    fn longest_s(&self) -> f64 {
        let times = |c: &Candidate| c.measured_s.iter().copied().chain(c.elapsed_s).fold(0.0, f64::max);
        self.candidates.iter().map(times).fold(0.0, f64::max)
    }

    /// Draws the figure, or nothing if no candidate has a time.
    pub fn figure(&self, title: &str) -> Markup {
        if self.longest_s() == 0.0 {
            return Markup::default();
        }
        let measured = self.candidates.iter().any(|candidate| !candidate.measured_s.is_empty());
        let what = if measured { "; measured is the median, the line spans all runs." } else { "." };
        let legend = [("expected", "expected by the model"), ("measured", "measured")];
        figure(
            title,
            format!("shorter is better{what}"),
            html! {
                (draw::legend(if measured { &legend } else { &legend[..1] }))
                div.bars {
                    @for candidate in self.candidates {
                        @let is_choice = candidate.name == self.choice;
                        div.chosen[is_choice] { (self.names(candidate)) }
                        div.chosen[is_choice] { (self.pair(candidate, measured)) }
                    }
                }
            },
        )
    }

    fn pair(&self, candidate: &Candidate, with_measured: bool) -> Markup {
        let (clock, longest) = (self.clock(), self.longest_s());
        let end = |seconds: f64| seconds / longest * BAR_END;
        let bar = |class, meaning, seconds: Option<f64>, missing: &str, range| Bar {
            class,
            meaning,
            end: end(seconds.unwrap_or(0.0)),
            text: seconds.map_or(missing.to_owned(), |seconds| clock.print(seconds)),
            range,
        };
        let runs = candidate.range_s().map(|(least, most)| (end(least), end(most)));
        let mut both = vec![bar("expected", "expected ", candidate.elapsed_s, "not predicted", None)];
        if with_measured {
            both.push(bar("measured", "measured ", candidate.median_s(), "not measured", runs));
        }
        bars(&candidate.name, &both)
    }

    /// Writes a candidate's name, and marks for the choice and the present layout.
    pub fn names(&self, candidate: &Candidate) -> Markup {
        html! {
            (candidate.name)
            @if candidate.name == self.choice { " " span.pill.chosen { "chosen" } }
            @if candidate.name == self.present { " " span.pill { "present" } }
        }
    }
}
