//! `stripewise plan` from traces to plan files.

mod support;

use std::path::Path;

use serde_json::Value;
use stripewise_cluster::Plan;
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, TraceWriter};
use support::{Place, directories, tier};

const MIB: f64 = 1_048_576.0;

/// Additions for these tests: the cluster of the worked example of `docs/papers.md` (published
/// parameters, 256 MiB on each SServer), and traces.
impl Place {
    fn with_cluster() -> Self {
        let place = Self::new();
        place.write("cluster.toml", &cluster(1.0 / (120.0 * MIB)));
        place
    }

    /// Writes a trace of requests (process, file name, op, offset, size). Each starts 1 us after
    /// the previous one.
    fn trace(&self, name: &str, requests: &[(u32, &str, Op, u64, u64)], incomplete: &[&str]) {
        let mut writer = TraceWriter::create(&self.path(name)).unwrap();
        for (index, &(rank, file, op, offset, size)) in requests.iter().enumerate() {
            let process = ProcessInfo {
                node: format!("node{}", rank / 2),
                pid: 100 + rank,
                rank: rank as i32,
                program: "app".into(),
            };
            let request = Request {
                process: writer.process_id(&process),
                tid: 100 + rank,
                file: writer.file_id(file),
                op,
                flags: Flags::POSITIONAL,
                offset,
                size,
                result: size as i64,
                start_ns: 1000 * index as u64,
                end_ns: 1000 * index as u64 + 900,
            };
            writer.push(&request).unwrap();
        }
        let incomplete = incomplete.iter().map(|reason| (*reason).to_owned()).collect();
        writer.finish(&Meta { origin: "synthetic".into(), incomplete, ..Meta::default() }).unwrap();
    }

    /// Trace of 16 processes that read `count` blocks of 512 KiB of one file, in scattered order.
    fn shared_trace(&self, name: &str, count: u64) {
        let block = |i: u64| (i * 7919) % count;
        let request = |i: u64| ((i % 16) as u32, "/data/shared", Op::Read, block(i) * (512 << 10), 512 << 10);
        self.trace(name, &(0..count).map(request).collect::<Vec<_>>(), &[]);
    }
}

/// Text of a cluster file; `per_byte_s` applies to the network and the HServers.
fn cluster(per_byte_s: f64) -> String {
    let hdd = [3e-4, 1e-4, 3e-4, 1e-4].map(|startup_s| (startup_s, per_byte_s));
    format!("[network]\nestablish_s = 3e-4\nper_byte_s = {per_byte_s:?}\n")
        + &tier("hdd", hdd, &directories("/disks/h", 4), "1T", false)
        + &tier("ssd", [(5e-5, 1.0 / (400.0 * MIB)); 4], &directories("/disks/s", 4), "256M", false)
}

fn candidate<'a>(json: &'a Value, name: &str) -> &'a Value {
    let all = json["files"][0]["candidates"].as_array().unwrap();
    all.iter().find(|candidate| candidate["name"] == name).unwrap_or_else(|| panic!("{name} is a candidate"))
}

/// Checks the worked example in the JSON of `plan --scheme psa --candidates`.
fn assert_spec_5_2(json: &Value) {
    let file = &json["files"][0];
    assert_eq!(file["scheme"], "psa");
    assert_eq!(file["stripes"], serde_json::json!({ "hdd": 122880, "ssd": 8192 }));
    let predicted = file["predicted_s"].as_f64().unwrap();
    assert!((predicted - 1338.573).abs() < 5e-4, "{predicted}");
    assert_eq!(file["regions"][0]["start"], 0);
    assert_eq!(file["regions"][0]["cycle"].as_array().unwrap().len(), 8);
    assert_eq!(file["regions"][0]["cycle"][4], serde_json::json!({ "target": "ssd/0", "bytes": 8192 }));
    for pair in ["<64K,64K>", "<96K,32K>", "<112K,16K>"] {
        let tied = candidate(json, &format!("PSA {pair}"))["predicted_s"].as_f64().unwrap();
        assert!((tied / predicted - 1.0).abs() < 1e-12, "{pair}: {tied}");
    }
    let narrow = candidate(json, "PSA <124K,4K>");
    assert!((narrow["predicted_s"].as_f64().unwrap() - 1372.7).abs() < 0.05);
    assert_eq!(narrow["stripes"], serde_json::json!({ "hdd": 126976, "ssd": 4096 }));
    let homogeneous = candidate(json, "PSA <128K,0>");
    assert_eq!(homogeneous["stripes"], serde_json::json!({ "hdd": 131072, "ssd": 0 }));
}

