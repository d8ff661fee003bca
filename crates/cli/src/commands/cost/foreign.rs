//! Rejects flags that the chosen model does not use. Ignoring them would answer a different
//! question than the user asked.

use anyhow::bail;
use clap::ValueEnum;
use stripewise_cluster::size;

use super::args::{Args, Model};

/// Rejects the first flag that only other models use. The error states its name and value, the
/// models that use it, and the remedy.
pub fn refuse(args: &Args) -> anyhow::Result<()> {
    use Model::{Cil, General, Psa, Sla};
    let count = |value: Option<u32>| value.map(|number| number.to_string());
    let bytes = |value: Option<u64>| value.map(size::format);
    let seconds = |value: Option<f64>| value.map(|seconds| format!("{seconds:e}"));
    let flags: [(&str, Option<String>, &[Model]); 24] = [
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
        ("--class", args.class.clone(), &[Cil, Sla]),
        ("--h-class", args.h_class.clone(), &[Psa]),
        ("--s-class", args.s_class.clone(), &[Psa]),
    ];
    for (name, value, models) in flags {
        if let Some(value) = value.filter(|_| !models.contains(&args.model)) {
            let (model, models): (_, Vec<String>) =
                (name_of(&args.model), models.iter().map(name_of).collect());
            bail!("{name} {value} is no flag of --model {model}, only of {}: leave it out", models.join(", "));
        }
    }
    Ok(())
}

/// Returns the value as it is written on the command line.
fn name_of(value: &impl ValueEnum) -> String {
    value.to_possible_value().map_or_else(String::new, |known| known.get_name().to_owned())
}
