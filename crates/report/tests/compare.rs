//! Comparison of a run before a change with one after it: every number is that of the traces.

mod common;

use std::path::Path;

use common::{gather, request, write_trace};
use stripewise_report::compare::{Moved, compare, elapsed_s};
use stripewise_report::{Activity, Report, render};
use stripewise_trace::{Meta, Op, Request};

const SECOND_NS: u64 = 1_000_000_000;

/// One process writes 4 KiB ten times in `write_s`, pauses, and reads them in `read_s`.
fn run(directory: &Path, name: &str, (write_s, read_s): (u64, u64), command: &str) -> Activity {
    let sample = common::Sample::default();
    let (write_ns, read_ns) = (write_s * SECOND_NS / 10, read_s * SECOND_NS / 10);
    let pause = 100 * SECOND_NS;
    let calls = |op, start: u64, each: u64| -> Vec<Request> {
        (0..10).map(|i| request(1, 0, op, i * 4096, 4096, start + i * each, each)).collect()
    };
    let mut requests = calls(Op::Write, 0, write_ns);
    requests.extend(calls(Op::Read, pause, read_ns));
    let meta = Meta {
        origin: "recorded".into(),
        command: vec![command.into()],
        wall_s: None,
        exit_code: None,
        start_unix_ns: 0,
        incomplete: Vec::new(),
        notes: Vec::new(),
    };
    let path = directory.join(name);
    write_trace(&path, meta, &sample.processes(), &["/data/out.0".into()], &requests);
    gather(&path)
}

#[test]
fn phase_by_phase() {
    let directory = tempfile::tempdir().unwrap();
    let before = run(directory.path(), "before.trace", (8, 2), "job");
    let after = run(directory.path(), "after.trace", (2, 4), "job");
    let rows = compare(&before, &after);
    let shown: Vec<_> = rows.iter().map(|row| (row.pattern.as_str(), row.phase.as_str())).collect();
    assert_eq!(shown, [("/data/out.<n>", "write 1"), ("/data/out.<n>", "read 2")]);
    let moved = |seconds| Some(Moved { bytes: 40_960, seconds });
    assert_eq!((rows[0].before, rows[0].after), (moved(8.0), moved(2.0)));
    assert_eq!((rows[1].before, rows[1].after), (moved(2.0), moved(4.0)));
    assert_eq!(rows.iter().map(|row| row.speed_up().unwrap()).collect::<Vec<_>>(), [4.0, 0.5]);
    assert_eq!((elapsed_s(&before), elapsed_s(&after)), (102.0, 104.0));
}

#[test]
fn the_page_has_both_runs_and_says_when_they_are_not_the_same() {
    let directory = tempfile::tempdir().unwrap();
    let before = run(directory.path(), "before.trace", (8, 2), "job");
    for (command, warned) in [("job", false), ("another", true)] {
        let after = [run(directory.path(), "after.trace", (2, 4), command)];
        let report = Report {
            date: "2026-01-01T00:00:00Z",
            command: "stripewise report",
            version: "1.2.3",
            activities: &after,
            before: Some(&before),
            plans: &[],
            results: None,
            statistics: &[],
        };
        let html = render(&report).replace('\u{a0}', " ");
        assert!(html.contains("Before and after") && html.contains("before.trace"));
        assert!(html.contains("value=\"4\"") && html.contains("value=\"0.5\""), "the speed-ups");
        assert_eq!(html.contains("The commands differ"), warned);
        assert!(!render(&Report { before: None, ..report }).contains("Before and after"));
    }
}
