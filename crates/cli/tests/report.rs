//! `stripewise report`, run as a user runs it.

mod support;

use std::fs;

use serde_json::Value;
use support::{Place, directories, tier};

const RESULTS: &str = r#"{
  "version": 1, "date": "2026-11-21T01:00:00Z", "command": "stripewise-bench demo",
  "machine": {"host": "node7", "cpu": "AMD", "cores": 2, "memory_bytes": 1073741824, "system": "Linux"},
  "servers": [{"tier": "hdd", "class": "hdd", "count": 4, "emulated": true}],
  "workloads": [{
    "name": "ior read", "description": "reads", "command": "ior -r", "processes": 4, "bytes": 1048576,
    "trace": "job.trace", "plan": "plan.toml", "present": "1-DV", "choice": "1-DH", "reason": "faster",
    "candidates": [
      {"name": "1-DV", "layout": "hdd/0:1G", "elapsed_s": 3.5, "measured_s": [4.0], "verified": true},
      {"name": "1-DH", "layout": "hdd/0-3:64K", "elapsed_s": 1.5, "measured_s": [2.0], "verified": true}
    ]
  }]
}"#;

/// The command fails and leaves neither a page nor a temporary file.
#[track_caller]
fn refused(place: &Place, arguments: &str, message: &str) {
    let said = place.error(arguments);
    assert!(said.contains(message), "{said}");
    assert!(!place.path("report.html").exists());
    let left = fs::read_dir(place.directory())
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".stripewise"));
    assert_eq!(left.count(), 0, "a temporary file is left");
}

/// Directory with a trace, a plan, predictions and results.
fn inputs() -> Place {
    let place = Place::new();
    let services = [(3e-4, 8e-9), (1e-4, 8e-9), (3e-4, 8e-9), (1e-4, 8e-9)];
    place.write("cluster.toml", &tier("hdd", services, &directories("/disks/h", 4), "1T", true));
    place.write("results.json", RESULTS);
    place
        .run("synth ior --procs 4 --transfer 256K --total 16M --access random --op read --shared -o job.trace");
    let predictions =
        place.text("plan job.trace -c cluster.toml --scheme 1-DH -o plan.toml --json --candidates");
    place.write("plan.json", &predictions);
    place
}

#[test]
fn everything_on_one_page() {
    let place = inputs();
    let arguments = "report -t job.trace -p plan.toml --predictions plan.json -r results.json -o page.html";
    let said = place.text(arguments);
    assert!(said.starts_with("page.html (") && said.lines().count() == 1, "{said}");
    let html = place.read("page.html");
    for what in [
        "Emulated devices",
        "/synthetic/data",
        "64 reads",
        "hdd/0-3:64K",             // the layout
        "lfs setstripe",           // native commands
        "2×",                      // the speedup
        "--predictions plan.json", // how the page was made
        "plain files on hdd/0",    // a candidate of the predictions
    ] {
        assert!(html.replace('\u{a0}', " ").contains(what), "{what}");
    }
    assert!(!html.contains("class=\"absent\""));
}

#[test]
fn results_bring_their_trace_and_plan() {
    let place = inputs();
    fs::create_dir(place.path("elsewhere")).unwrap();
    let output =
        place.command("report -r ../results.json --json").current_dir(place.path("elsewhere")).output();
    let json: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!((&json["traces"], &json["plans"]), (&1.into(), &1.into()));
    assert_eq!(json["report"], "report.html");
    assert_eq!(json["workloads"][0]["speed_up"], 2.0);
    assert_eq!(json["workloads"][0]["behind_best"], 0.0);
    assert_eq!(json["left_out"], Value::Array(vec![]));
    let size = fs::metadata(place.path("elsewhere/report.html")).unwrap().len();
    assert_eq!(json["size_bytes"], size);
}

#[test]
fn results_that_were_copied_alone_are_a_page_too() {
    let place = Place::new();
    place.write("results.json", RESULTS);
    let said = place.text("report -r results.json");
    assert_eq!(said.lines().filter(|line| line.starts_with("left out: ")).count(), 2, "{said}");
    assert!(said.contains("stripewise trace -o T -- COMMAND and add -t T"), "{said}");
}

#[test]
fn a_part_of_the_time_is_drawn_larger() {
    let place = inputs();
    place.run("report -t job.trace --time ..0.002");
    let html = place.read("report.html");
    assert!(html.contains("Charts show the time from 0\u{a0}s to 2\u{a0}ms;"), "{html}");
}

#[test]
fn what_is_no_part_of_a_time_is_refused() {
    let place = inputs();
    for (time, problem) in [
        ("5", "FROM..TO, in seconds: 12..14.5"),
        ("5..4", "it ends at 4 s and begins at 5 s"),
        ("x..4", "`x` is not a number of seconds"),
        ("-1..4", "`-1` is not a number of seconds"),
    ] {
        let output = place.output(&["report", "-t", "job.trace", &format!("--time={time}")]);
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(2) && said.contains(problem), "{said}");
    }
}

