//! The whole advice on a job, as the command prints it.

use serde::Serialize;

use crate::facts::{Excluded, Facts, Source};
use crate::findings::{Finding, findings};
use crate::layouts::LayoutAdvice;
use crate::storage::{Origin, Pool, Storage};
use crate::verdict::{Verdict, verdict};

/// The version of the JSON form.
const VERSION: u32 = 1;

/// The advice on a job.
#[derive(Clone, Debug, Serialize)]
pub struct Advice {
    /// The version of this form.
    pub version: u32,
    /// The verdict.
    pub verdict: Verdict,
    /// The same as five lines.
    pub lines: [String; 5],
    /// The job.
    pub job: Job,
    /// The file system.
    pub storage: Described,
    /// What is slow, the most severe first.
    pub findings: Vec<Finding>,
    /// The layouts of the files on the file system.
    pub layouts: Vec<LayoutAdvice>,
    /// What the advice cannot know, one sentence each.
    pub notes: Vec<String>,
}

/// A job in a few numbers.
#[derive(Clone, Debug, Serialize)]
pub struct Job {
    /// Where the facts come from.
    pub source: Source,
    /// Number of processes.
    pub processes: u64,
    /// How long it ran, seconds; `None` if it is not known.
    pub runtime_s: Option<f64>,
    /// Time that the busiest process does I/O on data files, seconds.
    pub busiest_s: f64,
    /// Mean of all processes, seconds.
    pub mean_s: f64,
    /// The busiest process's share of the run, 0 to 1.
    pub io_share: Option<f64>,
    /// Number of data files.
    pub files: u64,
    /// Bytes read.
    pub bytes_read: u64,
    /// Bytes written.
    pub bytes_written: u64,
    /// Software, logs, settings and standard streams, which the advice is not about.
    pub left_out: Excluded,
    /// Files whose opens wait for a peer, such as named pipes.
    pub waits: Excluded,
}

/// The file system in the advice.
#[derive(Clone, Debug, Serialize)]
pub struct Described {
    /// Its name.
    pub system: String,
    /// Number of servers; 0 if they cannot be told apart.
    pub servers: u32,
    /// Whether that number is a guess.
    pub servers_are_assumed: bool,
    /// The pools, of which those without a name are the other servers.
    pub pools: Vec<Pool>,
    /// How it is known.
    pub origin: Origin,
    /// Where it is mounted, if the log tells.
    pub mount: Option<String>,
    /// How fast its servers are taken to be.
    pub speed: String,
    /// Whether that was measured.
    pub is_measured: bool,
}

impl Advice {
    /// The advice that follows from the facts and from the planner's layouts. `notes` come first
    /// among its own.
    pub fn new(facts: &Facts, storage: &Storage, layouts: Vec<LayoutAdvice>, mut notes: Vec<String>) -> Advice {
        let findings = findings(facts, storage, &layouts);
        let verdict = verdict(facts, storage, &findings);
        notes.extend(own_notes(facts, storage, &layouts));
        let (speed, is_measured) = storage.speed();
        let [bytes_read, bytes_written] = facts.bytes();
        Advice {
            version: VERSION,
            lines: verdict.lines(),
            verdict,
            job: Job {
                source: facts.source,
                processes: facts.processes,
                runtime_s: facts.runtime_s,
                busiest_s: facts.busiest_s(),
                mean_s: facts.mean_s(),
                io_share: facts.io_share(),
                files: facts.files.len() as u64 + facts.beyond.files,
                bytes_read,
                bytes_written,
                left_out: facts.left_out,
                waits: facts.waits,
            },
            storage: Described {
                system: storage.title(),
                servers: storage.servers(),
                servers_are_assumed: storage.assumed_servers,
                pools: storage.pools.clone(),
                origin: storage.origin.clone(),
                mount: storage.mount.clone(),
                speed,
                is_measured,
            },
            findings,
            layouts,
            notes,
        }
    }
}

fn own_notes(facts: &Facts, storage: &Storage, layouts: &[LayoutAdvice]) -> Vec<String> {
    let mut notes: Vec<String> =
        facts.incomplete.iter().map(|reason| format!("the log is incomplete: {reason}")).collect();
    if facts.source == Source::Synthetic {
        notes.push("the trace is synthetic: no program ran, and nothing is known of times".into());
    }
    if facts.source == Source::Counters {
        notes.push(
            "the log has sums, no single calls: for a surer advice, run with DXT_ENABLE_IO_TRACE=1".into(),
        );
    }
    if facts.runtime_s.is_none() {
        notes.push("the run time is not known, so shares of the run are not".into());
    }
    if facts.beyond.files > 0 {
        notes.push(format!("{} files are only in the totals", facts.beyond.files));
    }
    if facts.waits.files > 0 {
        notes.push(format!(
            "{} files whose opens wait for another process, such as named pipes, are left out",
            facts.waits.files
        ));
    }
    if let (Origin::Cluster(name), None) = (&storage.origin, storage.parallel()) {
        notes.push(format!(
            "only stripewise stripes over the servers of {name}: `stripewise plan` plans for them"
        ));
    } else if storage.parallel().is_none() && facts.has_io() {
        notes.push(format!(
            "the files are on {}, whose layouts stripewise does not set; name another with --fs",
            storage.title()
        ));
    }
    if layouts.iter().any(|advice| advice.proposed.is_some()) {
        notes.push(
            "a log does not tell which files still exist: leave out commands for those that do not".into(),
        );
    }
    notes
}
