//! Flags of `stripewise cost`.

use std::path::PathBuf;

use anyhow::bail;
use clap::ValueEnum;
use serde::Serialize;
use stripewise_cluster::size;
use stripewise_model::{Access, Op};

use crate::flags::one_of;

/// Prints what one request costs under one layout, term by term
///
/// Parameters come from flags. Where a flag is not given, they come from a cluster file (`-c`): e
/// and t from its network, α and β from the class named by --class, --h-class and --s-class for the
/// given --op and --access, and the numbers of servers from its tiers of that class. Flags that the
/// chosen model does not use are rejected.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  One request of 1 MiB on 2 of 16 servers (CIL):
    stripewise cost --model cil --layout 2-D --groups 8 --servers 16 --procs 8 --size 1M \\
      --establish 3e-4 --per-byte 7.95e-9 --alpha 3e-4 --beta 7.95e-9
  64 KiB on each of 4 HServers and 4 SServers (PSA):
    stripewise cost --model psa --hservers 4 --sservers 4 --h-stripe 64K --s-stripe 64K --procs 16 --size 512K \\
      --establish 3e-4 --per-byte 7.95e-9 --alpha-h 3e-4 --beta-h 7.95e-9 --alpha-s 5e-5 --beta-s 2.38e-9
  8 KiB from an SSD cache in one group of two (SLA):
    stripewise cost --model sla --target sservers --layout 2-D --servers 8 --groups 4 --stripe 64K --size 8K \\
      --procs 32 --alpha 5e-5 --beta 2.38e-9
  With the parameters of a cluster file, on any stripe cycle:
    stripewise cost --model general -c cluster.toml --cycle 'hdd/0-3:120K ssd/0-3:8K' --size 512K --procs 16")]
pub struct Args {
    /// The cost model
    #[arg(long, value_enum)]
    pub model: Model,
    /// How the request is striped (cil, sla)
    #[arg(long, value_enum)]
    pub layout: Option<LayoutName>,
    /// Number of server groups in 2-D (cil, sla)
    #[arg(long)]
    pub groups: Option<u32>,
    /// The side of a cached file that serves the request (sla) [default: hservers]
    #[arg(long, value_enum)]
    pub target: Option<Side>,
    /// Stripe cycle in plan.toml notation, such as 'hdd/0-3:64K ssd/0:8K' (general)
    #[arg(long)]
    pub cycle: Option<String>,

    /// Number of servers (cil, sla) [default: those of --class in the cluster file]
    #[arg(long)]
    pub servers: Option<u32>,
    /// Number of HServers (psa) [default: those of --h-class in the cluster file]
    #[arg(long)]
    pub hservers: Option<u32>,
    /// Number of SServers (psa) [default: those of --s-class in the cluster file]
    #[arg(long)]
    pub sservers: Option<u32>,
    /// Number of concurrent processes
    #[arg(long)]
    pub procs: u32,
    /// Number of those processes on one client node (cil, psa, general) [default: 1]
    #[arg(long)]
    pub procs_per_node: Option<u32>,
    /// Number of processes that share each server (general) [default: --procs]
    #[arg(long)]
    pub sharing: Option<u32>,

    /// Size of the request, such as 512K
    #[arg(long, value_parser = size::parse)]
    pub size: u64,
    /// Offset of the request (sla, general) [default: 0]
    #[arg(long, value_parser = size::parse)]
    pub offset: Option<u64>,
    /// Stripe size (sla)
    #[arg(long, value_parser = size::parse)]
    pub stripe: Option<u64>,
    /// Stripe size on an HServer (psa) [default: what --s-stripe leaves of --size]
    #[arg(long, value_parser = size::parse)]
    pub h_stripe: Option<u64>,
    /// Stripe size on an SServer, 0 for a request on the HServers alone (psa) [default: what
    /// --h-stripe leaves of --size]
    #[arg(long, value_parser = size::parse)]
    pub s_stripe: Option<u64>,

    /// e: seconds to establish one connection (cil, psa, general)
    #[arg(long, allow_negative_numbers = true)]
    pub establish: Option<f64>,
    /// t: network seconds per byte (cil, psa, general)
    #[arg(long, allow_negative_numbers = true)]
    pub per_byte: Option<f64>,
    /// α: startup seconds of one I/O (cil, sla)
    #[arg(long, allow_negative_numbers = true)]
    pub alpha: Option<f64>,
    /// β: I/O seconds per byte (cil, sla)
    #[arg(long, allow_negative_numbers = true)]
    pub beta: Option<f64>,
    /// α of an HServer (psa)
    #[arg(long, allow_negative_numbers = true)]
    pub alpha_h: Option<f64>,
    /// β of an HServer (psa)
    #[arg(long, allow_negative_numbers = true)]
    pub beta_h: Option<f64>,
    /// α of an SServer (psa)
    #[arg(long, allow_negative_numbers = true)]
    pub alpha_s: Option<f64>,
    /// β of an SServer (psa)
    #[arg(long, allow_negative_numbers = true)]
    pub beta_s: Option<f64>,

