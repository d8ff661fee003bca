//! `stripewise report`, run as a user runs it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

const CLUSTER: &str = r#"
[class.disk]
read.random = { startup_s = 3e-4, per_byte_s = 8e-9 }
read.sequential = { startup_s = 1e-4, per_byte_s = 8e-9 }
write.random = { startup_s = 3e-4, per_byte_s = 8e-9 }
write.sequential = { startup_s = 1e-4, per_byte_s = 8e-9 }
[[tier]]
name = "hdd"
class = "disk"
driver = "dirs"
servers = ["/disks/h0", "/disks/h1", "/disks/h2", "/disks/h3"]
capacity_per_server = "1T"
emulate = true
"#;

const RESULTS: &str = r#"{
  "version": 1, "date": "2026-11-21T01:00:00Z", "command": "stripewise demo",
  "machine": {"host": "node7", "cpu": "AMD", "cores": 2, "memory_bytes": 1073741824, "system": "Linux"},
  "servers": [{"tier": "hdd", "class": "disk", "count": 4, "emulated": true}],
  "workloads": [{
    "name": "ior read", "description": "reads", "command": "ior -r", "processes": 4, "bytes": 1048576,
    "trace": "job.trace", "plan": "plan.toml", "present": "1-DV", "choice": "1-DH", "reason": "faster",
    "candidates": [
      {"name": "1-DV", "layout": "hdd/0:1G", "elapsed_s": 3.5, "measured_s": [4.0], "verified": true},
      {"name": "1-DH", "layout": "hdd/0-3:64K", "elapsed_s": 1.5, "measured_s": [2.0], "verified": true}
    ]
  }]
}"#;

fn stripewise(directory: &Path, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stripewise"));
    for variable in ["TRACE", "PLAN", "RESULTS", "CLUSTER", "PROFILE"] {
        command.env_remove(format!("STRIPEWISE_{variable}"));
    }
    command.current_dir(directory).args(arguments.split_whitespace()).output().expect("the binary runs")
}

#[track_caller]
fn run(directory: &Path, arguments: &str) -> String {
    let output = stripewise(directory, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Exit code 1, one line that contains `message`, and no page.
#[track_caller]
fn refused(directory: &Path, arguments: &str, message: &str) {
    let output = stripewise(directory, arguments);
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{error}");
    assert!(error.starts_with("stripewise: ") && error.trim_end().lines().count() == 1, "{error}");
    assert!(error.contains(message), "{error}");
    assert!(!directory.join("report.html").exists());
    let left = fs::read_dir(directory)
        .unwrap()
        .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".stripewise"));
    assert_eq!(left.count(), 0, "a temporary file is left");
}

/// A directory with a trace, a plan, predictions and results.
fn inputs() -> TempDir {
    let directory = TempDir::new().unwrap();
    let path = directory.path();
    fs::write(path.join("cluster.toml"), CLUSTER).unwrap();
    fs::write(path.join("results.json"), RESULTS).unwrap();
    run(
        path,
        "synth ior --procs 4 --transfer 256K --total 16M --access random --op read --shared -o job.trace",
    );
    let predictions =
        run(path, "plan job.trace -c cluster.toml --scheme 1-DH -o plan.toml --json --candidates");
    fs::write(path.join("plan.json"), predictions).unwrap();
    directory
}

#[test]
fn everything_on_one_page() {
    let directory = inputs();
    let arguments = "report -t job.trace -p plan.toml --predictions plan.json -r results.json -o page.html";
    let said = run(directory.path(), arguments);
    assert!(said.starts_with("page.html (") && said.lines().count() == 1, "{said}");
    let html = fs::read_to_string(directory.path().join("page.html")).unwrap();
    for what in [
        "Emulated devices",
        "/synthetic/data",
        "64 reads",
        "hdd/0-3:64K",             // the layout
        "lfs setstripe",           // native commands
        "2×",                      // the speed-up
        "--predictions plan.json", // how the page was made
        "plain files on hdd/0",    // a candidate of the predictions
    ] {
        assert!(html.replace('\u{a0}', " ").contains(what), "{what}");
    }
    assert!(!html.contains("class=\"absent\""));
}

#[test]
fn results_bring_their_trace_and_plan() {
    let directory = inputs();
    let moved = directory.path().join("elsewhere");
    fs::create_dir(&moved).unwrap();
    let json: Value = serde_json::from_str(&run(&moved, "report -r ../results.json --json")).unwrap();
    assert_eq!((&json["traces"], &json["plans"]), (&1.into(), &1.into()));
    assert_eq!(json["report"], "report.html");
    assert_eq!(json["workloads"][0]["speed_up"], 2.0);
    assert_eq!(json["workloads"][0]["behind_best"], 0.0);
    assert_eq!(json["left_out"], Value::Array(vec![]));
    let size = fs::metadata(moved.join("report.html")).unwrap().len();
    assert_eq!(json["size_bytes"], size);
}

#[test]
fn results_that_were_copied_alone_are_a_page_too() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("results.json"), RESULTS).unwrap();
    let said = run(directory.path(), "report -r results.json");
    assert_eq!(said.lines().filter(|line| line.starts_with("left out: ")).count(), 2, "{said}");
    assert!(said.contains("stripewise trace -o T -- COMMAND and add -t T"), "{said}");
}

#[test]
fn a_page_is_readable_by_others() {
    use std::os::unix::fs::PermissionsExt;
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("results.json"), RESULTS).unwrap();
    run(directory.path(), "report -r results.json");
    let mode = |name: &str| fs::metadata(directory.path().join(name)).unwrap().permissions().mode();
    assert_eq!(mode("report.html"), mode("results.json"), "as any new file");
}

#[test]
fn bad_input_is_refused_in_one_line() {
    let directory = inputs();
    let path = directory.path();
    refused(path, "report", "give at least one of -t TRACE, -p PLAN.TOML and -r RESULTS.JSON");
    refused(path, "report -t missing.trace", "missing.trace");
    refused(path, "report -t cluster.toml", "cluster.toml");
    refused(path, "report -p missing.toml", "missing.toml");
    refused(path, "report -p cluster.toml", "cluster.toml");
    refused(path, "report -r plan.json", "plan.json: no results file");
    refused(path, "report -p plan.toml --predictions results.json", "results.json: not the output of");
    refused(path, "report -t job.trace --predictions plan.json", "add -p PLAN.TOML");
    refused(path, "report -r results.json -o missing/report.html", "cannot write missing/report.html");
    fs::write(path.join("cut.json"), &RESULTS[..RESULTS.len() / 2]).unwrap();
    refused(path, "report -r cut.json", "cut.json");
    let trace = fs::read(path.join("job.trace")).unwrap();
    fs::write(path.join("cut.trace"), &trace[..trace.len() / 2]).unwrap();
    refused(path, "report -t cut.trace", "cut.trace");
}

#[test]
fn a_failure_leaves_the_old_page() {
    let directory = TempDir::new().unwrap();
    fs::write(directory.path().join("page.html"), "old").unwrap();
    let output = stripewise(directory.path(), "report -r missing.json -o page.html");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_to_string(directory.path().join("page.html")).unwrap(), "old");
}
