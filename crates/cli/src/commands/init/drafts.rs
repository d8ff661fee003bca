//! Derives tiers from the inspected directories. Pure: no I/O.

use std::collections::BTreeMap;

use anyhow::ensure;
use serde_json::{Value, json};
use stripewise_cluster::cluster::CAPACITY_MIN;
use stripewise_cluster::{Driver, FileSystem, Members, Tier, size};
use stripewise_drivers::Probe;

use super::look::Place;

/// A tier proposed for the cluster file.
#[derive(Debug)]
pub struct Draft {
    pub tier: Tier,
    /// The draft is written as a comment only, because another draft has the same servers.
    pub instead: bool,
    /// Notes about the tier, one sentence each.
    pub remarks: Vec<String>,
}

/// Returns the tiers of all places, each with a unique name.
pub fn of(places: &[Place]) -> anyhow::Result<Vec<Draft>> {
    let mut drafts = plain(places);
    for place in places {
        let Some((system, probe)) = place.probe.as_ref().and_then(|probe| Some((probe.system?, probe))) else {
            continue;
        };
        let native = Found { system, place, probe }.drafts();
        ensure!(
            !native.is_empty(),
            "{}: there is no server or pool of {} that this user can put files on: {}",
            place.path.display(),
            system.title(),
            if probe.rights.is_empty() { "ask an administrator".to_owned() } else { probe.rights.join("; ") }
        );
        drafts.extend(native);
    }
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    // Alternative drafts (comments) may share a name with the drafts that they could replace.
    for draft in drafts.iter_mut().filter(|draft| !draft.instead) {
        let count = seen.entry(draft.tier.name.clone()).or_default();
        *count += 1;
        if *count > 1 {
            draft.tier.name = format!("{}-{count}", draft.tier.name);
            draft.tier.class = draft.tier.name.clone();
        }
    }
    Ok(drafts)
}

/// Drafts for plain directories: each directory is a server, in one tier per kind of disk.
fn plain(places: &[Place]) -> Vec<Draft> {
    let mut tiers: BTreeMap<&str, Vec<&Place>> = BTreeMap::new();
    for place in places.iter().filter(|place| place.probe.is_none()) {
        let name = place.rotational.map_or("disk", |rotational| if rotational { "hdd" } else { "ssd" });
        tiers.entry(name).or_default().push(place);
    }
    let draft = |(name, places): (&str, Vec<&Place>)| {
        let on = |place: &Place| places.iter().filter(|other| other.device == place.device).count() as u64;
        let free = places.iter().map(|place| place.free_bytes / on(place)).min().unwrap_or(0);
        let shared: Vec<String> =
            places.iter().filter(|place| on(place) > 1).map(|place| place.path.display().to_string()).collect();
        let mut remarks = Vec::new();
        if !shared.is_empty() {
            remarks.push(format!(
                "{} are on the same file system: they share its speed and its space, so that striping over them gains \
                 nothing; name one directory per disk",
                shared.join(", ")
            ));
        }
        if name == "disk" {
            remarks.push("what kind of disk this is, the kernel does not say".to_owned());
        }
        let servers = places.iter().map(|place| place.path.clone()).collect();
        Draft { tier: tier(name, Driver::Dirs { servers }, free), instead: false, remarks }
    };
    tiers.into_iter().map(draft).collect()
}

/// A directory on a parallel file system.
struct Found<'a> {
    system: FileSystem,
    place: &'a Place,
    probe: &'a Probe,
}

