//! Files: which layout, and how many bytes where?

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stripewise_datapath::manifest::Manifest;
use stripewise_datapath::{Runtime, Trouble};

use crate::managed::{cycle, human};

/// One file.
pub struct FileStatus {
    path: PathBuf,
    size_bytes: u64,
    /// The manifest, and the bytes on each of its targets; none of a plain file.
    managed: Option<(Manifest, Vec<u64>)>,
    /// Why it cannot be used.
    pub problem: Option<String>,
}

pub fn look(runtime: &Runtime, path: &Path) -> FileStatus {
    let look = || -> Result<_, Trouble> {
        let Some(file) = runtime.open_file(path)? else { return Ok(None) };
        let sizes = file.components().sizes()?;
        Ok(Some((file.manifest().layout.file_size(&sizes), file.manifest().clone(), sizes)))
    };
    match look() {
        Ok(Some((size_bytes, manifest, sizes))) => {
            FileStatus { path: path.to_owned(), size_bytes, managed: Some((manifest, sizes)), problem: None }
        }
        Ok(None) => plain(path),
        Err(error) => {
            FileStatus { path: path.to_owned(), size_bytes: 0, managed: None, problem: Some(error.to_string()) }
        }
    }
}

pub fn plain(path: &Path) -> FileStatus {
    let metadata = path.metadata();
    FileStatus {
        path: path.to_owned(),
        size_bytes: metadata.as_ref().map_or(0, std::fs::Metadata::len),
        managed: None,
        problem: metadata.err().map(|error| format!("{}: {error}", path.display())),
    }
}

pub fn to_json(status: &FileStatus) -> Value {
    let path = status.path.display().to_string();
    if let Some(problem) = &status.problem {
        return json!({ "path": path, "ok": false, "problem": problem });
    }
    let Some((manifest, sizes)) = &status.managed else {
        return json!({ "path": path, "ok": true, "managed": false, "size_bytes": status.size_bytes });
    };
    let region = |region: &stripewise_layout::Region| json!({ "start": region.start, "end": region.end, "cycle": cycle(&region.cycle, manifest) });
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
    let (path, size) = (status.path.display(), human(status.size_bytes));
    let Some((manifest, sizes)) = &status.managed else { return println!("{path}: plain, {size}") };
    println!("{path}: managed, {size}");
    for region in manifest.layout.regions() {
        let end = region.end.map_or("end".into(), human);
        println!("  {} to {end}: {}", human(region.start), cycle(&region.cycle, manifest));
    }
    let mut table = super::table(&["  target", "directory", "bytes"], 2);
    for (target, &bytes) in manifest.targets.iter().zip(sizes) {
        table.add_row([format!("  {}", target.name), target.path.display().to_string(), human(bytes)]);
    }
    println!("{}", table.to_string().trim_end());
}
