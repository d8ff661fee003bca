//! Rejects flags that the chosen model does not use. Ignoring them would answer a different
//! question than the user asked.

use anyhow::bail;
use clap::ValueEnum;
use stripewise_cluster::size;

use super::args::{Args, Model};

/// A flag that only some models use.
struct Flag {
    name: &'static str,
    /// The value as given on the command line; `None` if the flag was not given.
    value: Option<String>,
    models: &'static [Model],
}

/// Rejects the first flag that only other models use.
///
/// # Errors
/// Such a flag was given. The error states its name and value, the models that use it, and the
/// remedy.
pub fn refuse(args: &Args) -> anyhow::Result<()> {
    let foreign = flags(args).into_iter().find(|flag| !flag.models.contains(&args.model));
    let Some(Flag { name, value: Some(value), models }) = foreign else { return Ok(()) };
    let models: Vec<String> = models.iter().map(name_of).collect();
    let model = name_of(&args.model);
    bail!("{name} {value} is no flag of --model {model}, only of {}: leave it out", models.join(", "))
}

/// Returns the model-specific flags that were given.
fn flags(args: &Args) -> Vec<Flag> {
    use Model::{Cil, General, Psa, Sla};
    let text = |value: &Option<String>| value.clone();
    let count = |value: Option<u32>| value.map(|number| number.to_string());
    let bytes = |value: Option<u64>| value.map(size::format);
    let seconds = |value: Option<f64>| value.map(|seconds| format!("{seconds:e}"));
    let all: [(&'static str, Option<String>, &'static [Model]); 24] = [
        ("--layout", args.layout.as_ref().map(name_of), &[Cil, Sla]),
        ("--groups", count(args.groups), &[Cil, Sla]),
        ("--target", args.target.as_ref().map(name_of), &[Sla]),
        ("--cycle", args.cycle.as_ref().map(|cycle| format!("'{cycle}'")), &[General]),
        ("--servers", count(args.servers), &[Cil, Sla]),
        ("--hservers", count(args.hservers), &[Psa]),
        ("--sservers", count(args.sservers), &[Psa]),
        ("--procs-per-node", count(args.procs_per_node), &[Cil, Psa, General]),
        ("--sharing", count(args.sharing), &[General]),
        ("--offset", bytes(args.offset), &[Sla, General]),
        ("--stripe", bytes(args.stripe), &[Sla]),
        ("--h-stripe", bytes(args.h_stripe), &[Psa]),
        ("--s-stripe", bytes(args.s_stripe), &[Psa]),
        ("--establish", seconds(args.establish), &[Cil, Psa, General]),
        ("--per-byte", seconds(args.per_byte), &[Cil, Psa, General]),
        ("--alpha", seconds(args.alpha), &[Cil, Sla]),
        ("--beta", seconds(args.beta), &[Cil, Sla]),
        ("--alpha-h", seconds(args.alpha_h), &[Psa]),
        ("--beta-h", seconds(args.beta_h), &[Psa]),
        ("--alpha-s", seconds(args.alpha_s), &[Psa]),
        ("--beta-s", seconds(args.beta_s), &[Psa]),
        ("--class", text(&args.class), &[Cil, Sla]),
        ("--h-class", text(&args.h_class), &[Psa]),
        ("--s-class", text(&args.s_class), &[Psa]),
    ];
    let given = all.into_iter().filter(|flag| flag.1.is_some());
    given.map(|(name, value, models)| Flag { name, value, models }).collect()
}

/// Returns the value as it is written on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |known| known.get_name().to_owned())
}
