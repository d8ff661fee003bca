//! Density plot of many requests in bounded memory: the number of requests active in each cell of a
//! (time, place) grid.

use std::ops::Range;

/// Columns of the grid, along the time axis.
pub const COLUMNS: usize = 240;

/// Number of shades in a plot.
pub const SHADES: usize = 5;

/// Peak from which a plot uses all shades.
const PEAK_OF_ALL_SHADES: u64 = 32;

/// Operations that a cell shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// Only reads were active.
    Read,
    /// Only writes were active.
    Write,
    /// Both reads and writes were active.
    Both,
}

impl Kind {
    /// Returns the class that colors the kind, and what a legend says of it.
    pub fn legend(self) -> (&'static str, &'static str) {
        match self {
            Kind::Read => ("read", "reads"),
            Kind::Write => ("write", "writes"),
            Kind::Both => ("both", "reads and writes"),
        }
    }
}

/// A horizontal run of cells of the same kind and shade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// The operations that the cells show.
    pub kind: Kind,
    /// From 0 to [`SHADES`] - 1, the shade of the fullest cell.
    pub shade: usize,
    /// First column, from the left.
    pub column: usize,
    /// Row from the top; row 0 holds the lowest places.
    pub row: usize,
    /// Number of cells.
    pub len: usize,
}

/// Counts of requests over a grid of [`COLUMNS`] time slots and some rows.
///
/// Adding a request is O(1) regardless of its extent: only the four corners of its rectangle are
/// stored, and [`Density::counts`] sums them up. Nothing is sampled or left out: each cell counts
/// every request that touched it.
#[derive(Clone, Debug)]
pub struct Density {
    rows: usize,
    span_ns: u64,
    extent: u64,
    /// By corner of a cell: change of the number of requests there (reads, writes).
    corners: Vec<[i64; 2]>,
}

impl Density {
    /// Creates a grid for times in `0..span_ns` and places in `0..extent`, with `rows` rows.
    pub fn new(span_ns: u64, extent: u64, rows: usize) -> Self {
        let rows = rows.max(1);
        let corners = vec![[0; 2]; (COLUMNS + 1) * (rows + 1)];
        Self { rows, span_ns: span_ns.max(1), extent: extent.max(1), corners }
    }

    /// Number of rows of the grid.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Adds a request over the times `time_ns` and the places `places`. Ends are exclusive, an
    /// empty range counts as its first element, and ranges are clipped to the grid.
    pub fn add(&mut self, write: bool, time_ns: Range<u64>, places: Range<u64>) {
        let (left, right) = cells(time_ns, self.span_ns, COLUMNS);
        let (top, bottom) = cells(places, self.extent, self.rows);
        for (column, row, change) in [(left, top, 1), (right, top, -1), (left, bottom, -1), (right, bottom, 1)]
        {
            self.corners[row * (COLUMNS + 1) + column][usize::from(write)] += change;
        }
    }

    /// Returns the grid with only the rows that `keep` selects. Each row must stand for one place.
    #[must_use]
    pub fn keep_rows(mut self, keep: &[bool]) -> Self {
        const LINE: usize = COLUMNS + 1;
        for row in (0..self.rows).rev().filter(|&row| !keep.get(row).copied().unwrap_or(false)) {
            // The corners above the row and those below it now lie on each other.
            let above: Vec<[i64; 2]> = self.corners.drain(row * LINE..(row + 1) * LINE).collect();
            for (below, above) in self.corners[row * LINE..].iter_mut().zip(above) {
                *below = [below[0] + above[0], below[1] + above[1]];
            }
            self.rows -= 1;
        }
        self
    }

    /// Returns the number of reads and writes that touched each cell, row by row.
    pub fn counts(&self) -> Vec<[u64; 2]> {
        let mut counts = vec![[0u64; 2]; COLUMNS * self.rows];
        let mut above = vec![[0i64; 2]; COLUMNS];
        for row in 0..self.rows {
            let mut here = [0i64; 2];
            for column in 0..COLUMNS {
                for op in 0..2 {
                    here[op] += self.corners[row * (COLUMNS + 1) + column][op];
                    above[column][op] += here[op];
                    counts[row * COLUMNS + column][op] = above[column][op].max(0) as u64;
                }
            }
        }
        counts
    }

    /// Returns the largest number of requests in one cell.
    pub fn peak(&self) -> u64 {
        peak(&self.counts())
    }

    /// Returns the plot as runs. Every cell with a request is in exactly one run.
    pub fn runs(&self) -> Vec<Run> {
        let counts = self.counts();
        let peak = peak(&counts);
        let mut runs: Vec<Run> = Vec::new();
        for (index, &[reads, writes]) in counts.iter().enumerate() {
            let kind = match (reads > 0, writes > 0) {
                (false, false) => continue,
                (true, false) => Kind::Read,
                (false, true) => Kind::Write,
                (true, true) => Kind::Both,
            };
            let (row, column) = (index / COLUMNS, index % COLUMNS);
            let shade = shade(reads + writes, peak);
            match runs.last_mut() {
                Some(run)
                    if run.row == row
                        && run.column + run.len == column
                        && (run.kind, run.shade) == (kind, shade) =>
                {
                    run.len += 1;
                }
                _ => runs.push(Run { kind, shade, column, row, len: 1 }),
            }
        }
        runs
    }
}

