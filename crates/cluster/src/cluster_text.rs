//! Parsing (with every check) and writing `cluster.toml`.

use std::collections::BTreeMap;
use std::fmt::Write;

use stripewise_model::{ClassParams, Network, Service};

use crate::class_text::{SERVICE, read_four, service_keys, write_four};
use crate::cluster::{CAPACITY_MIN, Cluster, Tier};
use crate::driver_text;
use crate::profile::{Accuracy, Profile};
use crate::reader::{Document, FileError, Item, Table};
use crate::size;
use crate::write::{amounts, key, quoted};

const NETWORK: [&str; 2] = ["establish_s", "per_byte_s"];

impl Cluster {
    /// Parses `cluster.toml`; `file_name` is only used in messages.
    ///
    /// # Errors
    /// Any deviation from the documented format, with line, key, value and remedy.
    pub fn parse(text: &str, file_name: &str) -> Result<Self, FileError> {
        Self::parse_with(text, file_name, None)
    }

    /// As [`Cluster::parse`], with a profile applied: the text need not contain class tables that
    /// the profile has.
    ///
    /// # Errors
    /// As [`Cluster::parse`].
    pub fn parse_with(text: &str, file_name: &str, profile: Option<&Profile>) -> Result<Self, FileError> {
        parse(text, file_name, profile, false)
    }

    /// As [`Cluster::parse`], but classes of servers that are not emulated may be missing, because
    /// calibration measures them.
    ///
    /// # Errors
    /// As [`Cluster::parse`].
    pub fn parse_uncalibrated(text: &str, file_name: &str) -> Result<Self, FileError> {
        parse(text, file_name, None, true)
    }

    /// The cluster as the text of a `cluster.toml`, which [`Cluster::parse`] reads back.
    ///
    /// Measured parameters replace those given by hand, except for classes of emulated tiers.
    pub fn to_toml(&self) -> String {
        let mut plain = self.clone();
        for (name, params) in std::mem::take(&mut plain.measured) {
            if !self.tiers.iter().any(|tier| tier.emulate && tier.class == name) {
                plain.classes.insert(name, params);
            }
        }
        let mut text = String::new();
        plain.write(&mut text, "");
        text
    }

    /// Writes the cluster inside a plan: all keys are below `prefix` (`cluster.`).
    pub(crate) fn write(&self, out: &mut String, prefix: &str) {
        let network = amounts(NETWORK, [self.network.establish_s, self.network.per_byte_s]).join("\n");
        let _ = writeln!(out, "[{prefix}network]\n{network}");
        write_classes(out, &format!("{prefix}class"), &self.classes);
        write_classes(out, &format!("{prefix}measured"), &self.measured);
        for tier in &self.tiers {
            let _ = writeln!(out, "\n[[{prefix}tier]]\nname = {}", quoted(&tier.name));
            let _ = writeln!(out, "class = {}", quoted(&tier.class));
            driver_text::write(out, &tier.driver);
            let capacity = size::format(tier.capacity_per_server);
            let _ = writeln!(out, "capacity_per_server = {}\nemulate = {}", quoted(&capacity), tier.emulate);
        }
        driver_text::write_native_targets(out, prefix, self);
    }
}

fn write_classes(out: &mut String, prefix: &str, classes: &BTreeMap<String, ClassParams>) {
    for (name, params) in classes {
        let _ = writeln!(out, "\n[{prefix}.{}]", key(name));
        write_four(out, params, service_keys);
    }
}

fn parse(
    text: &str,
    file_name: &str,
    profile: Option<&Profile>,
    uncalibrated: bool,
) -> Result<Cluster, FileError> {
    let document = Document::parse(text, file_name)?;
    let root = document.root();
    root.allow_only("network, class, tier")?;
    read_cluster(&root, profile, uncalibrated)
}

/// Reads the cluster embedded in a plan, which keeps measured classes next to those given by hand.
pub(crate) fn read_embedded(table: &Table<'_>) -> Result<Cluster, FileError> {
    table.allow_only("network, class, measured, tier, native")?;
    let mut cluster = read_cluster(table, None, false)?;
    cluster.native_targets = driver_text::read_native_targets(table, &cluster)?;
    Ok(cluster)
}

