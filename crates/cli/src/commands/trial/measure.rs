//! How long the runs of a try take, from their traces.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use stripewise_cluster::{Plan, RuleIndex};
use stripewise_recorder::ENV_LIMIT;
use stripewise_trace::scope::is_data;
use stripewise_trace::{FileNames, Flags, Trace};

use crate::darshan::open_trace;

/// The time of one run, seconds.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// Of the whole command.
    pub wall_s: f64,
    /// The time that the busiest process spends in calls on data files.
    pub io_s: f64,
    /// The same by pattern of the plan's rules, of the process that is busiest with these files.
    pub sets: BTreeMap<String, f64>,
}

/// Sums up the calls of a trace. With a plan, only those on files of its rules count; without one,
/// those on all files that may hold data.
///
/// # Errors
/// The trace cannot be read, or lacks calls.
pub fn run(path: &Path, plan: Option<&Plan>) -> anyhow::Result<Run> {
    let trace = open_trace(path)?;
    if let Some(reason) = trace.incomplete() {
        bail!(
            "{}: the trace of a run lacks calls, so runs cannot be compared: {reason}; {ENV_LIMIT} \
             raises the limit of a process",
            path.display()
        );
    }
    let (set_of, patterns) = sets(&trace, plan)?;
    // By process: the nanoseconds of each set.
    let mut by_process: Vec<Vec<u64>> = vec![vec![0; patterns.len()]; trace.processes().len()];
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        for call in batch.iter().filter(|call| !call.flags.has(Flags::OUTPUT)) {
            if let Some(set) = set_of[call.file as usize] {
                by_process[call.process as usize][set] += call.end_ns.saturating_sub(call.start_ns);
            }
        }
    }
    let most = |of: &dyn Fn(&Vec<u64>) -> u64| by_process.iter().map(of).max().unwrap_or(0) as f64 * 1e-9;
    let of_set = |(set, pattern): (usize, String)| (pattern, most(&|process| process[set]));
    Ok(Run {
        wall_s: trace.meta().wall_s.unwrap_or_default(),
        io_s: most(&|process| process.iter().sum()),
        sets: patterns.into_iter().enumerate().map(of_set).collect(),
    })
}

/// Per file: the index of its set among the patterns; `None` if it does not count.
fn sets(trace: &Trace, plan: Option<&Plan>) -> anyhow::Result<(Vec<Option<usize>>, Vec<String>)> {
    let index = plan.map(RuleIndex::of);
    let (mut set_of, mut patterns) = (Vec::new(), Vec::<String>::new());
    trace.for_each(&mut |name| {
        let pattern = match plan.zip(index.as_ref()) {
            Some((plan, index)) => index.rule_for(plan, Path::new(name)).map(|rule| rule.pattern.as_str()),
            None => is_data(name.as_bytes()).then_some(""),
        };
        set_of.push(pattern.map(|pattern| {
            patterns.iter().position(|known| known == pattern).unwrap_or_else(|| {
                patterns.push(pattern.to_owned());
                patterns.len() - 1
            })
        }));
    })?;
    Ok((set_of, patterns))
}
