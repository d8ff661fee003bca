//! Renders pages from records made up for the tests.

use stripewise_report::Machine;

use super::*;
use crate::claim::{Claim, Figure, Measure, Paper};
use crate::record::{Labels, Place, Record};

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

fn experiment() -> Experiment {
    Experiment {
        id: "P3",
        paper: Paper::Psa,
        title: "IOR, request sizes <of PSA>".into(),
        setting: "16 processes | 16 GB".into(),
        claimed: "<120K,8K>: +69 % r".into(),
        explanation: "",
        schemes: ["DEF", "PA", "PSA"].map(str::to_owned).to_vec(),
        claims: vec![
            Claim {
                what: "reads over DEF".into(),
                labels: labels(&[("op", "read")]),
                measure: Measure::Gain { scheme: "PSA".into(), over: "DEF".into() },
                claimed: (0.69, 0.69),
            },
            Claim {
                what: "up to, over PA".into(),
                labels: labels(&[]),
                measure: Measure::LargestGain { scheme: "PSA".into(), over: "PA".into() },
                claimed: (0.43, 0.43),
            },
        ],
        figures: vec![Figure {
            title: "Reads".into(),
            labels: labels(&[("op", "read")]),
            x: ("size".into(), "bytes of a request".into()),
        }],
        cells: |_| Vec::new(),
    }
}

fn document(place: Place, times: &[(&str, &str, f64)]) -> Document {
    let record = |(size, scheme, seconds): &(&str, &str, f64)| Record {
        experiment: "P3".into(),
        place,
        labels: labels(&[("op", "read"), ("size", size)]),
        scheme: (*scheme).to_owned(),
        parameters: String::new(),
        seconds: vec![*seconds, seconds * 1.1],
        bytes: 1 << 30,
        verified: (place != Place::Simulated).then_some(true),
        failed: None,
        layout: "<120K,8K>".into(),
        details: [].into(),
    };
    Document {
        date: "2026-11-21T14:00:00Z".into(),
        command: "stripewise-bench evaluate all".into(),
        machine: Machine { cpu: "a cpu".into(), cores: 2, ..Machine::default() },
        records: times.iter().map(record).collect(),
    }
}

const TIMES: &[(&str, &str, f64)] = &[
    ("1M", "DEF", 8.0),
    ("1M", "PA", 6.0),
    ("1M", "PSA", 5.0),
    ("128K", "DEF", 9.0),
    ("128K", "PA", 7.0),
    ("128K", "PSA", 5.0),
];

fn pages() -> Pages {
    let documents = [document(Place::Emulated, &TIMES[..3]), document(Place::Simulated, TIMES)];
    render(&[experiment()], &documents)
}

#[test]
fn pages_say_what_was_claimed_and_found() {
    let page = pages().markdown.replace('\u{a0}', " ");
    // (8 + 9) / (5 + 5) - 1, and 7 / 5 - 1.
    for part in ["✓ +70 %", "✓ +40 %", "+69 %", "op read, size 128K", "PSA over PA", "16 processes", "verified"]
    {
        assert!(page.contains(part), "{part} in {page}");
    }
    assert!(page.contains("agreement here flatters"));
    // No table row is broken, and no stripe pair is a tag.
    assert!(!page.contains("<120K") && !page.contains("<of"), "{page}");
    assert!(page.contains("simulated: holds; emulated servers: holds in part (1 of 2)"), "{page}");
}

#[test]
fn the_page_says_in_which_cells_the_joint_plan_is_too_slow() {
    use crate::cell::{AUTO, FASTEST};
    let times = [("1M", FASTEST, 4.0), ("1M", AUTO, 4.04), ("128K", FASTEST, 5.0), ("128K", AUTO, 6.0)];
    let documents = [document(Place::Simulated, TIMES), document(Place::Simulated, &times)];
    let [mut all, more] = documents;
    all.records.extend(more.records);
    let page = render(&[experiment()], &[all]).markdown.replace('\u{a0}', " ");
    assert!(page.contains("in 1 of 2 cells the plan is more than 2 % slower"), "{page}");
    assert!(page.contains("+20 % ✗") && page.contains("| +1 % |"), "{page}");
    assert!(page.contains("Simulated: 2 cells, 6 runs"), "the paper compared three schemes: {page}");
    // (8 + 9) / (4.04 + 6) - 1.
    assert!(page.contains("| +69.3 % |"), "{page}");
}

