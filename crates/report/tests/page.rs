//! The page as a whole is well-formed, self-contained, escaped, complete, and deterministic.

mod common;

use common::{Sample, plan, request, results, write_trace};
use roxmltree::{Document, Node, ParsingOptions};
use stripewise_plan::{Demand, ServerLoad, SpaceCurve, SpacePoint};
use stripewise_report::calls::{SLOTS, Spent, Work};
use stripewise_report::units::Clock;
use stripewise_report::{Activity, Collector, PlanView, Predictions, Report, Results, missing_parts, render};
use stripewise_trace::{Meta, Op, Summary, Trace};
use tempfile::TempDir;

fn report<'a>(activities: &'a [Activity], plans: &'a [PlanView], results: Option<&'a Results>) -> Report<'a> {
    let date = "2026-11-21T02:00:00Z";
    Report {
        date,
        command: "stripewise report",
        version: "1.2.3",
        activities,
        before: None,
        plans,
        results,
        statistics: &[],
    }
}

/// A page with all sections.
fn full_page(sample: &Sample) -> String {
    let directory = TempDir::new().unwrap();
    let activities = [sample.activity(directory.path())];
    let plans = [PlanView::new("plan.toml", plan(), &activities)];
    render(&report(&activities, &plans, Some(&results())))
}

/// Parsing fails if a tag is not closed, an attribute is not quoted or a character is not escaped.
fn parse(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).unwrap_or_else(|error| panic!("{error}"))
}

fn text(node: Node<'_, '_>) -> String {
    node.descendants().filter_map(|n| if n.is_text() { n.text() } else { None }).collect()
}

fn elements<'a, 'i>(document: &'a Document<'i>, tag: &'a str) -> impl Iterator<Item = Node<'a, 'i>> + 'a {
    document.descendants().filter(move |node| node.has_tag_name(tag))
}

fn has_class(node: &Node<'_, '_>, class: &str) -> bool {
    node.attribute("class").is_some_and(|classes| classes.split(' ').any(|c| c == class))
}

fn notices(document: &Document<'_>) -> Vec<String> {
    elements(document, "div").filter(|node| has_class(node, "notice")).map(text).collect()
}

#[test]
fn every_page_is_well_formed() {
    let directory = TempDir::new().unwrap();
    let activities = [Sample::default().activity(directory.path())];
    let plans = [PlanView::new("plan.toml", plan(), &activities)];
    let results = results();
    for activities in [&activities[..], &[]] {
        for plans in [&plans[..], &[]] {
            for results in [Some(&results), None] {
                parse(&render(&report(activities, plans, results)));
            }
        }
    }
}

#[test]
fn the_same_input_gives_the_same_page() {
    assert_eq!(full_page(&Sample::default()), full_page(&Sample::default()));
}

#[test]
fn the_page_needs_nothing_else() {
    let html = full_page(&Sample::default());
    for link in ["http:", "https:", "url(", "@import", "src=", "<link", "//cdn"] {
        assert!(!html.contains(link), "{link}");
    }
    let document = parse(&html);
    for node in elements(&document, "a") {
        let target = node.attribute("href").unwrap().strip_prefix('#').expect("links stay on the page");
        assert!(document.descendants().any(|n| n.attribute("id") == Some(target)), "{target}");
    }
}

#[test]
fn several_items_are_linked() {
    let directory = TempDir::new().unwrap();
    let activities = [Sample::default().activity(directory.path())];
    let views = ["a.toml", "b.toml"].map(|name| PlanView::new(name, plan(), &activities));
    let mut results = results();
    results.workloads[1].plan = Some("plans/b.toml".into());
    results.workloads[0].plan = Some("gone.toml".into());
    let html = render(&report(&activities, &views, Some(&results)));
    let document = parse(&html);
    let links: Vec<(String, &str)> =
        elements(&document, "a").map(|node| (text(node), node.attribute("href").unwrap())).collect();
    for (name, target) in [
        ("a.toml", "#plan-0"),
        ("b.toml", "#plan-1"),
        ("plans/b.toml", "#plan-1"),
        ("ior write 64K", "#workload-1"),
    ] {
        assert!(links.contains(&(name.to_owned(), target)), "{name} in {links:?}");
        assert!(document.descendants().any(|node| node.attribute("id") == Some(&target[1..])));
    }
    assert!(!links.iter().any(|(name, _)| name == "gone.toml" || name == "sample.trace"));
    assert_eq!(html.matches("<p class=\"caption\">Storage").count(), 1, "the same storage once");
}

#[test]
fn parts_without_input_say_how_to_get_them() {
    let empty = report(&[], &[], None);
    let html = render(&empty);
    let document = parse(&html);
    let absent: Vec<String> =
        elements(&document, "p").filter(|node| has_class(node, "absent")).map(text).collect();
    assert_eq!(absent.len(), 3);
    for flag in ["-t T", "-p plan.toml", "-r results.json"] {
        assert!(absent.iter().any(|sentence| sentence.contains(flag)), "{flag}");
    }
    assert_eq!(missing_parts(&empty).len(), 3);
    assert_eq!(elements(&document, "table").count(), 0);
    assert!(notices(&document).is_empty());
}

#[test]
fn empty_inputs_are_parts_too() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("empty.trace");
    write_trace(&path, Meta { origin: "recorded".into(), ..Meta::default() }, &[], &[], &[]);
    let activities = [common::gather(&path)];
    let mut plan = plan();
    plan.rules.clear();
    let plans = [PlanView::new("plan.toml", plan, &activities)];
    let results = Results { workloads: vec![], ..results() };
    let html = render(&report(&activities, &plans, Some(&results)));
    let all = text(parse(&html).root());
    assert!(all.contains("The trace has no calls"));
    assert!(all.contains("nothing was measured"));
}

