//! Input and output files that several commands share.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use stripewise_cluster::{Cluster, Plan, Profile};
pub use stripewise_console::files::{directory, parsed, read, write_whole};
use stripewise_trace::Trace;

use crate::darshan::open_trace;

/// Reads the cluster file, applies a profile, and returns the cluster and the profile's path.
///
/// `profile` is a file given by the user, or the word `none` for no profile. By default it is
/// `profile.toml` next to the cluster file, if that exists.
pub fn cluster(path: &Path, profile: Option<&Path>) -> anyhow::Result<(Cluster, Option<PathBuf>)> {
    let profile_path = match profile {
        Some(given) if given.as_os_str() == "none" => None,
        Some(given) => Some(given.to_owned()),
        None => Some(path.with_file_name("profile.toml")).filter(|path| path.exists()),
    };
    let profile = profile_path.as_deref().map(|path| parsed(path, Profile::parse)).transpose()?;
    let cluster = parsed(path, |text, name| Cluster::parse_with(text, name, profile.as_ref()))?;
    Ok((cluster, profile_path))
}

/// Reads a cluster file whose classes need not have parameters.
pub fn uncalibrated_cluster(path: &Path) -> anyhow::Result<Cluster> {
    parsed(path, Cluster::parse_uncalibrated)
}

pub fn plan(path: &Path) -> anyhow::Result<Plan> {
    parsed(path, Plan::parse)
}

/// Opens a trace or a Darshan log. One that lacks calls is an error, unless `accept_incomplete`;
/// `verb` says what the command does with it.
pub fn trace(path: &Path, accept_incomplete: bool, verb: &str) -> anyhow::Result<Trace> {
    let trace = open_trace(path)?;
    if let (Some(reason), false) = (trace.incomplete(), accept_incomplete) {
        bail!(
            "{}: the trace is incomplete: {reason}; trace the program again, or {verb} with --accept-incomplete",
            path.display()
        );
    }
    Ok(trace)
}

/// Returns whether writing to `path` would replace a file. Call it before long work: a directory
/// that does not exist is an error.
pub fn would_replace(path: &Path) -> anyhow::Result<bool> {
    let directory = directory(path);
    ensure!(directory.is_dir(), "cannot write {}: {} is no directory", path.display(), directory.display());
    path.try_exists().with_context(|| format!("cannot look at {}", path.display()))
}
