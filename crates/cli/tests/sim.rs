//! `stripewise sim`, run as a user runs it.

mod support;

use serde_json::Value;
use support::Place;

const CLUSTER: &str = r#"
[network]
establish_s = 1e-4
per_byte_s = 1e-8
[class.hdd]
read.random = { startup_s = 3e-3, per_byte_s = 1e-8 }
read.sequential = { startup_s = 1e-3, per_byte_s = 1e-8 }
write.random = { startup_s = 3e-3, per_byte_s = 1e-8 }
write.sequential = { startup_s = 1e-3, per_byte_s = 1e-8 }
[class.ssd]
read.random = { startup_s = 5e-5, per_byte_s = 2.5e-9 }
read.sequential = { startup_s = 5e-5, per_byte_s = 2.5e-9 }
write.random = { startup_s = 5e-5, per_byte_s = 2.5e-9 }
write.sequential = { startup_s = 5e-5, per_byte_s = 2.5e-9 }
[[tier]]
name = "hdd"
class = "hdd"
driver = "dirs"
servers = ["/s/h0", "/s/h1", "/s/h2", "/s/h3"]
capacity_per_server = "1T"
[[tier]]
name = "ssd"
class = "ssd"
driver = "dirs"
servers = ["/s/s0", "/s/s1"]
capacity_per_server = "1G"
"#;

fn place() -> Place {
    let place = Place::new();
    place.write("cluster.toml", CLUSTER);
    place.run(
        "synth ior --procs 4 --transfer 64K --total 16M --access random --op read --shared --file /d/f -o t",
    );
    place
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

#[test]
fn the_best_candidates_are_simulated() {
    let place = place();
    let said = place.json("sim t --network --json");
    let plans = said["plans"].as_array().unwrap();
    assert_eq!((plans.len(), &said["requests"], &said["procs"]), (8, &256.into(), &4.into()));
    for plan in plans {
        let run = &plan["runs"][0];
        assert_eq!((&run["requests"], &run["bytes"]), (&256.into(), &(16u64 << 20).into()));
        let servers = run["servers"].as_array().unwrap();
        assert_eq!(servers.iter().map(|server| server["bytes"].as_u64().unwrap()).sum::<u64>(), 16 << 20);
        // The planner replays a sample of the same requests and expects about the same time.
        let ratio = number(&run["elapsed_s"]) / number(&plan["expected_s"]);
        assert!((0.8..1.25).contains(&ratio), "{ratio} {}", plan["plan"]);
    }
    let table = place.text("sim t --top 2");
    assert_eq!(table.lines().count(), 4, "{table}");
    assert_eq!(table, place.text("sim t --top 2"), "the same again");
}

#[test]
fn a_plan_the_network_and_a_second_run() {
    let place = place();
    place.run("plan t --scheme 1-DH --min-gain none -o one.toml");
    let elapsed_s = |words: &str| {
        number(&place.json(&format!("sim t -p one.toml --json {words}"))["plans"][0]["runs"][0]["elapsed_s"])
    };
    // At least, every byte passes the node; at most, all connections are made one after the other.
    let (without, with) = (elapsed_s(""), elapsed_s("--network"));
    assert!(with > without && with < without + 256.0 * 1e-4 + (16 << 20) as f64 * 1e-8, "{without} {with}");
    place.run("plan t --scheme cache --min-gain none -o cache.toml");
    let said = place.json("sim t -p cache.toml --runs 2 --settle --json");
    let runs = said["plans"][0]["runs"].as_array().unwrap();
    assert_eq!(runs[0]["counters"]["hits"], 0);
    assert_eq!(runs[1]["counters"]["hits"], 256);
    assert!(number(&runs[1]["elapsed_s"]) < number(&runs[0]["elapsed_s"]) / 2.0);
}

#[test]
fn what_cannot_be_simulated_is_said() {
    let place = place();
    place.run("synth ior --procs 1 --transfer 64K --total 1M --shared --file /other -o other");
    place.run("plan t --min-gain none -o one.toml");
    for (words, said) in [
        ("sim other -p one.toml", "no rule of the plan places it"),
        ("sim missing -p one.toml", "missing"),
        ("sim t -p nothing.toml", "nothing.toml cannot be read"),
        ("sim cluster.toml", "is not a trace"),
    ] {
        let message = place.error(words);
        assert!(message.contains(said), "{message}");
    }
}