#[test]
fn calls_without_bytes_draw_nothing_and_break_nothing() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t");
    let sample = Sample { ranks: 1, ..Sample::default() };
    let open = request(1, 0, Op::Open, 0, 0, 5, 0);
    write_trace(&path, Meta::default(), &sample.processes(), &sample.files(), &[open]);
    let activities = [common::gather(&path)];
    assert!(activities[0].lanes.is_empty());
    parse(&render(&report(&activities, &[], None)));
}

#[test]
fn the_time_of_calls_is_that_of_the_trace() {
    const MS: u64 = 1_000_000;
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t");
    let sample = Sample { ranks: 2, ..Sample::default() };
    let requests = [
        request(1, 0, Op::Open, 0, 0, 0, 3 * MS),
        request(1, 0, Op::Write, 0, 100, 10 * MS, 4 * MS),
        request(1, 1, Op::Stat, 0, 0, 20 * MS, MS),
        request(2, 0, Op::Sync, 0, 0, 90 * MS, 9 * MS),
        request(2, 0, Op::Close, 0, 0, 99 * MS, MS),
    ];
    write_trace(&path, Meta::default(), &sample.processes(), &sample.files(), &requests);
    let activities = [common::gather(&path)];
    let calls = &activities[0].calls;
    let spent = |group: usize| Work::ALL.map(|work| calls.of_group[group][work as usize]);
    let of = |calls, ms| Spent { calls, ns: ms * MS };
    assert_eq!(spent(0), [of(0, 0), of(1, 4), of(2, 4), of(1, 9), of(0, 0)]);
    assert_eq!(spent(1), [of(0, 0), of(0, 0), of(0, 0), of(0, 0), of(1, 1)]);
    let when: Vec<(usize, u64)> = (0..SLOTS)
        .map(|slot| (slot, Work::METADATA.iter().map(|&work| calls.over_time[slot][work as usize]).sum()))
        .filter(|&(_, calls)| calls > 0)
        .collect();
    assert_eq!(when, [(0, 1), (SLOTS / 5, 1), (SLOTS * 9 / 10, 1), (SLOTS * 99 / 100, 1)]);
    let html = render(&report(&activities, &[], None));
    let document = parse(&html);
    let clock = Clock::up_to(0.017);
    let [four, nine] = [4e-3, 9e-3].map(|seconds| clock.print(seconds));
    let name = format!(
        "write: {four} in 1\u{a0}call, open and close: {four} in 2\u{a0}calls, sync: {nine} in 1\u{a0}call"
    );
    let is_it = |node: &Node<'_, '_>| node.attribute("aria-label") == Some(&name);
    let bar = elements(&document, "svg").find(is_it).unwrap_or_else(|| panic!("{name}"));
    let width = |node: Node<'_, '_>| node.attribute("width")?.strip_suffix('%')?.parse::<f64>().ok();
    let first: Vec<f64> = bar.children().filter(|node| node.has_tag_name("rect")).filter_map(width).collect();
    // The longest bar is 74 % wide.
    let expected = [4.0, 4.0, 9.0].map(|ms| ms / 17.0 * 74.0);
    assert!(first.iter().zip(expected).all(|(got, wanted)| (got - wanted).abs() < 0.01), "{first:?}");
    assert_eq!(first.len(), 3);
}

