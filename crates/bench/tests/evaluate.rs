//! `stripewise-bench evaluate`: the list of experiments, simulated runs, and continuing after an
//! interruption.

#[path = "../../cli/tests/support/mod.rs"]
mod support;

use stripewise_evaluate::{Document, Record};
use support::Place;

const C4: [&str; 6] = ["evaluate", "C4", "--simulated", "--quick", "--dir", "found"];

fn records(place: &Place) -> Vec<Record> {
    let text = place.read("found/simulated.json");
    let document = Document::parse(&text, "simulated.json", stripewise_evaluate::Place::Simulated).unwrap();
    assert_eq!(document.command, "stripewise-bench evaluate C4 --simulated --quick");
    document.records
}

#[test]
fn all_experiments_are_listed_with_their_sizes() {
    let place = Place::new();
    let listed = place.json("evaluate --list --json");
    let ids: Vec<&str> = listed.as_array().unwrap().iter().map(|e| e["id"].as_str().unwrap()).collect();
    let papers = [
        "C1", "C2", "C3", "C4", "P1", "P2", "P3", "P4", "P5", "P6", "P7", "S1", "S2", "S3", "S4", "S5", "S6",
        "S7",
    ];
    assert_eq!(ids[..papers.len()], papers);
    for experiment in listed.as_array().unwrap() {
        // Experiments that are not from the papers may be simulated only.
        let measured = papers.contains(&experiment["id"].as_str().unwrap());
        for place in ["simulated", "emulated"].into_iter().take(if measured { 2 } else { 1 }) {
            let sizes = experiment["places"].as_array().unwrap();
            let size = sizes.iter().find(|size| size["place"] == place).unwrap();
            assert!(size["runs"].as_u64() > size["cells"].as_u64(), "{}: {size}", experiment["id"]);
        }
        assert!(!experiment["claimed"].as_str().unwrap().is_empty(), "{}", experiment["id"]);
    }
    assert!(place.text("evaluate c2 --list").starts_with("C2  "));
    assert!(!place.path("stripewise-evaluation").exists());
}

#[test]
fn simulated_runs_are_kept_and_not_made_again() {
    let place = Place::new();
    place.run(&C4);
    let all = records(&place);
    assert!(all.len() > 20);
    for record in &all {
        assert_eq!(record.experiment, "C4");
        assert!(record.seconds[0] > 0.0 && record.failed.is_none(), "{record:?}");
        assert!(record.details["cil_s"] > 0.0 && record.details["elapsed_s"] > 0.0, "{record:?}");
    }

    // The store was interrupted in the middle of a line, and has a record of another version of the
    // experiment.
    let lines = place.read("found/simulated.jsonl");
    let mut kept: Vec<String> = lines.lines().take(4).map(str::to_owned).collect();
    kept[0] = kept[0].replace("\"parameters\":\"", "\"parameters\":\"other ");
    kept[1] = kept[1].replace("\"seconds\":[", "\"seconds\":[1234.5,");
    place.write("found/simulated.jsonl", &format!("{}\n{}", kept.join("\n"), &lines[..40]));
    let output = place.output(&C4);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("torn") && said.contains(&format!("{} of {} runs", all.len() - 3, all.len())),
        "{said}"
    );
    let again = records(&place);
    assert_eq!(again.len(), all.len());
    let changed = again.iter().zip(&all).filter(|(again, before)| again != before).count();
    assert_eq!(changed, 1, "what was there is taken as it is, the rest is simulated to the same bits");

    place.run([&C4[..], &["--again", "--quiet"]].concat().as_slice());
    assert_eq!(records(&place), all);
}

#[test]
fn wrong_names_and_files_are_refused() {
    let place = Place::new();
    assert!(place.error("evaluate C1 C9").starts_with("there is no experiment \"C9\"; there are C1, C2"));
    std::fs::create_dir(place.path("found")).unwrap();
    place.write("found/simulated.jsonl", "{\n");
    let said = place.error([&C4[..], &["--quiet"]].concat().as_slice());
    assert!(said.contains("simulated.jsonl line 1: not a record"), "{said}");
    place.write("file", "");
    assert!(place.error("evaluate C4 --simulated --dir file/below").contains("file/below"));
}
