//! Pages on plans with several copies per file, and on the statistics of such files.

mod common;

use common::copies::{CACHE, REPLICAS, expected, plan_with_copies, predictions, statistics};
use common::plan;
use roxmltree::{Document, ParsingOptions};
use stripewise_cluster::Plan;
use stripewise_report::{PlanView, Predictions, Report, Statistics, missing_parts, render};

fn view(plan: Plan, expected: Option<serde_json::Value>) -> PlanView {
    let mut view = PlanView::new("plan.toml", plan, &[]);
    view.details[0].file_bytes = Some(1 << 30);
    if let Some(expected) = expected {
        view.add_predictions(&Predictions::parse(&predictions(expected), "plan.json").unwrap());
    }
    view
}

fn read(text: &str) -> Statistics {
    let mut statistics = Statistics::default();
    statistics.read(text, "s.jsonl").unwrap();
    statistics
}

fn report<'a>(plans: &'a [PlanView], statistics: &'a Statistics) -> Report<'a> {
    Report {
        date: "2026-11-21T02:00:00Z",
        command: "stripewise report",
        version: "1.2.3",
        activities: &[],
        before: None,
        plans,
        results: None,
        statistics: &statistics.files,
    }
}

/// The page's text without markup and with plain spaces, including the names of drawings.
fn page(plans: &[PlanView], statistics: &Statistics) -> String {
    let html = render(&report(plans, statistics));
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    let document = Document::parse_with_options(&html, options).unwrap_or_else(|error| panic!("{error}"));
    let mut text = String::new();
    let main = document.descendants().find(|node| node.has_tag_name("main")).unwrap();
    for node in main.descendants() {
        text += node.attribute("aria-label").unwrap_or_default();
        text += node.text().filter(|_| node.is_text()).unwrap_or_default();
        text.push(' ');
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[track_caller]
fn says(page: &str, words: &[&str]) {
    for words in words {
        assert!(page.contains(words), "{words:?} in {page}");
    }
}

#[test]
fn replicas_show_who_serves_what_and_what_it_costs() {
    let view = view(plan_with_copies(REPLICAS), Some(expected(&["1-DV"])));
    let page = page(&[view], &Statistics::default());
    says(
        &page,
        &[
            "2 whole copies",
            "2× the files' bytes",
            "1 GiB are copied to the other replicas, which takes 3.5 s of the busiest server; close waits for that",
            "original alone: expected 91.25 s",
            "1-DV alone: expected 92.25 s",
            "all 2 copies, each request on the cheapest: expected 83.66 s",
            "the same, if close did not wait: expected 80.16 s",
            "read of 8 KiB, not in order, 16 processes at a time original",
            "1-DV serves",
            "original serves",
            "ssd/0-3:4M",
            "of a file of 1 GiB with all its copies",
        ],
    );
    // A file of 1 GiB has 4 x 120K and 4 x 8K in each turn of the first layout, and a quarter on
    // each SSD in the second.
    assert!(!page.contains("what is cached") && !page.contains("by SLA's model"));
}

#[test]
fn a_cache_shows_what_is_critical_what_fits_and_what_that_gains_at_most() {
    let view = view(plan_with_copies(CACHE), Some(expected(&["1-DH", "1-DV"])));
    let page = page(&[view], &Statistics::default());
    says(
        &page,
        &[
            "mode sla: data of performance-critical requests",
            "those that keep the servers of the original and of the cache equally busy",
            "1.3× the files' bytes, the cache full: 256 MiB in the cache, at most 64 MiB on each of its servers",
            "requests: 50 % hits, 25 % critical without space, 25 % not critical",
            "762.9 MiB, each byte once, of which 33.6 % fit",
            "2× = 1/(1−x): hits are x = 50 % of the original's time",
            "1.6×: all requests cost 100 s on the original alone and 62.5 s with the cache",
            "original alone: expected 91.25 s",
            "with the cache: expected 83.66 s",
            "1-DH only: expected 71.8 s",
            "each request in its best: expected 62.5 s",
            "1-DV gains most",
            "36.2 ms 100 % 100 % 1-DV",
            "\u{2212}1.04 s 0 % 0 % original",
            "original not cached",
            "benefit B",
        ],
    );
}

#[test]
fn without_predictions_the_page_says_how_to_get_them() {
    for expected in [None, Some(expected(&["stripe 4M"])), Some(expected(&["1-DH", "1-DV"]))] {
        let page = page(&[view(plan_with_copies(REPLICAS), expected)], &Statistics::default());
        says(&page, &["add --predictions plan.json", "Copy original", "Copy 1-DV"]);
        assert!(!page.contains(" alone: expected"), "of other copies");
    }
}

#[test]
fn predictions_that_do_not_fit_together_are_refused() {
    let mut broken = expected(&["1-DV"]);
    broken["classes"][1]["served"] = serde_json::json!([1.0]);
    let error = Predictions::parse(&predictions(broken), "plan.json").unwrap_err().to_string();
    assert!(
        error.starts_with("plan.json: ") && error.contains("/data/shared.dat: expected.classes"),
        "{error}"
    );
}

#[test]
fn what_was_counted_stands_beside_what_was_expected() {
    let copies = ["1-DH", "1-DV"];
    let view = view(plan_with_copies(CACHE), Some(expected(&copies)));
    let page = page(&[view], &read(&statistics("/data/shared.dat", &copies)));
    says(
        &page,
        &[
            "1 file: 1 000 requests of 2 processes moved 48 MiB",
            "critical: expected 75 %, measured 90 % (900)",
            "hits: expected 50 %, measured 22.2 % (222)",
            "hits in part: expected not predicted, measured 0.6 % (6)",
            "Fewer hits than expected",
            "1-DH: expected 33.3 %, measured 33.3 % (16 MiB)",
            "46 ranges, 20 KiB Written",
            "38 ranges, 10 KiB Evicted",
            "34 ranges, 8 KiB",
        ],
    );
}

#[test]
fn more_and_fewer_hits_than_expected_are_explained() {
    let copies = ["1-DH", "1-DV"];
    for (hits, words) in [(111, "Fewer hits"), (250, ""), (499, "More hits")] {
        let view = view(plan_with_copies(CACHE), Some(expected(&copies)));
        let text = statistics("/data/shared.dat", &copies).replace("\"hits\":111", &format!("\"hits\":{hits}"));
        let page = page(&[view], &read(&text));
        assert!(page.contains(&format!("({}", 2 * hits)) || hits == 499, "{page}");
        assert_eq!(page.contains(" hits than expected"), !words.is_empty(), "{hits}");
        assert!(page.contains(words));
    }
}

#[test]
fn files_with_other_copies_than_their_rule_stand_alone() {
    let view = view(plan_with_copies(REPLICAS), Some(expected(&["1-DV"])));
    let text = statistics("/data/shared.dat", &["stripe 1M"]) + &statistics("/elsewhere/<b>", &["1-DV"]);
    let page = page(std::slice::from_ref(&view), &read(&text));
    says(&page, &["stripe 1M: measured 50 % (16 MiB)", "/elsewhere/<b>", "1-DV: measured 50 %"]);
    assert!(!page.contains("expected by the plan"));
}

#[test]
fn files_of_a_rule_are_added_up() {
    let copies = "[[rule.copy]]\nkind = \"replica\"\nname = \"1-DV\"\nlayouts = [[{ cycle = \"hdd/0:1G\" }]]\n";
    let text = common::PLAN.replace("layouts = []", "layouts = [[{ cycle = \"hdd/0:1G\" }]]");
    let text = text.replace("scheme = \"keep\"", "scheme = \"x\"").replace("/data/other", "/data/part.<n>");
    let at = text.find("[cluster.network]").unwrap();
    let plan = Plan::parse(&format!("{}{copies}{}", &text[..at], &text[at..]), "plan.toml").unwrap();
    let many: String = (0..3).map(|n| statistics(&format!("/data/part.{n}"), &["1-DV"])).collect();
    let page = page(&[view(plan, None)], &read(&many));
    says(
        &page,
        &["3 files: 3 000 requests of 2 processes moved 96 MiB", "/data/part.<n> replicas", "/data/part.2"],
    );
}

#[test]
fn the_part_is_there_where_it_has_something_to_say() {
    let nothing = Statistics::default();
    let titles = |plan: Plan, statistics: &Statistics| -> (bool, bool) {
        let views = [view(plan, None)];
        let report = report(&views, statistics);
        let missing = missing_parts(&report).iter().any(|part| part.title == "What the copies served");
        (render(&report).contains("id=\"copies\""), missing)
    };
    assert_eq!(titles(plan(), &nothing), (false, false));
    assert_eq!(titles(plan_with_copies(REPLICAS), &nothing), (true, true));
    let counted = read(&statistics("/data/x", &["1-DV"]));
    assert_eq!(titles(plan_with_copies(REPLICAS), &counted), (true, false));
    assert_eq!(titles(plan(), &counted), (true, false));
}
