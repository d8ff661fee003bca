//! `stripewise calibrate` measures servers and the network, and writes profile.toml.

mod args;
mod json;
mod measuring;
mod subjects;
mod table;

use std::process::ExitCode;

use stripewise_calibrate::network;

pub use args::Args;
use measuring::calibrate;

/// Runs `stripewise calibrate`.
///
/// # Errors
/// A file cannot be read or is invalid, a server or host cannot be measured, or the output path
/// holds a file that is not a profile.
pub fn run(args: Args) -> anyhow::Result<ExitCode> {
    if let Some(address) = &args.serve {
        return serve(address);
    }
    let calibrated = calibrate(&args)?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&json::report(&calibrated))?);
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