#[test]
fn names_are_text_whatever_is_in_them() {
    const NAME: &str = "/d/<script>alert('1')</script>\"&amp;\u{1}\u{202e}\u{fffd}";
    let directory = TempDir::new().unwrap();
    let sample = Sample { shared_file: NAME, incomplete: vec!["<b>".into()], ..Sample::default() };
    let activities = [sample.activity(directory.path())];
    let mut plan = plan();
    plan.scheme = NAME.into();
    plan.rules[0].reason = NAME.into();
    plan.rules[0].pattern = NAME.into();
    let mut view = PlanView::new(NAME, plan, &activities);
    view.details[0].native = vec![stripewise_plan::Native {
        system: NAME.into(),
        commands: vec![NAME.into()],
        note: Some(NAME.into()),
    }];
    let mut results = results();
    let workload = &mut results.workloads[0];
    (workload.name, workload.command, workload.reason) = (NAME.into(), NAME.into(), NAME.into());
    workload.trace_incomplete = Some(NAME.into());
    workload.candidates[0].layout = NAME.into();
    results.machine.cpu = NAME.into();
    let html = render(&report(&activities, &[view], Some(&results)));
    let document = parse(&html);
    assert_eq!(elements(&document, "script").count(), 1, "only the page's own");
    assert!(!html.contains("<script>alert") && !html.contains("<b></b>"));
    let visible = NAME.replace('\u{1}', "\\u{1}").replace('\u{202e}', "\\u{202e}");
    let occurrences = text(document.root()).matches(&visible).count();
    // The text occurs in both cards of the file, the plan, the reason, the scheme, three native
    // commands, and six times in the results.
    assert!(occurrences >= 12, "{occurrences}");
}

/// The rows of a workload's table, as cells by column.
fn candidate_rows<'a>(document: &'a Document<'a>, workload: &str) -> Vec<Vec<Node<'a, 'a>>> {
    let card = elements(document, "div").find(|node| {
        has_class(node, "card")
            && node.children().any(|child| child.has_tag_name("h3") && text(child) == workload)
    });
    let body = card.unwrap().descendants().find(|node| node.has_tag_name("tbody")).unwrap();
    let rows = body.children().filter(Node::is_element);
    rows.map(|row| row.children().filter(Node::is_element).collect()).collect()
}

fn value(cell: Node<'_, '_>) -> Option<f64> {
    let data = cell.children().find(|node| node.has_tag_name("data"))?;
    data.attribute("value")?.parse().ok()
}

#[test]
fn every_number_of_the_table_is_that_of_the_input() {
    let results = results();
    let html = render(&report(&[], &[], Some(&results)));
    let document = parse(&html);
    for workload in &results.workloads {
        let rows = candidate_rows(&document, &workload.name);
        assert_eq!(rows.len(), workload.candidates.len());
        for (row, candidate) in rows.iter().zip(&workload.candidates) {
            assert!(text(row[0]).starts_with(&candidate.name));
            assert_eq!(value(row[1]), candidate.elapsed_s);
            assert_eq!(value(row[2]), candidate.median_s());
            assert_eq!(value(row[3]), Some(candidate.measured_s.len() as f64));
            assert_eq!(value(row[5]), candidate.relative_error());
            assert_eq!(value(row[7]), candidate.predicted_s);
            assert_eq!(text(row[9]), candidate.layout);
        }
        let chosen: Vec<String> =
            elements(&document, "tr").filter(|r| has_class(r, "chosen")).map(text).collect();
        assert!(chosen.iter().all(|row| row.starts_with("PSA") && row.contains("chosen")));
        assert_eq!(chosen.len(), results.workloads.len());
    }
}

