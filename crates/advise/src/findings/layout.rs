//! Layouts that the planner would change.

use super::finding::{Finding, Job, Said};
use super::thresholds::LARGE_BYTES;
use crate::layouts::LayoutAdvice;
use crate::text::{base_name, bytes, number};

/// A finding for each set of files that gains from another layout.
pub(super) fn layout(job: &Job<'_>) -> Vec<Finding> {
    job.layouts.iter().filter_map(|advice| of_set(job, advice)).collect()
}

fn of_set(job: &Job<'_>, advice: &LayoutAdvice) -> Option<Finding> {
    let proposed = advice.proposed.as_ref()?;
    let is_shared = advice.processes > 1;
    let is_on_one = advice.present_servers == 1;
    let named = match advice.files {
        1 => base_name(&advice.pattern, 28),
        files => format!("{} files {}", number(files), base_name(&advice.pattern, 20)),
    };
    let lies = if advice.is_present_known { "lies" } else { "probably lies" };
    let of = if advice.files > 1 { "each " } else { "" };
    let said = Said {
        code: match is_on_one && is_shared && advice.largest_bytes >= LARGE_BYTES {
            true => "large-file-on-one-server",
            false => "layout",
        },
        what: format!("{named} ({of}{}) {lies} in stripes of {}", bytes(advice.largest_bytes), advice.present),
        why: match (is_on_one, is_shared) {
            (true, true) => format!("{} processes share the speed of one server", number(advice.processes)),
            (true, false) => "a file on one server is no faster than that server".into(),
            (false, _) => "requests and stripes do not fit: they wait for each other at the servers".into(),
        },
        remedy: format!("stripes of {proposed} for its directory"),
        commands: advice.commands.clone(),
    };
    let saved = 1.0 - 1.0 / advice.speedup.max(1.0);
    let mut finding = job.finding(said, advice.time_s * saved);
    finding.speedup = Some(advice.speedup);
    Some(finding)
}
