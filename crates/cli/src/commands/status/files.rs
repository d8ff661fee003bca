//! Status of files: their layout, and the bytes on each target.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_datapath::inspect::manifest_of;
use stripewise_datapath::manifest::Manifest;
use stripewise_layout::Region;
use stripewise_target::TargetRef;

use super::copies::{self, CopiesStatus, cycle};
use crate::output::{self, human};

pub struct FileStatus {
    path: PathBuf,
    state: State,
}

enum State {
    /// Its size in bytes.
    Plain(u64),
    /// Its size and manifest, and the bytes on each of the manifest's targets.
    Managed(u64, Box<Manifest>, Vec<u64>),
    /// A file with several copies.
    Copies(Box<CopiesStatus>),
    /// Why the file cannot be used.
    Problem(String),
}

impl FileStatus {
    /// Returns whether the file cannot be used, or a copy of it is lost.
    pub fn has_failed(&self) -> bool {
        match &self.state {
            State::Plain(_) | State::Managed(..) => false,
            State::Copies(copies) => copies.is_incomplete(),
            State::Problem(_) => true,
        }
    }
}

pub fn look(runtime: &Runtime, path: &Path) -> FileStatus {
    let look = || -> anyhow::Result<State> {
        if let Some(found) = manifest_of(runtime, path)?.filter(|(manifest, _)| manifest.copies.is_some()) {
            return Ok(State::Copies(Box::new(copies::look(runtime, path, found)?)));
        }
        let Some(file) = runtime.open_file(path)? else { return Ok(plain(path).state) };
        let (sizes, manifest) = (file.objects().sizes()?, Box::new(file.manifest().clone()));
        Ok(State::Managed(manifest.layout.file_size(&sizes), manifest, sizes))
    };
    let state = look().unwrap_or_else(|error| State::Problem(error.to_string()));
    FileStatus { path: path.to_owned(), state }
}

pub fn plain(path: &Path) -> FileStatus {
    let state = match path.metadata() {
        Ok(metadata) => State::Plain(metadata.len()),
        Err(error) => State::Problem(format!("{}: {error}", path.display())),
    };
    FileStatus { path: path.to_owned(), state }
}

pub fn to_json(status: &FileStatus) -> Value {
    let path = status.path.display().to_string();
    match &status.state {
        State::Problem(problem) => json!({ "path": path, "ok": false, "problem": problem }),
        State::Plain(size) => json!({ "path": path, "ok": true, "managed": false, "size_bytes": size }),
        State::Copies(copies) => copies.to_json(path),
        State::Managed(size, manifest, sizes) => {
            let region = |region: &Region| {
                let cycle = cycle(&region.cycle, &manifest.targets);
                json!({ "start": region.start, "end": region.end, "cycle": cycle })
            };
            let target = |(TargetRef { name, path, .. }, bytes): (&TargetRef, &u64)| json!({ "name": name, "path": path.display().to_string(), "bytes": bytes });
            json!({
                "path": path,
                "ok": true,
                "managed": true,
                "size_bytes": size,
                "id": manifest.id.to_string(),
                "regions": manifest.layout.regions().iter().map(region).collect::<Vec<_>>(),
                "targets": manifest.targets.iter().zip(sizes).map(target).collect::<Vec<_>>(),
            })
        }
    }
}

pub fn print(status: &FileStatus) {
    let path = status.path.display();
    match &status.state {
        State::Problem(problem) => println!("problem: {problem}"),
        State::Plain(size) => println!("{path}: plain, {}", human(*size)),
        State::Copies(copies) => {
            println!("{path}: managed, {}", human(copies.size_bytes()));
            copies.print();
        }
        State::Managed(size, manifest, sizes) => {
            println!("{path}: managed, {}", human(*size));
            for region in manifest.layout.regions() {
                let end = region.end.map_or("end".into(), human);
                println!("  {} to {end}: {}", human(region.start), cycle(&region.cycle, &manifest.targets));
            }
            let mut table = output::table(["  target", "directory", "bytes"], [2]);
            for (target, &bytes) in manifest.targets.iter().zip(sizes) {
                table.add_row([format!("  {}", target.name), target.path.display().to_string(), human(bytes)]);
            }
            println!("{}", table.to_string().trim_end());
        }
    }
}
