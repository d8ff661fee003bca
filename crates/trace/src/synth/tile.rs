//! mpi-tile-io (Parallel I/O Benchmarking Consortium): a dense two-dimensional array of elements
//! with one tile per process.
//!
//! Tiles are numbered along x first. The array follows a header in the file, row by row.
//! Neighboring tiles overlap by some elements. Every process makes one call, through a file view
//! that is a subarray of elements. Without collective I/O, every contiguous piece of the view is
//! one request, in order: a row of the tile, or the whole tile if it is as wide as the array.

use super::benchmark::{BadParameters, Benchmark, Direction, Job, Step, Steps};
use super::collective::{TwoPhase, Wanted};
use crate::Op;

/// An mpi-tile-io run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tile {
    /// `--nr_tiles_x`.
    pub tiles_x: u32,
    /// `--nr_tiles_y`: the number of processes is x times y.
    pub tiles_y: u32,
    /// Processes per node.
    pub per_node: u32,
    /// `--sz_tile_x`: elements of a tile in x.
    pub elements_x: u64,
    /// `--sz_tile_y`: elements of a tile in y.
    pub elements_y: u64,
    /// `--sz_element`: size of an element, bytes.
    pub element_size: u64,
    /// `--overlap_x`: elements that neighbors in x share.
    pub overlap_x: u64,
    /// `--overlap_y`: elements that neighbors in y share.
    pub overlap_y: u64,
    /// `--header_bytes`: size of the header before the array, bytes.
    pub header: u64,
    /// Writes, reads, or both.
    pub direction: Direction,
    /// Collective I/O, if used.
    pub collective: Option<TwoPhase>,
    /// The shared file.
    pub file: String,
}

impl Tile {
    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<(), BadParameters> {
        let bad = |what: &str| Err(BadParameters(what.into()));
        if [self.elements_x, self.elements_y, self.element_size].contains(&0)
            || [self.tiles_x, self.tiles_y, self.per_node].contains(&0)
        {
            return bad("tiles, elements, element size and processes per node must be at least 1");
        }
        if self.overlap_x >= self.elements_x || self.overlap_y >= self.elements_y {
            return bad("tiles cannot overlap by all of their elements: choose a smaller overlap");
        }
        let elements = u128::from(self.elements_x) * u128::from(self.elements_y);
        let tiles = u128::from(self.tiles_x) * u128::from(self.tiles_y);
        let array = elements.saturating_mul(self.element_size.into()).saturating_mul(tiles);
        if tiles > u128::from(u32::MAX) || array.saturating_add(self.header.into()) > i64::MAX as u128 {
            return bad("the file would be larger than 2^63 bytes: choose fewer tiles or elements");
        }
        Ok(())
    }

    fn processes(&self) -> u32 {
        self.tiles_x * self.tiles_y
    }

    /// Number of elements of the whole array in x and y.
    fn elements(&self) -> (u64, u64) {
        let all = |tiles: u32, elements: u64, overlap: u64| {
            u64::from(tiles) * elements - u64::from(tiles - 1) * overlap
        };
        (all(self.tiles_x, self.elements_x, self.overlap_x), all(self.tiles_y, self.elements_y, self.overlap_y))
    }

    /// File offset of row `row` of a rank's tile, bytes.
    fn offset(&self, rank: u32, row: u64) -> u64 {
        let x = u64::from(rank % self.tiles_x) * (self.elements_x - self.overlap_x);
        let y = u64::from(rank / self.tiles_x) * (self.elements_y - self.overlap_y) + row;
        self.header + (y * self.elements().0 + x) * self.element_size
    }

    /// Number of requests of a process without collective I/O, and number of rows in each.
    fn pieces(&self) -> (u64, u64) {
        if self.elements_x == self.elements().0 { (1, self.elements_y) } else { (self.elements_y, 1) }
    }
}

impl Benchmark for Tile {
    fn job(&self) -> Job {
        Job::of("mpi-tile-io", self.processes(), self.per_node, &self.file, self.direction)
    }

    fn steps(&self, op: Op) -> Steps<'_> {
        let (all_x, all_y) = self.elements();
        let (pieces, rows) = self.pieces();
        let size = self.elements_x * self.element_size * rows;
        match self.collective {
            Some(two_phase) => {
                let wanted = Wanted::all(self.header, self.header + all_x * all_y * self.element_size);
                Box::new(two_phase.steps(op, wanted, self.processes()))
            }
            None => Box::new(
                (0..pieces)
                    .map(move |row| Step::of_all(op, self.processes(), size, |rank| self.offset(rank, row))),
            ),
        }
    }
}
