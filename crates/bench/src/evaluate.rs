//! `stripewise-bench evaluate` runs the papers' experiments, simulated and measured.

mod args;
mod job;
mod measured;
mod store;

use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use serde::Serialize;
use stripewise_console::{files, interrupt};
use stripewise_evaluate::{Document, Experiment, Place, Scale, experiments, page};

pub use args::Args;
use job::Job;

/// Runs `stripewise-bench evaluate`: executes the tasks that have no record yet and stores each
/// record as it is made. A cell that fails is stored as a failed record and makes the exit status
/// 1.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    let job = Job { args, experiments: args.chosen(experiments::all())? };
    if args.list {
        list(&job)?;
        return Ok(ExitCode::SUCCESS);
    }
    std::fs::create_dir_all(&args.dir).with_context(|| format!("cannot make {}", args.dir.display()))?;
    interrupt::ask();
    let mut failed = 0;
    if args.simulated() {
        failed += job.simulate()?;
    }
    if args.measured {
        failed += measured::run(&job)?;
    }
    if let Some(pages) = &args.render {
        render(&job, pages)?;
    }
    Ok(if failed == 0 && !interrupt::asked() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

#[derive(Serialize)]
struct Listed<'a> {
    id: &'static str,
    title: &'a str,
    setting: &'a str,
    claimed: &'a str,
    claims: Vec<&'a str>,
    /// Number of cells and runs by place, at the requested scale.
    places: Vec<Size>,
}

#[derive(Serialize)]
struct Size {
    place: &'static str,
    cells: usize,
    runs: usize,
}

fn list(job: &Job<'_>) -> anyhow::Result<()> {
    let size = |experiment: &Experiment, place: Place| {
        let cells = experiment.cells(Scale { place, quick: job.args.quick });
        let runs = cells.iter().map(|cell| cell.schemes.len()).sum();
        Size { place: place.name(), cells: cells.len(), runs }
    };
    let listed = job.experiments.iter().map(|experiment| Listed {
        id: experiment.id,
        title: &experiment.title,
        setting: &experiment.setting,
        claimed: &experiment.claimed,
        claims: experiment.claims.iter().map(|claim| claim.what.as_str()).collect(),
        places: Place::ALL.iter().map(|&place| size(experiment, place)).collect(),
    });
    let listed: Vec<Listed<'_>> = listed.collect();
    if job.args.json {
        println!("{}", serde_json::to_string_pretty(&listed)?);
        return Ok(());
    }
    for Listed { id, title, setting, claimed, claims, places } in &listed {
        println!("{id}  {title}\n    setting: {setting}\n    claimed: {claimed}");
        if !claims.is_empty() {
            println!("    compared: {}", claims.join("; "));
        }
        let sizes =
            places.iter().map(|size| format!("{} {} cells, {} runs", size.place, size.cells, size.runs));
        println!("    {}", sizes.collect::<Vec<_>>().join("; "));
    }
    Ok(())
}

/// Writes `evaluation.md` and the drawings in `evaluation/` into `pages`, from the documents in the
/// directory of the records. Removes drawings that the page does not show any more.
fn render(job: &Job<'_>, pages: &Path) -> anyhow::Result<()> {
    let documents: Vec<Document> = Place::ALL
        .iter()
        .filter_map(|place| read(&job.args.dir, *place).transpose())
        .collect::<Result<_, _>>()?;
    let rendered = page::render(&job.experiments, &documents);
    let drawings = pages.join(page::DRAWINGS);
    std::fs::create_dir_all(&drawings).with_context(|| format!("cannot make {}", drawings.display()))?;
    for (name, text) in &rendered.drawings {
        files::write_whole(&drawings.join(name), text)?;
    }
    remove_others(&drawings, &rendered.drawings)?;
    let page = pages.join("evaluation.md");
    files::write_whole(&page, &rendered.markdown)?;
    job.say(&page.display().to_string());
    Ok(())
}

/// Reads the document of a place; `None` if nothing was run there.
fn read(dir: &Path, place: Place) -> anyhow::Result<Option<Document>> {
    let path = dir.join(format!("{}.json", place.name()));
    let parse = |text: &str, name: &str| Document::parse(text, name, place);
    path.exists().then(|| files::parsed(&path, parse)).transpose()
}

/// Removes the drawings of an earlier rendering. Only files with names like `C1-2.svg` are removed.
fn remove_others(drawings: &Path, kept: &[(String, String)]) -> anyhow::Result<()> {
    let wrong = || format!("cannot look into {}", drawings.display());
    for entry in std::fs::read_dir(drawings).with_context(wrong)? {
        let entry = entry.with_context(wrong)?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if page::is_drawing(&name) && kept.iter().all(|(kept, _)| *kept != name) {
            std::fs::remove_file(entry.path()).with_context(|| format!("cannot remove {name}"))?;
        }
    }
    Ok(())
}
