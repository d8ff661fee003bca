//! Opens, closes and stats that take a large part of the time.

use stripewise_cluster::FileSystem;

use super::finding::{Finding, Job, Said};
use super::thresholds::{METADATA_S, METADATA_SHARE, OPENS};
use crate::commands::Command;
use crate::facts::FileFacts;
use crate::text::{count, seconds};
use stripewise_native::shell;

/// Time in metadata operations.
pub(super) fn metadata(job: &Job<'_>) -> Vec<Finding> {
    let facts = job.facts;
    let files: Vec<&FileFacts> = facts.files.iter().filter(|file| file.meta_s > 0.0).collect();
    let sum = |of: fn(&FileFacts) -> u64| files.iter().fold(0, |sum: u64, file| sum.saturating_add(of(file)));
    let (opens, stats) = (sum(|file| file.opens), sum(|file| file.stats));
    let sum_s: f64 = files.iter().map(|file| file.meta_s).sum();
    let busiest_s = facts.of_busiest_s(sum_s);
    let is_large = sum_s > METADATA_SHARE * facts.time_s() && opens.saturating_add(stats) > OPENS;
    if busiest_s <= METADATA_S && !is_large {
        return Vec::new();
    }
    let Some(first) = files.iter().copied().max_by(|a, b| a.meta_s.total_cmp(&b.meta_s)) else {
        return Vec::new();
    };
    let (remedy, commands) = remedy(job, first, files.len() as u64);
    let said = Said {
        code: "metadata",
        what: format!(
            "{} and {} of {} take {} per process",
            count(opens, "open"),
            count(stats, "stat"),
            count(files.len() as u64, "file"),
            seconds(busiest_s)
        ),
        why: "the metadata server serves all processes, one request after the other".into(),
        remedy,
        commands,
    };
    vec![job.finding(said, busiest_s)]
}

fn remedy(job: &Job<'_>, first: &FileFacts, files: u64) -> (String, Vec<Command>) {
    if files < job.facts.processes && first.is_shared() {
        let remedy = "open the file in one process and send what it holds (MPI_Bcast), or with MPI-IO";
        return (remedy.into(), Vec::new());
    }
    if first.opens > 10 * first.processes {
        return ("open each file once and keep it open".into(), Vec::new());
    }
    let directory = first.name.rsplit_once('/').map_or("/", |(directory, _)| directory);
    let commands = match job.storage.parallel() {
        Some(FileSystem::Lustre) if job.storage.holds(&first.name, job.facts) => vec![Command::new(
            format!("lfs setdirstripe -D -c -1 -i -1 {}", shell(directory)),
            "new directories there are spread over all metadata servers (Lustre 2.15 and later)",
        )],
        _ => Vec::new(),
    };
    ("put the data in fewer, larger files, in several directories".into(), commands)
}