#[test]
fn bars_are_as_long_as_their_numbers() {
    let results = results();
    let html = render(&report(&[], &[], Some(&results)));
    let document = parse(&html);
    let workload = &results.workloads[0];
    let bars: Vec<f64> = elements(&document, "svg")
        .filter(|node| has_class(node, "pair"))
        .take(workload.candidates.len())
        .map(|svg| {
            let bar = svg.children().find(|node| has_class(node, "expected")).unwrap();
            bar.attribute("width").unwrap().trim_end_matches('%').parse().unwrap()
        })
        .collect();
    for (bar, candidate) in bars.iter().zip(&workload.candidates) {
        let expected = bars[0] * candidate.elapsed_s.unwrap() / workload.candidates[0].elapsed_s.unwrap();
        assert!((bar - expected).abs() < 0.02, "{}: {bar} instead of {expected}", candidate.name);
    }
}

#[test]
fn what_nobody_may_miss_is_said_on_top() {
    let directory = TempDir::new().unwrap();
    let sample = Sample { incomplete: vec!["rank 3 was killed".into()], ..Sample::default() };
    let activities = [sample.activity(directory.path())];
    let mut results = results();
    results.workloads[0].trace_incomplete = Some("the disk was full".into());
    results.workloads[1].candidates[2].verified = Some(false);
    let html = render(&report(&activities, &[], Some(&results)));
    let notices = notices(&parse(&html)).join("\n");
    for what in
        ["Emulated devices", "hdd, ssd", "rank 3 was killed", "the disk was full", "Wrong bytes", "2-D g=2"]
    {
        assert!(notices.contains(what), "{what} in {notices}");
    }
    results.servers.iter_mut().for_each(|servers| servers.emulated = false);
    let html = render(&report(&[], &[], Some(&results)));
    assert!(!html.contains("Emulated devices"));
    // A page with only a plan has the notice, too.
    let plans = [PlanView::new("plan.toml", plan(), &[])];
    assert!(render(&report(&[], &plans, None)).contains("Emulated devices"));
}

#[test]
fn layouts_are_drawn_to_scale() {
    let directory = TempDir::new().unwrap();
    let activities = [Sample::default().activity(directory.path())];
    let plans = [PlanView::new("plan.toml", plan(), &activities)];
    assert_eq!(plans[0].details[0].file_bytes, Some(2 << 30));
    let html = render(&report(&[], &plans, None));
    let document = parse(&html);
    let strip = elements(&document, "svg").find(|node| has_class(node, "strip")).unwrap();
    let widths: Vec<&str> = strip.children().filter_map(|node| node.attribute("width")).collect();
    assert_eq!(widths, [["23.44%"; 4], ["1.56%"; 4]].concat());
    let servers: Vec<&str> =
        elements(&document, "svg").filter_map(|node| node.attribute("aria-label")).collect();
    for label in ["hdd/3: 496\u{a0}MiB", "ssd/0: 16\u{a0}MiB", "ssd/3: 1.953\u{a0}KiB"] {
        assert!(servers.contains(&label), "{label} in {servers:?}");
    }
}

const PREDICTIONS: &str = r#"{"plan": "plan.toml", "scheme": "auto",
    "joint": {"now_s": 9.5, "planned_s": 0.66, "bound_s": 0.65, "space": [
        {"tier": "hdd", "bytes": 4398046511104, "saves_s_per_byte": 0.0},
        {"tier": "ssd", "bytes": 25165824, "saves_s_per_byte": 1e-8}],
        "moving": {"bytes": 1048576, "unlimited_bytes": 33554432, "saves_s_per_byte": 1e-9}},
    "moves": {"files": 2, "bytes": 1048000},
    "files": [{
    "pattern": "/data/shared.dat", "name": "PSA", "gain": 0.4, "predicted_s": 2.5, "elapsed_s": 2.0, "regions": [],
    "present": {"name": "plain", "predicted_s": 4.5, "elapsed_s": 4.0, "regions": [
        {"start": 0, "end": null, "cycle": [{"target": "hdd/0", "bytes": 1073741824}]}]},
    "candidates": [
        {"scheme": "psa", "name": "PSA", "predicted_s": 2.5, "elapsed_s": 2.0, "regions": [
            {"start": 0, "end": 1048576, "cycle": [{"target": "hdd/0", "bytes": 65536}, {"target": "hdd/1", "bytes": 65536}]},
            {"start": 1048576, "end": null, "cycle": [{"target": "gone/0", "bytes": 1}]}]},
        {"scheme": "def", "name": "DEF", "predicted_s": 3.5, "elapsed_s": 3.0, "regions": []}]}]}"#;