#[test]
fn the_published_numbers_come_out_of_a_trace() {
    let place = Place::with_cluster();
    place.shared_trace("t", 32768);
    let json = place.json("plan t -c cluster.toml --scheme psa --json --candidates");
    assert_spec_5_2(&json);
    let plan = Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap();
    assert_eq!(plan.rules[0].pattern, "/data/shared");
    assert_eq!(plan.rules[0].layouts[0].regions()[0].cycle[0].width, 120 << 10);
    assert!(plan.rule_for(Path::new("/data/shared")).unwrap().choose(Path::new("/data/shared")).is_some());
}

#[test]
fn the_published_numbers_come_out_of_a_synthetic_benchmark() {
    let place = Place::with_cluster();
    let synth = "synth ior --procs 16 --procs-per-node 2 --transfer 512K --total 16G --access random --op read --shared -o t";
    place.run(synth);
    assert_spec_5_2(&place.json("plan t -c cluster.toml --scheme psa --json --candidates"));
    let plain = place.json("plan t -c cluster.toml --scheme psa --json");
    assert!(plain["files"][0].get("candidates").is_none());
}

#[test]
fn auto_takes_the_least_expected_time_of_all() {
    let place = Place::with_cluster();
    place.shared_trace("t", 4096); // 2 GiB: twice what the SServers hold
    let json = place.json("plan t -c cluster.toml --json --candidates");
    let file = &json["files"][0];
    let elapsed = file["elapsed_s"].as_f64().unwrap();
    let all = file["candidates"].as_array().unwrap();
    let schemes: std::collections::BTreeSet<&str> = all.iter().map(|c| c["scheme"].as_str().unwrap()).collect();
    assert_eq!(schemes.into_iter().collect::<Vec<_>>(), ["def", "overall", "pa", "psa"]);
    for name in ["1-DH", "1-DV", "DEF", "2-D g=2", "2-D g=7", "stripe 64K", "1-DH on ssd, then hdd"] {
        let other = all.iter().find(|c| c["name"].as_str().unwrap().starts_with(name));
        let other = other.unwrap_or_else(|| panic!("{name} is a candidate"))["elapsed_s"].as_f64().unwrap();
        assert!(elapsed <= other * 1.006, "{name}: {other} against {elapsed}");
    }
}

#[test]
fn a_candidate_can_be_asked_for_by_name() {
    let place = Place::with_cluster();
    place.shared_trace("t", 512);
    let json = place.json("plan t --scheme '2-D g=2' --json -o two.toml");
    assert_eq!(json["files"][0]["name"], "2-D g=2");
    let plan = Plan::parse(&place.read("two.toml"), "").unwrap();
    assert_eq!(plan.rules[0].scheme, "2-D g=2");
    let error = place.error("plan t --scheme 3-D");
    assert!(error.contains("there is no candidate \"3-D\"; there are: 1-DH, "), "{error}");
}

