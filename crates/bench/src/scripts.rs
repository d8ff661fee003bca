//! The measurements that are Python programs, in `bench/` of the source tree.

use std::env;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::Context;

/// Arguments that are passed on to the program unchanged, `--help` included.
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub struct Args {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Replaces this process with the program `bench/NAME`, which measures the `stripewise` program in
/// the directory of this one.
///
/// # Errors
/// There is no source tree around this program or in the current directory, or no Python.
pub fn run(name: &str, args: Args) -> anyhow::Result<ExitCode> {
    let executable = env::current_exe().context("cannot find the path of this program")?;
    let root = find_root(&executable, name)?;
    let venv = root.join(".venv/bin/python");
    let python = if venv.exists() { venv } else { PathBuf::from("python3") };
    let mut command = Command::new(&python);
    command.arg(root.join("bench").join(name)).args(args.arguments);
    command.env("STRIPEWISE_BIN_DIR", executable.parent().unwrap_or(&root));
    Err(command.exec()).with_context(|| format!("cannot start '{}'; remedy: `make setup`", python.display()))
}

/// In a checkout the executable is in `target/release` or `target/debug`.
fn find_root(executable: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let here = env::current_dir().ok();
    executable
        .ancestors()
        .skip(1)
        .map(Path::to_path_buf)
        .chain(here)
        .find(|dir| dir.join("bench").join(name).join("__main__.py").exists())
        .with_context(|| format!("bench/{name} is not there; remedy: call it in the source tree of stripewise"))
}