#[test]
fn predictions_of_the_planner_are_shown_beside_its_choice() {
    let predictions = Predictions::parse(PREDICTIONS, "plan.json").unwrap();
    let mut view = PlanView::new("plan.toml", plan(), &[]);
    view.add_predictions(&predictions);
    let names: Vec<&str> = view.details[0].candidates.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["PSA", "DEF", "plain"], "the fastest first");
    assert_eq!(view.details[0].candidates[0].layout, "hdd/0-1:64K until 1M, then gone/0:1");
    assert!(view.details[1].candidates.is_empty());
    let html = render(&report(&[], &[view], None));
    let document = parse(&html);
    let rows: Vec<String> = elements(&document, "tr").map(text).collect();
    assert!(rows.iter().any(|row| row.starts_with("PSA chosen2.000")), "{rows:?}");
    assert!(rows.iter().any(|row| row.starts_with("plain present4.000")));
    for text in ["", "{}", "[1]", r#"{"plan": "p", "files": [{"pattern": "/x"}]}"#] {
        let error = Predictions::parse(text, "plan.json").unwrap_err().to_string();
        assert!(error.starts_with("plan.json: not the output of `stripewise plan --json"), "{error}");
    }
}

#[test]
fn the_page_opens_with_the_verdict() {
    let predictions = Predictions::parse(PREDICTIONS, "plan.json").unwrap();
    let mut view = PlanView::new("plan.toml", plan(), &[]);
    let html = render(&report(&[], &[view.clone()], None));
    assert!(!html.contains("Verdict"), "no times are known");
    view.add_predictions(&predictions);
    view.plan.rules[0].elapsed_s = 3.0;
    let html = render(&report(&[], &[view], None));
    let document = parse(&html);
    let titles: Vec<String> = elements(&document, "h2").map(text).collect();
    assert_eq!(titles[0], "Verdict");
    let verdict = elements(&document, "section").find(|node| node.attribute("id") == Some("verdict")).unwrap();
    let words = text(verdict);
    assert!(
        words.contains("All files: 9.5\u{a0}s expected now, 660\u{a0}ms planned: 93.1\u{a0}% less."),
        "{words}"
    );
    let rows: Vec<String> = verdict.descendants().filter(|node| node.has_tag_name("tr")).map(text).collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert_eq!(rows[1], "/data/shared.datPSA4\u{a0}s3\u{a0}s25\u{a0}%");
}

#[test]
fn the_verdict_promises_nothing_if_the_model_does_not_know_the_present_time() {
    let promise =
        r#"{"promise": {"model_s": 9.5, "traced_s": 2.0, "off": -0.79, "limit": 0.25, "saves": null}, "#;
    let predictions = Predictions::parse(&PREDICTIONS.replacen('{', promise, 1), "plan.json").unwrap();
    let mut view = PlanView::new("plan.toml", plan(), &[]);
    view.add_predictions(&predictions);
    let html = render(&report(&[], &[view], None));
    let document = parse(&html);
    let verdict = elements(&document, "section").find(|node| node.attribute("id") == Some("verdict")).unwrap();
    let words = text(verdict);
    assert!(words.contains("No promise: the model says 9.500 s") && !words.contains("expected now"), "{words}");
    let rows: Vec<String> = verdict.descendants().filter(|node| node.has_tag_name("tr")).map(text).collect();
    assert!(!rows[1].contains('%'), "{rows:?}");
}