#[test]
fn files_of_one_process_each_share_a_rule_that_fits_the_next_run() {
    let place = Place::with_cluster();
    let names: Vec<String> = (0..16).map(|rank| format!("/data/out.{rank:04}")).collect();
    let request =
        |i: u32| ((i % 16), names[(i % 16) as usize].as_str(), Op::Write, u64::from(i / 16) << 16, 1 << 16);
    place.trace("t", &(0..1024).map(request).collect::<Vec<_>>(), &[]);
    let json = place.json("plan t --scheme 1-DV --json");
    assert_eq!(json["files"][0]["pattern"], "/data/out.<n>");
    assert_eq!(json["files"][0]["layouts"].as_array().unwrap().len(), 8);
    let plan = Plan::parse(&place.read("plan.toml"), "").unwrap();
    let mut counts = [0; 8];
    for rank in 0..16 {
        let path = format!("/data/out.{:04}", rank + 1600);
        let layout = plan.rule_for(Path::new(&path)).unwrap().choose(Path::new(&path)).unwrap();
        counts[layout.locate(0).0 as usize] += 1;
    }
    assert_eq!(counts, [2; 8]);
}

#[test]
fn nothing_is_recommended_that_gains_too_little() {
    let place = Place::with_cluster();
    place.shared_trace("t", 512);
    let best = place.json("plan t --json");
    let regions = best["files"][0]["regions"].as_array().unwrap();
    let cycle: Vec<String> = regions[0]["cycle"]
        .as_array()
        .unwrap()
        .iter()
        .map(|stripe| format!("{}:{}", stripe["target"].as_str().unwrap(), stripe["bytes"]))
        .collect();
    let present = format!("cycle:{}", cycle.join(" "));
    let json = place.json(&["plan", "t", "--json", "--present", &present]);
    let file = &json["files"][0];
    assert_eq!(file["scheme"], "keep");
    assert!(file["reason"].as_str().unwrap().starts_with("keep the present layout"), "{}", file["reason"]);
    assert!(Plan::parse(&place.read("plan.toml"), "").unwrap().rules[0].layouts.is_empty());
    let json = place.json(&["plan", "t", "--json", "--present", &present, "--min-gain", "none"]);
    assert_ne!(json["files"][0]["scheme"], "keep");
    let text = place.text(&["plan", "t", "--present", &present]);
    assert!(text.contains("Keep the present layout"), "{text}");
}

#[test]
fn an_incomplete_trace_is_refused_unless_accepted() {
    let place = Place::with_cluster();
    place.trace("t", &[(0, "/data/x", Op::Write, 0, 4096)], &["rank 3 was killed"]);
    let error = place.error("plan t");
    assert!(
        error.contains("t: the trace is incomplete: rank 3 was killed")
            && error.contains("--accept-incomplete")
    );
    assert!(!place.path("plan.toml").exists());
    let json = place.json("plan t --accept-incomplete --json");
    assert_eq!(json["incomplete"], "rank 3 was killed");
}

/// Writes a trace at `name` of one write, by a command that ended with `exit_code`.
fn ended_with(place: &Place, name: &str, exit_code: Option<u8>) {
    place.trace(name, &[(0, "/data/x", Op::Write, 0, 4096)], &[]);
    let trace = stripewise_trace::Trace::open(&place.path(name)).unwrap();
    let mut writer = TraceWriter::create(&place.path(name)).unwrap();
    trace.processes().iter().for_each(|process| _ = writer.process_id(process));
    trace.file_names().unwrap().iter().for_each(|name| _ = writer.file_id(name));
    let mut requests = trace.requests().unwrap();
    while let Some(batch) = requests.next_batch().unwrap() {
        batch.iter().for_each(|request| writer.push(request).unwrap());
    }
    writer.finish(&Meta { exit_code, ..trace.meta().clone() }).unwrap();
}

#[test]
fn a_trace_of_a_program_that_failed_is_refused_unless_accepted() {
    let place = Place::with_cluster();
    ended_with(&place, "t", Some(255));
    let error = place.error("plan t");
    assert!(error.contains("t: the traced program failed (exit code 255)"), "{error}");
    assert!(error.contains("--accept-failed") && !place.path("plan.toml").exists(), "{error}");
    assert_eq!(place.json("plan t --accept-failed --json")["failed"], "exit code 255");
    assert!(place.text("plan t --accept-failed").contains("t: the traced program failed: exit code 255"));
    assert!(place.text("trace --summary t").contains("FAILED: exit code 255"));
    for code in [Some(0), None] {
        ended_with(&place, "t", code);
        place.run("plan t");
    }
}

