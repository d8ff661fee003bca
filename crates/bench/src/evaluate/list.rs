//! `evaluate --list`: lists the experiments.

use serde::Serialize;
use stripewise_evaluate::{Place, Scale};

use super::job::Job;

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

/// Prints the named experiments.
///
/// # Errors
/// Standard output cannot be written.
pub fn print(job: &Job<'_>) -> anyhow::Result<()> {
    let size = |cells: fn(Scale) -> Vec<stripewise_evaluate::Cell>, place: Place| {
        let cells = cells(Scale { place, quick: job.args.quick });
        let runs = cells.iter().map(|cell| cell.schemes.len()).sum();
        Size { place: place.name(), cells: cells.len(), runs }
    };
    let listed = job.experiments.iter().map(|experiment| Listed {
        id: experiment.id,
        title: &experiment.title,
        setting: &experiment.setting,
        claimed: &experiment.claimed,
        claims: experiment.claims.iter().map(|claim| claim.what.as_str()).collect(),
        places: Place::ALL.iter().map(|&place| size(experiment.cells, place)).collect(),
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