#[test]
fn a_page_is_readable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("results.json", RESULTS);
    place.run("report -r results.json");
    let mode = |name: &str| fs::metadata(place.path(name)).unwrap().permissions().mode();
    assert_eq!(mode("report.html"), mode("results.json"), "as any new file");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let place = inputs();
    refused(&place, "report", "give at least one of -t TRACE, -p PLAN.TOML, -r RESULTS.JSON and -s FILE");
    refused(&place, "report -t missing.trace", "missing.trace");
    refused(&place, "report -p plan.toml --time 1..2", "--time is a part of a trace: add -t TRACE");
    refused(
        &place,
        "report -t job.trace --time 1000..",
        "job.trace: --time 1000..inf: the calls of the trace are from 0.000 s to",
    );
    refused(&place, "report -t cluster.toml", "cluster.toml");
    refused(&place, "report -p missing.toml", "missing.toml");
    refused(&place, "report -p cluster.toml", "cluster.toml");
    refused(&place, "report -r plan.json", "plan.json: no results file");
    refused(&place, "report -p plan.toml --predictions results.json", "results.json: not the output of");
    refused(&place, "report -t job.trace --predictions plan.json", "add -p PLAN.TOML");
    refused(&place, "report -r results.json -o missing/report.html", "cannot write missing/report.html");
    place.write("cut.json", &RESULTS[..RESULTS.len() / 2]);
    refused(&place, "report -r cut.json", "cut.json");
    let trace = fs::read(place.path("job.trace")).unwrap();
    fs::write(place.path("cut.trace"), &trace[..trace.len() / 2]).unwrap();
    refused(&place, "report -t cut.trace", "cut.trace");
    refused(&place, "report -s missing.stat", "missing.stat cannot be read");
    place.write("bad.stat", &STATISTICS.replace("\"hits\": 3", "\"hits\": -3"));
    refused(&place, "report -s bad.stat", "bad.stat, line 2: invalid value: integer `-3`, expected u64");
}

/// Statistics of two processes that read the file of [`inputs`], one of them from the cache.
const STATISTICS: &str = r#"
{"path": "/synthetic/data", "file": "f", "pid": 1, "rank": 0, "kind": "cache", "mode": "sla", "requests": 8, "critical": 8, "hits": 3, "partial_hits": 1, "evictions": 0, "evicted_bytes": 0, "write_backs": 0, "fetches": 2, "copies": [{"name": "original", "read_bytes": 1310720, "written_bytes": 0, "copied_bytes": 0}, {"name": "1-DH", "read_bytes": 786432, "written_bytes": 0, "copied_bytes": 524288}]}
{"path": "/synthetic/data", "file": "f", "pid": 2, "rank": 1, "kind": "cache", "mode": "sla", "requests": 8, "critical": 8, "hits": 0, "partial_hits": 0, "evictions": 0, "evicted_bytes": 0, "write_backs": 0, "fetches": 0, "copies": [{"name": "original", "read_bytes": 2097152, "written_bytes": 0, "copied_bytes": 0}, {"name": "1-DH", "read_bytes": 0, "written_bytes": 0, "copied_bytes": 0}]}
"#;

#[test]
fn what_a_cache_was_expected_to_do_and_did() {
    let place = inputs();
    let services = |startup_s| [(startup_s, 8e-9); 4];
    let cluster = tier("hdd", services(5e-3), &directories("/disks/h", 4), "1T", true)
        + &tier("ssd", services(1e-4), &directories("/disks/s", 1), "8M", true);
    place.write("cluster.toml", &cluster);
    let plan =
        "plan job.trace -c cluster.toml --scheme cache --cache-mode sca -o plan.toml --json --candidates";
    place.write("plan.json", &place.text(plan));
    place.write("job.stat", STATISTICS);
    let said = place.text("report -p plan.toml --predictions plan.json");
    assert!(
        said.contains(
            "What the copies served. No statistics were given: count with stripewise run --statistics"
        )
    );
    let json: Value = place.json("report -p plan.toml --predictions plan.json -s job.stat --json");
    assert_eq!(json["counted_files"], 1);
    let html = place.read("report.html").replace('\u{a0}', " ");
    for what in ["1/(1\u{2212}x)", "16 requests of 2 processes moved 4 MiB", "measured 18.8 % (3)", "(768 KiB)"]
    {
        assert!(html.contains(what), "{what}");
    }
    assert!(!html.contains("The same layout on parallel file systems"), "they do not have copies");
}

#[test]
fn a_failure_leaves_the_old_page() {
    let place = Place::new();
    place.write("page.html", "old");
    place.error("report -r missing.json -o page.html");
    assert_eq!(place.read("page.html"), "old");
}