#[test]
fn executable_files_are_warned_of() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::with_cluster();
    place.write("solver", "#!/bin/sh\n");
    let solver = place.path("solver").display().to_string();
    place.trace("t", &[(0, &solver, Op::Write, 0, 4096)], &[]);
    let warning = "may be run as a program, which is not possible from a managed file";
    assert!(!place.text("plan t").contains(warning));
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path("solver"), mode).unwrap();
    let text = place.text("plan t");
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(warning), "{text}");
    let said = place.json("plan t --json")["files"][0]["executables"].as_str().unwrap().to_owned();
    assert!(said.starts_with(&solver) && said.contains("--only"), "{said}");
}

#[test]
fn only_plans_are_overwritten() {
    let place = Place::with_cluster();
    place.shared_trace("t", 64);
    place.write("plan.toml", "my notes\n");
    let error = place.error("plan t");
    assert!(error.contains("plan.toml exists and is no plan"), "{error}");
    assert_eq!(place.read("plan.toml"), "my notes\n");
    place.run("plan t --force");
    place.run("plan t"); // a plan may be overwritten
    let error = place.error("plan t -o nowhere/plan.toml");
    assert!(error.contains("nowhere is no directory"), "{error}");
}

#[test]
fn bad_input_is_named() {
    let place = Place::with_cluster();
    place.shared_trace("t", 64);
    let cases: [(&[&str], &str); 7] = [
        (&["plan", "missing"], "missing"),
        (&["plan", "cluster.toml"], "cluster.toml"),
        (&["plan", "t", "-c", "none.toml"], "none.toml cannot be read"),
        (&["plan", "t", "--present", "two:hdd/0"], "present layout \"two:hdd/0\": not understood"),
        (&["plan", "t", "--present", "one:hdd/9"], "the cluster has no target \"hdd/9\""),
        (&["plan", "t", "--only", "/else/**"], "no file of the trace matches --only /else/**"),
        (&["plan", "t", "--profile", "t"], "t cannot be read"),
    ];
    for (arguments, part) in cases {
        let error = place.error(arguments);
        assert!(error.contains(part), "{part:?} in {error}");
        assert!(!place.path("plan.toml").exists());
    }
    place.write("bad.toml", &cluster(f64::NAN).replace("NaN", "nan"));
    let error = place.error("plan t -c bad.toml");
    assert!(error.contains("bad.toml:3: network.per_byte_s = nan: must be a finite number"), "{error}");
    for arguments in [["--step", "0"], ["--min-gain", "7"], ["--objective", "speed"], ["--stripes", "4X"]] {
        let output = place.output(&["plan", "t", arguments[0], arguments[1]]);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    }
}

/// The first half of the file is read in small requests, the second one in large ones.
#[test]
fn regions_of_different_requests_get_stripes_of_their_own() {
    let place = Place::with_cluster();
    let small = (0..1024u32).map(|i| (i % 16, "/data/f", Op::Read, (u64::from(i) * 421 % 1024) << 16, 1 << 16));
    let large = (0..16u32).map(|i| (i, "/data/f", Op::Read, (64 << 20) + (u64::from(i) << 22), 4 << 20));
    place.trace("t", &small.chain(large).collect::<Vec<_>>(), &[]);
    let json = place.json("plan t --scheme regions --min-gain none -q --json");
    let file = &json["files"][0];
    assert_eq!(
        (&file["scheme"], &file["stripes"]),
        (&"regions".into(), &serde_json::json!({ "hdd": 0, "ssd": 16384 }))
    );
    let starts: Vec<u64> =
        file["regions"].as_array().unwrap().iter().map(|region| region["start"].as_u64().unwrap()).collect();
    assert!(starts.starts_with(&[0, 64 << 20]), "{starts:?}");
    let schemes = |arguments: &str| place.json(arguments)["files"][0]["candidates"].to_string();
    assert!(!schemes("plan t -q --json --candidates").contains("\"scheme\":\"regions\""));
    assert!(schemes("plan t -q --json --candidates --with regions").contains("\"scheme\":\"regions\""));
}

