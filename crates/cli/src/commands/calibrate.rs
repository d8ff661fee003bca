//! `stripewise calibrate` measures servers and the network, and writes profile.toml.

mod args;
mod measuring;
mod subjects;
mod table;

use std::collections::BTreeMap;
use std::process::ExitCode;

use serde::Serialize;
use stripewise_calibrate::{NetworkReport, ServerReport, network};
use stripewise_cluster::profile::MeasuredNetwork;
use stripewise_model::{ClassParams, Network};

pub use args::Args;
use measuring::{Calibrated, calibrate};

use crate::output;

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(address) = &args.serve {
        return serve(address);
    }
    let calibrated = calibrate(&args)?;
    if args.json {
        output::json(&report(&calibrated))?;
    } else {
        print!("{}", table::report(&calibrated, args.points));
    }
    Ok(ExitCode::SUCCESS)
}

fn serve(address: &str) -> anyhow::Result<ExitCode> {
    let address = if address.contains(':') { address.to_owned() } else { format!("0.0.0.0:{address}") };
    network::serve(&address, |address| {
        println!(
            "serving on {address}; measure from another host with `stripewise calibrate --network HOST:{}`, stop with Ctrl-C",
            address.port()
        );
    })?;
    Ok(ExitCode::SUCCESS)
}

/// The output of `--json`: the profile's parameters and the measurements behind them.
#[derive(Serialize)]
struct Report<'a> {
    profile: String,
    date: &'a str,
    method: &'a str,
    /// Parameters by class, as written to the profile.
    classes: BTreeMap<&'a str, ClassParams>,
    network: Option<Network>,
    servers: &'a [ServerReport],
    network_measurements: &'a Option<NetworkReport>,
    /// Notes on targets that were measured together because they cannot be distinguished.
    notes: &'a [String],
}

/// Returns the report for `--json`.
fn report(calibrated: &Calibrated) -> Report<'_> {
    let profile = &calibrated.profile;
    let network = |network: &MeasuredNetwork| Network {
        establish_s: network.establish_s,
        per_byte_s: network.per_byte_s,
    };
    Report {
        profile: calibrated.output.display().to_string(),
        date: &profile.date,
        method: &profile.method,
        classes: profile.classes.iter().map(|(name, class)| (name.as_str(), class.params())).collect(),
        network: profile.network.as_ref().map(network),
        servers: &calibrated.servers,
        network_measurements: &calibrated.network,
        notes: &calibrated.notes,
    }
}
