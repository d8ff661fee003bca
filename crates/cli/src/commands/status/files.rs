//! Status of files: their layout, and the bytes on each target.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stripewise_datapath::inspect::manifest_of;
use stripewise_datapath::manifest::Manifest;
use stripewise_datapath::{FileError, Runtime};

use super::copies::{self, CopiesStatus};
use super::table::table;
use crate::managed::{cycle, human};

/// Status of one file.
pub struct FileStatus {
    path: PathBuf,
    size_bytes: u64,
    /// The manifest, and the bytes on each of its targets; `None` for a plain file.
    managed: Option<(Manifest, Vec<u64>)>,
    /// Status of the copies, if the file has several.
    copies: Option<CopiesStatus>,
    /// Why the file cannot be used.
    pub problem: Option<String>,
}

impl FileStatus {
    fn of(path: &Path, size_bytes: u64) -> Self {
        Self { path: path.to_owned(), size_bytes, managed: None, copies: None, problem: None }
    }

    /// Returns whether a copy of the file is lost.
    pub fn is_incomplete(&self) -> bool {
        self.copies.as_ref().is_some_and(CopiesStatus::is_incomplete)
    }
}

pub fn look(runtime: &Runtime, path: &Path) -> FileStatus {
    let look = || -> Result<_, String> {
        let manifest = manifest_of(runtime, path).map_err(|error| error.to_string())?;
        if let Some((manifest, owner)) = manifest.filter(|(manifest, _)| manifest.copies.is_some()) {
            let status = copies::look(runtime, path, (manifest, owner))?;
            return Ok(FileStatus { copies: Some(status), ..FileStatus::of(path, 0) });
        }
        let single = || -> Result<_, FileError> {
            let Some(file) = runtime.open_file(path)? else { return Ok(plain(path)) };
            let sizes = file.components().sizes()?;
            let (size, manifest) = (file.manifest().layout.file_size(&sizes), file.manifest().clone());
            Ok(FileStatus { managed: Some((manifest, sizes)), ..FileStatus::of(path, size) })
        };
        single().map_err(|error| error.to_string())
    };
    look().unwrap_or_else(|problem| FileStatus { problem: Some(problem), ..FileStatus::of(path, 0) })
}

pub fn plain(path: &Path) -> FileStatus {
    let metadata = path.metadata();
    let size = metadata.as_ref().map_or(0, std::fs::Metadata::len);
    let problem = metadata.err().map(|error| format!("{}: {error}", path.display()));
    FileStatus { problem, ..FileStatus::of(path, size) }
}

pub fn to_json(status: &FileStatus) -> Value {
    let path = status.path.display().to_string();
    if let Some(problem) = &status.problem {
        return json!({ "path": path, "ok": false, "problem": problem });
    }
    if let Some(copies) = &status.copies {
        let entry = json!({ "path": path, "ok": !copies.is_incomplete(), "managed": true, "size_bytes": copies.size_bytes() });
        let mut entry = entry.as_object().cloned().unwrap_or_default();
        copies.add_json(&mut entry);
        return entry.into();
    }
    let Some((manifest, sizes)) = &status.managed else {
        return json!({ "path": path, "ok": true, "managed": false, "size_bytes": status.size_bytes });
    };
    let region = |region: &stripewise_layout::Region| json!({ "start": region.start, "end": region.end, "cycle": cycle(&region.cycle, &manifest.targets) });
    let target = |(target, &bytes): (&stripewise_target::TargetRef, &u64)| json!({ "name": target.name, "path": target.path.display().to_string(), "bytes": bytes });
    json!({
        "path": path,
        "ok": true,
        "managed": true,
        "size_bytes": status.size_bytes,
        "id": manifest.id.to_string(),
        "regions": manifest.layout.regions().iter().map(region).collect::<Vec<_>>(),
        "targets": manifest.targets.iter().zip(sizes).map(target).collect::<Vec<_>>(),
    })
}

pub fn print(status: &FileStatus) {
    if let Some(problem) = &status.problem {
        return println!("problem: {problem}");
    }
    if let Some(copies) = &status.copies {
        println!("{}: managed, {}", status.path.display(), human(copies.size_bytes()));
        return copies.print();
    }
    let (path, size) = (status.path.display(), human(status.size_bytes));
    let Some((manifest, sizes)) = &status.managed else { return println!("{path}: plain, {size}") };
    println!("{path}: managed, {size}");
    for region in manifest.layout.regions() {
        let end = region.end.map_or("end".into(), human);
        println!("  {} to {end}: {}", human(region.start), cycle(&region.cycle, &manifest.targets));
    }
    let mut table = table(&["  target", "directory", "bytes"], 2);
    for (target, &bytes) in manifest.targets.iter().zip(sizes) {
        table.add_row([format!("  {}", target.name), target.path.display().to_string(), human(bytes)]);
    }
    println!("{}", table.to_string().trim_end());
}
