//! Bar pairs for a fraction of the whole: expected and measured.

use super::super::bars::{BAR_END, BAR_PITCH};
use crate::draw;
use crate::html::Html;
use crate::units;

/// A fraction of the whole (0 to 1): expected, if known, and measured.
pub struct Pair {
    /// Display name.
    pub name: String,
    /// Fraction according to the plan.
    pub expected: Option<f64>,
    /// Fraction according to the statistics.
    pub measured: f64,
    /// The amount as text.
    pub amount: String,
}

/// Draws a figure of several pairs.
pub fn figure(h: &mut Html, title: &str, text: &str, pairs: &[Pair]) {
    let any_expected = pairs.iter().any(|pair| pair.expected.is_some());
    h.element("figure", &[], |h| {
        h.element("figcaption", &[], |h| {
            h.leaf("b", &[], title);
            h.text(": ");
            h.text(text);
        });
        let legend = [("expected", "expected by the plan"), ("measured", "measured")];
        draw::legend(h, if any_expected { &legend } else { &legend[1..] });
        h.element("div", &[("class", "bars")], |h| {
            for pair in pairs {
                h.leaf("div", &[], &pair.name);
                h.element("div", &[], |h| bars(h, pair, any_expected));
            }
        });
    });
}

fn bars(h: &mut Html, pair: &Pair, with_expected: bool) {
    let measured = format!("{} ({})", units::percent(pair.measured), pair.amount);
    let expected = pair.expected.map_or("not predicted".to_owned(), units::percent);
    let (name, height) = match with_expected {
        true => (format!("{}: expected {expected}, measured {measured}", pair.name), 2.0 * BAR_PITCH),
        false => (format!("{}: measured {measured}", pair.name), BAR_PITCH),
    };
    draw::drawing(h, "pair", height as u32, &name, |h| {
        let mut top = 1.0;
        if with_expected {
            let end = share_end(pair.expected.unwrap_or(0.0));
            draw::bar(h, "expected", (0.0, end), top, end, &expected);
            top += BAR_PITCH;
        }
        let end = share_end(pair.measured);
        draw::bar(h, "measured", (0.0, end), top, end, &measured);
    });
}

/// Returns the right end of the bar of a fraction.
fn share_end(share: f64) -> f64 {
    // The text behind the bar is long.
    share.clamp(0.0, 1.0) * (BAR_END - 0.24)
}
