//! What the commands print: JSON, tables and sizes.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{ExitCode, ExitStatus};

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Row, Table};
use serde::Serialize;
use stripewise_model::Op;
use stripewise_report::units;

pub fn json(value: &impl Serialize) -> anyhow::Result<()> {
    println!("{}", serde_json::to_string_pretty(value)?);
    Ok(())
}

/// Returns the exit code of a command that goes on after failures.
pub fn code(failed: bool) -> ExitCode {
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Returns a command's exit code, or, as in a shell, 128 + n if signal n ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}

/// Creates a table without lines. The columns in `numbers` are right-aligned.
pub fn table(header: impl Into<Row>, numbers: impl IntoIterator<Item = usize>) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    for index in numbers {
        if let Some(column) = table.column_mut(index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Columns of a text for people.
const WIDTH: usize = 80;

/// Breaks a sentence into lines for people; all but the first are indented.
pub fn wrapped(text: &str) -> String {
    use textwrap::{Options, WordSeparator, WordSplitter};
    let options = Options::new(WIDTH).subsequent_indent("  ").break_words(false);
    let options = options.word_separator(WordSeparator::AsciiSpace).word_splitter(WordSplitter::NoHyphenation);
    textwrap::fill(text, options)
}

/// A table as text, without blanks at the ends of its lines.
pub fn without_blanks(table: &Table) -> String {
    table.lines().map(|line| line.trim_end().to_owned()).collect::<Vec<_>>().join("\n")
}

/// Returns a text about a file without the path that it may start with.
pub fn without_path<'t>(text: &'t str, path: &Path) -> &'t str {
    let rest = text.strip_prefix(&*path.to_string_lossy()).and_then(|rest| rest.strip_prefix(": "));
    rest.unwrap_or(text)
}

/// Formats a number of bytes for people.
pub fn human(bytes: u64) -> String {
    // Terminals and the programs that read their text know the usual space better.
    units::bytes(bytes).replace('\u{a0}', " ")
}

pub fn op_name(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}
