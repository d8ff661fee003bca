//! Statistics files: lines are added up, and invalid ones are rejected with one clear line.

use proptest::prelude::*;
use serde_json::{Value, json};
use stripewise_cluster::{CacheMode, CopiesKind};
use stripewise_report::{FileStatistics, Statistics};

fn line(file: &str, pid: u64) -> Value {
    let copy = |name: &str| json!({"name": name, "read_bytes": 100, "written_bytes": 20, "copied_bytes": 3});
    json!({
        "path": "/data/a", "file": file, "pid": pid, "rank": null, "kind": "cache", "mode": "sla", "requests": 12,
        "critical": 11, "hits": 10, "partial_hits": 9, "evictions": 8, "evicted_bytes": 7, "write_backs": 6, "fetches": 5,
        "copies": [copy("original"), copy("1-DH")],
    })
}

fn read(lines: &[Value]) -> Result<Vec<FileStatistics>, String> {
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut statistics = Statistics::default();
    statistics.read(&text, "s.jsonl").map_err(|error| error.to_string())?;
    Ok(statistics.files)
}

#[test]
fn lines_of_a_file_are_added_up() {
    let mut again = line("f", 1);
    again["path"] = "/data/other-name".into();
    let files = read(&[line("f", 1), line("g", 1), again, line("f", 2)]).unwrap();
    assert_eq!(files.len(), 2, "by id: a file may have several names");
    let (f, g) = (&files[0], &files[1]);
    assert_eq!((f.line.path.as_str(), f.line.file.as_str(), f.line.kind), ("/data/a", "f", CopiesKind::Cache));
    assert_eq!((g.line.path.as_str(), g.line.file.as_str()), ("/data/a", "g"), "another file of that name");
    assert_eq!((f.processes.len(), g.processes.len()), (2, 1), "a process may add several lines");
    assert_eq!(f.line.mode, Some(CacheMode::Sla));
    let counts = &f.line.counts;
    assert_eq!([counts.requests, counts.critical, counts.hits, counts.partial_hits], [36, 33, 30, 27]);
    assert_eq!([counts.evictions, counts.evicted_bytes, counts.write_backs, counts.fetches], [24, 21, 18, 15]);
    let copy = &counts.copies[1];
    assert_eq!((copy.read_bytes, copy.written_bytes, copy.copied_bytes, copy.bytes()), (300, 60, 9, 360));
    assert_eq!((counts.bytes(), g.line.counts.bytes()), (720, 240));
}

#[test]
fn processes_of_different_nodes_are_different() {
    let mut statistics = Statistics::default();
    for name in ["node0", "node1"] {
        statistics.read(&line("f", 1).to_string(), name).unwrap();
    }
    assert_eq!(statistics.files[0].processes.len(), 2);
    assert_eq!(statistics.files[0].line.counts.requests, 24);
}

#[test]
fn sums_that_are_too_large_stay_the_largest() {
    let mut large = line("f", 1);
    large["requests"] = u64::MAX.into();
    large["copies"][0]["read_bytes"] = u64::MAX.into();
    let counts = &read(&[large.clone(), large]).unwrap()[0].line.counts;
    assert_eq!((counts.requests, counts.bytes()), (u64::MAX, u64::MAX));
}

#[test]
fn keys_that_are_not_known_and_empty_lines_are_skipped() {
    let mut newer = line("f", 1);
    newer["surprise"] = json!({"a": 1});
    newer["copies"][0]["surprise"] = json!(null);
    newer.as_object_mut().unwrap().remove("mode");
    let mut statistics = Statistics::default();
    statistics.read(&format!("\n{newer}\r\n\n  \n{newer}"), "s.jsonl").unwrap();
    assert_eq!((statistics.files[0].line.counts.requests, statistics.files[0].line.mode), (24, None));
    assert_eq!(read(&[]), Ok(vec![]));
}

#[test]
fn the_example_of_the_documentation_is_read() {
    let page = include_str!("../../../docs/formats/statistics.md");
    let example = page.lines().find(|line| line.starts_with("{\"path\"")).expect("an example");
    let mut statistics = Statistics::default();
    statistics.read(example, "statistics.md").unwrap();
    assert_eq!(statistics.files[0].line.counts.requests, 4096);
}