#[test]
fn the_whole_workload_comes_first() {
    let predictions = Predictions::parse(PREDICTIONS, "plan.json").unwrap();
    let mut view = PlanView::new("plan.toml", plan(), &[]);
    view.add_predictions(&predictions);
    let html = render(&report(&[], &[view], None));
    let start = html.find("All files together").unwrap();
    let sentence = &html[start..start + html[start..].find("</p>").unwrap()];
    let expected = "All files together: 9.5\u{a0}s expected now, 660\u{a0}ms planned. No choice of changes worth making takes \
                    less than 650\u{a0}ms. Another 1\u{a0}MiB on ssd would save at most about 10.49\u{a0}ms. Moving is \
                    limited to 1\u{a0}MiB, and without a limit 32\u{a0}MiB would be moved; moving another 2\u{a0}MiB would \
                    save at most about 2.097\u{a0}ms.";
    assert_eq!(sentence, expected);
    let mut other = plan();
    other.rules.remove(0);
    let mut view = PlanView::new("plan.toml", other, &[]);
    view.add_predictions(&predictions);
    assert_eq!(view.joint, None, "it is another plan");
}

/// Elements `rect` with this class in the drawings of the plan's servers, by accessible name.
fn load_bars(html: &str) -> Vec<(String, Vec<f64>)> {
    let document = parse(html);
    let figure = elements(&document, "figure").find(|node| text(*node).contains("Load of each server"));
    let drawings = figure.unwrap().descendants().filter(|node| node.has_tag_name("svg"));
    let width = |node: Node<'_, '_>| {
        node.attribute("width").and_then(|width| width.strip_suffix('%')).map(|width| width.parse().unwrap())
    };
    let bars = |drawing: Node<'_, '_>| {
        let name = drawing.attribute("aria-label")?.to_owned();
        Some((name, drawing.children().filter(|node| node.has_tag_name("rect")).filter_map(width).collect()))
    };
    drawings.filter_map(bars).collect()
}

#[test]
fn the_load_of_each_server_is_drawn_now_and_planned() {
    let mut predictions = Predictions::parse(PREDICTIONS, "plan.json").unwrap();
    assert!(predictions.loads.is_empty(), "earlier versions did not write it");
    let demand = |mib: u32, busy_s| Demand { bytes: f64::from(mib << 20), busy_s };
    let load = |server: &str, now, planned| ServerLoad { server: server.into(), now, planned };
    predictions.loads = vec![
        load("hdd/0", demand(64, 8.0), demand(16, 2.0)),
        load("hdd/1", Demand::default(), demand(16, 2.0)),
        load("ssd/0", Demand::default(), demand(32, 0.0)),
    ];
    let page = |predictions: &Predictions| {
        let mut view = PlanView::new("plan.toml", plan(), &[]);
        view.add_predictions(predictions);
        render(&report(&[], &[view], None))
    };
    let html = page(&predictions);
    let [longest, quarter] = [74.0, 18.5];
    let expected = [
        ("hdd/0: now 8.000\u{a0}s, 64\u{a0}MiB, planned 2.000\u{a0}s, 16\u{a0}MiB", vec![longest, quarter]),
        ("hdd/1: now 0.000\u{a0}s, 0\u{a0}B, planned 2.000\u{a0}s, 16\u{a0}MiB", vec![quarter]),
        ("ssd/0: now 0.000\u{a0}s, 0\u{a0}B, planned 0.000\u{a0}s, 32\u{a0}MiB", vec![]),
    ];
    assert_eq!(load_bars(&html), expected.map(|(name, widths)| (name.to_owned(), widths)));
    assert!(html.contains("The busiest server works 3× as long as the mean now, 1.5× planned."));
    // Of a large cluster, each tier has two rows.
    predictions.loads = (0..30)
        .map(|index| load(&format!("hdd/{index}"), demand(1, 1.0), demand(index, 0.1 * f64::from(index))))
        .collect();
    let names: Vec<String> = load_bars(&page(&predictions)).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names.len(), 2);
    assert!(
        names[0].starts_with("hdd, the busiest of 30: now 1.000\u{a0}s, 1\u{a0}MiB, planned 2.900\u{a0}s"),
        "{names:?}"
    );
    assert!(
        names[1].starts_with("hdd, mean of 30: now 1.000\u{a0}s, 1\u{a0}MiB, planned 1.450\u{a0}s"),
        "{names:?}"
    );
}

