//! The processes of a log by rank.

use rustc_hash::FxHashMap;
use stripewise_trace::{ProcessInfo, TraceWriter};

use crate::Job;

/// Maximum number of processes that share a record of all of them.
const SHARING_MAX: u64 = 1 << 20;

/// The node of a process that no DXT record tells.
const UNKNOWN_NODE: &str = "unknown";

/// Numbers in the trace, by rank.
pub(super) struct Processes {
    program: String,
    numbers: FxHashMap<i64, u32>,
    /// Processes of the job; 0 if the log has no sensible number.
    of_job: u64,
    of_job_said: i64,
    without_node: u64,
    beyond: u64,
}

impl Processes {
    pub(super) fn new(job: &Job) -> Processes {
        let program = job.command.split_whitespace().next().unwrap_or_default().to_owned();
        let of_job = job.processes.max(0) as u64;
        let (numbers, of_job_said) = (FxHashMap::default(), job.processes);
        Processes { program, numbers, of_job, of_job_said, without_node: 0, beyond: 0 }
    }

    /// The process with this rank. `host` is its node, if that is known.
    pub(super) fn number(&mut self, rank: i64, host: Option<&str>, writer: &mut TraceWriter) -> u32 {
        if let Some(&number) = self.numbers.get(&rank) {
            return number;
        }
        self.without_node += u64::from(host.is_none());
        self.beyond += u64::from(self.of_job > 0 && !(0..self.of_job as i64).contains(&rank));
        let node = host.filter(|host| !host.is_empty()).unwrap_or(UNKNOWN_NODE).to_owned();
        let rank_shown = i32::try_from(rank).unwrap_or(-1);
        let number =
            writer.process_id(&ProcessInfo { node, pid: 0, rank: rank_shown, program: self.program.clone() });
        self.numbers.insert(rank, number);
        number
    }

    /// How many processes share a record of all of them that counts so many calls.
    pub(super) fn sharing(&self, calls: u64) -> u64 {
        self.of_job.min(calls).clamp(1, SHARING_MAX)
    }

    pub(super) fn odd(&self) -> impl Iterator<Item = String> {
        let unknown = (self.without_node > 0).then(|| {
            format!(
                "guessed: {} processes ran on one node, since the log does not tell theirs",
                self.without_node
            )
        });
        let said = (self.of_job == 0).then(|| {
            format!(
                "the log says that the job had {} processes: records of all processes count as of one",
                self.of_job_said
            )
        });
        let beyond = (self.beyond > 0).then(|| {
            format!("{} processes have a rank that the job of {} does not have", self.beyond, self.of_job)
        });
        unknown.into_iter().chain(said).chain(beyond)
    }
}
