//! `stripewise calibrate` measures servers and the network, and writes profile.toml.

mod args;
pub mod client;
mod subjects;

use std::io::IsTerminal;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, ensure};
use comfy_table::Table;
use serde_json::{Map, Value, json};
use stripewise_calibrate::{
    ClientReport, KindReport, NetworkReport, Options, ServerReport, Subject, combine, measure, network,
    stragglers,
};
use stripewise_cluster::profile::MeasuredClass;
use stripewise_cluster::{Cluster, Profile, size};
use stripewise_console::{interrupt, progress};
use stripewise_model::{Access, Call};
use stripewise_sys::{Real, Sys, SysRef};

pub use args::Args;

use crate::{files, output};

pub fn run(args: &Args) -> anyhow::Result<()> {
    if let Some(address) = &args.serve {
        return serve(address);
    }
    let calibrated = calibrate(args)?;
    if calibrated.is_beside() {
        return Ok(());
    }
    if args.json {
        return output::json(&to_json(&calibrated));
    }
    print(&calibrated, args.points);
    Ok(())
}

fn serve(address: &str) -> anyhow::Result<()> {
    let address = if address.contains(':') { address.to_owned() } else { format!("0.0.0.0:{address}") };
    Ok(network::serve(&address, |address| {
        println!(
            "serving on {address}; measure from another host with `stripewise calibrate --network HOST:{}`, stop with Ctrl-C",
            address.port()
        );
    })?)
}

/// Returns the output of `--json`: the profile's parameters and the measurements behind them.
fn to_json(calibrated: &Calibrated) -> Value {
    let Profile { date, method, classes, network, .. } = &calibrated.profile;
    let class = |(name, class): (&String, &MeasuredClass)| (name.clone(), json!(class.params()));
    json!({
        "profile": calibrated.output.display().to_string(),
        "date": date,
        "method": method,
        "classes": classes.iter().map(class).collect::<Map<_, _>>(),
        "network": network.as_ref().map(|network| {
            json!({ "establish_s": network.establish_s, "per_byte_s": network.per_byte_s })
        }),
        "servers": calibrated.servers,
        "client": calibrated.client,
        "network_measurements": calibrated.network,
        "notes": calibrated.notes,
    })
}

/// Everything the command prints.
struct Calibrated {
    servers: Vec<ServerReport>,
    /// What calls cost the client, of each tier where it could be measured.
    client: Vec<ClientReport>,
    network: Option<NetworkReport>,
    profile: Profile,
    /// Notes on targets that were measured together because they cannot be distinguished.
    notes: Vec<String>,
    /// Path of the written profile.
    output: PathBuf,
}

impl Calibrated {
    /// Whether this host only measured beside the one that writes the profile.
    fn is_beside(&self) -> bool {
        self.network.as_ref().is_some_and(|network| network.place > 0)
    }
}