#[test]
fn the_time_over_the_space_of_a_tier_is_drawn() {
    let mut predictions = Predictions::parse(PREDICTIONS, "plan.json").unwrap();
    let joint = predictions.joint.as_mut().unwrap();
    assert!(joint.curves.is_empty(), "earlier versions did not write it");
    let point = |mib: u64, planned_s, bound_s| SpacePoint { bytes: mib << 20, planned_s, bound_s };
    let points = vec![point(0, 9.0, 8.5), point(16, 0.7, 0.6), point(24, 0.66, 0.6), point(48, 0.5, 0.4)];
    joint.curves.push(SpaceCurve { tier: "ssd".into(), bytes: 24 << 20, points });
    let mut view = PlanView::new("plan.toml", plan(), &[]);
    view.add_predictions(&predictions);
    let html = render(&report(&[], &[view], None));
    let document = parse(&html);
    let plot = elements(&document, "svg")
        .find(|node| node.attribute("aria-label").is_some_and(|name| name.contains("over the space on ssd")))
        .unwrap();
    let of = |tag: &str, class: &str| {
        elements(&document, tag)
            .filter(|node| has_class(node, class) && node.ancestors().any(|it| it == plot))
            .count()
    };
    assert_eq!(
        [of("circle", "expected"), of("line", "expected"), of("line", "bound"), of("line", "now")],
        [4, 3, 3, 1]
    );
    let words = text(plot);
    for label in [
        "now 24\u{a0}MiB",
        "16\u{a0}MiB",
        "48\u{a0}MiB",
        "0\u{a0}B",
        "8\u{a0}s",
        "660\u{a0}ms with 24\u{a0}MiB",
    ] {
        assert!(words.contains(label), "{label} in {words}");
    }
}

#[test]
fn the_collector_counts_every_byte() {
    let directory = TempDir::new().unwrap();
    let sample = Sample::default();
    let activity = sample.activity(directory.path());
    assert_eq!(activity.lanes.len(), sample.ranks as usize, "the launcher moved nothing");
    let own = 20 * 100;
    for (rank, lane) in activity.lanes.iter().enumerate() {
        assert_eq!(lane.name, format!("rank {rank}"));
        assert_eq!(lane.bytes, [sample.blocks * sample.block, sample.blocks * sample.block + own]);
    }
    let moved: f64 = activity.moved.iter().flatten().sum();
    let total: u64 = activity.lanes.iter().flat_map(|lane| lane.bytes).sum();
    assert!((moved / total as f64 - 1.0).abs() < 1e-9, "{moved} of {total}");
    let patterns: Vec<&str> =
        activity.pictures.iter().map(|p| activity.summary.groups[p.group].pattern.as_str()).collect();
    assert_eq!(patterns, ["/data/shared.dat", "/data/log.<n>"]);
}

#[test]
fn requests_are_drawn_where_and_when_they_were() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t");
    let sample = Sample { ranks: 2, ..Sample::default() };
    // Rank 0 writes the first half of the file during the first half of the time; rank 1 then reads
    // the last quarter.
    let requests = [request(1, 0, Op::Write, 0, 512, 0, 500), request(2, 0, Op::Read, 768, 256, 500, 500)];
    write_trace(&path, Meta::default(), &sample.processes(), &sample.files(), &requests);
    let activity = common::gather(&path);
    let columns = activity.moved.len();
    let picture = &activity.pictures[0].by_offset;
    let rows = picture.rows();
    for (index, count) in picture.counts().into_iter().enumerate() {
        let (row, column) = (index / columns, index % columns);
        let written = row < rows / 2 && column < columns / 2;
        let read = row >= rows * 3 / 4 && column >= columns / 2;
        assert_eq!(count, [u64::from(read), u64::from(written)], "row {row}, column {column}");
    }
    // By rank: the launcher, which would be the third row, is absent.
    let (by_lane, half) = (activity.by_lane.counts(), columns / 2);
    assert_eq!(activity.by_lane.rows(), 2);
    assert_eq!(
        (by_lane[0], by_lane[half], by_lane[columns], by_lane[columns + half]),
        ([0, 1], [0, 0], [0, 0], [1, 0])
    );
}

