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

/// Maximum number of transfers of a segment in random order, whose order is in memory (4 bytes
/// each).
const SHUFFLED_MAX: u64 = 128 << 20;

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
        let shuffled = self.per_block().saturating_mul(self.processes.into());
        if self.access == Access::Random && shuffled > SHUFFLED_MAX {
            return bad(format!(
                "{shuffled} transfers in random order: the order of at most {SHUFFLED_MAX} fits into memory; choose \
                 more segments, each of which is in random order"
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

    /// Number of transfers of a block.
    fn per_block(&self) -> u64 {
        self.block / self.transfer
    }

    /// Per rank: the transfers of a segment in random order, by number. In a shared file they are
    /// numbered from the start of the segment, otherwise from the start of the block.
    fn shuffled(&self) -> Vec<Vec<u32>> {
        if self.shared && self.random_within == RandomWithin::File {
            return self.dealt();
        }
        let of_rank = |rank: u32| {
            let first = if self.shared { u64::from(rank) * self.per_block() } else { 0 } as u32;
            let mut own: Vec<u32> = (first..first + self.per_block() as u32).collect();
            shuffle(&mut own, &mut Random::new(self.seed.wrapping_add(rank)));
            own
        };
        (0..self.processes).map(of_rank).collect()
    }

    /// Deals the transfers of a segment out to the ranks at random.
    fn dealt(&self) -> Vec<Vec<u32>> {
        let mut random = Random::new(self.seed);
        let mut dealt = vec![Vec::new(); self.processes as usize];
        for i in 0..(self.per_block() * u64::from(self.processes)) as u32 {
            let rank = random.next() % u64::from(self.processes);
            dealt[rank as usize].push(i);
        }
        // Every rank continues with the generator in the state after the dealing.
        for own in &mut dealt {
            shuffle(own, &mut random.clone());
        }
        dealt
    }
}

/// Shuffles like IOR.
fn shuffle(transfers: &mut [u32], random: &mut Random) {
    let len = transfers.len() as u64;
    for i in 0..transfers.len() {
        transfers.swap(i, (random.next() % len) as usize);
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
        let call = |segment, rank, transfer| {
            let file = if self.shared { 0 } else { rank };
            let offset = self.base(segment) + transfer * self.transfer;
            Call { rank, file, offset, size: self.transfer }
        };
        let (of, rounds, processes) = ((op, Flags::NONE), self.segments, self.processes);
        match self.access {
            Access::Sequential => {
                let per_block = self.per_block();
                let first = move |rank: u32| if self.shared { u64::from(rank) * per_block } else { 0 };
                let next = move |segment, rank, i| Some(call(segment, rank, first(rank) + i));
                Box::new(Step::of_lists(of, rounds, per_block, processes, next))
            }
            Access::Random => {
                let orders = self.shuffled();
                let longest = orders.iter().map(Vec::len).max().unwrap_or(0) as u64;
                let next = move |segment, rank: u32, i| {
                    let transfer = *orders[rank as usize].get(i as usize)?;
                    Some(call(segment, rank, transfer.into()))
                };
                Box::new(Step::of_lists(of, rounds, longest, processes, next))
            }
        }
    }
}
