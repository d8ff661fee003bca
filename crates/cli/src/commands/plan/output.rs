//! The plan file: written whole or not at all, and never over something else.

use std::io::Write;
use std::path::Path;

use anyhow::Context;
use stripewise_cluster::Plan;

/// Before any work: whether the plan may be written to `path`.
///
/// # Errors
/// There is something at `path` that is not a plan, and `force` is not given; or its directory does not exist.
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

/// Writes the plan beside `path` and renames it there.
///
/// # Errors
/// The file system's; then nothing is at `path` but what was there before.
pub fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        let mut file = tempfile::Builder::new().prefix(".plan").tempfile_in(directory(path))?;
        file.write_all(text.as_bytes())?;
        set_mode(file.as_file())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

/// Temporary files are private; a plan is for everybody the umask lets read.
fn set_mode(file: &std::fs::File) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let umask = rustix::process::umask(rustix::fs::Mode::empty());
    rustix::process::umask(umask);
    file.set_permissions(std::fs::Permissions::from_mode(0o666 & !umask.as_raw_mode()))
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
