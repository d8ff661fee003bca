//! Building blocks of sections: sentences, anchors, figures, facts, and tables.

use std::fmt::Display;
use std::ops::Range;

use maud::{Markup, Render, html};

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

/// A sortable table in a scrollable box: its rows, and how to write the cells of each column.
pub struct Table<'a, Row> {
    caption: String,
    rows: Vec<Row>,
    columns: Vec<Column<'a, Row>>,
    is_chosen: Box<dyn Fn(&Row) -> bool + 'a>,
}

struct Column<'a, Row> {
    header: String,
    is_number: bool,
    /// Writes the `td` or `th` element of a row.
    cell: Box<dyn Fn(&Row) -> Markup + 'a>,
}

impl<'a, Row> Table<'a, Row> {
    /// Creates a table without columns.
    pub fn new(caption: impl Into<String>, rows: impl IntoIterator<Item = Row>) -> Self {
        let rows = rows.into_iter().collect();
        Self { caption: caption.into(), rows, columns: Vec::new(), is_chosen: Box::new(|_| false) }
    }

    /// Marks the rows for which `is_chosen` holds.
    pub fn mark(mut self, is_chosen: impl Fn(&Row) -> bool + 'a) -> Self {
        self.is_chosen = Box::new(is_chosen);
        self
    }

    fn column(
        mut self,
        header: impl Into<String>,
        is_number: bool,
        cell: impl Fn(&Row) -> Markup + 'a,
    ) -> Self {
        self.columns.push(Column { header: header.into(), is_number, cell: Box::new(cell) });
        self
    }

    /// Adds a column of the rows' names.
    pub fn head<T: Render>(self, header: &str, text: impl Fn(&Row) -> T + 'a) -> Self {
        self.column(header, false, move |row| html! { th scope="row" { (text(row)) } })
    }

    /// Adds a column of texts.
    pub fn text<T: Render>(self, header: &str, text: impl Fn(&Row) -> T + 'a) -> Self {
        self.column(header, false, move |row| html! { td { (text(row)) } })
    }

    /// Adds a column of short texts that is not squeezed.
    pub fn words<T: Render>(self, header: &str, text: impl Fn(&Row) -> T + 'a) -> Self {
        self.column(header, false, move |row| html! { td.words { (text(row)) } })
    }

    /// Adds a column of file names.
    pub fn name<T: Render>(self, header: &str, name: impl Fn(&Row) -> T + 'a) -> Self {
        self.column(header, false, move |row| html! { td.name { code { (name(row)) } } })
    }

    /// Adds a column of texts that are aligned as numbers.
    pub fn aligned<T: Render>(self, header: impl Into<String>, text: impl Fn(&Row) -> T + 'a) -> Self {
        self.column(header, true, move |row| html! { td.n { (text(row)) } })
    }

    /// Adds a column of numbers, written by [`exact`].
    pub fn number<V: Display + Copy>(
        self,
        header: impl Into<String>,
        value: impl Fn(&Row) -> Option<V> + 'a,
        format: impl Fn(V) -> String + 'a,
    ) -> Self {
        self.aligned(header, move |row| exact(value(row), &format))
    }

    /// Adds a column of numbers that every row has.
    pub fn amount<V: Display + Copy>(
        self,
        header: impl Into<String>,
        value: impl Fn(&Row) -> V + 'a,
        format: impl Fn(V) -> String + 'a,
    ) -> Self {
        self.number(header, move |row| Some(value(row)), format)
    }
}

impl<Row> Render for Table<'_, Row> {
    fn render(&self) -> Markup {
        html! {
            // The caption is outside the box, or it would scroll away. The box can have the focus,
            // so that keys scroll it.
            p.caption { (self.caption) }
            div.scroll tabindex="0" role="region" aria-label=(self.caption) {
                table.sortable {
                    thead { tr {
                        @for column in &self.columns { th.n[column.is_number] scope="col" { (column.header) } }
                    } }
                    tbody {
                        @for row in &self.rows {
                            tr.chosen[(self.is_chosen)(row)] {
                                @for column in &self.columns { ((column.cell)(row)) }
                            }
                        }
                    }
                }
            }
        }
    }
}
