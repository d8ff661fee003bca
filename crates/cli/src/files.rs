//! Reading the files that several commands take.

use std::path::{Path, PathBuf};

use anyhow::Context;
use stripewise_cluster::{Cluster, Profile};

/// The cluster file with a profile applied, and the profile's path.
///
/// `profile` is the file given by the user, or the word `none` for none; by default it is `profile.toml` beside the
/// cluster file if there is one.
pub fn cluster(path: &Path, profile: Option<&Path>) -> anyhow::Result<(Cluster, Option<PathBuf>)> {
    let profile_path = match profile {
        Some(given) if given.as_os_str() == "none" => None,
        Some(given) => Some(given.to_owned()),
        None => Some(path.with_file_name("profile.toml")).filter(|path| path.exists()),
    };
    let profile = match &profile_path {
        None => None,
        Some(path) => Some(Profile::parse(&read(path)?, &path.display().to_string())?),
    };
    let cluster = Cluster::parse_with(&read(path)?, &path.display().to_string(), profile.as_ref())?;
    Ok((cluster, profile_path))
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}
