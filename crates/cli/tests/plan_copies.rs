//! `stripewise plan` for files with several copies: replicas and caches.

mod support;

use serde_json::Value;
use stripewise_cluster::{CacheAdmission, CacheMode, OverlayKind, Plan};
use stripewise_trace::{Flags, Meta, Op, ProcessInfo, Request, TraceWriter};
use support::{Place, directories, tier};

const MIB: u64 = 1 << 20;

/// Cluster of eight disks and four SSDs, reached over a network.
fn place() -> Place {
    place_over("establish_s = 1e-4\nper_byte_s = 1e-9")
}

fn place_over(network: &str) -> Place {
    let hdd = [5e-3, 1e-4, 5e-3, 1e-4].map(|startup_s| (startup_s, 1e-8));
    let text = format!("[network]\n{network}\n")
        + &tier("hdd", hdd, &directories("/disks/h", 8), "1T", false)
        + &tier("ssd", [(5e-5, 2.5e-9); 4], &directories("/disks/s", 4), "64M", false);
    let place = Place::new();
    place.write("cluster.toml", &text);
    place
}

/// Trace of 64 processes that read a file together, followed by one of them reading it alone; 1 MiB
/// at a time, in scattered order.
fn mixed_trace(place: &Place) {
    let mut writer = TraceWriter::create(&place.path("t")).unwrap();
    let file = writer.file_id("/data/shared");
    let mut push = |rank: u32, block: u64, start_ns: u64| {
        let node = format!("node{}", rank / 4);
        let process = ProcessInfo { node, pid: 100 + rank, rank: rank as i32, program: "app".into() };
        let request = Request {
            process: writer.process_id(&process),
            tid: 100 + rank,
            file,
            op: Op::Read,
            flags: Flags::POSITIONAL,
            offset: block * 7919 % 1024 * MIB,
            size: MIB,
            result: MIB as i64,
            start_ns,
            end_ns: start_ns + 900_000,
        };
        writer.push(&request).unwrap();
    };
    (0..1024).for_each(|n| push(n as u32 % 64, n, n / 64 * 1_000_000 + n % 64));
    (0..2048).for_each(|n| push(0, n, 10_000_000_000 + n * 1_000_000));
    writer.finish(&Meta { origin: "synthetic".into(), ..Meta::default() }).unwrap();
}

fn plan_of(place: &Place) -> Plan {
    Plan::parse(&place.read("plan.toml"), "plan.toml").unwrap()
}

fn seconds(json: &Value) -> f64 {
    json["elapsed_s"].as_f64().unwrap()
}

#[test]
fn replicas_for_requests_that_want_different_layouts() {
    // Over a network the best single layout is within 4 % of the best pair, which is too little to
    // justify a copy.
    let place = place_over("establish_s = 0.0\nper_byte_s = 0.0");
    mixed_trace(&place);
    let plan =
        "plan t --scheme replicas --json --candidates --lazy-close --background 50M --durability each-write";
    let json = place.json(plan);
    let file = &json["files"][0];
    assert_eq!(file["scheme"], "replicas");
    assert_eq!(file["copies"].as_array().unwrap().len(), 1);
    assert_eq!(file["background"], serde_json::json!({ "bytes": 0, "seconds": 0.0 }), "nothing is written");
    assert!(file["remarks"][0].as_str().unwrap().starts_with("2 copies take"), "{}", file["remarks"]);
    assert!(file["native"].as_array().unwrap().is_empty());
    let single = place.json("plan t --scheme overall --json --candidates -o single.toml");
    for candidate in single["files"][0]["candidates"].as_array().unwrap() {
        assert!(seconds(file) < 0.95 * seconds(candidate), "{}", candidate["name"]);
    }
    let rule = &plan_of(&place).rules[0];
    let overlay = rule.overlay.as_ref().unwrap();
    assert_eq!((overlay.kind, overlay.copies.len()), (OverlayKind::Replicas, 1));
    assert!(overlay.lazy_close && overlay.background == Some(50 * MIB));
    assert_eq!(overlay.durability.name(), "each-write");
    assert_eq!(rule.copies_for("/data/shared".as_ref()).count(), 1);
    let text = place.text("plan t --scheme replicas -o plan.toml --candidates");
    assert!(text.contains("  copy original: ") && text.contains("+ 1 copy"), "{text}");
    let serves = |of: &str| {
        text.lines().find(|line| line.trim().starts_with("read of 1M") && line.contains(of)).unwrap()
    };
    // Different copies serve the 64 processes and the single process, each where it costs least.
    let (many, one) = (serves(" 64 "), serves("  1 "));
    assert_ne!(many.split_whitespace().last(), one.split_whitespace().last(), "{text}");
    let expected = &file["expected"];
    assert_eq!((&expected["space_factor"], &expected["close_waits"]), (&2.0.into(), &false.into()));
    assert!(expected["copies"][1]["alone_elapsed_s"].as_f64().unwrap() > seconds(file));
    assert!(!text.contains("The same on parallel file systems"), "{text}");
}

