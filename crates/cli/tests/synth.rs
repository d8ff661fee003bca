//! `stripewise synth` and `stripewise trace --summary`, run as a user runs them.

mod support;

use serde_json::Value;
use support::Place;

/// Writes a synthetic trace and returns the summary of its only file group.
fn group(arguments: &str) -> Value {
    let place = Place::new();
    place.json(&format!("synth {arguments} -o t --json"));
    let summary = place.json("trace --summary t --json");
    assert_eq!(summary["complete"], true);
    assert_eq!(summary["origin"], "synthetic");
    assert_eq!(summary["groups"].as_array().unwrap().len(), 1);
    summary["groups"][0].clone()
}

/// The error message contains the words, and nothing is written.
#[track_caller]
fn assert_refused(arguments: &str, words: &str) {
    let place = Place::new();
    let message = place.error(arguments);
    assert!(message.contains(words), "{message}");
    assert_eq!(std::fs::read_dir(place.directory()).unwrap().count(), 0);
}

#[test]
fn the_published_ior_run() {
    let group = group(
        "ior --procs 16 --procs-per-node 2 --transfer 512K --total 16G --access random --op read --shared",
    );
    assert_eq!(group["read"]["requests"], 32768);
    assert_eq!(group["read"]["bytes"], 16u64 << 30);
    assert_eq!(group["read"]["sizes"]["exact"]["524288"], 32768);
    assert_eq!(group["write"]["requests"], 0);
    assert_eq!(group["extent_bytes"], 16u64 << 30);
    assert_eq!(group["shared_files"], 1);
    let phases = group["phases"]["by_concurrency"].as_array().unwrap();
    assert_eq!(phases.len(), 1);
    assert_eq!((&phases[0]["processes"], &phases[0]["per_node"]), (&16.into(), &2.into()));
}

#[test]
fn strided_access_is_found_again() {
    let group =
        group("ior --procs 4 --transfer 64K --total 16M --access strided --op write --shared --file /d/x7");
    assert_eq!(group["pattern"], "/d/x<n>");
    assert_eq!(group["write"]["strides"]["262144"], 4 * (64 - 2));
}

#[test]
fn the_other_benchmarks() {
    let hpio = group("hpio --procs 32 --regions 1024 --region-size 64K");
    assert_eq!(hpio["write"]["bytes"], 2u64 << 30);
    assert_eq!(hpio["read"]["requests"], 32 * 1024);
    let tile = group(
        "tile --tiles-x 10 --tiles-y 10 --elements-x 8 --elements-y 8 --element-size 32K --collective --cb-nodes 5 \
         --op write",
    );
    assert_eq!(tile["write"]["bytes"], 200u64 << 20);
    assert_eq!(tile["phases"]["by_concurrency"][0]["processes"], 5);
    let btio = group("btio --class c --procs 16 --procs-per-node 2 --op write");
    assert_eq!(btio["write"]["bytes"], 6_802_444_800u64);
    assert_eq!(btio["phases"]["by_concurrency"][0]["processes"], 8);
    let simple = group("btio --class S --procs 4 --subtype simple");
    assert_eq!(simple["read"]["requests"], 4 * 2 * 6 * 6 * 12);
}

#[test]
fn impossible_parameters_are_refused_in_one_line() {
    assert_refused("synth ior --procs 4 --transfer 64K --block 100K -o t", "no multiple of transfer size");
    assert_refused("synth ior --procs 3 --transfer 1K --total 10K -o t", "--total 10240 is no multiple");
    assert_refused("synth ior --procs 3 --transfer 1K -o t", "how much?");
    assert_refused("synth ior --procs 3 --transfer 1K --block 1K --file x -o t", "absolute path");
    assert_refused("synth btio --class S --procs 5 -o t", "square number");
    assert_refused(
        "synth tile --tiles-x 0 --tiles-y 1 --elements-x 1 --elements-y 1 --element-size 1 -o t",
        "0 x 1",
    );
    assert_refused("synth ior --procs 1 --transfer 1K --block 1K -o none/t", "none/t");
    assert_refused("trace --summary t", "t: No such file or directory (os error 2)");
    assert_refused("trace --lib /dev/null -o none/t -- true", "none/t.spool cannot be made");
    assert_refused("trace --merge none -o t", "none");
    assert_refused("trace -o t", "nothing to do");
    assert_refused("trace -- true", "where to?");
}

#[test]
fn a_spool_of_nothing_merges_to_an_empty_trace() {
    let place = Place::new();
    std::fs::create_dir(place.path("s")).unwrap();
    let summary = place.json("trace --merge s -o t --json");
    assert_eq!((&summary["calls"], &summary["complete"]), (&0.into(), &true.into()));
    assert!(place.text("trace --summary t").contains("calls    0 of 0 process(es)"));
}
