//! Test data on files with several copies.

use stripewise_cluster::Plan;

use super::PLAN;

/// Plan that gives the shared file of [`super::PLAN`] several copies, for use with [`expected`].
pub fn plan_with_copies(copies: &str) -> Plan {
    let at = PLAN.find("[[rule]]\npattern = \"/data/log.<n>\"").unwrap();
    Plan::parse(&format!("{}{copies}\n{}", &PLAN[..at], &PLAN[at..]), "plan.toml").unwrap()
}

/// Two replicas.
pub const REPLICAS: &str = r#"
[[rule.copy]]
kind = "replica"
name = "1-DV"
layouts = [[{ cycle = "ssd/0-3:4M" }]]
[rule.overlay]
procs = 16
"#;

/// A cache with two layouts.
pub const CACHE: &str = r#"
[[rule.copy]]
kind = "cache"
name = "1-DH"
layouts = [[{ cycle = "ssd/0-3:64K" }]]
[[rule.copy]]
kind = "cache"
name = "1-DV"
groups = 4
layouts = [[{ cycle = "ssd/0-3:4M" }]]
[rule.overlay]
mode = "sla"
capacity_per_server = "64M"
procs = 16
"#;

/// The `expected` object of `plan --json` for the shared file, with these copies in addition to the
/// original.
pub fn expected(copies: &[&str]) -> serde_json::Value {
    let cache = copies.len() > 1;
    let count = copies.len() + 1;
    let copy = |(index, name): (usize, &str)| {
        let mut copy =
            serde_json::json!({"name": name, "requests": 600.0 - 200.0 * index as f64, "bytes": 6e8});
        if index == 0 || !cache {
            copy["alone_predicted_s"] = 31.0.into();
            copy["alone_elapsed_s"] = (91.25 + index as f64).into();
        }
        copy
    };
    let class = |(index, size): (usize, u64)| {
        // The last copy serves the first class, and the original serves the second.
        let served = |serves: usize| (0..count).map(|copy| f64::from(copy == serves)).collect::<Vec<_>>();
        let serves = if index == 0 { count - 1 } else { 0 };
        let cost_s = |copy: usize| if copy == serves { 0.00125 } else { 0.0375 + copy as f64 };
        let mut class = serde_json::json!({
            "op": "read", "access": "random", "request_bytes": size, "procs": 16, "procs_per_node": 8, "requests": 500,
            "bytes": 500 * size, "cost_s": (0..count).map(cost_s).collect::<Vec<_>>(), "served": served(serves),
        });
        if cache {
            class["critical"] = served(serves).into();
        }
        class
    };
    let names = std::iter::once("original").chain(copies.iter().copied());
    let classes: Vec<_> = [8u64 << 10, 4 << 20].into_iter().enumerate().map(class).collect();
    let copies: Vec<_> = names.enumerate().map(copy).collect();
    let mut expected = serde_json::json!({
        "copies": copies,
        "classes": classes,
        "space_factor": if cache { 1.3 } else { 2.0 },
        "close_waits": !cache,
    });
    if cache {
        let layout = |name: &str| serde_json::json!({"name": name, "chosen": true, "cached_s": 71.75});
        expected["cache"] = serde_json::json!({
            "mode": "sla", "capacity_bytes": 268435456.0, "critical_requests": 900.0, "critical_request_bytes": 9e8,
            "critical_bytes": 8e8, "fits": 0.3355, "time_of_hits": 0.5, "original_s": 100.0, "cached_s": 62.5,
            "layouts": [layout("1-DH"), layout("1-DV")],
        });
    }
    expected
}

/// The output of `plan --json` with these expectations.
pub fn predictions(expected: serde_json::Value) -> String {
    let layout =
        |name: &str| serde_json::json!({"name": name, "predicted_s": 1.0, "elapsed_s": 2.0, "regions": []});
    let mut files = layout("chosen");
    files["pattern"] = "/data/shared.dat".into();
    files["present"] = layout("plain");
    files["expected"] = expected;
    files["background"] = serde_json::json!({"bytes": 1u64 << 30, "seconds": 3.5});
    serde_json::json!({"plan": "plan.toml", "files": [files]}).to_string()
}

/// A statistics file of two processes that used a file with these copies.
pub fn statistics(path: &str, copies: &[&str]) -> String {
    let copy = |name: &str| serde_json::json!({"name": name, "read_bytes": 7u64 << 20, "written_bytes": 1u64 << 20, "copied_bytes": 5u64 << 10});
    let kind = if copies.len() > 1 { "cache" } else { "replicas" };
    let copies: Vec<_> = std::iter::once("original").chain(copies.iter().copied()).map(copy).collect();
    let line = |rank: u32| {
        serde_json::json!({
            "path": path, "file": path, "pid": 100 + rank, "rank": rank, "kind": kind,
            "mode": if kind == "cache" { serde_json::json!("sla") } else { serde_json::Value::Null },
            "requests": 500, "critical": 450, "hits": 111, "partial_hits": 3, "evictions": 17, "evicted_bytes": 4096,
            "write_backs": 19, "fetches": 23, "copies": copies,
        })
    };
    format!("{}\n{}\n", line(0), line(1))
}
