//! IOR (github.com/hpc/ior): its file layout and the order of its transfers, as in versions 3 and
//! 4.
//!
//! The file is a sequence of segments. In a shared file, a segment has one block per rank, in order
//! of rank. A block is accessed transfer by transfer. With random offsets (`-z`) on a shared file,
//! IOR deals all transfers of a segment out to the ranks at random, so that ranks get different
//! numbers of them, and then every rank shuffles its own. Both use the C library's generator, which
//! is reproduced here.

use super::benchmark::{BadParameters, Benchmark, Call, Direction, Job, Step, Steps};
use super::glibc_random::Random;
use crate::{Flags, Op};

/// The order in which a rank makes its transfers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// From the start of its blocks to the end.
    Sequential,
    /// A random permutation of its transfers.
    Random,
}

/// The range of a rank's random transfers in a shared file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RandomWithin {
    /// The whole file, as with IOR's `-z`.
    File,
    /// The rank's own block, as the published experiments describe it.
    OwnBlock,
}

/// An IOR run (POSIX interface, no reordering of ranks).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ior {
    /// Processes (`numTasks`).
    pub processes: u32,
    /// Processes per node.
    pub per_node: u32,
    /// `-t`: size of a transfer, bytes.
    pub transfer: u64,
    /// `-b`: size of a rank's block in a segment, bytes.
    pub block: u64,
    /// `-s`: number of segments.
    pub segments: u64,
    /// Sequential, or random (`-z`).
    pub access: Access,
    /// Range of random transfers; only used for random access to a shared file.
    pub random_within: RandomWithin,
    /// `-w`, `-r`, or both.
    pub direction: Direction,
    /// One file for all processes; otherwise (`-F`) one file per process.
    pub shared: bool,
    /// `-G`: seed of the random order.
    pub seed: u32,
    /// `-o`: the file. With one file per process, a number is appended.
    pub file: String,
}

impl Ior {
    /// Checks the parameters against each other.
    pub fn check(&self) -> Result<(), BadParameters> {
        let bad = |what: String| Err(BadParameters(what));
        if self.processes == 0 || self.per_node == 0 || self.segments == 0 || self.transfer == 0 {
            return bad("processes, processes per node, segments and transfer size must be at least 1".into());
        }
        if self.block == 0 || !self.block.is_multiple_of(self.transfer) {
            return bad(format!(
                "block size {} is no multiple of transfer size {}: choose a block (or total) that is",
                self.block, self.transfer
            ));
        }
        let total = u128::from(self.block) * u128::from(self.segments) * u128::from(self.processes);
        if total > i64::MAX as u128 {
            return bad("the file would be larger than 2^63 bytes: choose fewer segments".into());
        }
        Ok(())
    }

    fn base(&self, segment: u64) -> u64 {
        segment * self.block * if self.shared { u64::from(self.processes) } else { 1 }
    }

    /// Per rank: the offsets of its transfers in the first segment, in order, bytes.
    fn offsets(&self) -> Vec<Vec<u64>> {
        let per_block = self.block / self.transfer;
        let sequential = |rank: u32| -> Vec<u64> {
            let start = if self.shared { u64::from(rank) * self.block } else { 0 };
            (0..per_block).map(|i| start + i * self.transfer).collect()
        };
        match self.access {
            Access::Sequential => (0..self.processes).map(sequential).collect(),
            Access::Random if self.shared && self.random_within == RandomWithin::File => self.dealt(),
            Access::Random => (0..self.processes)
                .map(|rank| {
                    let mut offsets = sequential(rank);
                    shuffle(&mut offsets, &mut Random::new(self.seed.wrapping_add(rank)));
                    offsets
                })
                .collect(),
        }
    }

    /// Deals the transfers of a segment out to the ranks at random.
    fn dealt(&self) -> Vec<Vec<u64>> {
        let mut random = Random::new(self.seed);
        let mut offsets = vec![Vec::new(); self.processes as usize];
        let transfers = self.block / self.transfer * u64::from(self.processes);
        for i in 0..transfers {
            let rank = random.next() % u64::from(self.processes);
            offsets[rank as usize].push(i * self.transfer);
        }
        // Every rank continues with the generator in the state after the dealing.
        for own in &mut offsets {
            shuffle(own, &mut random.clone());
        }
        offsets
    }
}

/// Shuffles like IOR.
fn shuffle(offsets: &mut [u64], random: &mut Random) {
    let len = offsets.len() as u64;
    for i in 0..offsets.len() {
        offsets.swap(i, (random.next() % len) as usize);
    }
}

impl Benchmark for Ior {
    fn job(&self) -> Job {
        let mut job = Job::of("ior", self.processes, self.per_node, &self.file, self.direction);
        if !self.shared {
            job.files = (0..self.processes).map(|rank| format!("{}.{rank:08}", self.file)).collect();
        }
        job
    }

    fn steps(&self, op: Op) -> Steps<'_> {
        let call = |segment, rank, offset: &u64| {
            let file = if self.shared { 0 } else { rank };
            Call { rank, file, offset: self.base(segment) + offset, size: self.transfer }
        };
        Box::new(Step::of_lists((op, Flags::NONE), self.segments, self.offsets(), call))
    }
}
