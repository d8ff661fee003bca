//! The rows of a row group, by column.

use indexmap::IndexSet;
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::errors::Result;
use parquet::file::properties::WriterPropertiesPtr;
use parquet::schema::types::SchemaDescriptor;

use super::indexed::{Group, Indexed};
use super::schema::ROW_GROUP_ROWS;
use crate::{Op, ProcessInfo, Request};

/// Processes by number, and the columns that follow from a process.
#[derive(Default)]
pub(super) struct Processes {
    pub(super) by_number: IndexSet<ProcessInfo>,
    nodes: IndexSet<String>,
    columns: Vec<OfProcess>,
}

/// What the rows of a process have in common.
struct OfProcess {
    rank: i32,
    /// Number of the node's name.
    node: u32,
    pid: u32,
}

impl Processes {
    /// The number of a process.
    pub(super) fn id(&mut self, process: &ProcessInfo) -> u32 {
        if let Some(known) = self.by_number.get_index_of(process) {
            return known as u32;
        }
        let node = self.nodes.insert_full(process.node.clone()).0 as u32;
        self.columns.push(OfProcess { rank: process.rank, node, pid: process.pid });
        self.by_number.insert_full(process.clone()).0 as u32
    }
}

/// The columns of the rows of a row group, in the order of the schema.
#[derive(Default)]
pub(super) struct Rows {
    len: usize,
    process: Indexed,
    rank: Indexed,
    node: Indexed,
    pid: Indexed,
    tid: Indexed,
    file: Indexed,
    op: Indexed,
    flags: Indexed,
    offset: Vec<i64>,
    size: Indexed,
    result: Indexed,
    start_ns: Vec<i64>,
    end_ns: Vec<i64>,
}

impl Rows {
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn is_full(&self) -> bool {
        !self.has_space_for(1)
    }

    /// Whether so many more rows fit into the row group.
    pub(super) fn has_space_for(&self, rows: usize) -> bool {
        self.len + rows <= ROW_GROUP_ROWS
    }

    /// The files of the rows, in order of their first row.
    pub(super) fn files(&self) -> &[i64] {
        self.file.distinct()
    }

    /// Adds rows, column by column: so few that they stay in the processor's cache.
    pub(super) fn extend(&mut self, rows: &[Request], processes: &Processes) {
        let of_process = |row: &Request| &processes.columns[row.process as usize];
        let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
        self.len += rows.len();
        self.process.extend(rows.iter().map(|row| row.process.into()));
        self.rank.extend(rows.iter().map(|row| of_process(row).rank.into()));
        self.node.extend(rows.iter().map(|row| of_process(row).node.into()));
        self.pid.extend(rows.iter().map(|row| of_process(row).pid.into()));
        self.tid.extend(rows.iter().map(|row| row.tid.into()));
        self.file.extend(rows.iter().map(|row| row.file.into()));
        self.op.extend(rows.iter().map(|row| row.op as i64));
        self.flags.extend(rows.iter().map(|row| row.flags.0.into()));
        self.offset.extend(rows.iter().map(|row| signed(row.offset)));
        self.size.extend(rows.iter().map(|row| signed(row.size)));
        self.result.extend(rows.iter().map(|row| row.result));
        self.start_ns.extend(rows.iter().map(|row| signed(row.start_ns)));
        self.end_ns.extend(rows.iter().map(|row| signed(row.end_ns)));
    }

    /// Writes the rows as a row group, and removes them. `names` are those of [`Rows::files`].
    pub(super) fn write(
        &mut self,
        group: &mut Group<'_>,
        (schema, properties): (&SchemaDescriptor, &WriterPropertiesPtr),
        processes: &Processes,
        names: Vec<ByteArray>,
    ) -> Result<()> {
        let mut names = names.into_iter();
        let mut name = |_| names.next().expect("one name for each file");
        let op = |code: i64| ByteArray::from(Op::ALL[code as usize - 1].name());
        let mut columns = schema.columns().iter().map(|column| (column.clone(), properties));
        let mut next = || columns.next().expect("as many calls as columns");
        self.process.write::<Int32Type>(group, next(), |number| number as i32)?;
        self.rank.write::<Int32Type>(group, next(), |rank| rank as i32)?;
        self.node
            .write::<ByteArrayType>(group, next(), |node| processes.nodes[node as usize].as_str().into())?;
        self.pid.write::<Int32Type>(group, next(), |pid| pid as i32)?;
        self.tid.write::<Int32Type>(group, next(), |tid| tid as i32)?;
        self.file.write::<ByteArrayType>(group, next(), &mut name)?;
        self.op.write::<ByteArrayType>(group, next(), op)?;
        self.flags.write::<Int32Type>(group, next(), |flags| flags as i32)?;
        differences(group, &mut self.offset)?;
        next();
        self.size.write::<Int64Type>(group, next(), |size| size)?;
        self.result.write::<Int64Type>(group, next(), |result| result)?;
        differences(group, &mut self.start_ns)?;
        differences(group, &mut self.end_ns)?;
        self.len = 0;
        Ok(())
    }
}

/// Writes the next column, and removes its values.
fn differences(group: &mut Group<'_>, values: &mut Vec<i64>) -> Result<()> {
    let mut column = group.next_column()?.expect("as many calls as columns");
    column.typed::<Int64Type>().write_batch(values, None, None)?;
    values.clear();
    column.close()
}
