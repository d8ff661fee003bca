//! The committed pages match the committed records, and every experiment has an explanation.

use std::path::{Path, PathBuf};

use stripewise_evaluate::{Document, Place, experiments, page};

fn docs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn documents() -> Vec<Document> {
    let path = |place: Place| docs().join(page::DRAWINGS).join(format!("{}.json", place.name()));
    let there = Place::ALL.into_iter().filter(|place| path(*place).exists());
    there.map(|place| Document::parse(&read(&path(place)), place.name(), place).unwrap()).collect()
}

/// Shows the first line that differs, which is clearer than two whole pages.
fn assert_same(name: &str, committed: &str, rendered: &str) {
    let differing = committed.lines().zip(rendered.lines()).find(|(a, b)| a != b);
    let remedy = "`make evaluation-pages` writes it anew";
    assert!(committed == rendered, "docs/{name} is not what its records give, {remedy}: {differing:?}");
}

#[test]
fn the_committed_pages_are_those_of_the_committed_records() {
    let rendered = page::render(&experiments::all(), &documents());
    assert_same("evaluation.md", &read(&docs().join("evaluation.md")), &rendered.markdown);
    let drawings = docs().join(page::DRAWINGS);
    for (name, text) in &rendered.drawings {
        assert_same(&format!("{}/{name}", page::DRAWINGS), &read(&drawings.join(name)), text);
    }
    // Without records there are no drawings, and no directory.
    let committed = std::fs::read_dir(&drawings).into_iter().flatten().map(|entry| entry.unwrap().file_name());
    let committed = committed.filter(|name| page::is_drawing(name.to_str().unwrap_or_default())).count();
    assert_eq!(committed, rendered.drawings.len(), "drawings that no page shows");
}

#[test]
fn every_experiment_is_explained() {
    let all = experiments::all();
    let without = all.iter().filter(|experiment| experiment.explanation.is_empty());
    let without: Vec<&str> = without.map(|experiment| experiment.id).collect();
    assert!(without.is_empty(), "nothing in explanations/ for {without:?}");
}

/// The papers have 18 experiments. None may be missing, and each has a claim that is compared.
#[test]
fn no_published_experiment_is_missing() {
    let all = experiments::all();
    let published = ["C1", "C2", "C3", "C4", "P1", "P2", "P3", "P4", "P5", "P6", "P7"];
    for id in published.into_iter().chain(["S1", "S2", "S3", "S4", "S5", "S6", "S7"]) {
        let experiment = all.iter().find(|experiment| experiment.id == id);
        assert!(experiment.is_some_and(|experiment| !experiment.claims.is_empty()), "{id}");
    }
}
