//! Status of targets: whether they are present, and how full they are.

use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_target::{Target, TargetError};

use crate::flags::TargetDirectory;
use crate::output::{self, human};

/// Status of one target.
pub struct TargetStatus<'a> {
    directory: &'a TargetDirectory,
    /// What is in it, or why it cannot be used.
    pub content: Result<Content, String>,
}

#[derive(Default)]
pub struct Content {
    name: String,
    id: String,
    free_bytes: u64,
    objects: u64,
    object_bytes: u64,
    /// Bytes that cache copies occupy on the disk.
    cached_bytes: u64,
}

pub fn look<'a>(runtime: &Runtime, directory: &'a TargetDirectory) -> TargetStatus<'a> {
    let look = || -> Result<Content, TargetError> {
        let target = Target::open(runtime.sys(), &directory.path, None)?;
        let mut content = Content {
            name: target.name().to_owned(),
            id: target.id().to_owned(),
            free_bytes: target.free_bytes()?,
            ..Content::default()
        };
        let found = target.list_objects()?;
        for object in found.iter().filter(|found| found.object.is_some()) {
            content.objects += 1;
            content.object_bytes += object.size;
            content.cached_bytes += if object.cached { object.allocated } else { 0 };
        }
        Ok(content)
    };
    TargetStatus { directory, content: look().map_err(|error| error.to_string()) }
}

pub fn to_json(status: &TargetStatus<'_>) -> Value {
    let path = status.directory.path.display().to_string();
    match &status.content {
        Err(problem) => json!({ "path": path, "ok": false, "problem": problem }),
        Ok(content) => json!({
            "path": path,
            "ok": true,
            "name": content.name,
            "id": content.id,
            "emulated": status.directory.emulated,
            "free_bytes": content.free_bytes,
            "objects": content.objects,
            "object_bytes": content.object_bytes,
            "cached_bytes": content.cached_bytes,
            "cache_limit_bytes": status.directory.cache_limit_bytes,
        }),
    }
}

pub fn print(targets: &[TargetStatus<'_>]) {
    let header = ["target", "directory", "free", "objects", "bytes", "cached", "limit", ""];
    let mut table = output::table(header, 2..8);
    for TargetStatus { directory, content } in targets {
        let Ok(content) = content else { continue };
        table.add_row([
            content.name.clone(),
            directory.path.display().to_string(),
            human(content.free_bytes),
            content.objects.to_string(),
            human(content.object_bytes),
            human(content.cached_bytes),
            human(directory.cache_limit_bytes),
            if directory.emulated { "emulated" } else { "" }.to_owned(),
        ]);
    }
    if table.row_count() > 0 {
        println!("{}", table.to_string().trim_end());
    }
    for problem in targets.iter().filter_map(|target| target.content.as_ref().err()) {
        println!("problem: {problem}");
    }
}