/// Measures what the flags name, and writes the profile.
fn calibrate(args: &Args) -> anyhow::Result<Calibrated> {
    let options = args.options()?;
    let output = args.output();
    let cluster = (!args.only_network).then(|| files::uncalibrated_cluster(&args.cluster)).transpose()?;
    let before = profile_before(&output, args)?;
    let if_interrupted = format!("calibrate was interrupted; {} is as it was before", output.display());
    interrupt::say(&if_interrupted);
    let mut servers = Vec::new();
    let mut notes = Vec::new();
    let (mut client, mut costs) = (Vec::new(), before.client);
    if let Some(mut cluster) = cluster {
        let subjects = subjects::of(&mut cluster, args)?;
        servers = measure_servers(&cluster, &subjects, &options, args.quiet)?;
        notes = subjects::inseparable(&cluster, &subjects, !args.network.is_empty());
        interrupt::ask();
        for tier in wanted_tiers(&cluster, args) {
            let name = cluster.tiers[tier].name.clone();
            costs.remove(&name);
            match measure_client(&mut cluster, tier, &options, args.quiet) {
                Ok(report) => {
                    costs.insert(name, report.measured());
                    client.push(report);
                }
                Err(error) => notes.push(format!(
                    "tier {name}: what calls cost the client was not measured, and plans do not count it: {error:#}"
                )),
            }
        }
        // Between two trials.
        if interrupt::asked() {
            interrupt::end();
        }
        interrupt::say(&if_interrupted);
    }
    let network = measure_network(args, &options)?;
    let method = stripewise_calibrate::method(&options, &servers);
    let mut classes = before.classes;
    classes.extend(combine(&servers));
    let profile = Profile {
        date: stripewise_report::units::utc(Real.wall_ns() / 1_000_000_000),
        method: [method].iter().chain(&notes).cloned().collect::<Vec<_>>().join("; "),
        network: network.as_ref().map(stripewise_calibrate::network_profile).or(before.network),
        classes,
        client: costs,
    };
    let calibrated = Calibrated { servers, client, network, profile, notes, output };
    interrupt::too_late();
    if !calibrated.is_beside() {
        files::write_whole(&calibrated.output, &calibrated.profile.to_toml())?;
    }
    Ok(calibrated)
}

fn measure_network(args: &Args, options: &Options) -> anyhow::Result<Option<NetworkReport>> {
    if args.network.is_empty() {
        return Ok(None);
    }
    let measure =
        |tell: &mut dyn FnMut(f64, &str)| network::measure(&args.network, args.clients, options, tell);
    Ok(Some(with_progress(&args.network.join(", "), args.quiet, measure)?))
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
    let measure_file = |file: &subjects::Subject| {
        let subjects::Subject { name: target, class, path, .. } = file;
        let subject = Subject { target, class, path, emulation: cluster.emulation_of(file.target) };
        let options = file.options(options);
        Ok(with_progress(&file.name, quiet, |tell| measure(&sys, subject, &options, tell))?)
    };
    subjects.iter().map(measure_file).collect()
}

/// The indices of the tiers to measure.
fn wanted_tiers(cluster: &Cluster, args: &Args) -> Vec<usize> {
    let is_wanted = |&tier: &usize| args.tier.is_empty() || args.tier.contains(&cluster.tiers[tier].name);
    (0..cluster.tiers.len()).filter(is_wanted).collect()
}

