//! Building blocks of sections: sentences, anchors, figures, facts, and tables.

use std::fmt::Display;
use std::ops::Range;

use maud::{Markup, PreEscaped, Render, html};

use crate::draw::{self, Plot};
use crate::{ticks, units};

/// Returns the text with a full stop, unless it ends with punctuation.
pub fn sentence(text: &str) -> String {
    let ends = text.is_empty() || text.ends_with(['.', '!', '?']);
    format!("{text}{}", if ends { "" } else { "." })
}

/// Writes a remark in a soft color.
pub fn soft(text: impl Render) -> Markup {
    html! { p.soft { (text) } }
}

/// Writes how many items are not shown, if there are any: `12 more`, and the rest of the sentence.
pub fn more(hidden: usize, rest: &str) -> Markup {
    html! { @if hidden > 0 { (soft(format_args!("{} more {rest}", units::count(hidden as u64)))) } }
}

/// Writes links to the items of a section, if it has several. Their anchors are those of
/// [`anchor`].
pub fn contents<'a>(kind: &str, names: impl ExactSizeIterator<Item = &'a str>) -> Markup {
    html! {
        @if names.len() > 1 {
            nav.contents aria-label=(kind) {
                @for (index, name) in names.enumerate() { a href={ "#" (anchor(kind, index)) } { (name) } }
            }
        }
    }
}

/// Returns the anchor of the item with this index.
pub fn anchor(kind: &str, index: usize) -> String {
    format!("{kind}-{index}")
}

/// Writes a list of facts: names and values.
pub fn facts<'a>(facts: impl IntoIterator<Item = (&'a str, Markup)>) -> Markup {
    html! { dl.facts { @for (name, value) in facts { dt { (name) } dd { (value) } } } }
}

/// Writes a figure with its caption.
pub fn figure(title: &str, text: impl Render, content: Markup) -> Markup {
    html! { figure { figcaption { b { (title) } ": " (text) } (content) } }
}

/// Writes a plot under its `legend`, and the meaning of its x axis. The content uses a box of
/// `cells` (columns, rows).
pub fn plot(legend: Markup, plot: &Plot<'_>, cells: (usize, usize), content: Markup, axis: &str) -> Markup {
    html! {
        (legend)
        div.framed { (draw::stretched(plot, cells, content)) }
        div.axis { (axis) }
    }
}

/// Meaning of a time axis.
pub const TIME: &str = "time since the start of the trace";

/// Returns the ticks of a time axis, in seconds since the start of the trace.
pub fn time_ticks(span_ns: &Range<u64>) -> Vec<ticks::Tick> {
    ticks::seconds(span_ns.start as f64 * 1e-9..span_ns.end as f64 * 1e-9)
}

/// Writes a number: formatted text for readers, and the exact value for programs and for sorting.
pub fn exact<V: Display + Copy>(value: Option<V>, format: impl Fn(V) -> String) -> Markup {
    match value {
        None => html! { span.soft { "\u{2013}" } },
        Some(value) => html! { data value=(value.to_string()) { (format(value)) } },
    }
}

/// A sortable table in a scrollable box, made column by column.
pub struct Table<Row> {
    caption: String,
    /// Header of each column, and whether the column has numbers.
    headers: Vec<(String, bool)>,
    rows: Vec<TableRow<Row>>,
}

struct TableRow<Row> {
    row: Row,
    is_chosen: bool,
    /// The `td` and `th` elements so far.
    cells: String,
}

impl<Row> Table<Row> {
    /// Creates a table without columns.
    pub fn new(caption: impl Into<String>, rows: impl IntoIterator<Item = Row>) -> Self {
        let rows = rows.into_iter().map(|row| TableRow { row, is_chosen: false, cells: String::new() });
        Self { caption: caption.into(), headers: Vec::new(), rows: rows.collect() }
    }

    /// Marks the rows for which `is_chosen` holds.
    pub fn mark(mut self, is_chosen: impl Fn(&Row) -> bool) -> Self {
        self.rows.iter_mut().for_each(|row| row.is_chosen = is_chosen(&row.row));
        self
    }

    /// Adds a column; `cell` writes the element of a row.
    fn column(mut self, header: impl Into<String>, is_number: bool, cell: impl Fn(&Row) -> Markup) -> Self {
        self.headers.push((header.into(), is_number));
        self.rows.iter_mut().for_each(|row| row.cells += &cell(&row.row).0);
        self
    }

    /// Adds a column of the rows' names.
    pub fn head<T: Render>(self, header: &str, text: impl Fn(&Row) -> T) -> Self {
        self.column(header, false, |row| html! { th scope="row" { (text(row)) } })
    }

    /// Adds a column of texts.
    pub fn text<T: Render>(self, header: &str, text: impl Fn(&Row) -> T) -> Self {
        self.column(header, false, |row| html! { td { (text(row)) } })
    }

    /// Adds a column of short texts that is not squeezed.
    pub fn words<T: Render>(self, header: &str, text: impl Fn(&Row) -> T) -> Self {
        self.column(header, false, |row| html! { td.words { (text(row)) } })
    }

    /// Adds a column of file names.
    pub fn name<T: Render>(self, header: &str, name: impl Fn(&Row) -> T) -> Self {
        self.column(header, false, |row| html! { td.name { code { (name(row)) } } })
    }

    /// Adds a column of texts that are aligned as numbers.
    pub fn aligned<T: Render>(self, header: impl Into<String>, text: impl Fn(&Row) -> T) -> Self {
        self.column(header, true, |row| html! { td.n { (text(row)) } })
    }

    /// Adds a column of numbers, written by [`exact`].
    pub fn number<V: Display + Copy>(
        self,
        header: impl Into<String>,
        value: impl Fn(&Row) -> Option<V>,
        format: impl Fn(V) -> String,
    ) -> Self {
        self.aligned(header, |row| exact(value(row), &format))
    }

    /// Adds a column of numbers that every row has.
    pub fn amount<V: Display + Copy>(
        self,
        header: impl Into<String>,
        value: impl Fn(&Row) -> V,
        format: impl Fn(V) -> String,
    ) -> Self {
        self.number(header, |row| Some(value(row)), format)
    }
}

impl<Row> Render for Table<Row> {
    fn render(&self) -> Markup {
        html! {
            // The caption is outside the box, or it would scroll away. The box can have the focus,
            // so that keys scroll it.
            p.caption { (self.caption) }
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table.sortable {
                    thead { tr {
                        @for (header, is_number) in &self.headers { th.n[*is_number] scope="col" { (header) } }
                    } }
                    tbody { @for row in &self.rows { tr.chosen[row.is_chosen] { (PreEscaped(&row.cells)) } } }
                }
            }
        }
    }
}
