//! BT-IO of the NAS Parallel Benchmarks: a block-tridiagonal solver that writes its solution every
//! few time steps.
//!
//! The file is a sequence of dumps. A dump is a cube of elements of five doubles, with x varying
//! fastest. P processes (a square number, q * q) divide the cube into q * q * q cells by diagonal
//! multi-partitioning: every process has q cells, one per layer in z. After the last time step
//! everything is read back for verification.

use super::benchmark::{BadParameters, Benchmark, Call, Direction, Job, Step, Steps};
use super::collective::{TwoPhase, Wanted};
use crate::{Flags, Op};

/// Size of an element, bytes: five doubles.
const ELEMENT_BYTES: u64 = 40;

/// Minimum number of elements of a cell in each direction that the solver accepts (NPB,
/// BT/make_set).
const LEAST_CELL: u64 = 3;

/// Time steps between two dumps (`wr_interval`).
const WRITE_INTERVAL: u64 = 5;

/// Problem sizes of the benchmark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BtioClass {
    /// 12 elements in each direction.
    S,
    /// 24 elements in each direction.
    W,
    /// 64 elements in each direction.
    A,
    /// 102 elements in each direction.
    B,
    /// 162 elements in each direction.
    C,
    /// 408 elements in each direction.
    D,
}

impl BtioClass {
    /// Elements in each direction of the cube, and time steps.
    fn sizes(self) -> (u64, u64) {
        match self {
            BtioClass::S => (12, 60),
            BtioClass::W => (24, 200),
            BtioClass::A => (64, 200),
            BtioClass::B => (102, 200),
            BtioClass::C => (162, 200),
            BtioClass::D => (408, 250),
        }
    }

    /// Elements in each direction of the cube.
    pub fn elements(self) -> u64 {
        self.sizes().0
    }

    /// Number of dumps: one every fifth time step.
    pub fn dumps(self) -> u64 {
        self.sizes().1 / WRITE_INTERVAL
    }

    /// Size of the whole file, bytes.
    pub fn file_bytes(self) -> u64 {
        self.dump_bytes() * self.dumps()
    }

    fn dump_bytes(self) -> u64 {
        self.elements().pow(3) * ELEMENT_BYTES
    }
}

/// A BT-IO run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Btio {
    /// The problem size.
    pub class: BtioClass,
    /// Processes: a square number.
    pub processes: u32,
    /// Processes per node.
    pub per_node: u32,
    /// `full`: collective I/O. Otherwise `simple`: every row of a cell is a request.
    pub full: Option<TwoPhase>,
    /// Writes, the verifying reads, or both.
    pub direction: Direction,
    /// The shared file.
    pub file: String,
}

/// A cell: first element and number of elements in x, y and z.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cell {
    low: [u64; 3],
    size: [u64; 3],
}

impl Btio {
    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<(), BadParameters> {
        let q = self.processes.isqrt();
        if self.processes == 0 || q * q != self.processes {
            let what = format!("{} processes: BT-IO needs a square number (1, 4, 9, 16, ...)", self.processes);
            return Err(BadParameters(what));
        }
        if self.class.elements() / u64::from(q) < LEAST_CELL {
            let what = format!(
                "{} processes are too many for this class: cells would be less than {LEAST_CELL} elements wide; choose \
                 fewer processes or a larger class",
                self.processes
            );
            return Err(BadParameters(what));
        }
        if self.per_node == 0 {
            return Err(BadParameters("processes per node must be at least 1".into()));
        }
        Ok(())
    }

    /// The cells of a process, in the order in which it writes them.
    fn cells(&self, rank: u32) -> Vec<Cell> {
        let q = u64::from(self.processes.isqrt());
        let rank = u64::from(rank);
        let part = |index: u64| {
            let (each, excess) = (self.class.elements() / q, self.class.elements() % q);
            let low = index * each + index.min(excess);
            (low, each + u64::from(index < excess))
        };
        (0..q)
            .map(|layer| {
                // From layer to layer, a process's cell moves one part forward in x and one part
                // back in y.
                let parts = [(rank % q + layer) % q, (rank / q + q - layer) % q, layer].map(part);
                Cell { low: parts.map(|(low, _)| low), size: parts.map(|(_, size)| size) }
            })
            .collect()
    }

    /// The rows of a process, in order: offset within a dump, and size, bytes.
    fn rows(&self, rank: u32) -> Vec<(u64, u64)> {
        let n = self.class.elements();
        let rows = self.cells(rank).into_iter().flat_map(move |cell| {
            let [_, size_y, size_z] = cell.size;
            (0..size_z).flat_map(move |z| (0..size_y).map(move |y| (cell, y, z)))
        });
        rows.map(|(cell, y, z)| {
            let [low_x, low_y, low_z] = cell.low;
            let element = ((low_z + z) * n + low_y + y) * n + low_x;
            (element * ELEMENT_BYTES, cell.size[0] * ELEMENT_BYTES)
        })
        .collect()
    }

    fn simple_steps(&self, op: Op) -> impl Iterator<Item = Step> {
        let rows: Vec<_> = (0..self.processes).map(|rank| self.rows(rank)).collect();
        let longest = rows.iter().map(Vec::len).max().unwrap_or(0) as u64;
        let call = move |dump, rank, i| {
            let (offset, size) = *rows[rank as usize].get(i as usize)?;
            let offset = dump * self.class.dump_bytes() + offset;
            Some(Call { rank, file: 0, offset, size })
        };
        Step::of_lists((op, Flags::POSITIONAL), self.class.dumps(), longest, self.processes, call)
    }
}

impl Benchmark for Btio {
    fn job(&self) -> Job {
        Job::of("bt", self.processes, self.per_node, &self.file, self.direction)
    }

    fn steps(&self, op: Op) -> Steps<'_> {
        match self.full {
            Some(two_phase) => Box::new((0..self.class.dumps()).flat_map(move |dump| {
                let start = dump * self.class.dump_bytes();
                let wanted = Wanted::all(start, start + self.class.dump_bytes());
                two_phase.steps(op, wanted, self.processes)
            })),
            None => Box::new(self.simple_steps(op)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_on_a_diagonal() {
        // 12 = 3 + 3 + 2 + 2 + 2 elements with 25 processes. In layer 0, rank 7 (x 2, y 1) has the
        // third part in x and the second in y. In every further layer it is one part further in x
        // and one part back in y.
        let file = String::new();
        let direction = Direction::Write;
        let btio = Btio { class: BtioClass::S, processes: 25, per_node: 1, full: None, direction, file };
        let cells = btio.cells(7);
        assert_eq!(cells[0], Cell { low: [6, 3, 0], size: [2, 3, 3] });
        assert_eq!(cells[1], Cell { low: [8, 0, 3], size: [2, 3, 3] });
        assert_eq!(cells[2], Cell { low: [10, 10, 6], size: [2, 2, 2] });
        assert_eq!(cells[3], Cell { low: [0, 8, 8], size: [3, 2, 2] });
    }
}
