//! Looks of schemes: colors that remain distinct for color-blind readers (Okabe and Ito), and
//! patterns, marks and dashes, so that color is never the only cue.

use maud::{Markup, html};

/// Number of different looks.
const LOOKS: usize = 8;

/// Returns the class of a look's fill and line.
pub fn class(look: usize) -> String {
    format!("k{}", look % LOOKS)
}

/// Returns the class of the pattern over the fill; `None` for the first look, which is plain.
pub fn pattern(look: usize) -> Option<String> {
    let look = look % LOOKS;
    (look > 0).then(|| format!("h{look}"))
}

/// Returns the path of a mark around (0, 0).
pub fn mark(look: usize) -> &'static str {
    [
        "M-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        "M-4 -4h8v8h-8z",
        "M0 -5l5 9h-10z",
        "M0 -5.5l5 5.5l-5 5.5l-5 -5.5z",
        "M0 5l5 -9h-10z",
        "M-1.5 -5h3v3.5h3.5v3h-3.5v3.5h-3v-3.5h-3.5v-3h3.5z",
        "M-5 -2h10v4h-10z",
        "M-2 -5h4v10h-4z",
    ][look % LOOKS]
}

/// Writes the definitions of the patterns, once in each drawing.
pub fn definitions() -> Markup {
    let paths = [
        "M-2 2l4 -4M0 8l8 -8M6 10l4 -4",
        "M2 2h.01M6 6h.01",
        "M0 2h8M0 6h8",
        "M-2 6l4 4M0 0l8 8M6 -2l4 4",
        "M2 0v8M6 0v8",
        "M0 4h8M4 0v8",
        "M0 8l8 -8M0 0l8 8",
    ];
    html! {
        defs {
            @for (index, path) in paths.into_iter().enumerate() {
                pattern id={ "p" (index + 1) } width="8" height="8" patternUnits="userSpaceOnUse" {
                    path.hatch.dots[index == 1] d=(path) {}
                }
            }
        }
    }
}