/// Disks, and two SSDs of 12 MiB.
fn with_little_fast_space() -> Place {
    let place = Place::new();
    let disk = [5e-3, 1e-4, 5e-3, 1e-4].map(|startup_s| (startup_s, 1.0 / (150.0 * MIB)));
    let text = tier("hdd", disk, &directories("/disks/h", 4), "1T", false)
        + &tier("ssd", [(5e-5, 1.0 / (500.0 * MIB)); 4], &directories("/disks/s", 2), "12M", false);
    place.write("cluster.toml", &text);
    place
}

/// A small file that is read at random gets the little fast space, not a large one that is written
/// in order.
#[test]
fn files_share_the_space_by_what_it_saves() {
    let place = with_little_fast_space();
    let random = (0..4096u64).map(|i| (i * 2741 % 4096) << 12);
    let small = random.zip(0u32..).map(|(offset, i)| (i % 4, "/data/small", Op::Read, offset, 4096));
    let large = (0..240u32).map(|i| (i / 60, "/data/large", Op::Write, u64::from(i) << 20, 1 << 20));
    place.trace("t", &large.chain(small).collect::<Vec<_>>(), &[]);
    let json = place.json("plan t -q --json");
    let (joint, files) = (&json["joint"], json["files"].as_array().unwrap());
    let small = files.iter().find(|files| files["pattern"] == "/data/small").unwrap();
    assert_eq!(small["stripes"]["hdd"], 0, "all of it is on the SSDs: {small}");
    let seconds = |name: &str| joint[name].as_f64().unwrap();
    assert!(
        seconds("planned_s") < seconds("now_s") / 4.0 && seconds("bound_s") <= seconds("planned_s"),
        "{joint}"
    );
    assert!(joint["space"][1]["tier"] == "ssd" && joint["space"][1]["saves_s_per_byte"].as_f64() > Some(0.0));
    let simulated =
        place.json("sim t -p plan.toml -q --json")["plans"][0]["runs"][0]["elapsed_s"].as_f64().unwrap();
    assert!((simulated / seconds("planned_s") - 1.0).abs() < 0.1, "{simulated} simulated: {joint}");
    let text = place.text("plan t -q");
    assert!(
        text.starts_with("All files together: ")
            && text.contains("\nAnother 1M on ssd would save at most about ")
            && text.contains("\nSpace on ssd (now 24M): with "),
        "{text}"
    );
    let points = joint["curves"][0]["points"].as_array().unwrap();
    let time = |point: &Value| point["planned_s"].as_f64().unwrap();
    let now = points.iter().find(|point| point["bytes"] == 24 << 20).unwrap();
    assert!(time(now) == seconds("planned_s") && time(&points[0]) > 4.0 * time(now), "{joint}");
    let loads = json["loads"].as_array().unwrap();
    let bytes = |load: &Value, when: &str| load[when]["bytes"].as_f64().unwrap();
    for when in ["now", "planned"] {
        let all: f64 = loads.iter().map(|load| bytes(load, when)).sum();
        assert_eq!(all, ((4096 << 12) + (240 << 20)) as f64, "what the program reads and writes, {when}");
    }
    let of_ssds = loads.iter().filter(|load| load["server"].as_str().unwrap().starts_with("ssd/"));
    assert!(of_ssds.map(|load| bytes(load, "planned")).sum::<f64>() >= (4096 << 12) as f64, "{json}");
}

