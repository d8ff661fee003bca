//! Counters of a run's emulated servers, and of its processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use serde_json::Value;
use stripewise_cluster::Cluster;
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
/// A line is not JSON.
pub fn statistics(path: &Path) -> anyhow::Result<BTreeMap<String, f64>> {
    let mut sums = BTreeMap::new();
    for line in std::fs::read_to_string(path).unwrap_or_default().lines() {
        let of_process: BTreeMap<String, Value> =
            serde_json::from_str(line).with_context(|| format!("statistics say: {line}"))?;
        for name in COUNTS {
            let count = of_process.get(name).and_then(Value::as_f64).unwrap_or(0.0);
            *sums.entry(name.to_owned()).or_insert(0.0) += count;
        }
    }
    if let (Some(requests), Some(hits)) = (sums.get("requests"), sums.get("hits")) {
        let misses = requests - hits - sums.get("partial_hits").unwrap_or(&0.0);
        sums.insert("misses".to_owned(), misses);
    }
    Ok(sums)
}

const COUNTS: [&str; 6] = ["requests", "hits", "partial_hits", "critical", "evictions", "write_backs"];