fn peak(counts: &[[u64; 2]]) -> u64 {
    counts.iter().map(|[reads, writes]| reads + writes).max().unwrap_or(0)
}

/// Returns the shade of a cell with `count` requests if the fullest has `peak`. The scale is
/// logarithmic because counts span decades.
fn shade(count: u64, peak: u64) -> usize {
    // Small peaks do not use all shades, because chance decides whether a cell has two requests or
    // three.
    let decades = (peak.max(PEAK_OF_ALL_SHADES) as f64).ln();
    let below = (peak as f64 / count as f64).ln() / decades;
    (SHADES - 1) - ((below * (SHADES - 1) as f64).round() as usize).min(SHADES - 1)
}

/// Returns the cells (first, one past the last; at least one) that `range` covers if `0..extent` is
/// divided into `cells` equal cells.
pub(crate) fn cells(range: Range<u64>, extent: u64, cells: usize) -> (usize, usize) {
    // A place x lies in cell floor(x * cells / extent). The product needs 128 bits because x may be
    // near 2^64.
    let cell = |x: u64| (u128::from(x) * cells as u128 / u128::from(extent)).min(cells as u128 - 1) as usize;
    let first = cell(range.start);
    let last = cell(range.end.saturating_sub(1).max(range.start));
    (first, last + 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SPAN: u64 = COLUMNS as u64 * 10;

    #[test]
    fn a_request_covers_its_rectangle() {
        let mut density = Density::new(SPAN, 100, 10);
        density.add(false, 10..30, 20..40);
        let counts = density.counts();
        let covered: Vec<usize> = (0..counts.len()).filter(|&i| counts[i] == [1, 0]).collect();
        assert_eq!(covered, [2 * COLUMNS + 1, 2 * COLUMNS + 2, 3 * COLUMNS + 1, 3 * COLUMNS + 2]);
        assert_eq!(counts.iter().filter(|c| **c != [0, 0]).count(), 4);
        let run = |row| Run { kind: Kind::Read, shade: SHADES - 1, column: 1, row, len: 2 };
        assert_eq!(density.runs(), [run(2), run(3)]);
    }

    #[test]
    fn reads_and_writes_in_one_cell_are_both() {
        let mut density = Density::new(SPAN, 1, 1);
        density.add(false, 0..1, 0..1);
        density.add(true, 5..5, 0..0);
        assert_eq!(density.runs(), [Run { kind: Kind::Both, shade: SHADES - 1, column: 0, row: 0, len: 1 }]);
    }

    #[test]
    fn rows_that_are_kept_keep_their_counts() {
        let mut density = Density::new(SPAN, 4, 4);
        for row in 0..4 {
            density.add(row % 2 == 0, 10 * row..10 * row + 20, row..row + 1);
        }
        let (all, kept) = (density.counts(), density.clone().keep_rows(&[false, true, false, true]).counts());
        assert_eq!(kept[..COLUMNS], all[COLUMNS..2 * COLUMNS]);
        assert_eq!(kept[COLUMNS..], all[3 * COLUMNS..]);
        assert_eq!(density.keep_rows(&[]).peak(), 0);
    }

    proptest! {
        #[test]
        fn counts_equal_brute_force(
            rows in 1usize..12,
            extent in prop_oneof![1u64..200, Just(u64::MAX)],
            requests in prop::collection::vec((any::<bool>(), 0..SPAN + 50, 0..500u64, any::<u64>(), any::<u64>()), 0..30),
        ) {
            let mut density = Density::new(SPAN, extent, rows);
            let mut expected = vec![[0u64; 2]; COLUMNS * rows];
            for &(write, start, len, place, size) in &requests {
                let place = place % extent;
                let size = size % (extent - place).max(1);
                density.add(write, start..start + len, place..place + size);
                let (left, right) = cells(start..start + len, SPAN, COLUMNS);
                let (top, bottom) = cells(place..place + size, extent, rows);
                for row in top..bottom {
                    for column in left..right {
                        expected[row * COLUMNS + column][usize::from(write)] += 1;
                    }
                }
            }
            prop_assert_eq!(density.counts(), expected.clone());
            let drawn: usize = density.runs().iter().map(|run| run.len).sum();
            prop_assert_eq!(drawn, expected.iter().filter(|c| **c != [0, 0]).count());
        }

        #[test]
        fn cells_hold_what_they_should(x: u64, len in 0u64..1000, extent in 1u64.., count in 1usize..300) {
            let (first, end) = cells(x..x.saturating_add(len), extent, count);
            prop_assert!(first < end && end <= count);
            if x < extent {
                let start = u128::from(extent) * first as u128 / count as u128;
                prop_assert!(start <= u128::from(x));
            }
        }
    }
}
