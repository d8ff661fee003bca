//! Protects other files from being overwritten with a plan.

use std::path::Path;

use anyhow::Context;
use stripewise_cluster::Plan;

use crate::files::directory;

/// Checks, before any work is done, that the plan may be written to `path`.
///
/// # Errors
/// `path` exists and is not a plan, and `force` is not given; or its directory does not exist.
pub fn check(path: &Path, force: bool) -> anyhow::Result<()> {
    let directory = directory(path);
    anyhow::ensure!(
        directory.is_dir(),
        "cannot write {}: {} is no directory",
        path.display(),
        directory.display()
    );
    if force || !path.try_exists().with_context(|| format!("cannot look at {}", path.display()))? {
        return Ok(());
    }
    let text = std::fs::read_to_string(path).unwrap_or_default();
    let is_plan = text.starts_with("# Written by `stripewise plan`") || Plan::parse(&text, "").is_ok();
    anyhow::ensure!(
        is_plan,
        "{} exists and is no plan; name another file with -o, or overwrite it with --force",
        path.display()
    );
    Ok(())
}
