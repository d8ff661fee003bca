//! The emulated servers: 4 HDDs and 4 SSDs with the papers' parameters, all slowed down by one
//! factor.

use std::fmt::Write as _;
use std::fs;

use anyhow::Context;
use stripewise_cluster::size;
use stripewise_report::Servers;

use super::workspace::Workspace;
use crate::shell::words;

/// Factor on the published parameters (`docs/papers.md`). It makes the servers the bottleneck,
/// instead of copying and wakeups on two cores. A common factor changes no ratio of times, and
/// therefore no layout's rank.
pub const SLOWDOWN: f64 = 4.0;

const MIB: f64 = 1024.0 * 1024.0;

/// One class as published: startup time of random and of sequential accesses in seconds, and
/// seconds per byte.
struct Class {
    name: &'static str,
    random_s: f64,
    sequential_s: f64,
    per_byte_s: f64,
}

const HDD: Class = Class { name: "hdd", random_s: 3e-4, sequential_s: 1e-4, per_byte_s: 1.0 / (120.0 * MIB) };
const SSD: Class = Class { name: "ssd", random_s: 5e-5, sequential_s: 5e-5, per_byte_s: 1.0 / (400.0 * MIB) };
/// Number of servers of each class.
pub const SERVERS: u32 = 4;

/// Writes `name`, a cluster file with `ssd_bytes` of space on each SSD server, and creates the
/// directories.
///
/// # Errors
/// A directory or the file cannot be written.
pub fn write_cluster(work: &Workspace, name: &str, ssd_bytes: u64) -> anyhow::Result<()> {
    let mut text = String::from("[network]\nestablish_s = 0.0\nper_byte_s = 0.0\n");
    for class in [&HDD, &SSD] {
        writeln!(text, "\n[class.{}]", class.name)?;
        for (access, startup_s) in [("random", class.random_s), ("sequential", class.sequential_s)] {
            let (startup_s, per_byte_s) = (startup_s * SLOWDOWN, class.per_byte_s * SLOWDOWN);
            for op in ["read", "write"] {
                writeln!(text, "{op}.{access} = {{ startup_s = {startup_s:e}, per_byte_s = {per_byte_s:e} }}")?;
            }
        }
    }
    for (class, capacity) in [(&HDD, "1T".to_string()), (&SSD, size::format(ssd_bytes))] {
        let tier = class.name;
        let servers: Vec<String> = (0..SERVERS).map(|n| format!("servers/{tier}{n}")).collect();
        let mut quoted = Vec::new();
        for server in &servers {
            let path = work.path(server);
            fs::create_dir_all(&path).with_context(|| format!("cannot make '{}'", path.display()))?;
            quoted.push(toml::Value::from(path.display().to_string()).to_string());
        }
        writeln!(text, "\n[[tier]]\nname = \"{tier}\"\nclass = \"{tier}\"\ndriver = \"dirs\"")?;
        writeln!(text, "servers = [{}]", quoted.join(", "))?;
        writeln!(text, "capacity_per_server = \"{capacity}\"\nemulate = true")?;
    }
    work.write(name, &text)
}

/// Measures the servers and writes `profile.toml`, which the planner then uses instead of the given
/// parameters. With `quick` it takes a quarter of the time of `calibrate --quick`.
///
/// # Errors
/// As `stripewise calibrate`.
pub fn calibrate(work: &Workspace, quick: bool) -> anyhow::Result<()> {
    work.say("calibrate: measuring one server of each class");
    write_cluster(work, "cluster.toml", 1 << 30)?;
    let seconds = if quick { "0.05" } else { "0.2" };
    let words = words!["calibrate", "-c", "cluster.toml", "-o", "profile.toml", "--quick"];
    work.stripewise([words, words!["--seconds-per-point", seconds]].concat())?;
    Ok(())
}

/// Returns the description of the servers for the results.
pub fn described() -> Vec<Servers> {
    let tier = |class: &Class| Servers {
        tier: class.name.to_string(),
        class: class.name.to_string(),
        count: SERVERS,
        emulated: true,
    };
    vec![tier(&HDD), tier(&SSD)]
}

/// Returns a sentence that describes the servers.
pub fn sentence() -> String {
    let class = |class: &Class| {
        format!(
            "{SERVERS} {} servers ({:.2} ms + {:.0} MiB/s)",
            class.name.to_uppercase(),
            class.random_s * SLOWDOWN * 1e3,
            1.0 / (class.per_byte_s * SLOWDOWN * MIB)
        )
    };
    format!("{} and {}, emulated at 1/{SLOWDOWN} of the papers' speed", class(&HDD), class(&SSD))
}
