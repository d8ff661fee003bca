//! Tables: in a box of their own that scrolls, sortable, numbers with their exact value.

use crate::html::Html;

/// The head of a column.
pub struct Column<'a> {
    name: &'a str,
    class: &'static str,
}

impl<'a> Column<'a> {
    /// Of texts.
    pub fn text(name: &'a str) -> Self {
        Self { name, class: "" }
    }

    /// Of numbers.
    pub fn number(name: &'a str) -> Self {
        Self { name, class: "n" }
    }
}

/// A table; `rows` writes the `tr` elements.
pub fn table(h: &mut Html, caption: &str, columns: &[Column<'_>], rows: impl FnOnce(&mut Html)) {
    // The caption stands before the box, or it would scroll away; the box can be focused, so that keys scroll it.
    h.leaf("p", &[("class", "caption")], caption);
    let region = [("class", "scroll"), ("tabindex", "0"), ("role", "region"), ("aria-label", caption)];
    h.element("div", &region, |h| {
        h.element("table", &[("class", "sortable")], |h| {
            h.element("thead", &[], |h| {
                h.element("tr", &[], |h| {
                    for column in columns {
                        h.leaf("th", &[("class", column.class), ("scope", "col")], column.name);
                    }
                });
            });
            h.element("tbody", &[], rows);
        });
    });
}

/// A cell with a number: what people read, and the exact value for programs and for sorting.
pub fn amount(h: &mut Html, value: Option<f64>, text: impl FnOnce(f64) -> String) {
    h.element("td", &[("class", "n")], |h| match value {
        None => h.leaf("span", &[("class", "soft")], "\u{2013}"),
        Some(value) => h.leaf("data", &[("value", &value.to_string())], &text(value)),
    });
}

/// A cell with a whole number.
pub fn whole(h: &mut Html, value: u64, text: impl FnOnce(u64) -> String) {
    h.element("td", &[("class", "n")], |h| h.leaf("data", &[("value", &value.to_string())], &text(value)));
}
