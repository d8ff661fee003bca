//! Column generation: prices, proposals that are cheap at these prices, the best mixture of all
//! proposals, and its prices again.

use std::collections::HashSet;
use std::ops::Range;

use crate::bound::{Prices, bound};
use crate::master::{Mixture, Proposal, Scale, mix};
use crate::program::{AllocationError, Program, Row};

/// That many regions have proposals of their own. All others share those of their block, so that
/// the restricted program stays small.
const ALONE: usize = 192;
/// Number of blocks of the other regions.
const BLOCKS: usize = 64;
/// Maximum number of rounds.
const ROUNDS: usize = 300;
/// The bound is good enough if it is below the value of the mixture by less than this fraction.
const CLOSE: f64 = 1e-7;
/// Fractions below this are inaccuracies of the solver.
const FRACTION_MIN: f64 = 1e-5;
/// What a unit of missing space costs at first, and at most: units of time.
const PENALTIES: [f64; 3] = [10.0, 1e3, 1e5];

/// The solution of the relaxed program, in which every region may be cut.
pub struct Relaxed {
    /// For each region: columns with their fractions, the largest first.
    pub fractions: Vec<Vec<(u32, f64)>>,
    /// Seconds.
    pub bound_s: f64,
    /// The prices that prove the bound.
    pub prices: Prices,
}

/// Solves the relaxed program.
///
/// # Errors
/// Even if all regions are cut, the space does not suffice.
pub fn relaxed(program: &Program) -> Result<Relaxed, AllocationError> {
    let blocks = blocks(program.regions.len());
    if blocks.is_empty() {
        return Ok(Relaxed { fractions: Vec::new(), bound_s: 0.0, prices: Prices::even(program) });
    }
    let mut generation = Generation::new(program, &blocks);
    let mut penalties = PENALTIES.into_iter();
    let mut penalty = penalties.next().unwrap_or_default();
    for _ in 0..ROUNDS {
        let Some(mixture) = generation.mix(penalty) else { break };
        let has_new = generation.propose_for(&mixture);
        let is_close = mixture.value_s - generation.bound_s <= CLOSE * mixture.value_s.abs();
        let lacks = mixture.lacks;
        generation.mixture = Some(mixture);
        if has_new && !(is_close && lacks.is_none()) {
            continue;
        }
        match (lacks, penalties.next()) {
            (None, _) => break,
            (Some(_), Some(more)) => penalty = more,
            (Some((row, bytes)), None) => return Err(AllocationError::Full { row, bytes }),
        }
    }
    Ok(generation.relaxed())
}

/// The regions of each block.
fn blocks(regions: usize) -> Vec<Range<usize>> {
    let alone = (0..regions.min(ALONE)).map(|region| region..region + 1);
    let rest = regions.saturating_sub(ALONE);
    let size = rest.div_ceil(BLOCKS).max(1);
    let together = (ALONE..regions).step_by(size).map(|start| start..(start + size).min(regions));
    alone.chain(together).collect()
}

struct Generation<'a> {
    program: &'a Program,
    blocks: &'a [Range<usize>],
    scale: Scale,
    proposals: Vec<Proposal>,
    /// Block and columns of the proposals.
    known: HashSet<(u32, Vec<u32>)>,
    bound_s: f64,
    prices: Prices,
    mixture: Option<Mixture>,
}

impl<'a> Generation<'a> {
    /// With two proposals per block: cheapest if space is free, and least space.
    fn new(program: &'a Program, blocks: &'a [Range<usize>]) -> Self {
        let free = Prices::even(program);
        let (bound_s, fastest) = bound(program, &free);
        let scale = Scale::new(program, bound_s);
        let mut generation = Self {
            program,
            blocks,
            scale,
            proposals: Vec::new(),
            known: HashSet::new(),
            bound_s: bound_s.max(0.0),
            prices: free,
            mixture: None,
        };
        generation.propose(&fastest);
        generation.propose(&least_space(program));
        generation
    }

    fn mix(&self, penalty: f64) -> Option<Mixture> {
        mix(self.program, &self.scale, &self.proposals, self.blocks.len(), penalty)
    }

    /// Adds what is cheapest at the prices of a mixture. Returns whether some of it is new, and
    /// cheaper than what the mixture has.
    fn propose_for(&mut self, mixture: &Mixture) -> bool {
        let (bound_s, columns) = bound(self.program, &mixture.prices);
        if bound_s > self.bound_s {
            (self.bound_s, self.prices) = (bound_s, mixture.prices.clone());
        }
        self.propose(&columns)
    }

    /// Adds a proposal for every block, unless it has it. Returns whether any was added.
    fn propose(&mut self, columns: &[u32]) -> bool {
        let before = self.proposals.len();
        for (block, regions) in (0..).zip(self.blocks) {
            let columns = columns[regions.clone()].to_vec();
            if self.known.insert((block, columns.clone())) {
                self.proposals.push(proposal(self.program, block, regions, columns));
            }
        }
        self.proposals.len() > before
    }

    fn relaxed(self) -> Relaxed {
        let mut fractions: Vec<Vec<(u32, f64)>> = vec![Vec::new(); self.program.regions.len()];
        let of_mixture = self.mixture.iter().flat_map(|mixture| &mixture.fractions);
        for (proposal, &fraction) in self.proposals.iter().zip(of_mixture) {
            if fraction > FRACTION_MIN {
                let regions = self.blocks[proposal.block as usize].clone();
                for (of, &column) in fractions[regions].iter_mut().zip(&proposal.columns) {
                    match of.iter_mut().find(|(known, _)| *known == column) {
                        Some((_, sum)) => *sum += fraction,
                        None => of.push((column, fraction)),
                    }
                }
            }
        }
        for (of, region) in fractions.iter_mut().zip(&self.program.regions) {
            if of.is_empty() {
                of.push((self.prices.cheapest(region).0, 1.0));
            }
            of.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        }
        Relaxed { fractions, bound_s: self.bound_s, prices: self.prices }
    }
}

fn proposal(program: &Program, block: u32, regions: &Range<usize>, columns: Vec<u32>) -> Proposal {
    let mut uses = vec![0.0; program.rows.len()];
    let mut seconds = 0.0;
    for (region, &column) in program.regions[regions.clone()].iter().zip(&columns) {
        let column = &region.columns[column as usize];
        seconds += column.seconds;
        column.uses.iter().for_each(|&(row, used)| uses[row as usize] += used);
    }
    Proposal { block, columns, seconds, uses }
}

/// For each region the column that uses the least fraction of all space.
fn least_space(program: &Program) -> Vec<u32> {
    let per_byte = |row: &Row| match *row {
        Row::Space { bytes } => 1.0 / bytes.max(1.0),
        Row::Time { .. } => 0.0,
    };
    let prices: Vec<f64> = program.rows.iter().map(per_byte).collect();
    let space = |uses: &[(u32, f64)]| uses.iter().map(|&(row, used)| used * prices[row as usize]).sum::<f64>();
    let least = |columns: &[crate::Column]| {
        let all = (0..).zip(columns).map(|(index, column)| (index, space(&column.uses)));
        all.fold((0, f64::INFINITY), |best, this| if this.1 < best.1 { this } else { best }).0
    };
    program.regions.iter().map(|region| least(&region.columns)).collect()
}
