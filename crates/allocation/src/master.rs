//! The restricted program: the best mixture of the proposals so far.

use clarabel::algebra::CscMatrix;
use clarabel::solver::{DefaultSettings, DefaultSolver, IPSolver, SolverStatus, SupportedConeT};

use crate::bound::Prices;
use crate::program::{Program, Row};

/// Columns for the regions of a block, with their sums.
pub struct Proposal {
    pub block: u32,
    /// For each region of the block.
    pub columns: Vec<u32>,
    pub seconds: f64,
    /// Bytes or seconds of each row.
    pub uses: Vec<f64>,
}

/// The units in which the solver sees the program, so that its numbers are about 1.
pub struct Scale {
    /// Seconds.
    time_s: f64,
    /// By row: seconds of a time row, bytes of a space row.
    rows: Vec<f64>,
}

/// A solution of the restricted program.
pub struct Mixture {
    /// The fraction of its block that every proposal gets.
    pub fractions: Vec<f64>,
    /// The value, seconds. Missing space is not counted.
    pub value_s: f64,
    pub prices: Prices,
    /// The space row that lacks most, and the bytes that it lacks.
    pub lacks: Option<(u32, f64)>,
}

impl Scale {
    /// Units for a program that takes about `time_s` seconds.
    pub fn new(program: &Program, time_s: f64) -> Self {
        let time_s = if time_s > 0.0 { time_s } else { 1.0 };
        let mut rows: Vec<f64> = (program.rows.iter())
            .map(|row| match *row {
                Row::Time { .. } => time_s,
                Row::Space { bytes } => bytes,
            })
            .collect();
        for column in program.regions.iter().flat_map(|region| &region.columns) {
            for &(row, used) in column.uses.iter().filter(|(row, _)| program.space(*row).is_some()) {
                rows[row as usize] = rows[row as usize].max(used);
            }
        }
        rows.iter_mut().for_each(|scale| *scale = if *scale > 0.0 { *scale } else { 1.0 });
        Self { time_s, rows }
    }
}

/// Missing space beyond this fraction of a row's unit is more than the solver's inaccuracy.
const LACKS: f64 = 1e-6;

/// Mixes the proposals of `blocks` blocks. Every unit of space that is missing costs `penalty`
/// units of time. `None` if the solver fails.
pub fn mix(
    program: &Program,
    scale: &Scale,
    proposals: &[Proposal],
    blocks: usize,
    penalty: f64,
) -> Option<Mixture> {
    let restricted = Restricted { program, scale, proposals, blocks };
    let (matrix, limits) = (restricted.matrix(), restricted.limits());
    let costs = restricted.costs(penalty);
    let cones = [SupportedConeT::ZeroConeT(blocks), SupportedConeT::NonnegativeConeT(limits.len() - blocks)];
    let settings = DefaultSettings { verbose: false, ..DefaultSettings::default() };
    let none = CscMatrix::zeros((costs.len(), costs.len()));
    let mut solver = DefaultSolver::new(&none, &costs, &matrix, &limits, &cones, settings).ok()?;
    solver.solve();
    let solved = &solver.solution;
    let is_usable = matches!(
        solved.status,
        SolverStatus::Solved | SolverStatus::AlmostSolved | SolverStatus::InsufficientProgress
    );
    let is_finite = solved.x.iter().chain(&solved.z).all(|number| number.is_finite());
    (is_usable && is_finite).then(|| restricted.mixture(&solved.x, &solved.z, &costs))
}

/// The restricted program as the solver wants it: minimise `costs x` subject to `matrix x + s =
/// limits`, where s is 0 in the first rows, one per block, and not negative in all others: those of
/// the program, then one for every variable, so that it is not negative. The variables are the
/// fractions of the proposals, the times of the phases, and the missing space of every row.
struct Restricted<'a> {
    program: &'a Program,
    scale: &'a Scale,
    proposals: &'a [Proposal],
    blocks: usize,
}

