//! The emulated servers: 4 HDDs and 4 SSDs with the papers' parameters, all slowed down by one
//! factor.

use std::fs;

use anyhow::Context;
use stripewise_evaluate::Storage;
use stripewise_evaluate::experiments::devices;
use stripewise_model::Network;
use stripewise_report::Servers;

use super::workspace::Workspace;
use crate::shell::arguments;

/// Factor on the published parameters (`docs/papers.md`). It makes the servers the bottleneck,
/// instead of copying and wakeups on two cores. A common factor changes no ratio of times, and
/// therefore no layout's rank.
const SLOWDOWN: f64 = 4.0;

/// Number of servers of each class.
pub const SERVERS: u32 = 4;

/// Returns the servers, with `ssd_bytes` of space on each SSD server.
fn storage(ssd_bytes: u64) -> Storage {
    let classes = (devices::hdd(devices::RANDOM_S), devices::ssd_of_the_worked_example());
    let mut tiers = devices::tiers((SERVERS, SERVERS), classes, ssd_bytes);
    tiers.iter_mut().for_each(|tier| tier.class = devices::slowed(&tier.class, SLOWDOWN));
    Storage { tiers, network: Network::default() }
}

/// Writes `name`, a cluster file with `ssd_bytes` of space on each SSD server, and creates the
/// directories.
pub fn write_cluster(work: &Workspace, name: &str, ssd_bytes: u64) -> anyhow::Result<()> {
    let directory = |tier: &str, index| work.path(format!("servers/{tier}{index}"));
    let cluster = storage(ssd_bytes).cluster(&directory, true);
    for target in cluster.targets() {
        let path = target.path;
        fs::create_dir_all(&path).with_context(|| format!("cannot make '{}'", path.display()))?;
    }
    work.write(name, &cluster.to_toml())
}

/// Measures the servers and writes `profile.toml`, which the planner then uses instead of the given
/// parameters. With `quick` it takes a quarter of the time of `calibrate --quick`.
pub fn calibrate(work: &Workspace, quick: bool) -> anyhow::Result<()> {
    work.say("calibrate: measuring one server of each class");
    write_cluster(work, "cluster.toml", 1 << 30)?;
    let seconds = if quick { "0.05" } else { "0.2" };
    let words = arguments!["calibrate", "-c", "cluster.toml", "-o", "profile.toml", "--quick"];
    work.stripewise([words, arguments!["--seconds-per-point", seconds]].concat())?;
    Ok(())
}

pub fn described() -> Vec<Servers> {
    let tier = |tier: &'static str| Servers {
        tier: tier.to_owned(),
        class: tier.to_owned(),
        count: SERVERS,
        emulated: true,
    };
    ["hdd", "ssd"].map(tier).into()
}

pub fn sentence() -> String {
    let tiers = storage(0).tiers;
    let tiers = tiers.iter().map(|tier| {
        let (name, service) = (tier.name.to_uppercase(), tier.class.read.random);
        let (startup_ms, rate) = (service.startup_s * 1e3, 1.0 / service.per_byte_s / (1 << 20) as f64);
        format!("{SERVERS} {name} servers ({startup_ms:.2} ms + {rate:.0} MiB/s)")
    });
    let tiers = tiers.collect::<Vec<_>>().join(" and ");
    format!("{tiers}, emulated at 1/{SLOWDOWN} of the papers' speed")
}
