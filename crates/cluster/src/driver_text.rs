//! The keys of a tier that locate its servers, and the native targets of a plan.

use std::collections::HashSet;
use std::fmt::Write;
use std::path::PathBuf;

use stripewise_layout::MAX_TARGETS;

use crate::cluster::{Cluster, Tier};
use crate::driver::{Driver, Members, NativeTarget};
use crate::file_system::FileSystem;
use crate::reader::{FileError, Item, Table};
use crate::size;
use crate::write::quoted;

/// Writes `driver` and the keys that belong to it.
pub(crate) fn write(out: &mut String, driver: &Driver) {
    let _ = writeln!(out, "driver = {}", quoted(driver.name()));
    if let Some((_, root)) = driver.native() {
        let _ = writeln!(out, "root = {}", quoted(&root.to_string_lossy()));
    }
    let list = |servers: Vec<String>| format!("servers = [{}]", servers.join(", "));
    let members = match driver {
        Driver::Dirs { servers } => list(servers.iter().map(|path| quoted(&path.to_string_lossy())).collect()),
        Driver::Native { members: Members::Servers(servers), .. } => {
            list(servers.iter().map(|name| quoted(name)).collect())
        }
        Driver::Native { members: Members::Pool { name, count }, .. } => {
            format!("pool = {}\ncount = {count}", quoted(name))
        }
    };
    let _ = writeln!(out, "{members}");
}

pub(crate) fn write_native_targets(out: &mut String, prefix: &str, cluster: &Cluster) {
    for native in &cluster.native_targets {
        let tier = quoted(&cluster.tiers[native.tier].name);
        let width = quoted(&size::format(native.width));
        let _ = writeln!(out, "\n[[{prefix}native]]\ntier = {tier}\nwidth = {width}\ncount = {}", native.count);
    }
}

pub(crate) fn read_native_targets(root: &Table<'_>, cluster: &Cluster) -> Result<Vec<NativeTarget>, FileError> {
    let mut natives = Vec::new();
    for table in root.tables("native")? {
        table.allow_only("tier, width, count")?;
        let native = read_native_target(&table, cluster)?;
        if natives.contains(&native) {
            return Err(table.error("this native target is already there; leave it out"));
        }
        natives.push(native);
    }
    Ok(natives)
}

fn read_native_target(table: &Table<'_>, cluster: &Cluster) -> Result<NativeTarget, FileError> {
    let item = table.need("tier", "name a tier with a pool")?;
    let name = item.text()?;
    let tier = cluster.tiers.iter().position(|tier| tier.name == name && tier.driver.is_pool());
    let tier = tier.ok_or_else(|| item.error("there is no tier of this name that has a pool"))?;
    let item = table.need("width", "write the bytes of a stripe, like \"64K\"")?;
    let width = item.size()?;
    let servers = cluster.tiers[tier].driver.servers();
    let count =
        table.need("count", "write how many servers a turn has")?.number(servers, ": the pool has so many")?;
    let possible = width > 0 && width.checked_mul(count.into()).is_some_and(|turn| turn <= i64::MAX as u64);
    item.ensure(possible, "must be at least 1 byte, and a turn over all servers below 2^63")?;
    Ok(NativeTarget { tier, width, count })
}

/// Reads `driver` and the keys that belong to it.
pub(crate) fn read(table: &Table<'_>) -> Result<Driver, FileError> {
    let driver = table.need("driver", &format!("write one of {}", names()))?;
    let name = driver.text()?;
    if name == "dirs" {
        if let Some(item) = ["root", "pool", "count"].iter().find_map(|key| table.get(key)) {
            return Err(item.error(
                "does not belong to driver = \"dirs\", whose servers are directories; leave it out, or name \
                 the file system's driver",
            ));
        }
        let remedy = "list one directory per server";
        let servers = list(&table.need("servers", remedy)?, remedy)?;
        return Ok(Driver::Dirs { servers: servers.iter().map(directory).collect::<Result<_, _>>()? });
    }
    let system = FileSystem::by_name(name)
        .ok_or_else(|| driver.error(format!("no such driver; there are {}", names())))?;
    let root = table.need("root", &format!("name a directory on {} to make the targets in", system.title()))?;
    Ok(Driver::Native { system, root: directory(&root)?, members: read_members(table, system)? })
}

