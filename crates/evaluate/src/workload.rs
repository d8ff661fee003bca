//! A cell as a planner sees it: its parts as one trace, without a trace file.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::Path;
use std::sync::Arc;

use stripewise_plan::{Collector, Workload};
use stripewise_trace::summary::{GAP_NS, MAX_GROUPS};
use stripewise_trace::synth::{self, Job, Numbers};
use stripewise_trace::{ProcessInfo, Request};

use crate::cell::Part;

/// Returns the absolute paths of a part's files, in the order of [`Job::files`], if the cell runs
/// in the directory `base`.
pub fn paths(part: &Part, base: &Path) -> Vec<String> {
    part.program.benchmark().job().files.iter().map(|file| base.join(file).display().to_string()).collect()
}

/// Returns the requests of all parts, one part after the other. Each part has processes of its own.
pub fn of(parts: &[Part], base: &Path) -> Workload {
    let trace = Numbered::of(parts, base);
    let Ok(mut collector) = Collector::new(&trace.processes, &trace.files, MAX_GROUPS);
    trace.for_each(parts, &mut |request| collector.add(request));
    collector.finish()
}

/// Processes and files of all parts, with consecutive numbers.
struct Numbered {
    processes: Vec<ProcessInfo>,
    files: Vec<Arc<str>>,
    /// Numbers of the processes and of the files, by part.
    numbers: Vec<(Vec<u32>, Vec<u32>)>,
}

impl Numbered {
    fn of(parts: &[Part], base: &Path) -> Self {
        let mut all = Self { processes: Vec::new(), files: Vec::new(), numbers: Vec::new() };
        let mut known: HashMap<String, u32> = HashMap::new();
        for part in parts {
            let job: Job = part.program.benchmark().job();
            let first = all.processes.len() as u32;
            all.processes.extend((0..job.processes).map(|rank| job.process(rank)));
            let mut number = |path: String| {
                let next = all.files.len() as u32;
                *known.entry(path).or_insert_with_key(|path| {
                    all.files.push(path.as_str().into());
                    next
                })
            };
            let files = paths(part, base).into_iter().map(&mut number).collect();
            all.numbers.push(((first..first + job.processes).collect(), files));
        }
        all
    }

    fn for_each(&self, parts: &[Part], take: &mut dyn FnMut(&Request)) {
        let mut start_ns = 0;
        for (part, (processes, files)) in parts.iter().zip(&self.numbers) {
            let numbers = Numbers { processes: processes.clone(), files: files.clone(), start_ns };
            let mut push = |request: &Request| {
                take(request);
                Ok::<(), Infallible>(())
            };
            start_ns = match synth::calls_of(part.program.benchmark(), &numbers, &mut push) {
                // Programs that run one after the other are not concurrent. A pause between them
                // is a gap if it is longer than GAP_NS and than the program before it.
                Ok(end_ns) => end_ns + 2 * GAP_NS.max(end_ns - start_ns),
                Err(never) => match never {},
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use stripewise_model::Op;
    use stripewise_trace::synth::{Access, Direction, Ior, RandomWithin};

    use super::*;
    use crate::cell::Program;

    fn ior(processes: u32, transfer: u64, op: Op, file: &str) -> Part {
        of_requests(8, processes, transfer, op, file)
    }

    /// A program whose processes make so many requests each.
    fn of_requests(count: u64, processes: u32, transfer: u64, op: Op, file: &str) -> Part {
        let direction = if op == Op::Read { Direction::Read } else { Direction::Write };
        let ior = Ior {
            processes,
            per_node: 2,
            transfer,
            block: count * transfer,
            segments: 1,
            access: Access::Sequential,
            random_within: RandomWithin::File,
            direction,
            shared: false,
            seed: 1,
            file: file.into(),
        };
        Part { program: Program::Ior(ior), op }
    }

    #[test]
    fn parts_follow_each_other_and_files_of_one_kind_are_one_set() {
        let parts =
            [ior(4, 4096, Op::Write, "a1"), ior(8, 65536, Op::Read, "a2"), ior(4, 4096, Op::Read, "a1")];
        let workload = of(&parts, Path::new("/data"));
        assert_eq!(workload.file_sets.len(), 1);
        let set = &workload.file_sets[0];
        assert_eq!((set.pattern.as_str(), set.files.len()), ("/data/a<n>.<n>", 12));
        let mut groups: Vec<_> =
            set.groups.iter().map(|g| (g.op, g.procs, g.procs_per_node, g.count, g.bytes / g.count)).collect();
        groups.sort_by_key(|group| (group.1, group.0));
        assert_eq!(
            groups,
            [(Op::Read, 4, 2, 32, 4096), (Op::Write, 4, 2, 32, 4096), (Op::Read, 8, 2, 64, 65536)]
        );
    }

    #[test]
    fn programs_that_take_long_are_not_concurrent_with_the_next() {
        let parts = [of_requests(400, 4, 4096, Op::Write, "a1"), of_requests(400, 8, 4096, Op::Write, "a2")];
        let workload = of(&parts, Path::new("/data"));
        let mut procs: Vec<u32> = workload.file_sets[0].groups.iter().map(|group| group.procs).collect();
        procs.sort_unstable();
        assert_eq!(procs, [4, 8]);
    }
}