/// `uncalibrated`: classes that are not emulated may be missing.
fn read_cluster(root: &Table<'_>, profile: Option<&Profile>, uncalibrated: bool) -> Result<Cluster, FileError> {
    let cluster = Cluster {
        network: root.optional("network", Network::default(), |item| read_network(&item.table()?))?,
        classes: root.by_name("class", read_class)?,
        measured: root.by_name("measured", read_class)?,
        client: BTreeMap::new(),
        accuracy: Accuracy::default(),
        tiers: Vec::new(),
        native_targets: Vec::new(),
    };
    let mut cluster = profile.iter().fold(cluster, |cluster, profile| cluster.with_profile(profile));
    let tiers = root.tables("tier")?;
    if tiers.is_empty() {
        return Err(
            root.error("there is no [[tier]], so no server; describe at least one tier with its servers")
        );
    }
    for table in &tiers {
        let tier = read_tier(table, &cluster, uncalibrated)?;
        if cluster.tiers.iter().any(|other| other.name == tier.name) {
            let item = table.need("name", "")?;
            return Err(item.error("another tier has this name; give every tier its own"));
        }
        cluster.tiers.push(tier);
    }
    driver_text::check_servers_differ(&tiers, &cluster.tiers)?;
    Ok(cluster)
}

fn read_network(table: &Table<'_>) -> Result<Network, FileError> {
    table.allow_only("establish_s, per_byte_s")?;
    let [establish_s, per_byte_s] = table.amounts(NETWORK, "give seconds, 0 where there is no network")?;
    Ok(Network { establish_s, per_byte_s })
}

fn read_class(name: &str, item: Item<'_>) -> Result<ClassParams, FileError> {
    item.ensure(!name.is_empty(), "a class needs a name")?;
    let table = item.table()?;
    table.allow_only("read, write")?;
    let remedies = [
        "give read.random, read.sequential, write.random, write.sequential",
        "give { startup_s = ..., per_byte_s = ... }",
    ];
    read_four(&table, remedies, |table| {
        table.allow_only("startup_s, per_byte_s")?;
        let [startup_s, per_byte_s] = table.amounts(SERVICE, "give seconds")?;
        Ok(Service { startup_s, per_byte_s })
    })
}

fn read_tier(table: &Table<'_>, known: &Cluster, uncalibrated: bool) -> Result<Tier, FileError> {
    table.allow_only("name, class, driver, root, servers, pool, count, capacity_per_server, emulate")?;
    let name_item = table.need("name", "give the tier a name, like \"hdd\"")?;
    let name = name_item.text()?;
    let good = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let good = !name.is_empty() && name.chars().all(good);
    name_item.ensure(good, "must be letters, digits, '-', '_' or '.'")?;
    let driver = driver_text::read(table)?;
    let emulate = table.optional("emulate", false, Item::flag)?;
    if let Some(item) = table.get("emulate").filter(|_| emulate && driver.native().is_some()) {
        let name = driver.name();
        let problem = format!("the servers of driver {name:?} have a speed of their own; leave it out");
        return Err(item.error(problem));
    }
    let class_item = table.need("class", "name a [class....] table")?;
    let class = class_item.text()?;
    let given = known.classes.contains_key(class);
    let usable = given || known.measured.contains_key(class) || uncalibrated;
    if !usable || (emulate && !given) {
        let remedy =
            if emulate { " to emulate; write one" } else { "; write one, or run `stripewise calibrate`" };
        return Err(class_item.error(format!("there is no table [class.{class}]{remedy}")));
    }
    let capacity = table.need("capacity_per_server", "give the bytes that may be filled, like \"1T\"")?;
    let capacity_per_server = capacity.size()?;
    capacity.ensure(capacity_per_server >= CAPACITY_MIN, "smaller than one stripe; give at least 64K")?;
    Ok(Tier { name: name.to_owned(), class: class.to_owned(), driver, capacity_per_server, emulate })
}