/// A plan is for the files as they are, not as they were when they were traced.
#[test]
fn files_that_have_grown_since_the_trace_count_with_their_present_size() {
    let place = with_little_fast_space();
    let path = place.directory().join("data").display().to_string();
    let blocks = (0..64u64).map(|i| (i * 27 % 64) << 12);
    let reads = blocks.zip(0u32..).map(|(offset, i)| (i % 4, path.as_str(), Op::Read, offset, 4096));
    place.trace("t", &reads.collect::<Vec<_>>(), &[]);
    let planned = || place.json("plan t -q --json")["files"][0]["bytes"].as_u64().unwrap();
    assert_eq!(planned(), 64 << 12);
    for (now, counted) in [(1 << 30, 1 << 30), (100, 64 << 12)] {
        std::fs::File::create(&path).unwrap().set_len(now).unwrap();
        assert_eq!(planned(), counted, "{now} bytes");
    }
}

/// Four processes write checkpoints of 16 MiB, and read blocks of the newest one at random.
#[test]
fn the_checkpoint_that_is_read_again_has_a_rule_of_its_own() {
    let place = with_little_fast_space();
    let names: Vec<String> = (1..=6).map(|step| format!("/data/ckpt.{step:04}")).collect();
    let blocks = || names.iter().flat_map(|name| (0..16u32).map(move |i| (name.as_str(), i)));
    let writes = blocks().map(|(name, i)| (i / 4, name, Op::Write, u64::from(i) << 20, 1 << 20));
    let reads =
        (0..4096u32).map(|i| (i % 4, names[5].as_str(), Op::Read, u64::from(i * 2741 % 4096) << 12, 4096));
    place.trace("t", &writes.chain(reads).collect::<Vec<_>>(), &[]);
    let json = place.json("plan t -q --json");
    let files = json["files"].as_array().unwrap();
    let newest = files.iter().find(|files| files["pattern"] == "/data/ckpt.0006").unwrap();
    assert_eq!(newest["stripes"]["hdd"], 0, "all of it is on the SSDs: {newest}");
    let plan = Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap();
    let patterns: Vec<&str> = plan.rules.iter().map(|rule| rule.pattern.as_str()).collect();
    assert_eq!(patterns, ["/data/ckpt.0006", "/data/ckpt.<n>"], "the first rule that matches counts");
    let joint = &json["joint"];
    let seconds = |name: &str| joint[name].as_f64().unwrap();
    assert!(seconds("planned_s") < seconds("now_s") / 4.0, "{joint}");
    let simulated =
        place.json("sim t -p plan.toml -q --json")["plans"][0]["runs"][0]["elapsed_s"].as_f64().unwrap();
    assert!((simulated / seconds("planned_s") - 1.0).abs() < 0.1, "{simulated} simulated: {joint}");
    // Another application uses the files in another way: then the uses of both count together.
    let scans = blocks().map(|(name, i)| (0, name, Op::Read, u64::from(i) << 20, 1 << 20));
    place.trace("scan", &scans.collect::<Vec<_>>(), &[]);
    for (times, sets) in [(1, 2), (100_000, 1)] {
        let json = place.json(format!("plan t scan={times} -q --json").as_str());
        let counts = json["files"].as_array().unwrap().iter().map(|files| files["count"].as_u64().unwrap());
        let counts: Vec<u64> = counts.collect();
        assert_eq!((counts.len(), counts.iter().sum()), (sets, 6), "{times} runs: {json}");
    }
}