#[test]
fn every_line_of_a_table_has_all_columns() {
    let mut columns = None;
    for line in pages().markdown.lines() {
        let count = line.starts_with('|').then(|| line.replace("\\|", "").matches('|').count());
        if let (Some(before), Some(now)) = (columns, count) {
            assert_eq!(before, now, "{line}");
        }
        columns = count;
    }
}

#[test]
fn drawings_are_well_formed_and_linked() {
    let pages = pages();
    assert_eq!(pages.drawings.len(), 1);
    let (name, drawing) = &pages.drawings[0];
    assert!(pages.markdown.contains(&format!("](evaluation/{name})")));
    let drawing = roxmltree::Document::parse(drawing).unwrap();
    let texts: Vec<&str> = drawing.descendants().filter_map(|node| node.text()).collect();
    for text in ["Reads", "PSA", "simulated, MiB/s", "emulated servers, MiB/s", "128K", "bytes of a request"] {
        assert!(texts.contains(&text), "{text} in {texts:?}");
    }
    // Three schemes at two sizes in the simulator, and at one size on emulated servers.
    let titled = drawing.descendants().filter(|node| node.has_tag_name("title")).count();
    assert_eq!(titled, 9);
}

#[test]
fn the_same_records_give_the_same_bytes_and_none_give_pages_too() {
    assert_eq!(pages(), pages());
    let none = render(&[experiment()], &[]);
    assert!(none.markdown.contains("Nothing was run yet") && none.markdown.contains("not run"));
    assert_eq!(none.drawings, []);
}

/// The values differ by a factor of a hundred, so a bar of the least would be invisible.
#[test]
fn far_apart_values_are_lines_on_an_axis_that_says_so() {
    let mut far = document(Place::Simulated, TIMES);
    far.records[0].seconds = vec![900.0];
    let drawing = &render(&[experiment()], &[far]).drawings[0].1;
    assert!(drawing.contains("simulated, MiB/s, logarithmic") && drawing.contains("<line class=\"k1 d1\""));
    let near = &pages().drawings[0].1;
    assert!(!near.contains("logarithmic") && !near.contains("<line class=\"k"));
}

/// Sums over different cells are not comparable, so a scheme that failed in one cell has no bar
/// there.
#[test]
fn a_scheme_that_failed_in_a_cell_is_not_drawn() {
    let mut all = document(Place::Simulated, TIMES);
    for record in &mut all.records {
        record.labels.insert("procs".into(), "8".into());
    }
    let mut more = all.records.clone();
    more.iter_mut().for_each(|record| drop(record.labels.insert("procs".into(), "16".into())));
    more[1].failed = Some("no space".into());
    all.records.extend(more);
    let pages = render(&[experiment()], &[all]);
    let (page, drawing) = (&pages.markdown, &pages.drawings[0].1);
    assert!(page.contains("1 of 12 runs failed, first PA") && page.contains("no space"));
    assert!(drawing.contains("<title>PSA: 195 MiB/s</title>"), "8 and 16 processes at once");
    // PA has a bar at 128K, but none at 1M, where one of its two cells failed.
    assert_eq!(drawing.matches("<title>PA: ").count(), 1);
}

#[test]
fn only_drawings_have_names_of_drawings() {
    assert!(is_drawing(&pages().drawings[0].0));
    for other in
        ["logo.svg", "C1-.svg", "C-1.svg", "c1-1.svg", "C1-1.png", "-1.svg", "C1-1.svg.svg", "Ü1-1.svg"]
    {
        assert!(!is_drawing(other), "{other}");
    }
}
