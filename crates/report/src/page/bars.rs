//! Bar pairs: expected and measured wall-clock time of every candidate.

use crate::draw;
use crate::html::Html;
use crate::results::Candidate;
use crate::units::Clock;

/// Right end of the longest bar as a fraction of the width, which leaves space for the number
/// behind it.
pub const BAR_END: f64 = 0.74;

/// Distance from one bar to the next in pixels.
pub const BAR_PITCH: f64 = 18.0;

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

    fn longest_s(&self) -> f64 {
        self.candidates.iter().map(longest_s).fold(0.0, f64::max)
    }

    /// Draws the figure, or nothing if no candidate has a time.
    pub fn figure(&self, h: &mut Html, title: &str) {
        if self.longest_s() == 0.0 {
            return;
        }
        let measured = self.candidates.iter().any(|candidate| !candidate.measured_s.is_empty());
        h.element("figure", &[], |h| {
            h.element("figcaption", &[], |h| {
                h.leaf("b", &[], title);
                let what = if measured { "; measured is the median, the line spans all runs." } else { "." };
                h.text(&format!(": shorter is better{what}"));
            });
            let legend = [("expected", "expected by the model"), ("measured", "measured")];
            draw::legend(h, if measured { &legend } else { &legend[..1] });
            h.element("div", &[("class", "bars")], |h| {
                for candidate in self.candidates {
                    let class = if candidate.name == self.choice { "chosen" } else { "" };
                    h.element("div", &[("class", class)], |h| self.names(h, candidate));
                    h.element("div", &[("class", class)], |h| self.pair(h, candidate, measured));
                }
            });
        });
    }

    fn pair(&self, h: &mut Html, candidate: &Candidate, with_measured: bool) {
        let (clock, longest) = (self.clock(), self.longest_s());
        let expected = seconds_or(candidate.elapsed_s, clock, "not predicted");
        let measured = seconds_or(candidate.median_s(), clock, "not measured");
        let end = |seconds: Option<f64>| seconds.unwrap_or(0.0) / longest * BAR_END;
        let mut name = format!("{}: expected {expected}", candidate.name);
        let mut height = BAR_PITCH;
        if with_measured {
            name += &format!(", measured {measured}");
            height *= 2.0;
        }
        draw::drawing(h, "pair", height as u32, &name, |h| {
            let place = end(candidate.elapsed_s);
            draw::bar(h, "expected", (0.0, place), 1.0, place, &expected);
            if with_measured {
                let place = end(candidate.median_s());
                let least = candidate.measured_s.iter().copied().reduce(f64::min);
                let most = candidate.measured_s.iter().copied().reduce(f64::max);
                draw::bar(h, "measured", (0.0, place), 1.0 + BAR_PITCH, end(most), &measured);
                if least < most {
                    let y = 1.0 + BAR_PITCH + draw::BAR_HEIGHT / 2.0;
                    draw::line(h, "range", (end(least), y), (end(most), y));
                }
            }
        });
    }

    /// Writes a candidate's name, and marks for the choice and the present layout.
    pub fn names(&self, h: &mut Html, candidate: &Candidate) {
        h.text(&candidate.name);
        for (name, class, word) in [(self.choice, "pill chosen", "chosen"), (self.present, "pill", "present")] {
            if candidate.name == name {
                h.text(" ");
                h.leaf("span", &[("class", class)], word);
            }
        }
    }
}

fn longest_s(candidate: &Candidate) -> f64 {
    candidate.measured_s.iter().copied().chain(candidate.elapsed_s).fold(0.0, f64::max)
}

fn seconds_or(seconds: Option<f64>, clock: Clock, missing: &str) -> String {
    seconds.map_or(missing.to_owned(), |seconds| clock.print(seconds))
}
