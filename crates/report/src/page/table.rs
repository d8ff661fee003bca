//! Sortable tables in a scrollable box. Cells keep the exact value of their numbers.

use crate::html::Html;

/// Header of a column.
pub struct Column<'a> {
    name: &'a str,
    class: &'static str,
}

impl<'a> Column<'a> {
    /// Header of a column of texts.
    pub fn text(name: &'a str) -> Self {
        Self { name, class: "" }
    }

    /// Header of a column of numbers.
    pub fn number(name: &'a str) -> Self {
        Self { name, class: "n" }
    }
}

/// Writes a table; `rows` writes the `tr` elements.
pub fn table(h: &mut Html, caption: &str, columns: &[Column<'_>], rows: impl FnOnce(&mut Html)) {
    // The caption is outside the box, or it would scroll away. The box can have the focus, so that
    // keys scroll it.
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

/// Writes a cell with a number: formatted text for readers, and the exact value for programs and
/// for sorting.
pub fn amount(h: &mut Html, value: Option<f64>, text: impl FnOnce(f64) -> String) {
    h.element("td", &[("class", "n")], |h| match value {
        None => h.leaf("span", &[("class", "soft")], "\u{2013}"),
        Some(value) => h.leaf("data", &[("value", &value.to_string())], &text(value)),
    });
}

/// Writes a cell with a whole number.
pub fn whole(h: &mut Html, value: u64, text: impl FnOnce(u64) -> String) {
    h.element("td", &[("class", "n")], |h| h.leaf("data", &[("value", &value.to_string())], &text(value)));
}
