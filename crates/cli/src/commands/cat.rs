//! `stripewise cat`.

use std::process::ExitCode;

/// (in work)
#[derive(clap::Args)]
pub struct Args {}

pub fn run(_args: Args) -> anyhow::Result<ExitCode> {
    anyhow::bail!("cat: not built yet")
}
