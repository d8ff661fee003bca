//! What is to be solved.

/// A program: regions, their columns, and what they share.
#[derive(Clone, Debug, Default)]
pub struct Program {
    /// w: the weight of every phase, how often it runs.
    pub weights: Vec<f64>,
    /// What the regions share.
    pub rows: Vec<Row>,
    /// The regions.
    pub regions: Vec<Region>,
}

/// What regions share.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Row {
    /// The time of a server, or of a chain of requests, in a phase: the phase takes no less.
    Time {
        /// Index into [`Program::weights`].
        phase: u32,
    },
    /// The space of servers.
    Space {
        /// How much there is, bytes.
        bytes: f64,
    },
}

/// A part of the data that gets one layout.
#[derive(Clone, Debug, Default)]
pub struct Region {
    /// The layouts that it may get, at least one; of equally good ones the first is taken.
    pub columns: Vec<Column>,
    /// The region may be cut in two parts with different columns. Each part then has that fraction
    /// of its column's uses and seconds.
    pub divisible: bool,
}

/// A layout for a region.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Column {
    /// Seconds that the region takes whatever the others do.
    pub seconds: f64,
    /// The use of some rows, by index into [`Program::rows`], each row once: seconds of a time row,
    /// bytes of a space row.
    pub uses: Vec<(u32, f64)>,
}

/// What a region gets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Choice {
    /// Index into [`Region::columns`].
    pub column: u32,
    /// If the region is cut: the column of the other part, and the fraction of the region that it
    /// is, more than 0 and less than 1.
    pub other: Option<(u32, f64)>,
}

/// Why a program has no solution, as one line.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum AllocationError {
    /// A number is no number, negative or infinite, an index is wrong, or a region has no column.
    #[error("{0}")]
    Invalid(String),
    /// The regions need more space than there is.
    #[error("row {row} of the space lacks at least {bytes:.0} bytes")]
    Full {
        /// Index into [`Program::rows`].
        row: u32,
        /// Bytes that are missing in the best case that was found.
        bytes: f64,
    },
}

impl Choice {
    /// A whole region in one column.
    pub fn whole(column: u32) -> Self {
        Self { column, other: None }
    }

    /// The columns with the fraction of the region that has them.
    pub(crate) fn parts(self) -> impl Iterator<Item = (u32, f64)> {
        let fraction = self.other.map_or(0.0, |(_, fraction)| fraction);
        std::iter::once((self.column, 1.0 - fraction)).chain(self.other)
    }
}

impl Program {
    /// The capacity of a space row, bytes; `None` for a time row.
    pub(crate) fn space(&self, row: u32) -> Option<f64> {
        match self.rows[row as usize] {
            Row::Space { bytes } => Some(bytes),
            Row::Time { .. } => None,
        }
    }

    /// Checks that all numbers are sound.
    pub(crate) fn check(&self) -> Result<(), AllocationError> {
        let invalid = |what: String| Err(AllocationError::Invalid(what));
        let is_amount = |number: f64| number >= 0.0 && number.is_finite();
        if let Some(phase) = self.weights.iter().position(|&weight| !is_amount(weight)) {
            return invalid(format!("the weight of phase {phase} is {}", self.weights[phase]));
        }
        for (row, kind) in self.rows.iter().enumerate() {
            match *kind {
                Row::Time { phase } if phase as usize >= self.weights.len() => {
                    return invalid(format!("row {row} is of phase {phase}, which there is not"));
                }
                Row::Space { bytes } if !is_amount(bytes) => {
                    return invalid(format!("row {row} has {bytes} bytes"));
                }
                _ => {}
            }
        }
        for (region, of) in self.regions.iter().enumerate() {
            if of.columns.is_empty() {
                return invalid(format!("region {region} has no column"));
            }
            let is_sound = |column: &Column| {
                let of_rows = |&(row, used): &(u32, f64)| (row as usize) < self.rows.len() && is_amount(used);
                is_amount(column.seconds) && column.uses.iter().all(of_rows)
            };
            if let Some(column) = of.columns.iter().position(|column| !is_sound(column)) {
                return invalid(format!("column {column} of region {region} has an invalid number"));
            }
        }
        Ok(())
    }
}
