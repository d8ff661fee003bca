//! Processes and servers that take longer than the others.

use std::collections::BTreeMap;

use stripewise_native::shell;

use super::finding::{Finding, Job, Said};
use super::thresholds::{SERVERS_COMPARED, SLOW_SERVER, STRAGGLER_SHARE};
use crate::commands::Command;
use crate::facts::FileFacts;
use crate::text::{count, number, seconds};

/// A process that does I/O for longer than the others.
pub(super) fn stragglers(job: &Job<'_>) -> Vec<Finding> {
    let facts = job.facts;
    let (busiest_s, mean_s) = (facts.busiest_s(), facts.mean_s());
    if facts.processes < 2 || busiest_s - mean_s <= STRAGGLER_SHARE * busiest_s || slowest(job).is_some() {
        return Vec::new();
    }
    let is_even = facts.is_evenly_shared();
    let said = Said {
        code: "stragglers",
        what: format!(
            "the busiest process does I/O for {}, the mean of {} processes is {}",
            seconds(busiest_s),
            number(facts.processes),
            seconds(mean_s)
        ),
        why: match is_even {
            true => "all move about as many bytes, so servers or links differ in speed or load".into(),
            false => "the others wait for it; its share of the bytes is larger, or not known".into(),
        },
        remedy: match is_even {
            true => "compare another run; if the same servers are slow, report them to the site".into(),
            false => "give all processes, or some on each node, the same share of the I/O".into(),
        },
        commands: Vec::new(),
    };
    vec![job.finding(said, busiest_s - mean_s)]
}

/// A server whose files take far longer than those of the others.
struct Slow {
    ost: u32,
    files: u64,
    /// How many times as long as on the median server.
    times: f64,
    /// Time of its slowest file, and of the same on the median server, seconds.
    slowest_s: f64,
    usual_s: f64,
    /// A file on it.
    name: String,
}

/// A slow server.
pub(super) fn slow_server(job: &Job<'_>) -> Vec<Finding> {
    let Some(slow) = slowest(job) else { return Vec::new() };
    let mount = crate::storage::mount_of(&job.facts.mounts, &slow.name).map(|(_, point)| point.as_str());
    let directory = mount.or_else(|| slow.name.rsplit_once('/').map(|(directory, _)| directory)).unwrap_or("/");
    let said = Said {
        code: "slow-server",
        what: format!(
            "OST {} takes {:.0} times as long as the others for its {}",
            slow.ost,
            slow.times,
            count(slow.files, "file")
        ),
        why: "all processes wait for those whose files are on it".into(),
        remedy: format!("see whether OST {} is full, report it to the site, and leave it out", slow.ost),
        commands: vec![
            Command::new(
                format!("lfs df {} | grep -i 'OST:{}\\]'", shell(directory), slow.ost),
                "how full it is",
            ),
            Command::new(
                format!("lfs find {} --ost {} -type f | head", shell(parent(&slow.name)), slow.ost),
                "files of the job on it",
            ),
        ],
    };
    let saved_s = job.facts.busiest_s().min(slow.slowest_s) - slow.usual_s;
    vec![job.finding(said, saved_s.max(0.0))]
}

fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("/", |(directory, _)| directory)
}

/// The slowest OST by the median time per byte of the files that are on it alone, if it differs
/// from the others.
fn slowest(job: &Job<'_>) -> Option<Slow> {
    let mut servers: BTreeMap<u32, Vec<(f64, &FileFacts)>> = BTreeMap::new();
    for file in &job.facts.files {
        let data_s = file.data[0].time_s + file.data[1].time_s;
        if let Some([ost]) = file.striping.as_ref().map(|striping| &striping.osts[..])
            && file.bytes() > 0
        {
            servers.entry(*ost).or_default().push((data_s / file.bytes() as f64, file));
        }
    }
    if servers.len() < SERVERS_COMPARED {
        return None;
    }
    let medians: Vec<(f64, u32)> =
        servers.iter().map(|(&ost, of)| (median(of.iter().map(|of| of.0)), ost)).collect();
    let usual = median(medians.iter().map(|of| of.0));
    let &(worst, ost) = medians.iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
    let times = worst / usual.max(f64::MIN_POSITIVE);
    let files = &servers[&ost];
    // A single file may be slow for another reason.
    if times < SLOW_SERVER || files.len() < 2 {
        return None;
    }
    let longest = files.iter().max_by(|a, b| a.1.time_s().total_cmp(&b.1.time_s()))?.1;
    let others = servers.iter().filter(|(other, _)| **other != ost).flat_map(|(_, of)| of);
    let usual_s = others.map(|of| of.1.time_s()).fold(0.0, f64::max);
    let (name, slowest_s) = (longest.name.clone(), longest.time_s());
    Some(Slow { ost, files: files.len() as u64, times, slowest_s, usual_s, name })
}

/// The middle of some numbers; 0 without any.
fn median(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut numbers: Vec<f64> = numbers.collect();
    numbers.sort_by(f64::total_cmp);
    numbers.get(numbers.len() / 2).copied().unwrap_or(0.0)
}