impl Restricted<'_> {
    fn rows(&self) -> usize {
        self.program.rows.len()
    }

    fn variables(&self) -> usize {
        self.proposals.len() + self.program.weights.len() + self.rows()
    }

    /// Column by column.
    fn matrix(&self) -> CscMatrix<f64> {
        let (mut starts, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
        let first_bound = self.blocks + self.rows();
        let mut add = |variable: usize, entries: &mut dyn Iterator<Item = (usize, f64)>| {
            for (row, value) in
                entries.filter(|&(_, value)| value != 0.0).chain([(first_bound + variable, -1.0)])
            {
                rows.push(row);
                values.push(value);
            }
            starts.push(rows.len());
        };
        for (variable, proposal) in self.proposals.iter().enumerate() {
            let uses = proposal.uses.iter().zip(&self.scale.rows).enumerate();
            let uses = uses.map(|(row, (used, scale))| (self.blocks + row, used / scale));
            add(variable, &mut [(proposal.block as usize, 1.0)].into_iter().chain(uses));
        }
        for phase in 0..self.program.weights.len() {
            let of_phase = |row: &Row| matches!(row, Row::Time { phase: of } if *of as usize == phase);
            let rows = self.program.rows.iter().enumerate().filter(|(_, row)| of_phase(row));
            add(self.proposals.len() + phase, &mut rows.map(|(row, _)| (self.blocks + row, -1.0)));
        }
        for row in 0..self.rows() {
            let variable = self.proposals.len() + self.program.weights.len() + row;
            add(variable, &mut [(self.blocks + row, -1.0)].into_iter());
        }
        let shape = (first_bound + self.variables(), self.variables());
        CscMatrix::new(shape.0, shape.1, starts, rows, values)
    }

    fn limits(&self) -> Vec<f64> {
        let of_row = |(row, scale): (u32, &f64)| self.program.space(row).map_or(0.0, |bytes| bytes / scale);
        let of_rows = (0..).zip(&self.scale.rows).map(of_row);
        std::iter::repeat_n(1.0, self.blocks)
            .chain(of_rows)
            .chain(std::iter::repeat_n(0.0, self.variables()))
            .collect()
    }

    fn costs(&self, penalty: f64) -> Vec<f64> {
        let of_proposals = self.proposals.iter().map(|proposal| proposal.seconds / self.scale.time_s);
        // Time rows never lack anything: their missing "space" costs more than the phase's time.
        let most = self.program.weights.iter().copied().fold(penalty, f64::max);
        let of_missing = self.program.rows.iter().map(|row| match row {
            Row::Time { .. } => 10.0 * most,
            Row::Space { .. } => penalty,
        });
        of_proposals.chain(self.program.weights.iter().copied()).chain(of_missing).collect()
    }

    fn mixture(&self, x: &[f64], z: &[f64], costs: &[f64]) -> Mixture {
        let time_s = self.scale.time_s;
        let unit_s = |(row, price): (u32, &f64)| {
            let per_unit =
                if self.program.space(row).is_some() { time_s / self.scale.rows[row as usize] } else { 1.0 };
            price * per_unit
        };
        let prices = (0..).zip(&z[self.blocks..self.blocks + self.rows()]).map(unit_s).collect();
        let counted = self.proposals.len() + self.program.weights.len();
        let lack = |(row, missing): (u32, &f64)| (row, missing * self.scale.rows[row as usize], *missing);
        let lacks = (0..).zip(&x[counted..]).map(lack).filter(|lack| lack.2 > LACKS);
        Mixture {
            fractions: x[..self.proposals.len()].to_vec(),
            value_s: time_s * x[..counted].iter().zip(costs).map(|(x, cost)| x * cost).sum::<f64>(),
            prices: Prices(prices).of_weights(self.program),
            lacks: lacks.max_by(|a, b| a.2.total_cmp(&b.2)).map(|(row, bytes, _)| (row, bytes)),
        }
    }
}