fn names() -> String {
    let systems = FileSystem::ALL.map(|system| format!("{:?}", system.name()));
    format!("\"dirs\", {}", systems.join(", "))
}

fn read_members(table: &Table<'_>, system: FileSystem) -> Result<Members, FileError> {
    let remedy = match system {
        FileSystem::CephFs => "list one pool per server, each on that server alone",
        FileSystem::BeeGfs => "list one storage pool per server, each with that target alone",
        FileSystem::Lustre => "list the OST indices, like [\"0\", \"1\"]",
        FileSystem::OrangeFs => "list the servers' addresses, like [\"tcp://host:3334\"]",
    };
    match (table.get("servers"), table.get("pool")) {
        (Some(_), Some(pool)) => Err(pool.error(
            "a tier has either servers, which stripewise stripes over, or a pool, which the file system \
             stripes over; leave one out",
        )),
        (None, None) => {
            let choice =
                format!("{remedy}; or write pool = \"...\" and count = ..., for the file system to stripe");
            table.need("servers", &choice).map(|_| unreachable!("it is missing"))
        }
        (Some(servers), None) => {
            if let Some(item) = table.get("count") {
                return Err(item.error("belongs to a pool; the listed servers are counted; leave it out"));
            }
            let servers = list(&servers, remedy)?;
            let names = servers.iter().map(|item| {
                let name = name(item)?;
                let good = system != FileSystem::Lustre || name.parse::<u32>().is_ok();
                item.ensure(good, "must be an OST index, like \"0\"; `lfs osts` shows them")?;
                Ok(name)
            });
            Ok(Members::Servers(names.collect::<Result<_, _>>()?))
        }
        (None, Some(pool)) => {
            let count = table.need("count", "write how many servers the pool has")?;
            let count = count.number(MAX_TARGETS as usize, ": write how many servers the pool has")?;
            Ok(Members::Pool { name: name(&pool)?, count })
        }
    }
}

fn list<'d>(item: &Item<'d>, remedy: &str) -> Result<Vec<Item<'d>>, FileError> {
    let items = item.items()?;
    if items.is_empty() {
        return Err(item.error(format!("a tier needs at least one server; {remedy}")));
    }
    Ok(items)
}

fn directory(item: &Item<'_>) -> Result<PathBuf, FileError> {
    let path = PathBuf::from(item.text()?);
    item.ensure(path.is_absolute(), "must be an absolute directory")?;
    Ok(path)
}

/// A name that the file system gave: one word.
fn name(item: &Item<'_>) -> Result<String, FileError> {
    let text = item.text()?;
    let good = !text.is_empty() && !text.chars().any(|c| c.is_whitespace() || c.is_control());
    item.ensure(good, "must be a name as the file system shows it, without spaces")?;
    Ok(text.to_owned())
}

/// Refuses a directory, server or pool that occurs twice, which would count one disk as two.
/// `tables` are those of the tiers.
pub(crate) fn check_servers_differ(tables: &[Table<'_>], tiers: &[Tier]) -> Result<(), FileError> {
    let mut seen = HashSet::new();
    for (table, Tier { driver, .. }) in tables.iter().zip(tiers) {
        let items = match table.get("servers") {
            Some(servers) => servers.items()?,
            None => table.get("pool").into_iter().collect(),
        };
        for item in items {
            let (same, what): (PathBuf, _) = match driver.native() {
                None => (PathBuf::from(item.text()?).components().collect(), "directory"),
                Some((_, root)) => (root.components().collect::<PathBuf>().join(item.text()?), "name"),
            };
            if !seen.insert((driver.name(), same)) {
                return Err(item.error(format!("this {what} is already a server; every server needs its own")));
            }
        }
    }
    Ok(())
}