/// Changes the second line of a file, and returns the error.
#[track_caller]
fn refused(change: impl FnOnce(&mut Value)) -> String {
    let mut second = line("f", 2);
    change(&mut second);
    let error = read(&[line("f", 1), second]).unwrap_err();
    assert!(error.starts_with("s.jsonl, line 2") && !error.contains('\n'), "{error}");
    assert!(error.ends_with("a statistics file is what `stripewise run --statistics` writes"), "{error}");
    error
}

#[test]
fn errors_name_file_line_and_problem() {
    let says = |error: String, problem: &str| {
        assert!(error.starts_with(&format!("s.jsonl, line 2: {problem}")), "{error}");
    };
    says(refused(|l| l["hits"] = "many".into()), "invalid type: string \"many\", expected u64");
    says(refused(|l| l["hits"] = (-1).into()), "invalid value: integer `-1`, expected u64");
    says(refused(|l| l["fetches"] = 1.5.into()), "invalid type: floating point `1.5`, expected u64");
    says(refused(|l| l["path"] = "".into()), "an empty \"path\"");
    says(refused(|l| l["copies"][1]["name"] = "".into()), "an empty \"path\"");
    says(refused(|l| l["kind"] = "raid".into()), "unknown variant `raid`, expected `replicas` or `cache`");
    says(refused(|l| l["mode"] = "s\nw".into()), "unknown variant `s w`, expected one of `sla`, `sca`");
    says(refused(|l| l["rank"] = "first".into()), "invalid type: string \"first\", expected u32");
    says(refused(|l| l["copies"] = json!([])), "\"copies\": has 0 copies, must be 1 to 8");
    says(refused(|l| l["copies"] = json!({})), "invalid type: map, expected a sequence");
    says(refused(|l| l["copies"][1] = json!(7)), "invalid type: integer `7`, expected struct CopyCounts");
    says(refused(|l| l["copies"][1]["read_bytes"] = json!([1])), "invalid type: sequence, expected u64");
    says(
        refused(|l| l["copies"][1]["name"] = "1-DV".into()),
        "\"copies\": are original, 1-DV here and original, 1-DH",
    );
    for key in ["path", "file", "pid", "rank", "kind", "requests", "critical", "partial_hits", "copies"] {
        let without = refused(|l| _ = l.as_object_mut().unwrap().remove(key));
        says(without, &format!("missing field `{key}` at column "));
    }
    says(refused(|l| *l = json!([1])), "invalid ");
    let mut cut = Statistics::default();
    let error = cut.read(&line("f", 1).to_string()[..90], "s.jsonl").unwrap_err().to_string();
    assert!(error.starts_with("s.jsonl, line 1: EOF while parsing"), "{error}");
}

/// Either an error line names the file, or the text is read.
fn try_read(text: &str) {
    let mut statistics = Statistics::default();
    if let Err(error) = statistics.read(text, "s.jsonl") {
        let error = error.to_string();
        assert!(error.starts_with("s.jsonl, line ") && !error.contains('\n'), "{error}");
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*|(.|\n)*") {
        try_read(&text);
    }

    /// Valid lines with some characters changed, removed or inserted.
    #[test]
    fn damaged_lines_are_read_or_refused(
        damages in prop::collection::vec((any::<prop::sample::Index>(), 0..3u8, any::<char>()), 1..6),
    ) {
        let text = format!("{}\n{}\n", line("f", 1), line("f", 2));
        let mut text: Vec<char> = text.chars().collect();
        for (place, kind, with) in damages {
            let at = place.index(text.len());
            match kind {
                0 => text[at] = with,
                1 => _ = text.remove(at),
                _ => text.insert(at, with),
            }
        }
        try_read(&text.into_iter().collect::<String>());
    }

    /// A valid line with one value replaced by an arbitrary one.
    #[test]
    fn other_values_are_read_or_refused(key in 0..15usize, number in any::<f64>(), text in ".{0,60}", kind in 0..5u8) {
        let mut changed = line("f", 1);
        let name = changed.as_object().unwrap().keys().nth(key).unwrap().clone();
        changed[&name] = match kind {
            0 => json!(number),
            1 => json!(text),
            2 => json!(null),
            3 => json!([text, number]),
            _ => json!({ "name": text }),
        };
        if let Err(error) = read(&[changed]) {
            prop_assert!(error.starts_with("s.jsonl, line 1: "), "{}", error);
            prop_assert!(!error.contains('\n'));
        }
    }
}
