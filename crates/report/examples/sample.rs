//! Writes the page with sample data to standard output, to view it in a browser while changing it:
//! `cargo run -p stripewise-report --example sample > /tmp/sample.html`

#[path = "../tests/common/mod.rs"]
mod common;

use common::copies::{self, CACHE, REPLICAS, expected, plan_with_copies, predictions};
use stripewise_plan::Native;
use stripewise_report::{PlanView, Predictions, Report, Statistics, render};

fn main() {
    let directory = tempfile::tempdir().expect("a directory for the trace");
    let activities = [common::Sample::default().activity(directory.path())];
    let mut view = PlanView::new("plan.toml", common::plan(), &activities);
    view.details[0].candidates = common::results().workloads.remove(0).candidates;
    view.details[0].candidates.iter_mut().for_each(|candidate| candidate.measured_s.clear());
    view.details[0].choice = "PSA".into();
    view.details[0].present = "1-DH".into();
    view.details[0].native = vec![
        Native {
            system: "Lustre".into(),
            commands: vec!["lfs setstripe -c 4 -S 128K -p hdd /data".into()],
            note: None,
        },
        Native {
            system: "BeeGFS".into(),
            commands: vec![],
            note: Some("cannot be expressed because stripes have different widths".into()),
        },
    ];
    let mut statistics = Statistics::default();
    let mut views = vec![view];
    for (name, text, copies) in
        [("replicas.toml", REPLICAS, &["1-DV"][..]), ("cache.toml", CACHE, &["1-DH", "1-DV"][..])]
    {
        let mut view = PlanView::new(name, plan_with_copies(text), &activities);
        view.add_predictions(&Predictions::parse(&predictions(expected(copies)), name).expect("predictions"));
        views.push(view);
        let path = format!("/data/{name}");
        statistics.read(&copies::statistics(&path, copies), name).expect("statistics");
    }
    let results = common::results();
    let report = Report {
        date: "2026-11-21T02:00:00Z",
        command: "stripewise report -t sample.trace -p plan.toml -r results.json",
        version: "0.1.0",
        activities: &activities,
        before: None,
        plans: &views,
        results: Some(&results),
        statistics: &statistics.files,
    };
    print!("{}", render(&report));
}
