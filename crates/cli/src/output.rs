//! What the commands print: JSON, tables and sizes.

use std::path::Path;
use std::process::ExitCode;

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