#[test]
fn a_cache_of_what_gains() {
    let place = place();
    place.run("synth ior --procs 32 --procs-per-node 4 --transfer 8K --total 16M --access random --op both --shared -o t");
    let cached = "plan t --scheme cache --cache-capacity 1M --present 1-DH:64K@hdd";
    let json = place.json(format!("{cached} --json").as_str());
    let file = &json["files"][0];
    assert_eq!(file["scheme"], "cache");
    assert!(file["remarks"][0].as_str().unwrap().contains("of which 25.0 % fit"), "{}", file["remarks"]);
    assert!(file["background"]["bytes"].as_u64().unwrap() > 0);
    let rule = &plan_of(&place).rules[0];
    let overlay = rule.overlay.as_ref().unwrap();
    assert_eq!(
        overlay.kind,
        OverlayKind::Cache {
            mode: CacheMode::Sla,
            admission: CacheAdmission::Balanced,
            capacity_per_server: MIB
        }
    );
    assert_eq!(overlay.copies.len(), 3);
    assert!(rule.layouts[0].targets().all(|target| target < 8));
    let whole = place.json(format!("{} --json", cached.replace("1M", "4M")).as_str());
    assert!(seconds(&whole["files"][0]) < 0.5 * seconds(file));
    place.run(format!("{cached} --cache-mode nsca").as_str());
    let overlay = plan_of(&place).rules[0].overlay.clone().unwrap();
    assert!(matches!(overlay.kind, OverlayKind::Cache { mode: CacheMode::Nsca, .. }));
    place.run(format!("{cached} --cache-admission as-printed").as_str());
    let kind = plan_of(&place).rules[0].overlay.as_ref().unwrap().kind;
    assert!(matches!(kind, OverlayKind::Cache { admission: CacheAdmission::AsPrinted, .. }));
    let text = place.text(format!("{cached} --candidates").as_str());
    assert!(text.contains("are performance-critical") && text.contains("+ 3 copies"), "{text}");
    for words in ["copy original: hdd/0-7:", "gains most in", "With the cache the files take", "1/(1-x) = 1."] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let x = file["expected"]["cache"]["time_of_hits"].as_f64().unwrap();
    assert!((x - 0.25).abs() < 0.03, "{x}");
}

#[test]
fn auto_looks_at_them_only_when_told_to() {
    let place = place();
    place.run("synth ior --procs 8 --transfer 64K --total 64M --access random --op read --shared -o t");
    let schemes = |flags: &str| -> std::collections::BTreeSet<String> {
        let json = place.json(format!("plan t --json --candidates {flags}").as_str());
        let all = json["files"][0]["candidates"].as_array().unwrap().clone();
        all.iter().map(|candidate| candidate["scheme"].as_str().unwrap().to_owned()).collect()
    };
    assert!(!schemes("").contains("cache"));
    assert!(schemes("--with replicas,cache").contains("cache"));
}

#[test]
fn impossible_wishes_are_refused() {
    let place = place();
    place.run("synth ior --procs 8 --transfer 64K --total 1M --access random --op read --shared -o t");
    for (flags, parts) in [
        ("--scheme cache --cache-capacity 1G", ["ssd/0 may be filled to 64M only", "1G"]),
        ("--scheme cache --cache-capacity 0", ["--cache-capacity", "at least 1 byte"]),
        ("--scheme cache --cache-mode some", ["--cache-mode", "sla, sca, nsca, off"]),
        ("--scheme cache --cache-admission all", ["--cache-admission", "balanced, as-printed"]),
        ("--scheme replicas --copies 1", ["--copies", "2..=8"]),
        ("--scheme replicas --background 0", ["--background", "at least 1 byte"]),
        ("--with tape", ["--with", "replicas, cache"]),
    ] {
        let output = place.output(format!("plan t {flags}").as_str());
        assert!(!output.status.success(), "{flags}");
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(parts.iter().all(|part| error.contains(part)), "{flags}: {error}");
        assert!(!place.path("plan.toml").exists(), "nothing is written");
    }
}
