//! HPIO (Ching et al., IPDPS 2006): regions of one size with spacing between them.
//!
//! Every process has `regions` regions of `region_size` bytes. In HPIO's noncontiguous files the
//! processes are interleaved: process r's i-th region starts at
//! `(i * processes + r) * (region_size + spacing)`. In its contiguous files every process has a
//! segment of its own, without spacing. Here these segments may have spacing, too: the region
//! starts at `(r * regions + i) * (region_size + spacing)`. Without collective I/O every region is
//! one request. (HPIO itself makes one call for all regions of a process, so regions that touch
//! each other would form one request.)

use super::benchmark::{BadParameters, Benchmark, Direction, Job, Step, Steps};
use super::collective::{TwoPhase, Wanted};
use crate::Op;

/// An HPIO run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hpio {
    /// Processes.
    pub processes: u32,
    /// Processes per node.
    pub per_node: u32,
    /// Number of regions per process.
    pub regions: u64,
    /// Size of a region, bytes.
    pub region_size: u64,
    /// Bytes between regions.
    pub spacing: u64,
    /// Whether the processes' regions take turns in the file; otherwise each process has a segment
    /// of its own.
    pub interleaved: bool,
    /// Writes, reads, or both.
    pub direction: Direction,
    /// Collective I/O, if used.
    pub collective: Option<TwoPhase>,
    /// The shared file.
    pub file: String,
}

impl Hpio {
    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<(), BadParameters> {
        if self.processes == 0 || self.per_node == 0 || self.regions == 0 || self.region_size == 0 {
            let what = "processes, processes per node, regions and region size must be at least 1";
            return Err(BadParameters(what.into()));
        }
        let region = u128::from(self.region_size) + u128::from(self.spacing);
        if region * u128::from(self.regions) * u128::from(self.processes) > i64::MAX as u128 {
            return Err(BadParameters("the file would be larger than 2^63 bytes: choose fewer regions".into()));
        }
        Ok(())
    }

    fn offset(&self, rank: u64, i: u64) -> u64 {
        let index = match self.interleaved {
            true => i * u64::from(self.processes) + rank,
            false => rank * self.regions + i,
        };
        index * (self.region_size + self.spacing)
    }
}

impl Benchmark for Hpio {
    fn job(&self) -> Job {
        Job::of("hpio", self.processes, self.per_node, &self.file, self.direction)
    }

    fn steps(&self, op: Op) -> Steps<'_> {
        let (piece, stride) = (self.region_size, self.region_size + self.spacing);
        let last = self.offset(u64::from(self.processes) - 1, self.regions - 1);
        match self.collective {
            Some(two_phase) => {
                let wanted = Wanted { start: 0, end: last + piece, piece, stride };
                Box::new(two_phase.steps(op, wanted, self.processes))
            }
            None => {
                Box::new((0..self.regions).map(move |i| {
                    Step::of_all(op, self.processes, piece, |rank| self.offset(u64::from(rank), i))
                }))
            }
        }
    }
}
