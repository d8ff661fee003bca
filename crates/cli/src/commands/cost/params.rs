//! Resolves parameters: from a flag if given, else from the cluster file.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use stripewise_cluster::Cluster;
use stripewise_model::{Network, Service};

use super::args::Args;
use crate::files;

/// The flags, and the cluster file if one is given.
pub struct Params<'a> {
    pub args: &'a Args,
    pub cluster: Option<Cluster>,
}

/// A flag's name, and its value if it was given.
pub type Flag = (&'static str, Option<f64>);

impl<'a> Params<'a> {
    pub fn new(args: &'a Args) -> anyhow::Result<Self> {
        let read = |path: &PathBuf| files::cluster(path, args.profile.as_deref());
        let cluster = args.cluster.as_ref().map(read).transpose()?.map(|(cluster, _)| cluster);
        Ok(Self { args, cluster })
    }

    pub fn network(&self) -> anyhow::Result<Network> {
        let given = self.cluster.as_ref().map(|cluster| cluster.network);
        let missing = |flag: &str| format!("{flag} is missing: give it, or a cluster file with -c FILE");
        let establish_s = self.args.establish.or(given.map(|network| network.establish_s));
        let per_byte_s = self.args.per_byte.or(given.map(|network| network.per_byte_s));
        Ok(Network {
            establish_s: establish_s.with_context(|| missing("--establish"))?,
            per_byte_s: per_byte_s.with_context(|| missing("--per-byte"))?,
        })
    }

    /// Returns α and β. `class` is the name of the flag that selects the class, and its value.
    pub fn service(&self, alpha: Flag, beta: Flag, class: (&str, Option<&str>)) -> anyhow::Result<Service> {
        if let (Some(startup_s), Some(per_byte_s)) = (alpha.1, beta.1) {
            return Ok(Service { startup_s, per_byte_s });
        }
        let (cluster, name) = self.class(if alpha.1.is_none() { alpha.0 } else { beta.0 }, class)?;
        let params = cluster.measured.get(name).or_else(|| cluster.classes.get(name));
        let params = params.with_context(|| self.no_class(class.0, name))?;
        let Service { startup_s, per_byte_s } = params.service(self.args.op, self.args.access);
        Ok(Service { startup_s: alpha.1.unwrap_or(startup_s), per_byte_s: beta.1.unwrap_or(per_byte_s) })
    }

    /// Returns the number of servers. `class` is as in [`Params::service`].
    pub fn servers(&self, flag: &str, given: Option<u32>, class: (&str, Option<&str>)) -> anyhow::Result<u32> {
        if let Some(given) = given {
            return Ok(given);
        }
        let (cluster, name) = self.class(flag, class)?;
        let servers: usize =
            cluster.tiers.iter().filter(|tier| tier.class == name).map(|tier| tier.driver.servers()).sum();
        ensure!(servers > 0, "{}", self.no_class(class.0, name));
        Ok(u32::try_from(servers)?)
    }

    /// Returns the cluster and the name of the class that stand in for the flag `missing`.
    fn class<'c>(&self, missing: &str, class: (&str, Option<&'c str>)) -> anyhow::Result<(&Cluster, &'c str)> {
        match (&self.cluster, class.1) {
            (Some(cluster), Some(name)) => Ok((cluster, name)),
            _ => bail!("{missing} is missing: give it, or a cluster file with -c FILE and {}", class.0),
        }
    }

    /// Error text for a class that the cluster file lacks. Call it only if there is a cluster file.
    fn no_class(&self, flag: &str, name: &str) -> String {
        let file = self.args.cluster.as_deref().unwrap_or(Path::new("")).display();
        let mut known: Vec<&str> =
            self.cluster.iter().flat_map(|cluster| &cluster.tiers).map(|tier| tier.class.as_str()).collect();
        known.dedup();
        format!("{flag} {name}: {file} has no servers of this class; it has {}", known.join(", "))
    }
}