impl Found<'_> {
    /// Returns tiers of individually named servers, if there are any, and tiers of pools. In the
    /// presence of the former, pools are drafted as alternatives, because they consist of the same
    /// servers.
    fn drafts(&self) -> Vec<Draft> {
        let guessed = self.probe.servers.is_empty() && self.system == FileSystem::CephFs;
        let names = if guessed { self.numbered_pools() } else { self.probe.servers.clone() };
        let mut drafts = self.servers(&names, guessed);
        let exact = !names.is_empty();
        for pool in self.probe.pools.iter().filter(|pool| !names.contains(&pool.name)) {
            let mut remarks = Vec::new();
            if pool.servers.is_none() {
                remarks.push(
                    "how many servers it has the file system does not tell: write it as count".to_owned(),
                );
            }
            if exact {
                remarks.push(
                    "the same servers, over which the file system stripes: use this or the servers one by one, not both".to_owned(),
                );
            }
            let count = pool.servers.unwrap_or(1).max(1);
            let free = pool.free_bytes.unwrap_or(self.place.free_bytes);
            let members = Members::Pool { name: pool.name.clone(), count };
            drafts.push(self.draft(&pool.name, members, free / u64::from(count), exact, remarks));
        }
        drafts
    }

    /// Groups servers by the stem of their names: hdd0, hdd1 and ssd0 give two tiers. If `guessed`,
    /// they are pools that seem to be on one server each.
    fn servers(&self, names: &[String], guessed: bool) -> Vec<Draft> {
        let remark = "that each of these pools is on one server alone was taken from their names: check it";
        let remarks: Vec<String> = guessed.then(|| remark.to_owned()).into_iter().collect();
        let mut tiers: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for name in names {
            tiers.entry(self.tier_of(name)).or_default().push(name.clone());
        }
        let all = names.len() as u64;
        let free_of = |name: &String| {
            let pool = self.probe.pools.iter().find(|pool| pool.name == *name);
            pool.and_then(|pool| pool.free_bytes).unwrap_or(self.place.free_bytes / all)
        };
        let draft = |(tier, servers): (String, Vec<String>)| {
            let free = servers.iter().map(free_of).min().unwrap_or(0);
            self.draft(&tier, Members::Servers(servers), free, false, remarks.clone())
        };
        tiers.into_iter().map(draft).collect()
    }

    /// Returns pools whose servers are unknown but whose names are numbered, if at least two share
    /// a stem.
    fn numbered_pools(&self) -> Vec<String> {
        let unknown = self.probe.pools.iter().filter(|pool| pool.servers.is_none());
        let numbered: Vec<&String> =
            unknown.map(|pool| &pool.name).filter(|name| stem(name) != name.as_str()).collect();
        let several = |name: &&&String| numbered.iter().filter(|other| stem(other) == stem(name)).count() > 1;
        numbered.iter().filter(several).map(|name| (*name).clone()).collect()
    }

    fn tier_of(&self, server: &str) -> String {
        let stem = match self.system {
            FileSystem::Lustre => "ost",
            FileSystem::OrangeFs => "orangefs",
            FileSystem::CephFs | FileSystem::BeeGfs => stem(server),
        };
        if stem.is_empty() { self.system.name().to_owned() } else { stem.to_owned() }
    }

    fn draft(&self, name: &str, members: Members, free: u64, instead: bool, remarks: Vec<String>) -> Draft {
        let driver = Driver::Native { system: self.system, root: self.place.path.clone(), members };
        Draft { tier: tier(name, driver, free), instead, remarks }
    }
}

/// Returns the name without the number at its end.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(['-', '_', '.'])
}

/// Returns a tier of the class of the same name. Characters that names cannot have become `-`.
fn tier(name: &str, driver: Driver, free_bytes: u64) -> Tier {
    let good = |c: char| if c.is_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    let name: String = name.chars().map(good).collect();
    Tier { class: name.clone(), name, driver, capacity_per_server: capacity(free_bytes), emulate: false }
}

/// Rounds the free space down to whole units, for readability.
fn capacity(free_bytes: u64) -> u64 {
    let unit =
        [1u64 << 40, 1 << 30, 1 << 20].into_iter().find(|unit| free_bytes >= 10 * unit).unwrap_or(CAPACITY_MIN);
    (free_bytes / unit * unit).max(CAPACITY_MIN)
}

impl Draft {
    pub fn summary(&self) -> String {
        let Tier { name, driver, capacity_per_server, .. } = &self.tier;
        let what = match driver {
            Driver::Dirs { servers } => format!("{} directories", servers.len()),
            Driver::Native { members: Members::Servers(servers), .. } => {
                format!("servers {}", servers.join(", "))
            }
            Driver::Native { members: Members::Pool { name, count }, .. } => format!("pool {name} of {count}"),
        };
        let instead = if self.instead { " (as a comment: the same servers)" } else { "" };
        let capacity = size::format(*capacity_per_server);
        format!("tier {name}: {}, {what}, {capacity} each{instead}", driver.name())
    }

    pub fn json(&self) -> Value {
        let Tier { name, driver, capacity_per_server, .. } = &self.tier;
        let (servers, pool, count) = match driver {
            Driver::Dirs { servers } => {
                (servers.iter().map(|dir| dir.display().to_string()).collect(), None, None)
            }
            Driver::Native { members: Members::Servers(names), .. } => (json!(names), None, None),
            Driver::Native { members: Members::Pool { name, count }, .. } => {
                (Value::Null, Some(name), Some(count))
            }
        };
        json!({
            "name": name,
            "driver": driver.name(),
            "root": driver.native().map(|(_, root)| root.display().to_string()),
            "servers": servers,
            "pool": pool,
            "count": count,
            "capacity_per_server": capacity_per_server,
            "commented_out": self.instead,
            "remarks": self.remarks,
        })
    }
}
