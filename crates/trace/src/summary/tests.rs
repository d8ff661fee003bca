use super::*;
use crate::{Flags, MpiCall};

/// Collects calls and passes them to a summary, and again through a classifier.
struct Job {
    processes: Vec<ProcessInfo>,
    files: Vec<String>,
    requests: Vec<Request>,
    clock_ns: u64,
}

impl Job {
    /// A job of `processes` processes, `per_node` on each node.
    fn new(processes: u32, per_node: u32) -> Job {
        let processes = (0..processes)
            .map(|i| ProcessInfo {
                node: format!("n{}", i / per_node),
                pid: i,
                rank: i as i32,
                program: "p".into(),
            })
            .collect();
        Job { processes, files: vec!["/d/shared".into()], requests: Vec::new(), clock_ns: 0 }
    }

    fn call(&mut self, process: u32, file: &str, op: Op, offset: u64, size: u64) {
        let file = match self.files.iter().position(|name| name == file) {
            Some(file) => file,
            None => {
                self.files.push(file.into());
                self.files.len() - 1
            }
        } as u32;
        let start_ns = self.clock_ns;
        self.clock_ns += 1000;
        let result = size as i64;
        let end_ns = start_ns + 500;
        let flags = Flags::NONE;
        self.requests.push(Request {
            process,
            tid: 0,
            file,
            op,
            flags,
            offset,
            size,
            result,
            start_ns,
            end_ns,
        });
    }

    fn summary(&self) -> Summary {
        let Ok(mut builder) = Builder::new(&self.processes, &self.files);
        self.requests.iter().for_each(|request| builder.add(request));
        builder.finish()
    }

    /// (phase, p, c) of every read and write.
    fn classes(&self) -> Vec<(u32, u32, u32)> {
        let Ok(mut classifier) = Classifier::new(&self.processes, &self.files, MAX_GROUPS);
        let classes: Vec<Class> =
            self.requests.iter().filter_map(|request| classifier.classify(request)).collect();
        classifier.close();
        let known = |class: Class| {
            assert!(class.phase < classifier.closed(class.group));
            let concurrency = classifier.concurrency(class.group, class.phase);
            (class.phase, concurrency.processes, concurrency.per_node)
        };
        classes.into_iter().map(known).collect()
    }
}

/// (op, p, c, requests) of the phases of the first group.
fn phases(summary: &Summary) -> Vec<(Op, u32, u32, u64)> {
    let first = &summary.groups[0].phases.first;
    first.iter().map(|phase| (phase.op, phase.processes, phase.per_node, phase.requests)).collect()
}

#[test]
fn ranks_that_never_overlap_in_time_are_still_concurrent() {
    let mut job = Job::new(4, 2);
    for op in [Op::Write, Op::Read] {
        for rank in 0..4 {
            for i in 0..10 {
                job.call(rank, "/d/shared", op, (u64::from(rank) * 10 + i) * 100, 100);
            }
        }
    }
    let summary = job.summary();
    assert_eq!(phases(&summary), [(Op::Write, 4, 2, 40), (Op::Read, 4, 2, 40)]);
    assert_eq!(job.classes()[0], (0, 4, 2));
    assert_eq!(job.classes()[79], (1, 4, 2));
    let group = &summary.groups[0];
    assert_eq!((group.files, group.shared_files, group.extent_bytes), (1, 1, 4000));
    assert_eq!((group.write.requests, group.write.streams, group.write.sequential), (40, 4, 36));
    assert_eq!(group.write.sequential_share(), 1.0);
    assert_eq!(group.write.sizes.by_count(), [(100, 40)]);
    assert_eq!((summary.processes, summary.nodes, summary.calls), (4, 2, 80));
}

#[test]
fn a_header_by_one_rank_does_not_split_the_rest() {
    let mut job = Job::new(4, 4);
    job.call(0, "/d/shared", Op::Write, 0, 8);
    for rank in [2, 0, 1, 3] {
        job.call(rank, "/d/shared", Op::Read, 0, 8);
    }
    assert_eq!(phases(&job.summary()), [(Op::Write, 1, 1, 1), (Op::Read, 4, 4, 4)]);
}

#[test]
fn read_modify_write_is_as_concurrent_as_its_processes_however_they_are_scheduled() {
    // Rank 0 runs 20 cycles before rank 1 is scheduled; then they take turns the other way round.
    let mut job = Job::new(2, 1);
    let cycles = |job: &mut Job, rank: u32, from: u64, to: u64| {
        for i in from..to {
            job.call(rank, "/d/shared", Op::Read, i * 64, 64);
            job.call(rank, "/d/shared", Op::Write, i * 64, 64);
        }
    };
    cycles(&mut job, 0, 0, 20);
    cycles(&mut job, 1, 0, 30);
    cycles(&mut job, 0, 20, 30);
    let summary = job.summary();
    assert_eq!(summary.groups[0].phases.len(), 60);
    assert_eq!(summary.groups[0].phases.by_concurrency.len(), 2);
    assert!(job.classes().iter().all(|(_, p, c)| (*p, *c) == (2, 1)));
}

