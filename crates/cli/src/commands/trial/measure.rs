//! How long the runs of a try take, from their traces.

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::bail;
use stripewise_cluster::{Plan, RuleIndex};
use stripewise_recorder::ENV_LIMIT;
use stripewise_trace::scope::is_data;
use stripewise_trace::{Busy, FileNames, Flags, Op, Trace};

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

/// The time of one process.
#[derive(Clone, Default)]
struct OfProcess {
    /// On files of all sets.
    all: Busy,
    /// On those of each set.
    sets: Vec<Busy>,
}

/// Sums up the calls of a trace. With a plan, only those on files of its rules count; without one,
/// those on all files that may hold data. A collective call of MPI-IO does not count by itself: in
/// it, a process makes the calls that do, and waits for others.
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
    let idle = OfProcess { sets: vec![Busy::default(); patterns.len()], ..OfProcess::default() };
    let mut by_process = vec![idle; trace.processes().len()];
    let mut requests = trace.requests()?;
    while let Some(batch) = requests.next_batch()? {
        for call in batch.iter().filter(|call| !call.flags.has(Flags::OUTPUT) && call.op != Op::Mark) {
            if let Some(set) = set_of[call.file as usize] {
                let process = &mut by_process[call.process as usize];
                process.all.add(call);
                process.sets[set].add(call);
            }
        }
    }
    let most = |of: &dyn Fn(&OfProcess) -> u64| by_process.iter().map(of).max().unwrap_or(0) as f64 * 1e-9;
    let of_set = |(set, pattern): (usize, String)| (pattern, most(&|process| process.sets[set].ns()));
    Ok(Run {
        wall_s: trace.meta().wall_s.unwrap_or_default(),
        io_s: most(&|process| process.all.ns()),
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

#[cfg(test)]
mod tests {
    use stripewise_trace::{Meta, ProcessInfo, Request, TraceWriter};

    use super::*;

    /// Nested and simultaneous calls of a process count once, and waiting in a collective call not
    /// at all.
    #[test]
    fn the_time_of_a_process_is_that_in_which_it_is_in_calls() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("t");
        let mut writer = TraceWriter::create(&path).unwrap();
        let info = ProcessInfo { node: "n".into(), pid: 1, rank: -1, program: "p".into() };
        let process = writer.process_id(&info);
        let files = ["/d/a", "/d/b"].map(|name| writer.file_id(name));
        let call = |op, file: usize, start_ns, end_ns| Request {
            process,
            tid: 1,
            file: files[file],
            op,
            flags: Flags::NONE,
            offset: 0,
            size: 8,
            result: 8,
            start_ns,
            end_ns,
        };
        for request in [
            call(Op::Mark, 0, 0, 1_000_000_000),
            call(Op::Open, 0, 0, 100_000_000),
            call(Op::Resize, 0, 0, 100_000_000),
            call(Op::Write, 0, 200_000_000, 400_000_000),
            call(Op::Write, 1, 300_000_000, 600_000_000),
        ] {
            writer.push(&request).unwrap();
        }
        writer.finish(&Meta::default()).unwrap();
        let run = run(&path, None).unwrap();
        assert!((run.io_s - 0.5).abs() < 1e-9, "{}", run.io_s);
    }
}