/// Beyond 512 sets each still has a rule of its own.
#[test]
fn many_sets_of_files_get_a_rule_each() {
    let place = Place::new();
    let disk = [(4e-3, 1.0 / (125.0 * MIB)); 4];
    let text = tier("hdd", disk, &directories("/disks/h", 4), "1T", false)
        + &tier("ssd", [(5e-5, 1.0 / (500.0 * MIB)); 4], &directories("/disks/s", 2), "12M", false);
    place.write("cluster.toml", &text);
    // The higher the number, the more often a file is read.
    let letters = |number: u32| -> String {
        number.to_string().bytes().map(|digit| char::from(digit - b'0' + b'a')).collect()
    };
    let name = |number| format!("/data/{}/{}", letters(number % 2), letters(number));
    let names: Vec<String> = (0..600).map(name).collect();
    let of_file = |number: u64| {
        let file = names[number as usize].as_str();
        let blocks = 16 + number / 20;
        (0..blocks).map(move |i| (i as u32 % 4, file, Op::Read, (i * 7 % 16) << 12, 4096))
    };
    place.trace("t", &(0..600).flat_map(of_file).collect::<Vec<_>>(), &[]);
    let json = place.json("plan t -q --json");
    let files = json["files"].as_array().unwrap();
    assert_eq!(files.len(), 600);
    let is_on_ssds = |name: &str| {
        let files = files.iter().find(|files| files["pattern"] == name).unwrap();
        !files["keep"].as_bool().unwrap() && files["stripes"]["hdd"] == 0
    };
    let fast = names.iter().filter(|name| is_on_ssds(name)).count();
    assert!((350..=384).contains(&fast), "{fast} files of 64 KiB are in 24 MiB");
    assert!(is_on_ssds(&names[590]) && !is_on_ssds(&names[10]));
    let plan = Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap();
    assert!(names.iter().all(|name| plan.rule_for(Path::new(name)).unwrap().pattern == **name));
    let planned_s = json["joint"]["planned_s"].as_f64().unwrap();
    assert!(json["joint"]["bound_s"].as_f64().unwrap() <= planned_s);
    let text = place.text("plan t -q");
    assert!(text.contains("\nSo many sets of files are planned by what "), "{text}");
    assert!(text.contains(" more patterns of files, which save ") && text.lines().count() < 30, "{text}");
    let text = place.text("plan t -q --candidates");
    assert!(text.contains(" more patterns of files with fewer bytes (--json shows all)\n"), "{text}");
}

#[test]
fn several_applications_are_planned_together() {
    let place = Place::with_cluster();
    place.shared_trace("nightly", 64);
    let block = |i: u64| (0, "/data/own", Op::Write, i << 20, 1 << 20);
    place.trace("hourly", &(0..32).map(block).collect::<Vec<_>>(), &[]);
    let text = place.text("plan nightly hourly=24 -q");
    for part in ["All files together: ", "\nnightly: ", "\nhourly, 24 runs: "] {
        assert!(text.contains(part), "{part:?} in {text}");
    }
    let json = place.json("plan nightly hourly=24 -q --json");
    let applications = json["applications"].as_array().unwrap();
    assert_eq!((&applications[1]["trace"], &applications[1]["times"]), (&"hourly".into(), &24.into()));
    let sum = |name: &str| applications.iter().map(|of| of[name].as_f64().unwrap()).sum::<f64>();
    let joint = |name: &str| json["joint"][name].as_f64().unwrap();
    assert!((sum("planned_s") / joint("planned_s") - 1.0).abs() < 0.01, "{json}");
    let now_s = |files: &Value| files["present"]["elapsed_s"].as_f64().unwrap();
    let one_s = now_s(&place.json("plan hourly -q --json")["files"][0]);
    let often = json["files"].as_array().unwrap().iter().find(|files| files["pattern"] == "/data/own").unwrap();
    assert!((now_s(often) / one_s / 24.0 - 1.0).abs() < 0.01, "{} and {one_s}", now_s(often));
    std::fs::copy(place.path("hourly"), place.path("a=b")).unwrap();
    assert_eq!(place.json("plan a=b -q --json")["trace"], "a=b");
    for wrong in ["hourly=0", "hourly=x", "=3"] {
        let output = place.output(format!("plan {wrong}").as_str());
        assert!(!output.status.success(), "{wrong}");
    }
}
