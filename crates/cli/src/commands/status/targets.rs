//! Status of targets: whether they are present, and how full they are.

use std::path::PathBuf;

use serde_json::{Value, json};
use stripewise_datapath::Runtime;
use stripewise_target::{Target, list_components};

use super::table::table;
use crate::flags::TargetDirectory;
use crate::managed::human;

/// Status of one target.
pub struct TargetStatus {
    path: PathBuf,
    emulated: bool,
    name: String,
    id: String,
    free_bytes: u64,
    components: u64,
    component_bytes: u64,
    /// Bytes that cache copies occupy on the disk, and their limit.
    cached_bytes: u64,
    cache_limit_bytes: u64,
    /// Why the target cannot be used.
    pub problem: Option<String>,
}

pub fn look(runtime: &Runtime, directory: &TargetDirectory) -> TargetStatus {
    let mut status = TargetStatus {
        path: directory.path.clone(),
        emulated: directory.emulated,
        name: String::new(),
        id: String::new(),
        free_bytes: 0,
        components: 0,
        component_bytes: 0,
        cached_bytes: 0,
        cache_limit_bytes: directory.cache_limit_bytes,
        problem: None,
    };
    let look = |status: &mut TargetStatus| -> Result<(), stripewise_target::TargetError> {
        let target = Target::open(runtime.sys(), &directory.path, None)?;
        status.name = target.name().to_owned();
        status.id = target.id().to_owned();
        status.free_bytes = target.free_bytes(runtime.sys())?;
        let found = list_components(runtime.sys(), &target)?;
        let components = found.iter().filter(|found| found.component.is_some());
        for component in components {
            status.components += 1;
            status.component_bytes += component.size;
            status.cached_bytes += if component.cached { component.allocated } else { 0 };
        }
        Ok(())
    };
    let looked = look(&mut status);
    TargetStatus { problem: looked.err().map(|error| error.to_string()), ..status }
}

pub fn to_json(status: &TargetStatus) -> Value {
    let path = status.path.display().to_string();
    match &status.problem {
        Some(problem) => json!({ "path": path, "ok": false, "problem": problem }),
        None => json!({
            "path": path,
            "ok": true,
            "name": status.name,
            "id": status.id,
            "emulated": status.emulated,
            "free_bytes": status.free_bytes,
            "components": status.components,
            "component_bytes": status.component_bytes,
            "cached_bytes": status.cached_bytes,
            "cache_limit_bytes": status.cache_limit_bytes,
        }),
    }
}

pub fn print(targets: &[TargetStatus]) {
    if targets.is_empty() {
        return;
    }
    let mut table = table(&["target", "directory", "free", "components", "bytes", "cached", "limit", ""], 2);
    for target in targets.iter().filter(|target| target.problem.is_none()) {
        table.add_row([
            target.name.clone(),
            target.path.display().to_string(),
            human(target.free_bytes),
            target.components.to_string(),
            human(target.component_bytes),
            human(target.cached_bytes),
            human(target.cache_limit_bytes),
            if target.emulated { "emulated" } else { "" }.to_owned(),
        ]);
    }
    if table.row_count() > 0 {
        println!("{}", table.to_string().trim_end());
    }
    for problem in targets.iter().filter_map(|target| target.problem.as_ref()) {
        println!("problem: {problem}");
    }
}
