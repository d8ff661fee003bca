//! Input and output files that several commands share.

use std::path::{Path, PathBuf};

use stripewise_cluster::{Cluster, Profile};
pub use stripewise_console::files::{directory, read, write_whole};

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
    let profile = match &profile_path {
        None => None,
        Some(path) => Some(Profile::parse(&read(path)?, &path.display().to_string())?),
    };
    let cluster = Cluster::parse_with(&read(path)?, &path.display().to_string(), profile.as_ref())?;
    Ok((cluster, profile_path))
}