    /// Cluster file with the parameters that are not given as flags
    #[arg(short, long, value_name = "FILE", env = "STRIPEWISE_CLUSTER")]
    pub cluster: Option<PathBuf>,
    /// Calibrated parameters, which override those of the cluster file; `none` for no profile
    /// [default: profile.toml next to the cluster file]
    #[arg(long, value_name = "FILE", env = "STRIPEWISE_PROFILE")]
    pub profile: Option<PathBuf>,
    /// Class of the servers in the cluster file (cil, sla)
    #[arg(long, value_name = "CLASS")]
    pub class: Option<String>,
    /// Class of the HServers in the cluster file (psa) [default: hdd]
    #[arg(long, value_name = "CLASS")]
    pub h_class: Option<String>,
    /// Class of the SServers in the cluster file (psa) [default: ssd]
    #[arg(long, value_name = "CLASS")]
    pub s_class: Option<String>,
    /// Operation whose α and β are used
    #[arg(long, value_parser = one_of([("read", Op::Read), ("write", Op::Write)]), default_value = "read")]
    pub op: Op,
    /// Kind of access whose α and β are used
    #[arg(long, value_parser = one_of([("random", Access::Random), ("sequential", Access::Sequential)]), default_value = "random")]
    pub access: Access,

    /// Print JSON instead of a table
    #[arg(long)]
    pub json: bool,
}

impl Args {
    /// Returns c, the number of processes per client node.
    pub fn per_node(&self) -> u32 {
        self.procs_per_node.unwrap_or(1)
    }

    pub fn begin(&self) -> u64 {
        self.offset.unwrap_or(0)
    }

    /// Rejects the first flag that only other models use. The error states its name and value, the
    /// models that use it, and the remedy. Ignoring the flag would answer another question.
    pub fn refuse_foreign(&self) -> anyhow::Result<()> {
        use Model::{Cil, General, Psa, Sla};
        let count = |value: Option<u32>| value.map(|number| number.to_string());
        let bytes = |value: Option<u64>| value.map(size::format);
        let seconds = |value: Option<f64>| value.map(|seconds| format!("{seconds:e}"));
        let flags: [(&str, Option<String>, &[Model]); 24] = [
            ("--layout", self.layout.as_ref().map(name_of), &[Cil, Sla]),
            ("--groups", count(self.groups), &[Cil, Sla]),
            ("--target", self.target.as_ref().map(name_of), &[Sla]),
            ("--cycle", self.cycle.as_ref().map(|cycle| format!("'{cycle}'")), &[General]),
            ("--servers", count(self.servers), &[Cil, Sla]),
            ("--hservers", count(self.hservers), &[Psa]),
            ("--sservers", count(self.sservers), &[Psa]),
            ("--procs-per-node", count(self.procs_per_node), &[Cil, Psa, General]),
            ("--sharing", count(self.sharing), &[General]),
            ("--offset", bytes(self.offset), &[Sla, General]),
            ("--stripe", bytes(self.stripe), &[Sla]),
            ("--h-stripe", bytes(self.h_stripe), &[Psa]),
            ("--s-stripe", bytes(self.s_stripe), &[Psa]),
            ("--establish", seconds(self.establish), &[Cil, Psa, General]),
            ("--per-byte", seconds(self.per_byte), &[Cil, Psa, General]),
            ("--alpha", seconds(self.alpha), &[Cil, Sla]),
            ("--beta", seconds(self.beta), &[Cil, Sla]),
            ("--alpha-h", seconds(self.alpha_h), &[Psa]),
            ("--beta-h", seconds(self.beta_h), &[Psa]),
            ("--alpha-s", seconds(self.alpha_s), &[Psa]),
            ("--beta-s", seconds(self.beta_s), &[Psa]),
            ("--class", self.class.clone(), &[Cil, Sla]),
            ("--h-class", self.h_class.clone(), &[Psa]),
            ("--s-class", self.s_class.clone(), &[Psa]),
        ];
        for (name, value, models) in flags {
            if let Some(value) = value.filter(|_| !models.contains(&self.model)) {
                let (model, models): (_, Vec<String>) =
                    (name_of(&self.model), models.iter().map(name_of).collect());
                bail!(
                    "{name} {value} is no flag of --model {model}, only of {}: leave it out",
                    models.join(", ")
                );
            }
        }
        Ok(())
    }
}

/// Returns the value as it is written on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |known| known.get_name().to_owned())
}

/// Cost model to evaluate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Model {
    /// CIL: one kind of servers, under 1-DH, 1-DV or 2-D
    Cil,
    /// PSA: HServers and SServers with a stripe size each
    Psa,
    /// SLA: expected startup time under contention, without a network
    Sla,
    /// Any stripe cycle on any classes of servers
    General,
}

/// Layouts of CIL and SLA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LayoutName {
    /// Striped over all servers
    #[value(name = "1-DH")]
    OneDh,
    /// On one server
    #[value(name = "1-DV")]
    OneDv,
    /// Striped over the servers of one of --groups groups
    #[value(name = "2-D")]
    TwoD,
}

/// The two sides of a cached file in SLA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Side {
    /// The servers of the original, in 1-DH
    Hservers,
    /// The servers of the cache, in 1-DH, 1-DV or 2-D
    Sservers,
}