#[test]
fn a_gap_separates_jobs_that_follow_one_another() {
    let mut job = Job::new(4, 4);
    for rank in [0, 1] {
        job.call(rank, "/d/shared", Op::Write, 0, 8);
    }
    job.clock_ns += GAP_NS - 10_000;
    job.call(1, "/d/shared", Op::Write, 8, 8);
    // The span is now as long as the shortest gap. A gap must be longer than the span.
    job.clock_ns += GAP_NS / 2;
    job.call(0, "/d/shared", Op::Write, 8, 8);
    job.clock_ns += 2 * GAP_NS;
    for rank in [2, 3, 1] {
        job.call(rank, "/d/shared", Op::Write, 0, 8);
    }
    assert_eq!(phases(&job.summary()), [(Op::Write, 2, 2, 4), (Op::Write, 3, 3, 3)]);
}

#[test]
fn files_of_one_pattern_are_one_group_of_private_files() {
    let mut job = Job::new(8, 2);
    for rank in 0..8 {
        for i in 0..4 {
            job.call(rank, &format!("/d/out.{rank:04}"), Op::Write, i * 10, 10);
        }
    }
    let summary = job.summary();
    let group = &summary.groups[1];
    assert_eq!(group.pattern, "/d/out.<n>");
    assert_eq!(group.first_file, "/d/out.0000");
    assert_eq!((group.files, group.shared_files, group.extent_bytes), (8, 0, 320));
    let phase = group.phases.first[0];
    assert_eq!((group.phases.len(), phase.processes, phase.per_node), (1, 8, 2));
}

#[test]
fn strides_and_random_requests_are_told_apart() {
    let mut job = Job::new(1, 1);
    for i in 0..10 {
        job.call(0, "/d/shared", Op::Read, i * 4096, 1024);
    }
    for offset in [7, 900_000, 33] {
        job.call(0, "/d/shared", Op::Read, offset, 1);
    }
    let read = &job.summary().groups[0].read;
    assert_eq!((read.streams, read.sequential, read.strided), (1, 0, 8));
    assert_eq!(read.strides.most_frequent(), Some((4096, 8)));
}

#[test]
fn calls_without_data_are_counted_apart() {
    let mut job = Job::new(1, 1);
    for op in Op::ALL {
        job.call(0, "/d/shared", op, 0, 0);
    }
    job.requests[0].result = -2;
    let other = job.summary().groups[0].other;
    let once =
        OtherCalls { open: 1, close: 1, sync: 1, resize: 1, seek: 1, stat: 1, map: 1, unlink: 1, ..other };
    assert_eq!(other, OtherCalls { empty: 2, failed: 1, ..once });
}

#[test]
fn sizes_beyond_the_exact_ones_are_rounded_down() {
    let mut sizes = Sizes::default();
    for size in (1..=64).chain([1000, 1000, 5]) {
        sizes.add(size);
    }
    assert_eq!(sizes.exact[&5], 2);
    assert_eq!(sizes.rounded[&512], 2);
    assert_eq!(sizes.by_count()[0], (5, 2));
}

#[test]
fn collective_calls_are_counted_and_so_is_what_moves_in_them() {
    let mut job = Job::new(4, 4);
    for rank in 0..4 {
        job.call(rank, "/d/shared", Op::Mark, MpiCall::WriteAtAll as u64, 4);
    }
    job.call(0, "/d/shared", Op::Write, 0, 300);
    job.requests.last_mut().unwrap().flags = Flags::COLLECTIVE;
    job.call(1, "/d/shared", Op::Write, 300, 100);
    job.call(0, "/d/other", Op::Mark, MpiCall::Open as u64, 2);
    job.call(0, "/d/other", Op::Mark, 9999, 2);
    let summary = job.summary();
    let [shared, other] = &summary.groups[..] else { panic!("two groups") };
    let count = |call, calls| contents::Count { call, calls };
    assert_eq!(shared.marks.calls, [count(MpiCall::WriteAtAll, 4)]);
    // In these calls a mark's result equals its size.
    assert_eq!((shared.marks.processes, shared.marks.bytes), (4, 16));
    assert_eq!(shared.write.collective_share(), 0.75);
    assert_eq!((shared.write.requests, shared.write.collective, shared.read.collective_share()), (2, 1, 0.0));
    assert_eq!((summary.files[0].collective_bytes, summary.files[1].collective_bytes), (300, 0));
    assert_eq!(other.marks.calls, [count(MpiCall::Open, 1)], "one of an unknown kind is left out");
    assert_eq!((shared.phases.len(), other.phases.len()), (1, 0), "marks open no phase");
}

#[test]
fn of_more_files_than_can_be_listed_the_groups_are_the_same() {
    let mut job = Job::new(2, 1);
    for file in 0..20u64 {
        for process in 0..=(file % 2) as u32 {
            job.call(process, &format!("/d/{}{file}", if file < 5 { "a" } else { "b" }), Op::Write, file, 10);
        }
    }
    let summary = |listed_max| {
        let Ok(mut builder) = Builder::listing(&job.processes, &job.files, listed_max);
        job.requests.iter().for_each(|request| builder.add(request));
        builder.finish()
    };
    let (listed, not_listed) = (summary(21), summary(20));
    assert_eq!((listed.files.len(), not_listed.files.len()), (21, 0));
    assert_eq!((listed.file_count, not_listed.file_count), (21, 21));
    let json = |summary: &Summary| serde_json::to_value(&summary.groups).unwrap();
    assert_eq!(json(&listed), json(&not_listed));
    let [_, a, b] = &not_listed.groups[..] else { panic!("three groups") };
    assert_eq!((a.shared_files, b.shared_files, b.extent_bytes, b.largest_extent_bytes), (2, 8, 330, 29));
}
