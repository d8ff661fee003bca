//! `results.json`: a written file is read back, and an invalid one is rejected with one clear line.

mod common;

use common::results;
use proptest::prelude::*;
use stripewise_report::{Candidate, Results};

#[test]
fn what_is_written_is_read_back() {
    let results = results();
    assert_eq!(Results::parse(&results.to_json().unwrap(), "r.json"), Ok(results));
}

#[test]
fn optional_keys_may_be_missing() {
    let mut json: serde_json::Value = serde_json::from_str(&results().to_json().unwrap()).unwrap();
    let workload = json["workloads"][0].as_object_mut().unwrap();
    for key in ["trace_incomplete", "trace", "plan"] {
        workload.remove(key);
    }
    let candidate = workload["candidates"][0].as_object_mut().unwrap();
    for key in ["predicted_s", "elapsed_s", "measured_s", "verified"] {
        candidate.remove(key);
    }
    let read = Results::parse(&json.to_string(), "r.json").unwrap();
    let candidate = &read.workloads[0].candidates[0];
    assert_eq!((candidate.predicted_s, candidate.median_s(), candidate.verified), (None, None, None));
}

/// Changes the JSON of valid results, and returns the parser's error.
#[track_caller]
fn refused(change: impl FnOnce(&mut serde_json::Value)) -> String {
    let mut json: serde_json::Value = serde_json::from_str(&results().to_json().unwrap()).unwrap();
    change(&mut json);
    let error = Results::parse(&json.to_string(), "r.json").unwrap_err().to_string();
    assert!(error.starts_with("r.json: ") && !error.contains('\n'), "{error}");
    error
}

#[test]
fn errors_name_key_and_value() {
    assert!(refused(|j| j["version"] = 2.into()).contains("version = 2"));
    assert!(refused(|j| j["surprise"] = 1.into()).contains("surprise"));
    assert!(refused(|j| j["workloads"][0]["choice"] = "PSB".into()).contains("choice = \"PSB\""));
    assert!(refused(|j| j["workloads"][0]["present"] = "".into()).contains("present = \"\""));
    let name = refused(|j| j["workloads"][1]["name"] = j["workloads"][0]["name"].clone());
    assert!(name.contains("\"ior read 512K\" occurs twice"), "{name}");
    let time = refused(|j| j["workloads"][0]["candidates"][3]["measured_s"][0] = (-1.5).into());
    assert!(time.contains("candidate \"DEF\": measured_s = -1.5"), "{time}");
    assert!(refused(|j| *j = serde_json::json!({"tiers": []})).contains("no results file"));
    for text in ["", "{", "null", "\u{feff}{}"] {
        assert!(Results::parse(text, "r.json").is_err(), "{text:?}");
    }
}

#[test]
fn impossible_results_are_not_written() {
    let mut results = results();
    results.workloads[0].candidates[0].elapsed_s = Some(f64::NAN);
    assert!(results.to_json().unwrap_err().to_string().contains("elapsed_s = NaN"));
}

fn measured(times: &[f64]) -> Candidate {
    Candidate {
        measured_s: times.to_vec(),
        elapsed_s: Some(3.0),
        ..results().workloads.remove(0).candidates.remove(0)
    }
}

#[test]
fn derived_numbers() {
    assert_eq!(measured(&[5.0, 1.0, 2.0]).median_s(), Some(2.0));
    assert_eq!(measured(&[4.0, 1.0]).median_s(), Some(2.5));
    assert_eq!(measured(&[2.0]).relative_error(), Some(0.5));
    assert_eq!(measured(&[]).relative_error(), None);
    assert_eq!(measured(&[0.0]).relative_error(), None);
    let workload = &results().workloads[0];
    assert_eq!(workload.speed_up(), Some(2.21 / 1.27));
    let (best, behind) = workload.behind_best().unwrap();
    assert_eq!((best.name.as_str(), behind), ("PSA", 0.0));
}

proptest! {
    #[test]
    fn damaged_files_never_panic(cut in 0usize..6000, place in 0usize..6000, byte: u8) {
        let mut bytes = results().to_json().unwrap().into_bytes();
        bytes.truncate(cut.max(1));
        let place = place % bytes.len();
        bytes[place] = byte;
        if let Ok(read) = Results::parse(&String::from_utf8_lossy(&bytes), "r.json") {
            prop_assert_eq!(read.check(), Ok(()));
        }
    }

    #[test]
    fn any_text_never_panics(text in "\\PC{0,60}") {
        prop_assert!(Results::parse(&text, "r.json").is_err());
    }
}
