//! Measures servers and the network, and writes the profile.

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use stripewise_calibrate::{Measured, NetworkReport, Options, ServerReport, Subject, combine, network};
use stripewise_cluster::{Cluster, Profile};
use stripewise_console::interrupt;
use stripewise_console::progress::Progress;
use stripewise_sys::{Real, Sys, SysRef};

use super::args::Args;
use super::subjects;
use crate::files;

/// Everything the command prints.
pub struct Calibrated {
    pub servers: Vec<ServerReport>,
    pub network: Option<NetworkReport>,
    pub profile: Profile,
    /// Notes on targets that were measured together because they cannot be distinguished.
    pub notes: Vec<String>,
    /// Path of the written profile.
    pub output: PathBuf,
}

/// Measures what the flags name, and writes the profile.
///
/// # Errors
/// A file cannot be read or is invalid, a server or host cannot be measured, or the output path
/// holds a file that is not a profile.
pub fn calibrate(args: &Args) -> anyhow::Result<Calibrated> {
    let options = args.options()?;
    let output = args.output();
    let cluster = match args.only_network {
        true => None,
        false => Some(Cluster::parse_uncalibrated(
            &files::read(&args.cluster)?,
            &args.cluster.display().to_string(),
        )?),
    };
    let before = profile_before(&output, args)?;
    interrupt::say(&format!("calibrate was interrupted; {} is as it was before", output.display()));
    let mut servers = Vec::new();
    let mut notes = Vec::new();
    if let Some(mut cluster) = cluster {
        let subjects = subjects::of(&mut cluster, args)?;
        servers = measure_servers(&cluster, &subjects, &options, args.quiet)?;
        notes = subjects::inseparable(&cluster, &subjects, args.network.is_some());
    }
    let network =
        args.network.as_ref().map(|server| measure_network(server, &options, args.quiet)).transpose()?;
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
    let directory = files::directory(output);
    ensure!(directory.is_dir(), "cannot write {}: {} is no directory", output.display(), directory.display());
    if args.force || !output.try_exists().with_context(|| format!("cannot look at {}", output.display()))? {
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
        let progress = progress(&file.name, quiet);
        let options = file.options(options);
        let report =
            stripewise_calibrate::measure(&sys, subject, &options, &mut |part, now| show(&progress, part, now));
        progress.finish();
        reports.push(report?);
    }
    Ok(reports)
}

fn measure_network(server: &str, options: &Options, quiet: bool) -> anyhow::Result<NetworkReport> {
    let progress = progress(server, quiet);
    let report = network::measure(server, options, &mut |part, now| show(&progress, part, now));
    progress.finish();
    Ok(report?)
}

/// Shows a bar on a terminal, a line elsewhere, and nothing if quiet.
fn progress(what: &str, quiet: bool) -> Progress {
    if !quiet && !std::io::stderr().is_terminal() {
        eprintln!("measuring {what}");
    }
    Progress::sharing(what, quiet)
}

fn show(progress: &Progress, part: f64, now: &str) {
    progress.share(part);
    progress.now(now);
}
