//! Text files, written whole or not at all.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use anyhow::Context;

/// Reads a text file.
///
/// # Errors
/// The error names the file.
pub fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path).with_context(|| format!("{} cannot be read", path.display()))
}

/// Reads a text file and parses it. The parser gets the text, and the file's name for its errors.
///
/// # Errors
/// The file cannot be read, or the parser's error.
pub fn parsed<T, E>(path: &Path, parse: impl FnOnce(&str, &str) -> Result<T, E>) -> anyhow::Result<T>
where
    anyhow::Error: From<E>,
{
    Ok(parse(&read(path)?, &path.to_string_lossy())?)
}

/// Writes `text` to a temporary file in the directory of `path` and renames it to `path`, so that
/// the file is replaced whole or not at all.
///
/// # Errors
/// The file system's error, with the file named. `path` is then unchanged.
pub fn write_whole(path: &Path, text: &str) -> anyhow::Result<()> {
    let written = || -> std::io::Result<()> {
        // As for any new file, the umask is applied to the mode.
        let mode = Permissions::from_mode(0o666);
        let mut builder = tempfile::Builder::new();
        let mut file = builder.prefix(".stripewise").permissions(mode).tempfile_in(directory(path))?;
        file.write_all(text.as_bytes())?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    written().with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the directory that contains `path`.
pub fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
