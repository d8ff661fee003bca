//! Contents of the workloads' files. This process writes them before a program reads them and
//! checks them after a program wrote them, at the speed of its memory. The pattern is a second
//! implementation of that in `workloads/common.c`, so that a program does not check itself.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use stripewise_datapath::migrate::{Contents, Goal, migrate};
use stripewise_datapath::{Runtime, Shape};
use stripewise_evaluate::Program;
use stripewise_trace::synth::{Benchmark, Btio, Hpio, Tile};

use super::program::{self, SEED};

/// Bytes written or checked per request: enough to keep all servers of a file busy.
const CHUNK_BYTES: usize = 4 << 20;

/// A file, or the ranges of it that one program transfers.
pub struct Holding {
    pub path: PathBuf,
    key: u64,
    /// Start and end of each range, in order; no two ranges touch.
    ranges: Vec<(u64, u64)>,
}

/// Returns what a program transfers, by file. For collective programs these are the ranges that the
/// processes request, which differ from the larger ranges that reach the file system.
pub fn of(program: &Program, root: &Path) -> Vec<Holding> {
    let single = match program::undirected(program) {
        Program::Ior(ior) => Program::Ior(ior),
        Program::Hpio(hpio) => Program::Hpio(Hpio { collective: None, ..hpio }),
        Program::Tile(tile) => Program::Tile(Tile { collective: None, ..tile }),
        Program::Btio(btio) => Program::Btio(Btio { full: None, ..btio }),
    };
    let shared = !matches!(program, Program::Ior(ior) if !ior.shared);
    holdings(single.benchmark(), shared, root)
}

fn holdings(benchmark: &dyn Benchmark, shared: bool, root: &Path) -> Vec<Holding> {
    let files = benchmark.job().files;
    let mut ranges: BTreeMap<u32, Vec<(u64, u64)>> = BTreeMap::new();
    for (_, steps) in benchmark.rounds() {
        for call in steps.flat_map(|step| step.calls) {
            ranges.entry(call.file).or_default().push((call.offset, call.offset + call.size));
        }
    }
    let holding = |(file, ranges)| Holding {
        path: root.join(&files[file as usize]),
        key: key(SEED, if shared { 0 } else { u64::from(file) + 1 }),
        ranges: merged(ranges),
    };
    ranges.into_iter().map(holding).collect()
}

fn merged(mut ranges: Vec<(u64, u64)>) -> Vec<(u64, u64)> {
    ranges.sort_unstable();
    let mut merged: Vec<(u64, u64)> = Vec::new();
    for (start, end) in ranges {
        match merged.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => merged.push((start, end)),
        }
    }
    merged
}

impl Holding {
    /// Creates the whole file in the layout that the runtime's plan gives it. All its copies are
    /// equal.
    pub fn make(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let path = &self.path;
        let rule = runtime.plan().and_then(|plan| plan.rule_for(path));
        let shape = rule.and_then(|rule| Shape::of(rule, path));
        let shape = shape.with_context(|| format!("the plan has no layout for {}", path.display()))?;
        let plain = File::create(path).with_context(|| format!("cannot make {}", path.display()))?;
        let whole = [(0, self.ranges.last().map_or(0, |range| range.1))];
        let place = || migrate(runtime, path, Goal::Managed(shape), &mut |_| ());
        if shape.overlay().is_some() {
            // A write through the data path would put the contents into the cache.
            self.each_chunk(&whole, |chunk, offset| Ok(plain.write_all_at(chunk, offset)?))?;
            place()?;
            return Ok(());
        }
        place()?;
        let contents = Contents::open(runtime, path)?;
        self.each_chunk(&whole, |chunk, offset| {
            contents.write(chunk, offset).with_context(|| format!("cannot write {}", path.display()))
        })
    }

    /// Checks all ranges that were to be written. The error names the first wrong byte.
    pub fn check(&self, runtime: &Runtime) -> anyhow::Result<()> {
        let shown = self.path.display();
        let contents = Contents::open(runtime, &self.path)?;
        ensure!(contents.managed().is_some(), "{shown} is not in the layout of the plan");
        let mut found = vec![0; CHUNK_BYTES];
        self.each_chunk(&self.ranges, |chunk, offset| {
            let found = &mut found[..chunk.len()];
            let read = contents.read(found, offset).with_context(|| format!("cannot read {shown}"))?;
            let differs = found[..read].iter().zip(chunk).position(|(found, wanted)| found != wanted);
            match differs.or((read < chunk.len()).then_some(read)) {
                Some(at) => bail!("byte {} of {shown} is wrong", offset + at as u64),
                None => Ok(()),
            }
        })
    }

    fn each_chunk(
        &self,
        ranges: &[(u64, u64)],
        mut with: impl FnMut(&[u8], u64) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut chunk = vec![0; CHUNK_BYTES];
        for &(start, end) in ranges {
            for offset in (start..end).step_by(CHUNK_BYTES) {
                let chunk = &mut chunk[..(end - offset).min(CHUNK_BYTES as u64) as usize];
                fill(chunk, offset, self.key);
                with(chunk, offset)?;
            }
        }
        Ok(())
    }
}

const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// The output function of splitmix64.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Returns the key of a file's contents: `file` is 0 for a shared file, else the rank that the file
/// belongs to, plus 1.
fn key(seed: u64, file: u64) -> u64 {
    mix(seed.wrapping_mul(ODD).wrapping_add(file + 1))
}

/// Fills `buffer` with the file's contents from `offset` on.
fn fill(buffer: &mut [u8], offset: u64, key: u64) {
    let word = |word: u64| mix(word.wrapping_mul(ODD).wrapping_add(key)).to_le_bytes();
    let skip = (offset % 8) as usize;
    let (head, rest) = buffer.split_at_mut(((8 - skip) % 8).min(buffer.len()));
    head.copy_from_slice(&word(offset / 8)[skip..][..head.len()]);
    for (index, eight) in (offset.div_ceil(8)..).zip(rest.chunks_mut(8)) {
        eight.copy_from_slice(&word(index)[..eight.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_and_overlapping_ranges_are_one() {
        assert_eq!(merged(vec![(8, 12), (0, 4), (4, 6), (10, 11), (20, 21)]), [(0, 6), (8, 12), (20, 21)]);
    }

    #[test]
    fn a_byte_depends_on_its_offset_alone_not_on_where_the_buffer_begins() {
        let mut whole = vec![0; 100];
        fill(&mut whole, 0, key(1, 0));
        for start in 0..20 {
            for len in 0..40 {
                let mut part = vec![0; len];
                fill(&mut part, start as u64, key(1, 0));
                assert_eq!(part, whole[start..start + len], "{len} bytes from {start} on");
            }
        }
    }
}