/// Parts of the time that follow one another show every call once, and each byte in one of them.
#[test]
fn charts_show_a_part_of_the_time() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t");
    let sample = Sample { ranks: 4, blocks: 32, ..Sample::default() };
    write_trace(&path, Meta::default(), &sample.processes(), &sample.files(), &sample.requests());
    let whole = common::gather(&path);
    assert!(
        !whole.zoomed
            && !render(&report(std::slice::from_ref(&whole), &[], None)).contains("Charts show the time")
    );
    // Requests last 1.7 ms, so that parts cut many of them.
    let end = whole.span_ns.end;
    let ends: Vec<u64> = [whole.span_ns.start].into_iter().chain((0..end).step_by(3_333_333).skip(1)).collect();
    let parts: Vec<Activity> =
        ends.windows(2).map(|ends| common::gather_part(&path, ends[0]..ends[1] - 1)).collect();
    let parts: Vec<Activity> =
        parts.into_iter().chain([common::gather_part(&path, *ends.last().unwrap()..end)]).collect();
    let calls = |of: &Activity| of.calls.over_time.iter().flatten().sum::<u64>();
    assert_eq!(parts.iter().map(calls).sum::<u64>(), calls(&whole));
    let bytes = |of: &Activity| of.lanes.iter().flat_map(|lane| lane.bytes).sum::<u64>();
    let (sum, all) = (parts.iter().map(bytes).sum::<u64>() as f64, bytes(&whole) as f64);
    assert!((sum / all - 1.0).abs() < 1e-5, "{sum} of {all} bytes");
    let part = common::gather_part(&path, 10_000_000..14_000_000);
    assert_eq!((part.zoomed, part.span_ns.clone()), (true, 10_000_000..14_000_000));
    assert_eq!(part.pictures[0].span_ns, part.span_ns);
    let moved: f64 = part.moved.iter().flatten().sum();
    assert!((moved / bytes(&part) as f64 - 1.0).abs() < 1e-3, "{moved} bytes in the chart over time");
    let drawn = part.pictures[0].by_offset.counts().iter().flatten().filter(|&&count| count > 0).count();
    assert!(drawn > 200, "each of the few requests is many columns wide: {drawn}");
    let html = render(&report(&[part], &[], None));
    parse(&html);
    assert!(html.contains("Charts show the time from 10\u{a0}ms to 14\u{a0}ms;"), "what is shown is said");
}

#[test]
fn many_ranks_and_requests_stay_a_small_page() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("t");
    let sample = Sample { ranks: 1000, blocks: 2, ..Sample::default() };
    write_trace(&path, Meta::default(), &sample.processes(), &sample.files(), &sample.requests());
    let trace = Trace::open(&path).unwrap();
    let summary = Summary::of(&trace).unwrap();
    let mut collector = Collector::new("t", trace.meta(), trace.processes(), summary, 0..u64::MAX);
    let count = if std::env::var_os("STRIPEWISE_LONG").is_some() { 10_000_000 } else { 300_000u64 };
    let span = sample.requests().last().unwrap().end_ns;
    for number in 0..count {
        // Requests scattered over time, place and rank are the worst case of a plot.
        let mix = number.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (rank, block) = ((mix >> 20) as u32 % 1000 + 1, (mix >> 30) % 2000);
        let op = if mix & 1 == 0 { Op::Read } else { Op::Write };
        let request = request(rank, 0, op, block * sample.block, sample.block, mix % span, 1000);
        collector.add(&[request]);
    }
    let activity = collector.finish();
    assert_eq!(activity.lanes_per_row, 8);
    let bytes: u64 = activity.lanes.iter().flat_map(|lane| lane.bytes).sum();
    assert_eq!(bytes, count * sample.block);
    let html = render(&report(&[activity], &[], None));
    assert!(html.len() < 2 << 20, "{} bytes", html.len());
    parse(&html);
}
