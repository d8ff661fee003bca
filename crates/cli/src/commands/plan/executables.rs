//! Finds files that are run as programs. The kernel cannot run a program from a managed file.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use stripewise_plan::Workload;

/// Maximum number of files inspected per set.
const FILES_MAX: usize = 4096;
const ANY_EXECUTE: u32 = 0o111;

/// Returns warnings about sets with executable files, by the pattern of the set. A trace contains
/// no file modes, so only files that exist are considered.
pub fn find(workload: &Workload) -> HashMap<String, String> {
    let is_executable = |path: &str| {
        let metadata = std::fs::metadata(path);
        metadata.is_ok_and(|it| it.is_file() && it.permissions().mode() & ANY_EXECUTE != 0)
    };
    let of_set = |set: &stripewise_plan::workload::FileSet| {
        let mut names = set.files.iter().take(FILES_MAX).map(|file| file.name.as_str());
        let first = names.find(|name| is_executable(name))?;
        let more = names.filter(|name| is_executable(name)).count();
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let text = format!(
            "{first}{more} may be run as a program, which is not possible from a managed file; `place` leaves it where it \
             is unless it is named, but a new file of this pattern is managed: if programs are made here, leave the \
             pattern out of the plan (--only)"
        );
        Some((set.pattern.clone(), text))
    };
    workload.file_sets.iter().filter_map(of_set).collect()
}
