//! A plan, and what it uses of every row.

use crate::program::{Choice, Program, Row};

/// Overuse of space up to this fraction of it is rounding.
const EXACT: f64 = 1e-12;

/// A plan whose choices change one at a time.
#[derive(Clone)]
pub(crate) struct Usage<'p> {
    pub program: &'p Program,
    pub choices: Vec<Choice>,
    /// Seconds or bytes used of each row.
    used: Vec<f64>,
    /// Sum over the regions of what they take by themselves.
    alone_s: f64,
}

impl<'p> Usage<'p> {
    /// The usage of these choices.
    pub fn new(program: &'p Program, choices: Vec<Choice>) -> Self {
        let mut usage = Self { program, choices, used: vec![0.0; program.rows.len()], alone_s: 0.0 };
        usage.count_anew();
        usage
    }

    /// Sums up anew, without the rounding errors of many changes.
    pub fn count_anew(&mut self) {
        self.used.fill(0.0);
        self.alone_s = 0.0;
        for region in 0..self.choices.len() {
            self.add(region, self.choices[region], 1.0);
        }
    }

    /// Gives a region another choice. Returns the former one.
    pub fn set(&mut self, region: usize, choice: Choice) -> Choice {
        let before = std::mem::replace(&mut self.choices[region], choice);
        self.add(region, before, -1.0);
        self.add(region, choice, 1.0);
        before
    }

    /// Takes a region out, as if it did not exist.
    pub fn remove(&mut self, region: usize) {
        self.add(region, self.choices[region], -1.0);
    }

    /// What the plan uses of every row.
    pub fn into_used(self) -> Vec<f64> {
        self.used
    }

    fn add(&mut self, region: usize, choice: Choice, sign: f64) {
        for (column, fraction) in choice.parts() {
            let column = &self.program.regions[region].columns[column as usize];
            self.alone_s += sign * fraction * column.seconds;
            for &(row, used) in &column.uses {
                self.used[row as usize] += sign * fraction * used;
            }
        }
    }

    /// The value of the plan, seconds.
    pub fn seconds(&self) -> f64 {
        let mut times = vec![0.0f64; self.program.weights.len()];
        for (row, &used) in self.program.rows.iter().zip(&self.used) {
            if let Row::Time { phase } = row {
                let time = &mut times[*phase as usize];
                *time = time.max(used);
            }
        }
        self.alone_s + times.iter().zip(&self.program.weights).map(|(time, weight)| time * weight).sum::<f64>()
    }

    /// Space that is used and not there, as a sum of fractions of the space of each row.
    pub fn overuse(&self) -> f64 {
        self.overuses().map(|(_, bytes, fraction)| if bytes > 0.0 { fraction } else { 0.0 }).sum()
    }

    /// The space row that lacks the largest fraction of its space, and the bytes that it lacks.
    pub fn fullest(&self) -> Option<(u32, f64)> {
        let worst = self.overuses().max_by(|a, b| a.2.total_cmp(&b.2))?;
        Some((worst.0, worst.1))
    }

    /// The space rows that are overused, with bytes and fractions.
    fn overuses(&self) -> impl Iterator<Item = (u32, f64, f64)> {
        (0..).zip(&self.used).filter_map(|(row, &used)| {
            let bytes = self.program.space(row)?;
            let over = used - bytes;
            (over > EXACT * bytes.max(1.0)).then_some((row, over, over / bytes.max(1.0)))
        })
    }

    /// Smaller is better: less overuse first, then fewer seconds.
    pub fn rank(&self) -> (f64, f64) {
        (self.overuse(), self.seconds())
    }
}
