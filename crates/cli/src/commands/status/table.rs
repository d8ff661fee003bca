//! Tables of `status`.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, Table};

/// Creates a table whose columns from index `numbers` on hold numbers.
pub fn table(header: &[&str], numbers: usize) -> Table {
    let mut table = Table::new();
    table.load_preset(NOTHING).set_header(header);
    for column in table.column_iter_mut().skip(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table
}
