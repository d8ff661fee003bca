//! What file sets share, as rows of the linear program: the space of the servers, and the time of
//! the stages.

use stripewise_allocation::{Prices, Program, Region, Row};
use stripewise_cluster::Cluster;

use super::stages::{Placed, Stage};
use crate::options::Objective;
use crate::servers::Servers;
use crate::workload::FileSet;

/// Maximum number of servers whose space is counted one by one, and of servers times file sets. In
/// larger clusters the space of a tier counts as one.
const SERVERS_MAX: usize = 256;
const SERVERS_OF_SETS_MAX: usize = 1 << 18;

/// What more space on a tier is worth.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct SpaceValue {
    /// The tier.
    pub tier: String,
    /// The space that it has, bytes.
    pub bytes: u64,
    /// Seconds that one more byte saves, if it is spread evenly over the tier's servers. It is a
    /// price: it holds for the next bytes, on average over many file sets.
    pub saves_s_per_byte: f64,
}

impl SpaceValue {
    /// A small part of the tier's space in round numbers, bytes, and the most that so much more of
    /// it saves, seconds.
    pub fn worth(&self) -> (u64, f64) {
        let unit = 1u64 << ((self.bytes / 16).max(1).ilog2() / 10 * 10);
        (unit, unit as f64 * self.saves_s_per_byte)
    }
}

/// The space of the servers and the stages as rows of the program.
pub struct Rows {
    /// The row that each server's space is in.
    row_of: Vec<u32>,
    /// The space of each server, bytes.
    pub capacities: Vec<u64>,
    /// Number of rows of the space.
    pub count: usize,
    /// Number of servers in each row of the space.
    servers: Vec<f64>,
    /// The stages, whose rows follow.
    pub stages: Vec<Stage>,
    /// The limit on moving existing files, bytes. If there is one, its row is the last.
    pub move_at_most: Option<u64>,
}

impl Rows {
    /// The rows for a plan of these file sets.
    pub fn new(cluster: &Cluster, servers: &Servers, file_sets: &[FileSet], objective: Objective) -> Self {
        let sets = file_sets.len();
        let is_large = servers.count() > SERVERS_MAX || servers.count() * sets > SERVERS_OF_SETS_MAX;
        let stages = Stage::all_of(file_sets, objective);
        match is_large {
            true => Self { stages, ..Self::of_tiers(cluster, servers) },
            false => Self::with((0..servers.count() as u32).collect(), servers, stages),
        }
    }

    /// The rows of the space with one row for each tier, without stages.
    pub fn of_tiers(cluster: &Cluster, servers: &Servers) -> Self {
        let tier = |server: u32| cluster.tier_of(server).unwrap_or(0) as u32;
        Self::with((0..servers.count() as u32).map(tier).collect(), servers, Vec::new())
    }

    fn with(row_of: Vec<u32>, servers: &Servers, stages: Vec<Stage>) -> Self {
        let count = row_of.iter().map(|row| row + 1).max().unwrap_or(0) as usize;
        let mut in_row = vec![0.0; count];
        row_of.iter().for_each(|&row| in_row[row as usize] += 1.0);
        Self {
            row_of,
            capacities: servers.capacities.clone(),
            count,
            servers: in_row,
            stages,
            move_at_most: None,
        }
    }

    /// The program of these regions if the rows of the space have so many bytes.
    pub fn program(&self, space: impl Iterator<Item = f64>, regions: Vec<Region>) -> Program {
        let space = space.map(|bytes| Row::Space { bytes });
        let of_stage = |(phase, stage): (u32, &Stage)| vec![Row::Time { phase }; stage.rows(self.count)];
        let of_stages = (0..).zip(&self.stages).flat_map(of_stage);
        let of_moving = self.move_at_most.map(|bytes| Row::Space { bytes: bytes as f64 });
        let rows = space.chain(of_stages).chain(of_moving).collect();
        Program { weights: self.stages.iter().map(Stage::weight).collect(), rows, regions }
    }

    /// The row of the limit on moving, whether or not there is one.
    pub fn move_row(&self) -> usize {
        self.count + self.stages.iter().map(|stage| stage.rows(self.count)).sum::<usize>()
    }

    /// Seconds of a set in a layout outside of all stages, and what it uses of the stages' rows.
    pub fn times(&self, index: usize, placed: Placed<'_>) -> (f64, Vec<(u32, f64)>) {
        let (mut first, mut uses) = (self.count, Vec::new());
        for stage in &self.stages {
            uses.extend(
                stage.uses(index, placed, (first, self.count), |busy_s, sums| self.add_mean(busy_s, sums)),
            );
            first += stage.rows(self.count);
        }
        (placed.outside_s(), uses)
    }

    /// Adds up the seconds of all servers of a row, divided by their number: no server works less
    /// than their mean.
    fn add_mean(&self, busy_s: &[f64], sums: &mut [f64]) {
        for (&row, busy_s) in self.row_of.iter().zip(busy_s) {
            sums[row as usize] += busy_s / self.servers[row as usize];
        }
    }

    /// Sums up what servers hold by row, bytes.
    pub fn sums(&self, bytes: &[u64]) -> Vec<u64> {
        let mut sums = vec![0u64; self.count];
        for (&row, &bytes) in self.row_of.iter().zip(bytes) {
            sums[row as usize] = sums[row as usize].saturating_add(bytes);
        }
        sums
    }

    /// What more space on each tier is worth.
    pub fn values(&self, cluster: &Cluster, servers: &Servers, prices: &Prices) -> Vec<SpaceValue> {
        let mean_price = |tier: usize| {
            let targets = cluster.targets_of(tier);
            let prices = targets.clone().map(|server| prices.0[self.row_of[server as usize] as usize]);
            prices.sum::<f64>() / targets.len().max(1) as f64
        };
        let value = |(tier, name): (usize, &String)| SpaceValue {
            tier: name.clone(),
            bytes: servers.space_of(cluster, tier),
            saves_s_per_byte: mean_price(tier),
        };
        cluster.tiers.iter().map(|tier| &tier.name).enumerate().map(value).collect()
    }
}
