//! `stripewise calibrate` measures servers and the network, and writes profile.toml.

mod args;
mod subjects;
mod table;

use std::collections::BTreeMap;
use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, ensure};
use serde::Serialize;
use stripewise_calibrate::{
    Measured, NetworkReport, Options, ServerReport, Subject, combine, measure, network,
};
use stripewise_cluster::{Cluster, Profile};
use stripewise_console::{interrupt, progress};
use stripewise_model::{ClassParams, Network};
use stripewise_sys::{Real, Sys, SysRef};

pub use args::Args;

use crate::{files, output};

pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(address) = &args.serve {
        return serve(address);
    }
    let calibrated = calibrate(&args)?;
    if args.json {
        output::json(&report(&calibrated))?;
    } else {
        table::print(&calibrated, args.points);
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
    Report {
        profile: calibrated.output.display().to_string(),
        date: &profile.date,
        method: &profile.method,
        classes: profile.classes.iter().map(|(name, class)| (name.as_str(), class.params())).collect(),
        network: profile
            .network
            .as_ref()
            .map(|network| Network { establish_s: network.establish_s, per_byte_s: network.per_byte_s }),
        servers: &calibrated.servers,
        network_measurements: &calibrated.network,
        notes: &calibrated.notes,
    }
}

/// Everything the command prints.
struct Calibrated {
    servers: Vec<ServerReport>,
    network: Option<NetworkReport>,
    profile: Profile,
    /// Notes on targets that were measured together because they cannot be distinguished.
    notes: Vec<String>,
    /// Path of the written profile.
    output: PathBuf,
}

/// Measures what the flags name, and writes the profile.
fn calibrate(args: &Args) -> anyhow::Result<Calibrated> {
    let options = args.options()?;
    let output = args.output();
    let cluster = (!args.only_network).then(|| files::uncalibrated_cluster(&args.cluster)).transpose()?;
    let before = profile_before(&output, args)?;
    interrupt::say(&format!("calibrate was interrupted; {} is as it was before", output.display()));
    let mut servers = Vec::new();
    let mut notes = Vec::new();
    if let Some(mut cluster) = cluster {
        let subjects = subjects::of(&mut cluster, args)?;
        servers = measure_servers(&cluster, &subjects, &options, args.quiet)?;
        notes = subjects::inseparable(&cluster, &subjects, args.network.is_some());
    }
    let measure_network =
        |server: &String| with_progress(server, args.quiet, |tell| network::measure(server, &options, tell));
    let network = args.network.as_ref().map(measure_network).transpose()?;
    let method = stripewise_calibrate::method(&options, &servers);
    let measured = Measured {
        before,
        date: stripewise_report::units::utc(Real.wall_ns() / 1_000_000_000),
        method: [method].iter().chain(&notes).cloned().collect::<Vec<_>>().join("; "),
        network: network.as_ref().map(stripewise_calibrate::network_profile),
        classes: combine(&servers),
    };
    let profile = Profile::from(measured);
    interrupt::too_late();
    files::write_whole(&output, &profile.to_toml())?;
    Ok(Calibrated { servers, network, profile, notes, output })
}

/// Returns the contents of the existing profile that the new one keeps: everything if only some
/// tiers or only the network are measured, else the network alone.
fn profile_before(output: &Path, args: &Args) -> anyhow::Result<Profile> {
    ensure!(output.as_os_str() != "none", "the profile has to go somewhere; name a file with -o");
    if !files::would_replace(output)? || args.force {
        return Ok(Profile::default());
    }
    let before = Profile::parse(&files::read(output)?, &output.display().to_string());
    let before = before.context("the output exists and is no profile; name another with -o, or use --force")?;
    let part = args.only_network || !args.tier.is_empty();
    Ok(if part { before } else { Profile { network: before.network, ..Profile::default() } })
}

fn measure_servers(
    cluster: &Cluster,
    subjects: &[subjects::Subject],
    options: &Options,
    quiet: bool,
) -> anyhow::Result<Vec<ServerReport>> {
    let sys: SysRef = Arc::new(Real);
    let mut reports = Vec::new();
    for file in subjects {
        let subject = Subject {
            target: &file.name,
            class: &file.class,
            path: &file.path,
            emulation: cluster.emulation_of(file.target),
        };
        let options = file.options(options);
        reports.push(with_progress(&file.name, quiet, |tell| measure(&sys, subject, &options, tell))?);
    }
    Ok(reports)
}

/// Measures with a bar on a terminal, a line elsewhere, and nothing if quiet.
fn with_progress<T, E>(
    what: &str,
    quiet: bool,
    measure: impl FnOnce(&mut dyn FnMut(f64, &str)) -> Result<T, E>,
) -> Result<T, E> {
    if !quiet && !std::io::stderr().is_terminal() {
        eprintln!("measuring {what}");
    }
    let bar = progress::sharing(what, quiet);
    let report = measure(&mut |fraction, now| {
        progress::share(&bar, fraction);
        bar.set_message(now.to_owned());
    });
    bar.finish_and_clear();
    report
}
