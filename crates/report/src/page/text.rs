//! Sentences, anchors, and the parts of figures that several sections have.

use std::ops::Range;

use crate::html::Html;
use crate::ticks;

/// Returns the text with a full stop, unless it ends with punctuation.
pub fn sentence(text: &str) -> String {
    let ends = text.is_empty() || text.ends_with(['.', '!', '?']);
    format!("{text}{}", if ends { "" } else { "." })
}

/// Writes links to the items of a section, if it has several. Their anchors are those of
/// [`anchor`].
pub fn contents<'a>(h: &mut Html, kind: &str, names: impl ExactSizeIterator<Item = &'a str>) {
    if names.len() < 2 {
        return;
    }
    h.element("nav", &[("class", "contents"), ("aria-label", kind)], |h| {
        for (index, name) in names.enumerate() {
            h.leaf("a", &[("href", &format!("#{}", anchor(kind, index)))], name);
        }
    });
}

/// Returns the anchor of the item with this index.
pub fn anchor(kind: &str, index: usize) -> String {
    format!("{kind}-{index}")
}

/// Returns the ticks of a plot's time axis, in seconds since the start of the trace.
pub fn time_ticks(span_ns: &Range<u64>) -> Vec<ticks::Tick> {
    ticks::seconds(span_ns.start as f64 * 1e-9..span_ns.end as f64 * 1e-9)
}

/// Writes the caption of a figure.
pub fn caption(h: &mut Html, title: &str, text: &str) {
    h.element("figcaption", &[], |h| {
        h.leaf("b", &[], title);
        h.text(": ");
        h.text(text);
    });
}

/// Writes an item of a list of facts.
pub fn fact(h: &mut Html, name: &str, value: impl FnOnce(&mut Html)) {
    h.leaf("dt", &[], name);
    h.element("dd", &[], value);
}
