//! `evaluate --render`: the pages.

use std::path::Path;

use super::Job;

/// Writes evaluation.md and evaluation.html into `pages`.
///
/// # Errors
/// Records that cannot be read, pages that cannot be written.
pub fn run(_job: &Job<'_>, _pages: &Path) -> anyhow::Result<()> {
    anyhow::bail!("--render is not there yet")
}
