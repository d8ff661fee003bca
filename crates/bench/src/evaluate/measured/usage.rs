//! Counters of a run's emulated servers, and of its processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use stripewise_cluster::Cluster;
use stripewise_report::Statistics;
use stripewise_report::statistics::Counts;
use stripewise_sys::{Real, SysRef};
use stripewise_target::Target;
use stripewise_target::emulate::{Emulation, Server};

/// The emulated servers of a cluster, observed by this process.
pub struct Watch {
    servers: Vec<Server>,
}

impl Watch {
    /// Creates the directories of the cluster's targets and attaches to the emulated servers. While
    /// this value lives, no process clears the servers' shared state.
    ///
    /// # Errors
    /// A directory is missing or is not a target of the cluster.
    pub fn begin(cluster: &Cluster) -> anyhow::Result<Self> {
        let sys: SysRef = Arc::new(Real);
        let emulation = Emulation::attach(&sys, None).context("cannot attach to the emulated servers")?;
        let mut servers = Vec::new();
        for (index, spec) in (0..).zip(cluster.targets()) {
            let target = Target::prepare(&sys, &spec.path, &spec.name)?;
            if let Some(class) = cluster.emulation_of(index) {
                servers.push(emulation.server(target.id(), class).context("too many emulated servers")?);
            }
        }
        Ok(Self { servers })
    }

    /// Returns the seconds for which each server was busy so far.
    pub fn busy_s(&self) -> Vec<f64> {
        self.servers.iter().map(|server| server.usage().busy_ns as f64 / 1e9).collect()
    }
}

/// Returns the counters of a statistics file (`docs/formats/statistics.md`), added up over
/// processes and files. The result is empty if no file had several copies.
///
/// # Errors
/// A line is not one of such a file.
pub fn statistics(path: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let mut statistics = Statistics::default();
    statistics.read(&text, &path.display().to_string())?;
    if statistics.files.is_empty() {
        return Ok(BTreeMap::new());
    }
    let sum = |count: fn(&Counts) -> u64| statistics.files.iter().map(|file| count(&file.counts)).sum::<u64>();
    let sums = [
        ("requests", sum(|counts| counts.requests)),
        ("hits", sum(|counts| counts.hits)),
        ("partial_hits", sum(|counts| counts.partial_hits)),
        ("misses", sum(|counts| counts.requests.saturating_sub(counts.hits + counts.partial_hits))),
        ("critical", sum(|counts| counts.critical)),
        ("evictions", sum(|counts| counts.evictions)),
        ("write_backs", sum(|counts| counts.write_backs)),
    ];
    Ok(sums.map(|(name, sum)| (name.to_owned(), sum as f64)).into())
}