/// Measures what calls on files of a tier cost the client.
fn measure_client(
    cluster: &mut Cluster,
    tier: usize,
    options: &Options,
    quiet: bool,
) -> anyhow::Result<ClientReport> {
    let directories = subjects::directories(cluster, tier)?;
    let name = &cluster.tiers[tier].name;
    let seconds = options.seconds_per_point * client::POINTS;
    with_progress(&format!("calls on {name}"), quiet, |tell| client::measure(name, &directories, seconds, tell))
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

/// Prints the complete report; with `points`, also the measurements of every request size.
fn print(calibrated: &Calibrated, points: bool) {
    for server in &calibrated.servers {
        print_server(server, points);
    }
    for straggler in stragglers(&calibrated.servers) {
        println!("warning: {straggler}");
    }
    calibrated.client.iter().for_each(|client| print_client(client, points));
    if let Some(network) = &calibrated.network {
        print_network(network);
    }
    for note in &calibrated.notes {
        println!("note: {note}");
    }
    println!("Profile written to {}", calibrated.output.display());
}

fn print_server(server: &ServerReport, points: bool) {
    let ServerReport { target, class, mode, elapsed_s, .. } = server;
    println!("{target} (class {class}): {}; {elapsed_s:.0} s", mode.describe());
    let mut table =
        table(["", "alpha ms", "±", "beta ns/B", "±", "MB/s", "residual", "R²", "requests", "outliers"]);
    for kind in &server.kinds {
        let line = &kind.line;
        table.add_row([
            name(kind),
            format!("{:.4}", line.startup_s * 1e3),
            format!("{:.4}", line.startup_error_s * 1e3),
            format!("{:.4}", line.per_byte_s * 1e9),
            format!("{:.4}", line.per_byte_error_s * 1e9),
            if line.per_byte_s > 0.0 { format!("{:.0}", 1e-6 / line.per_byte_s) } else { "-".to_owned() },
            format!("{:.1} %", line.residual_relative * 100.0),
            format!("{:.4}", line.r_squared),
            kind.requests().to_string(),
            kind.outliers().to_string(),
        ]);
    }
    println!("{}", table.trim_fmt());
    for kind in &server.kinds {
        for warning in &kind.warnings {
            println!("warning: {}: {warning}", name(kind));
        }
    }
    if points {
        server.kinds.iter().for_each(print_points);
    }
    println!();
}

fn print_points(kind: &KindReport) {
    println!("\n{}, ms:", name(kind));
    let mut table = table(["size", "mean", "stddev", "p50", "p99", "off the line", "requests", "outliers"]);
    for point in &kind.points {
        let summary = &point.summary;
        let ms = |seconds: f64| format!("{:.4}", seconds * 1e3);
        table.add_row([
            size::format(point.bytes),
            ms(summary.mean_s),
            ms(summary.stddev_s),
            ms(summary.p50_s),
            ms(summary.p99_s),
            format!("{:+.1} %", point.residual * 100.0),
            point.requests.to_string(),
            summary.outliers.to_string(),
        ]);
    }
    println!("{}", table.trim_fmt());
}

/// Prints what calls cost the client, microseconds.
fn print_client(client: &ClientReport, points: bool) {
    println!(
        "{}: what calls cost the client: a + b * n on a file with n objects (of a request: that it touches), us",
        client.tier
    );
    let us = |seconds: f64| format!("{:.2}", seconds * 1e6);
    let mut table = table(["", "a", "±", "b", "±", "plain file", "residual", "samples"]);
    for call in &client.calls {
        table.add_row([
            call.call.name().to_owned(),
            us(call.cost.base_s),
            us(call.base_spread_s),
            us(call.cost.per_object_s),
            us(call.per_object_spread_s),
            us(call.cost.plain_s),
            format!("{:.1} %", call.residual_relative * 100.0),
            call.samples.to_string(),
        ]);
    }
    println!("{}", table.trim_fmt());
    if points {
        print_medians(client);
    }
    println!();
}

fn print_medians(client: &ClientReport) {
    println!("\nmedians by number of objects, us:");
    let names = Call::ALL.map(Call::name);
    let mut table = output::table(["objects"].into_iter().chain(names).collect::<Vec<_>>(), 1..8);
    let numbers = client.calls[0].medians.iter().map(|(objects, _)| *objects);
    for (row, objects) in numbers.enumerate() {
        let of_calls = client.calls.iter().map(|call| format!("{:.2}", call.medians[row].1 * 1e6));
        table.add_row([objects.to_string()].into_iter().chain(of_calls));
    }
    println!("{}", table.trim_fmt());
}

fn print_network(network: &NetworkReport) {
    let NetworkReport { servers, clients, establish, per_byte_s, per_byte_error_s, .. } = network;
    let beside = if *clients > 1 { format!(" from {clients} hosts at once") } else { String::new() };
    println!(
        "network to {}{beside}: e = {:.4} ms ± {:.4} ({} connections), t = {:.4} ns/B ± {:.4} ({} transfers)\n",
        servers.join(", "),
        establish.mean_s * 1e3,
        establish.stddev_s * 1e3,
        establish.samples,
        per_byte_s * 1e9,
        per_byte_error_s * 1e9,
        network.transfers(),
    );
}

fn name(kind: &KindReport) -> String {
    let access = match kind.access {
        Access::Random => "random",
        Access::Sequential => "sequential",
    };
    format!("{} {access}", output::op_name(kind.op))
}

/// Creates a table with right-aligned numbers.
fn table<const N: usize>(header: [&str; N]) -> Table {
    output::table(header, 1..N)
}
