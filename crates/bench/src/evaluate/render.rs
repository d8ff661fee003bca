//! `evaluate --render`: writes the page.

use std::path::Path;

use anyhow::Context;
use stripewise_console::files;
use stripewise_evaluate::{Document, Place, page};

use super::job::Job;

/// Writes `evaluation.md` and the drawings in `evaluation/` into `pages`, from the documents in the
/// directory of the records. Removes drawings that the page does not show any more.
///
/// # Errors
/// A document cannot be read, or the page cannot be written.
pub fn run(job: &Job<'_>, pages: &Path) -> anyhow::Result<()> {
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
    if !path.exists() {
        return Ok(None);
    }
    Ok(Some(Document::parse(&files::read(&path)?, &path.to_string_lossy(), place)?))
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
